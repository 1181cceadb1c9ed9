"""Machines that choose their own parameters: TunedSVC, TunedSVR, and `tune` for any of mercer's machines."""

from mercer.tuned.estimators import TunedSVC, TunedSVR
from mercer.tuned.tuning import Tuned, tune

__all__ = ["Tuned", "TunedSVC", "TunedSVR", "tune"]
