"""Committee: a weighted sum of members on parts of the data, with weights that minimise its error.

The weights beta, sum beta = 1, minimise beta'S beta over the error products S of the members
(`mercer.ensembles.combining`).  S is taken at points that no member involved has seen: a member's outputs at its own
points are those of exact leave-one-out for least squares, of folds for other machines.  So the sum with equal weights
has an exact leave-one-out error, the partition being fixed; with learnt weights they count as fixed too.

A Bayesian committee weighs the members by their posterior covariances at the points asked about, all of them together.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mercer import dense
from mercer.ensembles import combining
from mercer.ensembles.base import Array
from mercer.ensembles.combining import Posterior
from mercer.ensembles.sampled import SampledEnsemble, WeighedSum, targets_of
from mercer.errors import InvalidInput
from mercer.gram import Gram, KernelColumns
from mercer.least_squares import LSSVC
from mercer.least_squares.machine import LeastSquaresMachine
from mercer.machine.fitted_state import Number, State, Values

WEIGHTS = ("affine", "convex", "equal", "bayesian")
# Share of the mean prior variance that is added to covariances of smooth functions, which are singular to rounding.
JITTER = 1e-8


@dataclass(kw_only=True, eq=False, repr=False)
class Committee(SampledEnsemble, WeighedSum):
    """Members on parts of the data, summed with the weights of least error.

    Parameters
    ----------
    base : as in `Bagging`; None is `mercer.LSSVC()`, whose exact leave-one-out is free.  A list of machines makes one
        member of each, trained on all points.
    members, sample, size, features, noise : as in `Bagging`; disjoint parts by default.
    weights : "affine" (sum one, any sign), "convex" (none negative; few members keep a weight, the support models),
        "equal", or "bayesian" (least squares without bias on disjoint parts: predictions depend on all points asked
        about at a time, and cost the cube of their number).
    summed : what is summed for classes, the "values" of the members or their "decisions" +-1.
    ridge : added to S, in units of its mean diagonal: members that agree make it singular.
    folds : of each member's sample, where exact leave-one-out is not free.
    random_state, verbose, n_jobs, executor : as in `Bagging`.

    Attributes
    ----------
    weights_ : beta (q,); support_models_ the number of members with a weight.
    error_products_ : S (q, q).
    loo_outputs_ : outputs (n, k) of the sum at the training points of positive weight, from members that did not see
        the point; loo_error_ their error rate, or mean squared error.
    loo_member_errors_ : the same error of each member alone (q,).
    bank_, coverage_ and all others : as in `Bagging`.

    """

    _default = LSSVC

    weights: str = "affine"
    summed: str = "values"
    ridge: float = 1e-6
    folds: int = 5
    members: int = 5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampledEnsemble._parameter_constraints,
        "weights": [StrOptions(set(WEIGHTS))],
        "summed": [StrOptions({"values", "decisions"})],
        "ridge": [Interval(Real, 0.0, None, closed="left")],
        "folds": [Interval(Integral, 2, None, closed="left")],
    }

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Committee":
        """Train on points X and targets y (n,); `sample_weight` (n,) multiplies how often a point counts."""
        data = self._data(X, y, sample_weight).merged()
        with self._watched(X, y) as monitor:
            crew = self._crew(data, self._generator())
            if self.weights == "bayesian":
                self._refuse_other_posteriors()
            trained = self._train_members(crew, monitor, self.folds)
            F = self._summands(crew.unseen(self.bank_, trained))
            crew.forget()
        self.error_products_ = combining.error_products(F, targets_of(data, self._columns), data.weights)
        self.weights_ = combining.learnt(self.error_products_, self.weights, self.ridge)
        self._keep_errors(F, data)
        return self

    def _refuse_other_posteriors(self) -> None:
        base = self._base
        least_squares = isinstance(base, LeastSquaresMachine) and base._bias == "none" and base.approximation is None
        if not least_squares or self.sample != "disjoint" or base.basis is not None:
            raise InvalidInput(
                'weights="bayesian" needs members that are Gaussian processes on disjoint parts: '
                'base=LSSVR(bias="none") or LSSVC(bias="none"), sample="disjoint"'
            )

    def _state(self) -> State:
        estimates: State = {
            "error_products_": Values(("members", "members")),
            "loo_outputs_": Values(("rows", "columns")),
            "loo_error_": Number(),
            "loo_member_errors_": Values(("members",)),
        }
        return {**super()._state(), "weights_": Values(("members",)), **estimates}

    # Prediction ------------------------------------------------------------------------------------------------

    def _combine(self, F: Array) -> Array:
        return combining.weighted(self._summands(F), self.weights_)

    def _combined(self, X: Any) -> Array:
        return self.posterior(X).mean if self.weights == "bayesian" else super()._combined(X)

    def posterior(self, X: Any) -> Posterior:
        """Joint posterior of a Bayesian committee at points X (t, d): mean (t, k) and covariance (t, t)."""
        if self.weights != "bayesian":
            raise InvalidInput('posterior is that of a Bayesian committee: fit with weights="bayesian"')
        machines = self._parts()
        prior = Gram(machines[0].kernel_, X, storage="dense").dense()
        jitter = JITTER * float(np.mean(np.diagonal(prior))) * np.eye(len(prior))
        members = [posterior_of(machine, X, prior) for machine in machines]
        members = [Posterior(member.mean, member.covariance + jitter) for member in members]
        return combining.bayesian_committee(prior + jitter, members)


def posterior_of(machine: Any, X: Any, prior: Array) -> Posterior:
    """The Gaussian process behind a least-squares machine without bias: mean (t, k), covariance K_tt - K_tj H^-1 K_jt.

    H = K_jj + R is the matrix of the machine, R its ridge 1/(C w), and prior K_tt.
    """
    weights = machine._task.weights
    H = Gram(machine.kernel_, machine.support_vectors_, storage="dense").dense()
    H = H + np.diag(np.full(len(H), 1.0 / machine.C_) if weights is None else 1.0 / (machine.C_ * weights))
    across = KernelColumns(machine.kernel_, machine.support_vectors_).values(X)
    return Posterior(machine._values(X), prior - across @ dense.solve_positive(H, across.T))
