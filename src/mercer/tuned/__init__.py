"""Machines that choose their own parameters: TunedSVC, TunedSVR, TunedLogistic, and `tune` for all of them."""

from mercer.tuned.estimators import TunedLogistic, TunedSVC, TunedSVR
from mercer.tuned.tuning import Tuned, tune

__all__ = ["Tuned", "TunedLogistic", "TunedSVC", "TunedSVR", "tune"]
