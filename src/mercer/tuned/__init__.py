"""Machines that choose their own parameters: TunedSVC and its kind for every family, and `tune` for all of them."""

from mercer.tuned.estimators import TunedLogistic, TunedSVC, TunedSVR
from mercer.tuned.ordinal import TunedOrdinalSVC, TunedProportionalOdds, TunedRankSVM
from mercer.tuned.tuning import Tuned, tune

__all__ = [
    "Tuned", "TunedLogistic", "TunedOrdinalSVC", "TunedProportionalOdds", "TunedRankSVM", "TunedSVC", "TunedSVR",
    "tune",
]  # fmt: skip
