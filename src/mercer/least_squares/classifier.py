"""LSSVC: classification by least squares on targets of +-1.

Two classes are one output; k > 2 are k outputs, one class against the rest, through one factorisation (regularised
least-squares classification, Rifkin 2002, chapter 3; least-squares support vector machine, Suykens and Vandewalle
1999, which is the same with a free bias).
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput
from mercer.estimation.weights import class_weights, point_weights, sample_weights
from mercer.least_squares.machine import Array, Basis, LeastSquaresMachine
from mercer.selection.bounds.leave_one_out import possible_errors
from mercer.selection.bounds.multiclass import one_versus_all, possible_class_errors


class LSSVC(ClassifierMixin, LeastSquaresMachine):  # type: ignore[misc]
    """Least-squares support vector classification, also known as regularised least-squares classification.

        min 1/2 ||f||^2 + C/2 sum_i w_i (y_i - f(x_i) - b)^2,    y_i = +-1

    Parameters
    ----------
    C : a positive number (large means little regularisation; infinity interpolates), or how to choose it: "loo" by
        exact leave-one-out, "gcv" by generalised cross-validation, or a list of values to choose from by leave-one-out.
    kernel, degree, gamma, coef0
        As in scikit-learn; `kernel` may also be a Kernel object, such as Gaussian(sigma="loo"), whose width is then
        chosen by leave-one-out together with C.
    bias : "free" (or True), "none" (or False), or "penalised" (by 1/2 b^2).
    basis : function of X (n, d) that returns (n, q) columns outside the penalty: the semiparametric part.
    class_weight : as in scikit-learn.
    approximation : None for the exact machine, a low-rank kernel such as Nystrom(1000) from `mercer.lowrank`, or "auto"
        to let size and memory decide.
    solver : "auto", or the name of one of mercer.solvers, such as "cholesky" or "conjugate_gradient".
    tol : relative duality gap at which an iterative solver stops.
    max_time : seconds after which it stops anyway.
    memory : bytes for kernel values, as a number or text like "2 GiB"; None is a quarter of what is free.
    precision : of kernel values, "float64" (the meaning of "auto") or "float32".
    n_jobs : threads.

    Attributes
    ----------
    classes_ : the labels.
    dual_coef_ : coefficients c (n,) for two classes, (n, k) for more.
    intercept_ : b (1,) or (k,).
    coef_ : weight vectors of a linear kernel.
    basis_coef_ : coefficients (q,) or (q, k) of the basis.
    C_, kernel_ : what was used, given or chosen.
    approximation_, approximation_reason_ : the approximation used, None for the exact machine, and why; with one,
        `dual_coef_` is on the landmarks `support_vectors_`, rows `support_` of X where they are points of it, or it is
        the weights of the features where `support_vectors_` is None; `feature_map_` computes the features.
    loo_predictions_, loo_residuals_ : exact leave-one-out outputs and residuals, (n,) or (n, k).
    loo_error_ : leave-one-out misclassification rate.
    gcv_ : generalised cross-validation.
    loo_surface_ : every point evaluated while parameters were chosen.
    path_ : criteria along C, where C alone was chosen.
    objective_, dual_objective_, gap_ : the certificate, summed over outputs.
    solver_ : which solver ran and why; stopped_ what ended it; n_iter_, history_, solution_ as in `SVC`.

    """

    class_weight: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquaresMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        C: Any = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: Any = "free",
        basis: Basis | None = None,
        class_weight: Any = None,
        approximation: Any = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_time: float | None = None,
        memory: int | str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.basis = basis
        self.class_weight = class_weight
        self.approximation = approximation
        self.solver = solver
        self.tol = tol
        self.max_time = max_time
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LSSVC":
        """Train on points X (n, d), dense or CSR, and labels y (n,); `sample_weight` (n,) multiplies C."""
        kind, X, y = self._data(X, y, numeric=False)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {len(self.classes_)} class")
        self.class_weight_ = class_weights(self.class_weight, self.classes_, y, weights)
        weights = point_weights(weights, self.class_weight_, codes)
        Y = one_versus_all(len(self.classes_))[codes]
        self._train(kind, X, Y if len(self.classes_) > 2 else Y[:, 1:], weights)
        return self

    def _publish(self) -> None:
        binary = len(self.classes_) == 2
        self.dual_coef_ = self._coefficients[:, 0] if binary else self._coefficients
        self.basis_coef_ = self._basis_coefficients[:, 0] if binary else self._basis_coefficients
        self.intercept_ = self._intercepts

    def decision_function(self, X: Any) -> Array:
        """Outputs (n,) for two classes, positive for classes_[1]; (n, k) for more."""
        return self._shaped(self._values(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,)."""
        values = self._values(X)
        codes = (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[codes])

    @property
    def loo_error_(self) -> float:
        """Leave-one-out misclassification rate."""
        return self.leave_one_out().error_rate()

    def loo_error_bound(self) -> float:
        """Upper bound on the leave-one-out error from the outputs alone, for any n (Rifkin 2002, section 3.3).

        Holds without free bias: #{y f <= K/(K + ridge)} / n, and its extension to several classes.
        """
        task = self._task
        if task.border.shape[1]:
            raise InvalidInput("the bound holds without free bias and basis: use bias='none' or 'penalised'.")
        diagonal = self._kernel_diagonal() + task.constant
        # At the optimum f = y - R c, so the outputs at the training points need no kernel value.
        weights = np.ones(len(task.Y)) if task.weights is None else task.weights
        used = weights > 0
        Y, K, ridge = task.Y[used], diagonal[used], 1.0 / (self.C_ * weights[used])
        if self.approximation_ is None:
            c = self._coefficients[used]
            f = Y - ridge[:, None] * c
        else:
            f = self._values(self._points)[used]
            c = (Y - f) / ridge[:, None]
        if f.shape[1] == 1:
            possible = possible_errors(Y[:, 0], f[:, 0], K, ridge)
        else:
            possible = possible_class_errors(one_versus_all(Y.shape[1]), np.argmax(Y, axis=1), f, c, K)
        return float(np.sum(weights[used] * possible) / np.sum(weights))

    def _kernel_diagonal(self) -> Array:
        if self.approximation_ is not None:
            Z = self._training_features()
            return np.asarray(np.einsum("ij,ij->i", Z, Z))
        if self.X_fit_ is not None and self._kind != "function":
            return np.asarray(self.kernel_.diagonal(self.X_fit_), dtype=np.float64)
        return np.diagonal(self._matrix).astype(np.float64)
