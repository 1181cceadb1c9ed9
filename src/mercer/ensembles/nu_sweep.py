"""How strongly to couple: the error of a coupled ensemble over random splits, for one nu after another.

Every nu sees the same splits, the same parts and the same coupling points: what differs between two of them is nu alone
(Hamers 2004, section 6.7.5, who takes 20 splits for each).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from mercer.ensembles.coupled import CoupledEnsemble
from mercer.errors import InvalidInput

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NuSweep:
    """Values of nu (v,) and the test errors (v, s) of s splits: error rates, or mean squared errors."""

    nu: Array
    errors: Array

    @property
    def mean(self) -> Array:
        """Mean error (v,) over the splits."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def deviation(self) -> Array:
        """Standard deviation (v,) over the splits."""
        return np.asarray(self.errors.std(axis=1, ddof=1))

    @property
    def best(self) -> float:
        """The nu of the least mean error; of equals the one nearest to zero."""
        order = np.lexsort((np.abs(self.nu), self.mean))
        return float(self.nu[order[0]])


def sweep_nu(
    machine: CoupledEnsemble,
    X: Any,
    y: Any,
    values: Sequence[float],
    *,
    splits: int = 20,
    test_size: float | int = 1 / 3,
    transductive: bool = True,
    seed: int = 0,
) -> NuSweep:
    """Errors on test points, for every nu of `values` and every split; classes are dealt out evenly.

    `transductive` couples the members on the test points, whose targets they do not see; else as the machine says.
    """
    if splits < 2 or not len(values):
        raise InvalidInput("sweep_nu needs at least one value of nu and two splits")
    y = np.asarray(y)
    dealer = StratifiedShuffleSplit if machine._classify else ShuffleSplit
    errors = np.empty((len(values), splits))
    for s, (train, test) in enumerate(dealer(splits, test_size=test_size, random_state=seed).split(X, y)):
        places = X[test] if transductive else None
        for v, nu in enumerate(values):
            one = clone(machine).set_params(nu=float(nu), random_state=seed + s)
            found = one.fit(X[train], y[train], unlabelled=places).predict(X[test])
            errors[v, s] = np.mean(found != y[test]) if machine._classify else np.mean((found - y[test]) ** 2)
    return NuSweep(np.asarray(values, dtype=np.float64), errors)
