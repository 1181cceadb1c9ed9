"""Ensembles: many machines on parts of the data, combined."""

from mercer.ensembles.bagging import Bagging
from mercer.ensembles.sampling import Coverage, Sample

__all__ = ["Bagging", "Coverage", "Sample"]
