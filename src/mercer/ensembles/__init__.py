"""Ensembles: many machines on parts of the data, combined."""

from mercer.ensembles.bagging import Bagging
from mercer.ensembles.boosting import AdaBoost
from mercer.ensembles.committee import Committee
from mercer.ensembles.coupled import CoupledEnsemble
from mercer.ensembles.experts import MixtureOfExperts
from mercer.ensembles.local import LocalMachines
from mercer.ensembles.nu_sweep import NuSweep, sweep_nu
from mercer.ensembles.sampling import Coverage, Sample
from mercer.ensembles.stacking import Stacking
from mercer.ensembles.understanding import bias_variance, efron_stein, gain

__all__ = [
    "AdaBoost", "Bagging", "Committee", "CoupledEnsemble", "Coverage", "LocalMachines", "MixtureOfExperts", "NuSweep",
    "Sample", "Stacking", "bias_variance", "efron_stein", "gain", "sweep_nu",
]  # fmt: skip
