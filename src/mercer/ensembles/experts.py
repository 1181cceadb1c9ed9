"""MixtureOfExperts: machines on parts of the space, and a gate that says whom to ask where.

The loop is that of `mercer.solvers.experts`.  Losses of an expert at its own points are those of exact leave-one-out
for least squares, of folds for others, so that an expert is not trusted because it has learnt a point by heart.  For
classes the losses are squared distances of the outputs from +-1, and an expert whose part lacks a class also gets the
points of that class that the gate would give it first.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import has_fit_parameter

from mercer.ensembles import combining, sampling
from mercer.ensembles.base import Array, Data, Index
from mercer.ensembles.members import Crew
from mercer.ensembles.sampled import BankedEnsemble, targets_of
from mercer.ensembles.sampling import Sample
from mercer.errors import InvalidInput
from mercer.kernels import Linear
from mercer.least_squares import LSSVC
from mercer.machine import arguments
from mercer.machine.fitted_state import Number, State, Values, Word
from mercer.multiclass import KernelLogistic
from mercer.solvers import experts as loop
from mercer.solvers.experts import Experts, Gate, Mixture
from mercer.solvers.monitor import SILENT

FEWEST = 2  # points of every class that each expert sees at least, where there are so many


@dataclass(kw_only=True, eq=False, repr=False)
class MixtureOfExperts(BankedEnsemble):
    """A sum of experts on balanced parts of the points, weighed at each point by a gate.

    Parameters
    ----------
    base : the machine of every expert, classifier or regressor; None is `mercer.LSSVC()`.
    experts : how many.
    gate : any classifier, trained to tell which expert answers for a point; None is kernel logistic regression with a
        linear kernel.  Its size decides about result and cost.
    rounds : most rounds of experts, gate and new parts.
    slack : an expert holds at most (1 + slack) n / q points.
    folds : of each expert's part, where exact leave-one-out is not free.
    random_state, verbose, n_jobs, executor : as in `Bagging`.

    Attributes
    ----------
    gate_ : the fitted gate; `gate_weights(X)` (n, q) what it says.
    parts_ : the expert of each training point of positive weight (n,).
    errors_ : error rate, or mean squared error, of the mixture after each accepted round, outputs of an expert at its
        own points being those of leave-one-out or folds; loo_error_ the last of them.  The gate has seen the points.
    ended_ : "rounds", "settled", "worse" (the last round was taken back) or "interrupted".
    bank_, coverage_ and all others : as in `Bagging`; certificates are those of the experts and of the gate.

    """

    _default = LSSVC
    _above = "gate_"

    experts: int = 4
    gate: Any = None
    rounds: int = 10
    slack: float = 0.2
    folds: int = 5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BankedEnsemble._parameter_constraints,
        "experts": [Interval(Integral, 2, None, closed="left")],
        "gate": "no_validation",  # type: ignore[dict-item]  # scikit-learn takes the word
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "slack": [Interval(Real, 0.0, None, closed="left")],
        "folds": [Interval(Integral, 2, None, closed="left")],
    }

    @property
    def _gate(self) -> Any:
        return KernelLogistic(kernel=Linear()) if self.gate is None else self.gate

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MixtureOfExperts":
        """Train on points X and targets y (n,); `sample_weight` (n,) multiplies how often a point counts."""
        if not is_classifier(self._gate):
            raise InvalidInput(f"gate={self._gate!r} is not a classifier, which tells experts apart")
        data = self._data(X, y, sample_weight).merged()
        if data.kind == "precomputed":
            raise InvalidInput("the gate needs points: a mixture of experts takes no kernel matrix in their place")
        whole = [Sample(np.arange(data.n))] * self.experts
        with self._watched(X, y) as monitor:
            random = self._generator()
            start = sampling.disjoint(data.n, self.experts, seed=random, strata=data.codes)
            part = np.empty(data.n, dtype=np.intp)
            for expert, sample in enumerate(start):
                part[sample.rows] = expert
            seed = int(random.integers(1 << 32))
            crew = Crew(data, [self._base] * self.experts, whole, self._columns, seed=seed, executor=self.executor)
            capacity = int(np.ceil((1.0 + self.slack) * data.n / self.experts))
            rounds = _Rounds(self, crew, data)
            found = loop.alternate(rounds.train, rounds.learn, part, self.experts, capacity, self.rounds, monitor)
            crew.forget()
        self._keep(found, data)
        return self

    def _keep(self, found: Mixture, data: Data) -> None:
        self.bank_, self.gate_ = found.experts.machines, found.gate.machine
        self.coverage_ = sampling.coverage(self.bank_.samples, data.n)
        self.parts_, self.errors_, self.ended_ = found.part[data.point], np.array(found.errors), found.stopped
        self.loo_error_ = found.errors[-1]
        self._conclude("interrupted" if found.stopped == "interrupted" else None)

    def _state(self) -> State:
        ended = Word(("rounds", "settled", "worse", "interrupted"))
        found: State = {"errors_": Values(("rounds",)), "loo_error_": Number(), "ended_": ended}
        return {**super()._state(), **found, "parts_": Values(("rows",), "i8")}

    # Prediction ------------------------------------------------------------------------------------------------

    def gate_weights(self, X: Any) -> Array:
        """What the gate says (n, q): weights of the experts at each point, of sum one."""
        return gate_weights(self.gate_, self._points(X), self.experts)

    def _combined(self, X: Any) -> Array:
        return combining.weighted(self.bank_.outputs(X), gate_weights(self.gate_, X, self.experts).T)


class _Rounds:
    """The steps of the loop, on one data set."""

    def __init__(self, mixture: MixtureOfExperts, crew: Crew, data: Data) -> None:
        self._mixture, self._crew, self._data = mixture, crew, data
        self._targets = targets_of(data, crew.columns)
        self._weights: Array | None = None  # of the last gate
        self._outputs: Array

    def train(self, part: Index) -> Experts:
        samples = [Sample(self._rows(part, expert)) for expert in range(self._mixture.experts)]
        bank, trained = self._crew.train(SILENT, folds=self._mixture.folds, samples=samples)
        self._outputs = self._crew.unseen(bank, trained)
        return Experts(bank, np.sum((self._outputs - self._targets) ** 2, axis=2).T)

    def _rows(self, part: Index, expert: int) -> Index:
        """The points of an expert, with some of every class."""
        rows, codes = np.flatnonzero(part == expert), self._data.codes
        if codes is None:
            return rows
        trust = np.zeros(self._data.n) if self._weights is None else self._weights[:, expert]
        for label in range(int(codes.max()) + 1):
            missing = FEWEST - int(np.sum(codes[rows] == label))
            if missing > 0:
                others = np.setdiff1d(np.flatnonzero(codes == label), rows)
                rows = np.union1d(rows, others[np.argsort(-trust[others], kind="stable")[:missing]])
        return rows

    def learn(self, experts: Experts, h: Array) -> Gate:
        data, q = self._data, self._mixture.experts
        machine = clone(self._mixture._gate)
        if has_fit_parameter(machine, "sample_weight"):
            points = arguments.take(data.X, np.repeat(np.arange(data.n), q))
            weights = h if data.weights is None else h * data.weights[:, None]
            machine.fit(points, np.tile(np.arange(q), data.n), sample_weight=weights.ravel())
        else:
            machine.fit(data.X, np.argmax(h, axis=1))
        self._weights = gate_weights(machine, data.X, q)
        mixed = combining.weighted(self._outputs, self._weights.T)
        return Gate(machine, self._weights, self._mixture._error(mixed, data.y, data.weights))


def gate_weights(gate: Any, X: Any, experts: int) -> Array:
    """Weights (n, q) of sum one: probabilities of a classifier of experts 0..q-1, or the softmax of its outputs."""
    if hasattr(gate, "predict_proba"):
        values = np.asarray(gate.predict_proba(X), dtype=np.float64)
    else:
        values = np.asarray(gate.decision_function(X), dtype=np.float64)
        values = softmax(np.column_stack([-values, values]) if values.ndim == 1 else values, axis=1)
    weights = np.zeros((len(values), experts))
    weights[:, np.asarray(gate.classes_, dtype=np.intp)] = values
    return weights
