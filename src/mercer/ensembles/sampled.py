"""What ensembles of members on samples share: Bagging, Committee and Stacking."""

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer.ensembles import combining, sampling
from mercer.ensembles.base import Array, Data, Ensemble
from mercer.ensembles.members import Crew, Trained
from mercer.ensembles.sampling import Sample
from mercer.errors import Advice, InvalidInput
from mercer.machine.outcome import FitPlan, common_outcome
from mercer.solvers.monitor import Monitor

SAMPLES = ("bootstrap", "subsample", "committee", "disjoint")


class BankedEnsemble(Ensemble):
    """An ensemble whose members are a bank, `bank_`, and whose outputs are a function of theirs."""

    _above: ClassVar[str] = ""
    """The attribute that holds a machine above the members, where there is one."""

    def _parts(self) -> list[Any]:
        check_is_fitted(self)
        above = getattr(self, self._above, None) if self._above else None
        return [*self.bank_.machines, *([above] if hasattr(above, "objective_") else [])]

    def _conclude(self, ended: str | None = None) -> None:
        """Kernel and outcome of all parts together; `ended` says what cut the training short."""
        self.kernel_ = self.bank_.kernel
        self.stopped_ = common_outcome(self._parts()) if ended is None else ended

    @property
    def members_(self) -> list[Any]:
        """The fitted machines; those that share a kernel matrix take kernel values, see `member_outputs`."""
        check_is_fitted(self)
        return list(self.bank_.machines)

    @property
    def plan_(self) -> FitPlan:
        """How the members were trained: that of the first one, for all of them; print it."""
        found = super().plan_
        view: Any = self.bank_.view
        if self.bank_.storage is None:
            return found
        return replace(found, storage=self.bank_.storage, precision=view.resources.precision)

    # Prediction ------------------------------------------------------------------------------------------------

    def member_outputs(self, X: Any) -> Array:
        """Outputs (q, n, k) of every member."""
        return np.asarray(self.bank_.outputs(self._points(X)))

    def _combined(self, X: Any) -> Array:
        return self._combine(self.bank_.outputs(X))

    def _combine(self, F: Array) -> Array:
        """Outputs (n, k) of the ensemble from those of its members (q, n, k)."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class SampledEnsemble(BankedEnsemble):
    """Members on samples of the points, or machines of several kinds on all of them."""

    members: int = 10
    sample: str = "disjoint"
    size: float = 1.0
    features: float = 1.0
    noise: float = 0.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BankedEnsemble._parameter_constraints,
        "members": [Interval(Integral, 1, None, closed="left")],
        "sample": [StrOptions(set(SAMPLES))],
        "size": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0.0, 1.0, closed="right")],
        "features": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0.0, 1.0, closed="right")],
        "noise": [Interval(Real, 0.0, None, closed="left")],
    }

    # Training --------------------------------------------------------------------------------------------------

    def _crew(self, data: Data, random: np.random.Generator) -> Crew:
        """Bases and samples of all members, and what they share."""
        if isinstance(self._base, (list, tuple)):
            bases = self._bases
            samples = [Sample(np.arange(data.n))] * len(bases)
        else:
            samples = self._samples(data, random)
            bases = [self._base] * len(samples)
        samples = self._with_features(samples, data, random)
        spread = None
        if self.noise > 0.0:
            if data.kind != "features" or sp.issparse(data.X):
                raise InvalidInput("noise is added to dense features; leave it at 0 for other points")
            spread = self.noise * data.X.std(axis=0)
            samples = [replace(sample, noise=int(random.integers(1 << 32))) for sample in samples]
        seed = int(random.integers(1 << 32))
        return Crew(data, bases, samples, self._columns, seed=seed, spread=spread, executor=self.executor)

    def _samples(self, data: Data, random: np.random.Generator) -> list[Sample]:
        n, strata, size = data.n, data.codes, sampling.absolute(self.size, data.n)
        if self.sample == "bootstrap":
            return sampling.bootstrap(n, self.members, size, seed=random, strata=strata)
        if self.sample == "subsample":
            return sampling.subsample(n, self.members, size, seed=random, strata=strata)
        parts = self._most_parts(data)
        if parts == 1:
            return [Sample(np.arange(n))]
        deal = sampling.disjoint if self.sample == "disjoint" else sampling.committee
        return deal(n, parts, seed=random, strata=strata)

    def _most_parts(self, data: Data) -> int:
        """As many parts as there are members, and no more than leave a point of every class in each."""
        smallest = data.n if data.codes is None else int(np.bincount(data.codes).min())
        if smallest < self.members:
            what = "there are" if data.codes is None else "the smallest class has"
            warnings.warn(
                f"members={self.members}: {what} {smallest} points, and so {smallest} parts are made; ask for no more, "
                'or draw sample="bootstrap" or "subsample"',
                Advice,
                stacklevel=6,
            )
        return max(1, min(self.members, smallest))

    def _with_features(self, samples: list[Sample], data: Data, random: np.random.Generator) -> list[Sample]:
        if self.features == 1.0 and not isinstance(self.features, Integral):
            return samples
        if data.kind != "features":
            raise InvalidInput("features: a kernel matrix or objects have no features to choose from; leave it at 1.0")
        d = int(data.X.shape[1])
        chosen = sampling.feature_subsets(d, len(samples), sampling.absolute(self.features, d), seed=random)
        return [replace(sample, features=features) for sample, features in zip(samples, chosen)]

    def _train_members(self, crew: Crew, monitor: Monitor, folds: int | None = None) -> list[Trained]:
        """Train, and keep the members and their certificates."""
        self.bank_, trained = crew.train(monitor, folds=folds)
        self.coverage_ = sampling.coverage(self.bank_.samples, crew.data.n)
        self._conclude(monitor.stopped)
        return trained


class WeighedSum(Ensemble):
    """An ensemble that sums the outputs or decisions of its members with weights (q,) that may be learnt."""

    summed: str
    weights_: Array

    @property
    def support_models_(self) -> int:
        """Members whose weight is not zero."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.weights_))

    def _summands(self, F: Array) -> Array:
        return combining.decisions(F) if self.summed == "decisions" and self._classify else F

    def _keep_errors(self, F: Array, data: Data) -> None:
        """Outputs and errors of the sum, and errors of the members, from outputs F (q, n, k) at points not seen."""
        found = combining.weighted(F, self.weights_)
        self.loo_outputs_: Array | None = found[data.point]
        self.loo_error_ = self._error(found, data.y, data.weights)
        self.loo_member_errors_: Array | None = np.array([self._error(f, data.y, data.weights) for f in F])


def targets_of(data: Data, columns: int) -> NDArray[np.float64]:
    """Targets (n, k) that outputs are held against: +-1 for classes, the numbers themselves for a regression."""
    if data.codes is None:
        return data.y[:, None]
    if columns == 1:
        return np.where(data.codes == 1, 1.0, -1.0)[:, None]
    return np.where(data.codes[:, None] == np.arange(columns), 1.0, -1.0)
