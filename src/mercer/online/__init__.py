"""Machines that learn a stream, each point once and in fixed memory: `partial_fit`, without end."""

from mercer.online.classification import OnlineSVC
from mercer.online.novelty import OnlineNovelty
from mercer.online.regression import OnlineSVR
from mercer.solvers.online import terms_for

__all__ = ["OnlineNovelty", "OnlineSVC", "OnlineSVR", "terms_for"]
