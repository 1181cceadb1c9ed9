"""LSSVC: classification by least squares on targets of +-1.

Two classes are one output; k > 2 are k outputs, one class against the rest, through one factorisation (regularised
least-squares classification, Rifkin 2002, chapter 3; least-squares support vector machine, Suykens and Vandewalle
1999, which is the same with a free bias).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput
from mercer.least_squares.machine import GIVEN, Array, LeastSquaresMachine
from mercer.machine.arguments import classes_of, kind_of, sample_weights, training_data, with_class_weights
from mercer.machine.fitted_state import Labels, State, Values
from mercer.selection.bounds.leave_one_out import possible_errors
from mercer.selection.bounds.multiclass import one_versus_all, possible_class_errors


@dataclass(kw_only=True, eq=False, repr=False)
class LSSVC(ClassifierMixin, LeastSquaresMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Least-squares support vector classification, also known as regularised least-squares classification.

        min 1/2 ||f||^2 + C/2 sum_i w_i (y_i - f(x_i) - b)^2,    y_i = +-1

    Parameters
    ----------
    C : a positive number (large means little regularisation; infinity interpolates), or how to choose it: "loo" by
        exact leave-one-out, "gcv" by generalised cross-validation, or a list of values to choose from by leave-one-out.
    kernel, degree, gamma, coef0
        As in scikit-learn; gamma = "scale" counts rows by sample weight.  `kernel` may also be a Kernel object, such as
        Gaussian(sigma="loo"), whose width is then chosen by leave-one-out together with C.
    bias : "free" (or True), "none" (or False), or "penalised" (by 1/2 b^2).
    basis : function of X (n, d) that returns (n, q) columns outside the penalty: the semiparametric part.
    class_weight : as in scikit-learn.
    approximation : None for the exact machine, a low-rank kernel such as Nystrom(1000) from `mercer.lowrank`, or "auto"
        to let size and memory decide.
    solver : "auto", or the name of one of mercer.solvers, such as "cholesky" or "conjugate_gradient".
    tol : relative duality gap at which an iterative solver stops.
    max_iter : most iterations of it; -1 is no limit.  max_time : seconds after which it stops anyway.
    random_state : seed of landmarks that have none of their own.
    memory : bytes for kernel values, as a number or text like "2 GiB"; None is a quarter of what is free.
    precision : of kernel values, "float64" (the meaning of "auto") or "float32".
    warm_start : begin an iterative solver from the last solution, for the same points and other parameters.
    verbose : print a line for every record of the solver.
    n_jobs : threads, those of BLAS included where it is 1.

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
        the weights of the features where `support_vectors_` is empty; `feature_map_` computes the features.
    support_, support_vectors_ : the points that carry coefficients, all of X for the exact machine.
    loo_predictions_, loo_residuals_ : exact leave-one-out outputs and residuals, (n,) or (n, k).
    loo_error_ : leave-one-out misclassification rate.
    gcv_ : generalised cross-validation.
    loo_surface_ : every point evaluated while parameters were chosen.
    path_ : criteria along C, where C alone was chosen.
    objective_, dual_objective_, gap_ : the certificate, summed over outputs.
    solver_ : which solver ran and why; stopped_ what ended it; n_iter_, history_, solution_, plan_ as in `SVC`.

    """

    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquaresMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LSSVC":
        """Train on points X (n, d), dense or CSR, and labels y (n,); `sample_weight` (n,) multiplies C."""
        kind = kind_of(self.kernel, X)
        X, y = training_data(self, kind, X, y)
        check_classification_targets(y)
        counted = sample_weights(sample_weight, X)
        self.classes_, codes = classes_of(y, counted)
        if len(self.classes_) < 2:
            raise InvalidInput("all samples with positive weights belong to the same class; at least two are needed")
        self.class_weight_, weights = with_class_weights(self.class_weight, self.classes_, y, codes, counted)
        Y = one_versus_all(len(self.classes_))[codes]
        self._train(kind, X, Y if len(self.classes_) > 2 else Y[:, 1:], weights, counted)
        return self

    def _state(self) -> State:
        return {**super()._state(), "classes_": Labels(), "class_weight_": Values(("classes",))}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        k = len(self.classes_)
        return (1, 1) if k == 2 else (k, k)

    def _public(self, dual: Array, intercept: Array) -> tuple[Array, Array]:
        return dual[0] if len(dual) == 1 else np.ascontiguousarray(dual.T), intercept

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
            c = self._dual_coef_.T[used]
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
        if self._kind in GIVEN:
            return np.diagonal(self._matrix).astype(np.float64)
        return np.asarray(self.kernel_.diagonal(self.support_vectors_), dtype=np.float64)
