"""The trained binary machines of one code, as one thing: outputs (n, F) at new points.

`Bank` is what decoders see.  `CloneBank` holds a clone of any scikit-learn classifier for each column; the banks of
mercer's own machines share factorisations and kernel values (`least_squares_bank`, `support_vector_bank`).
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, has_fit_parameter

from mercer.errors import InvalidInput
from mercer.machine.arguments import refuse_negative, sample_weights
from mercer.multiclass.codes import Code

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SMALLEST = 1e-9  # probabilities stay this far from 0 and 1 on their way to log-odds


class Bank(ABC):
    """Machines of a code M (k, F), trained on n points."""

    @abstractmethod
    def outputs(self, X: Any) -> Array:
        """Outputs (m, F) at m points; positive for the classes with M = +1."""

    @abstractmethod
    def parts(self) -> list[Any]:
        """What was trained: fitted machines, whose certificates count together."""

    def leave_one_out(self) -> Array | None:
        """Exact outputs (n, F) of machines trained without each training point; None where they are not free."""
        return None


class CloneBank(Bank):
    """One clone of an estimator for each column; a column left with one side answers that side always."""

    def __init__(self, machines: list[Any], members: list[Index | None], pairwise: bool) -> None:
        self.machines = machines
        self._members = members
        self._pairwise = pairwise

    @classmethod
    def train(
        cls, base: Any, code: Code, X: Any, labels: Index, weights: Array | None, n_jobs: int | None
    ) -> "CloneBank":
        """Train on points X whose classes 0..k-1 are `labels` (n,)."""
        if not (hasattr(base, "decision_function") or hasattr(base, "predict_proba")):
            raise InvalidInput(f"{type(base).__name__} has neither decision_function nor predict_proba to decode")
        pairwise = bool(get_tags(base).input_tags.pairwise)
        signs = code[labels]  # (n, F)
        members: list[Index | None] = [
            None if column.all() else np.flatnonzero(column).astype(np.intp) for column in signs.T
        ]
        tasks = (delayed(_fit)(base, X, column, where, weights, pairwise) for column, where in zip(signs.T, members))
        return cls(list(Parallel(n_jobs=n_jobs)(tasks)), members, pairwise)

    def parts(self) -> list[Any]:
        """The clones; a column left with one side has none."""
        return [machine for machine in self.machines if not isinstance(machine, float)]

    def outputs(self, X: Any) -> Array:
        """Outputs (m, F), column by column."""
        values = np.empty((_num_samples(X), len(self.machines)))
        for column, (machine, where) in enumerate(zip(self.machines, self._members)):
            if isinstance(machine, float):
                values[:, column] = machine
            else:
                seen = X if where is None or not self._pairwise else _safe_indexing(X, where, axis=1)
                values[:, column] = margins(machine, seen)
        return values


def weights_for(base: Any, sample_weight: Any, X: Any) -> Array | None:
    """Sample weights (n,) of the points, None where none are given; refused where the base takes none."""
    weights = sample_weights(sample_weight, X)
    if weights is not None:
        refuse_negative(weights)
        if not has_fit_parameter(base, "sample_weight"):
            raise InvalidInput(f"{type(base).__name__} takes no sample_weight: leave it out")
    return weights


def margins(machine: Any, X: Any) -> Array:
    """Decision values (n,) of a binary classifier, or the log-odds of its probabilities."""
    if hasattr(machine, "decision_function"):
        return np.asarray(machine.decision_function(X), dtype=np.float64).reshape(-1)
    p = np.clip(np.asarray(machine.predict_proba(X), dtype=np.float64)[:, 1], SMALLEST, 1.0 - SMALLEST)
    return np.log(p) - np.log1p(-p)


def _fit(base: Any, X: Any, signs: NDArray[np.int8], where: Index | None, weights: Array | None, pairwise: bool) -> Any:
    """A clone trained on one column, or the sign it would always answer."""
    if where is not None:
        X, signs = _safe_indexing(X, where), signs[where]
        X = _safe_indexing(X, where, axis=1) if pairwise else X
        weights = None if weights is None else weights[where]
    seen = signs if weights is None else signs[weights > 0]
    if len(seen) == 0:
        return 0.0
    if seen.min() == seen.max():
        return float(seen[0])
    y = signs.astype(np.int64)
    return clone(base).fit(X, y) if weights is None else clone(base).fit(X, y, sample_weight=weights)
