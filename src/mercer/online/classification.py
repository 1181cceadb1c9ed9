"""Classification of a stream: soft margin, nu, or the perceptron's loss; k classes are k machines, one versus rest.

    soft margin    (1 - y g)_+                 (10.131)
    nu             (rho - y g)_+ - nu rho      (10.132), rho learnt: a share nu of the points lies below the margin rho
    perceptron     (-y g)_+                    (10.133); without regularisation it is the kernel perceptron

Numbers are those of Schoelkopf and Smola 2002.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput
from mercer.machine.arguments import class_weights
from mercer.machine.fitted_state import Labels, State, Values
from mercer.online.base import Matrix, OnlineMachine, Vector
from mercer.solvers.online import Rule

LOSSES = {"hinge": Rule.HINGE, "nu": Rule.NU, "perceptron": Rule.PERCEPTRON}


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineSVC(ClassifierMixin, OnlineMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Support vector classification that learns each point when it comes.

    Parameters
    ----------
    loss : "hinge" (soft margin), "nu" or "perceptron".
    nu : share of points below the margin, for the loss "nu".
    regularisation : lambda of loss + lambda/2 ||f||^2, in mean over the stream; C = 1 / (lambda n) of n points.
    rate, schedule : size of the t-th step: "constant" rate, "inverse_sqrt" rate / sqrt(t), or "inverse",
        rate / (1 + lambda rate t).  regularisation * rate must stay below 1.  A constant rate follows a drift.
    budget : newest terms that are kept; None is as many as `memory` holds.
    bias : "free" (outside the norm) or "none".
    class_weight : dict of the weights of classes, which multiply the steps of their points; those not named weigh one.
    kernel, degree, gamma, coef0 : as in `SVC`; gamma = "scale" and widths by the median follow the first points.
    max_iter : passes of `fit` over its points, -1 until a pass lowers the mean loss by less than `tol` of itself.
    shuffle : let every pass of `fit` take its points in an order drawn anew, repeated rows as one point and a point of
        weight w in about w steps of the pass: weights, copies and the order of the rows make no difference.  Without,
        all passes keep the order given, and a weight is the length of one step, as in `partial_fit`.
    max_time : seconds after which what was learnt is kept.
    memory : bytes for the terms and the kernel values of a block with them.
    precision : of kernel values; "auto" is float64.
    warm_start : let `fit` go on from what was learnt before.
    verbose, n_jobs, random_state : as in `SVC`; the seed is that of the order of the passes.

    Attributes
    ----------
    classes_ : the labels.
    support_, support_vectors_, dual_coef_, intercept_ : the terms that are kept, oldest first: their place in the
        stream (of `fit`: the row, counted on from pass to pass), the points, the coefficients (1 or k, T), the biases.
    rho_ : margins of the loss "nu" (1 or k,).
    progressive_loss_, mistakes_ : mean loss, summed over the machines, and share of wrong labels, of the points of the
        stream (of `fit`: of its last pass) before they were learnt.
    truncation_error_, truncation_bound_ : bounds on the norm of what the budget dropped: by the coefficients dropped,
        and that of proposition 10.8 of Schoelkopf and Smola.
    n_iter_ : points learnt; stopped_ is "seen", or what ended the learning before.
    objective_, dual_objective_, gap_ : nan; a stream has no objective that could be bounded.
    kernel_, solver_, solution_, history_, plan_, shape_fit_ : as in `SVC`.

    """

    loss: str = "hinge"
    nu: float = 0.2
    bias: str = "free"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMachine._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
        "nu": [Interval(Real, 0.0, 1.0, closed="neither")],
        "bias": [StrOptions({"free", "none"})],
        "class_weight": [dict, None],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OnlineSVC":
        """Learn the points X (n, d), dense or CSR, and labels y (n,), in random order; weights (n,) count copies."""
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "OnlineSVC":
        """Learn more points; `classes` must name all labels at the first call, unless these points have them all."""
        return self._partial_fit(X, y, sample_weight, classes)

    def _rule(self) -> tuple[Rule, float, bool, float]:
        return LOSSES[self.loss], float(self.nu), self.bias == "free", 0.0

    def _outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _first(self, y: Any, classes: Any) -> None:
        check_classification_targets(y)
        self.classes_: NDArray[Any] = np.unique(y if classes is None else classes)
        if len(self.classes_) < 2:
            raise InvalidInput(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class. Where the first "
                "points are of one class, name all of them: partial_fit(X, y, classes=...)"
            )

    def _coded(self, y: Any, weights: Vector) -> tuple[Matrix, Vector]:
        y = np.asarray(y)
        places = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        unknown = (self.classes_[places] != y) & (weights > 0.0)
        if unknown.any():
            label = y[unknown][0]
            raise InvalidInput(
                f"y holds the label {label!r}, which is none of {list(self.classes_)}: name all labels in the first "
                "call of partial_fit by classes=..."
            )
        if self.class_weight is not None:
            weights = weights * class_weights(self.class_weight, self.classes_, self.classes_, None)[places]
        if len(self.classes_) == 2:
            return np.where(places == 1, 1.0, -1.0)[None, :], weights
        return np.where(places == np.arange(len(self.classes_))[:, None], 1.0, -1.0), weights

    def _state(self) -> State:
        return {"classes_": Labels(), **super()._state(), "rho_": Values(("outputs",))}

    def _intercepts(self, stream: Any) -> Vector:
        self.rho_ = stream.width.copy()
        return super()._intercepts(stream)

    def decision_function(self, X: Any) -> Matrix:
        """Outputs (n,) for two classes, positive for classes_[1], or (n, k)."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,)."""
        values = self._values(X)
        winners = (values[:, 0] > 0.0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[winners])
