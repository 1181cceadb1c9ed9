"""Ensembles: many machines on parts of the data, combined."""

from mercer.ensembles.bagging import Bagging
from mercer.ensembles.boosting import AdaBoost
from mercer.ensembles.committee import Committee
from mercer.ensembles.experts import MixtureOfExperts
from mercer.ensembles.local import LocalMachines
from mercer.ensembles.sampling import Coverage, Sample
from mercer.ensembles.stacking import Stacking

__all__ = [
    "AdaBoost",
    "Bagging",
    "Committee",
    "Coverage",
    "LocalMachines",
    "MixtureOfExperts",
    "Sample",
    "Stacking",
]
