"""Novelty detection on a stream (Schoelkopf and Smola 2002, algorithm 10.6): a share nu of the points raises an alert.

    min   mean of (rho - f(x_t))_+ - nu rho + lambda/2 ||f||^2

A point is novel where f(x) < rho.  Each step moves rho by Lambda (nu - H(rho - f)), so that in the long run a share nu
of the points is novel, whatever the distribution, and also where it drifts under a constant rate.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval

from mercer.machine.fitted_state import State, Values
from mercer.online.base import Matrix, OnlineMachine, Vector
from mercer.solvers.online import Rule


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineNovelty(OutlierMixin, OnlineMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Where the points of a stream are, but for a share nu of them.

    Parameters and attributes are those of `OnlineSVC` without those that speak of classes or a bias, and

    nu : share of points that are novel, in the long run.
    offset_ : rho, (1,).
    mistakes_ : share of points that were novel when they came.
    """

    nu: float = 0.05
    regularisation: float = 0.1
    schedule: str = "inverse_sqrt"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="neither")],
    }

    _supervised: ClassVar[bool] = False

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OnlineNovelty":
        """Learn the points X (n, d), dense or CSR, in random order; y is ignored."""
        return self._fit(X, None, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OnlineNovelty":
        """Learn more points; y is ignored."""
        return self._partial_fit(X, None, sample_weight)

    def _rule(self) -> tuple[Rule, float, bool, float]:
        return Rule.NU, float(self.nu), False, 0.0

    def _coded(self, y: Any, weights: Vector) -> tuple[Matrix, Vector]:
        return np.ones((1, len(weights))), weights

    def _intercepts(self, stream: Any) -> Vector:
        self.offset_ = stream.width.copy()
        return np.asarray(-self.offset_)

    def _state(self) -> State:
        return {**super()._state(), "offset_": Values(("outputs",))}

    def decision_function(self, X: Any) -> Vector:
        """f(x) - rho, (n,): negative for novelties."""
        return self._values(X)[:, 0]

    def score_samples(self, X: Any) -> Vector:
        """f(x), (n,)."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """+1 for points like those before and -1 for novelties, (n,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)
