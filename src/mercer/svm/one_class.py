"""One-class support vector machine: where the data are, but for a share nu of them.

    min 1/2 ||f||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - f(x_i))_+

(Schoelkopf et al. 2001).  The decision value is f(x) - rho, positive for inliers.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval

from mercer.machine import arguments
from mercer.machine.arguments import kind_of, refuse_huge, sample_weights
from mercer.problems import OneClass
from mercer.solvers.solution import Solution
from mercer.svm.base import SupportVectorMachine

Vector = NDArray[np.float64]

EDGE = 1e-9  # of rho: more than rounding moves a value
ROUNDINGS = 16.0  # the same in units of the rounding of kernel values, which is more where these are in float32
AT_BOUND = 1e-8  # of the bound


def _with_edge_inside(problem: OneClass, solution: Solution) -> Solution:
    """Lower rho to the lowest unbounded support vector for which the objective rises by no more than the gap.

    They lie on the edge, f = rho, where rounding would decide whether they are outliers.  At the rho of the certificate
    the points with f < rho weigh at most nu (sum w), and a lower rho keeps that.  Solvers that come to a bound from
    inside (gradient descent, reweighted least squares) do not reach it: their outliers look unbounded, and are far
    below rho, where the objective is higher by more than the gap.
    """
    c, bound, rho = solution.coefficients, problem.box, -float(solution.bias)
    f = solution.details.get("f0")
    values = np.asarray(problem.gram.dot(c) if f is None else f)

    def cost(rho: float) -> float:
        return float(bound @ np.maximum(rho - values, 0.0)) - problem.nu * float(bound.sum()) * rho

    unbounded = (c > AT_BOUND * bound) & (c < (1.0 - AT_BOUND) * bound) & (values < rho)
    edge = np.append(np.sort(values[unbounded]), rho)
    # The cost falls up to rho, its minimiser.
    lowest = float(edge[bisect_left(edge[:-1], -cost(rho) - solution.gap, key=lambda value: -cost(value))])
    share = max(EDGE, ROUNDINGS * float(np.finfo(getattr(problem.gram, "dtype", np.float64)).eps))
    return replace(solution, bias=share * abs(lowest) - lowest)


@dataclass(kw_only=True, eq=False, repr=False)
class OneClassSVM(OutlierMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Estimate of the support of a distribution.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter
        As in scikit-learn; `kernel` may also be a Kernel object.
    nu : in (0, 1]; the share of (weighted) outliers is at most nu, that of support vectors at least nu.
    random_state, approximation, solver, memory, precision, gap_tol, max_time, warm_start, n_jobs
        As in `SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, offset_, n_support_, coef_, fit_status_, n_iter_, shape_fit_
        As in scikit-learn; offset_ = -intercept_ = rho.
    kernel_, solver_, plan_, objective_, dual_objective_, gap_, stopped_, history_, solution_, approximation_,
    approximation_reason_, feature_map_
        As in `SVC`.

    """

    nu: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVM":
        """Learn the region of the points X (n, d); y is ignored, `sample_weight` (n,) counts repetitions."""
        kind = kind_of(self.kernel, X)
        X, _ = arguments.training_data(self, kind, X, supervised=False)
        with self._watched(X, None) as monitor:
            training, weights = self._training_set(kind, X, sample_weights(sample_weight, X), None)
            refuse_huge(1.0, weights)
            problem = OneClass(training.gram(), self.nu, weights)
            solution = self._solve(problem, training.resources, monitor, self._starts(1)[0])
            self._keep_one(training, X, problem, _with_edge_inside(problem, solution))
        self.offset_ = -self._intercept_
        return self

    def decision_function(self, X: Any) -> Vector:
        """f(x) - rho, (n,): positive for inliers, negative for outliers."""
        return self._values(X)[:, 0]

    def score_samples(self, X: Any) -> Vector:
        """f(x), (n,): the decision value without the offset."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """+1 for inliers and -1 for outliers, (n,)."""
        return np.where(self.decision_function(X) > 0.0, 1, -1).astype(np.intp)
