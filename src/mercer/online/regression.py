"""Regression on a stream: squared, epsilon-insensitive with the nu-trick, Huber's loss, and Huber's with the nu-trick.

    squared               (y - g)^2 / 2                                            (10.135)
    epsilon_insensitive   (|y - g| - eps)_+ + nu eps, eps learnt                   (10.137)
    huber                 (y - g)^2 / (2 sigma) within sigma, |y - g| - sigma/2    (10.139)
    adaptive_huber        the same, sigma learnt: a trimmed mean                   (10.140)

Numbers are those of Schoelkopf and Smola 2002.  A share nu of the residuals lies beyond a width that is learnt.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.errors import InvalidInput
from mercer.machine.fitted_state import Number, State
from mercer.online.base import Matrix, OnlineMachine, Vector
from mercer.solvers.online import Rule
from mercer.solvers.online.rules import NARROWEST

LOSSES = {
    "squared": Rule.SQUARED,
    "epsilon_insensitive": Rule.TUBE,
    "huber": Rule.HUBER,
    "adaptive_huber": Rule.HUBER,
}


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineSVR(RegressorMixin, OnlineMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Regression that learns each point when it comes.

    Parameters and attributes are those of `OnlineSVC` without those that speak of classes, and

    loss : "squared", "epsilon_insensitive", "huber" or "adaptive_huber".
    epsilon : half the width of the tube, or Huber's sigma: the first value where it is learnt.
    nu : share of residuals beyond the width; None keeps the width of "epsilon_insensitive" as it is.
    epsilon_ : the width now.
    mistakes_ : share of residuals beyond the width, before the points were learnt.
    """

    rate: float = 0.5
    schedule: str = "inverse_sqrt"
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.1
    nu: float | None = 0.2
    bias: str = "free"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMachine._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "nu": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "bias": [StrOptions({"free", "none"})],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # after one pass over few points, which is the default
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OnlineSVR":
        """Learn the points X (n, d), dense or CSR, and targets y (n,), in random order."""
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OnlineSVR":
        """Learn more points."""
        return self._partial_fit(X, y, sample_weight)

    def _rule(self) -> tuple[Rule, float, bool, float]:
        learnt = self.loss in ("epsilon_insensitive", "adaptive_huber") and self.nu is not None
        if self.loss == "adaptive_huber" and self.nu is None:
            raise InvalidInput("nu=None: loss='adaptive_huber' needs a share nu; give one, or use loss='huber'")
        width = float(self.epsilon)
        if LOSSES[self.loss] is Rule.HUBER:
            width = max(width, NARROWEST)
        nu = float(self.nu) if learnt and self.nu is not None else 0.0
        return LOSSES[self.loss], nu, self.bias == "free", width

    def _coded(self, y: Any, weights: Vector) -> tuple[Matrix, Vector]:
        try:
            return np.asarray(y, dtype=np.float64)[None, :], weights
        except (TypeError, ValueError):
            raise InvalidInput("y must hold real numbers") from None

    def _intercepts(self, stream: Any) -> Vector:
        self.epsilon_ = float(stream.width[0])
        return super()._intercepts(stream)

    def _state(self) -> State:
        return {**super()._state(), "epsilon_": Number()}

    def predict(self, X: Any) -> Vector:
        """Values (n,)."""
        return self._values(X)[:, 0]
