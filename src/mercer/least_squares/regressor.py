"""LSSVR: regression by least squares in the space of a kernel, for any number of outputs.

With a free bias it is the least-squares support vector machine (Suykens and Vandewalle 1999); without bias it is kernel
ridge regression with alpha = 1/C, and its outputs are the posterior mean of a Gaussian process with noise variance 1/C.
"""

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from mercer.errors import InvalidInput
from mercer.estimation.similarity import Kind, kind_of
from mercer.estimation.weights import sample_weights
from mercer.least_squares.machine import Array, Basis, LeastSquaresMachine


class LSSVR(MultiOutputMixin, RegressorMixin, LeastSquaresMachine):  # type: ignore[misc]
    """Least-squares support vector regression: kernel ridge regression, with or without bias.

        min 1/2 ||f||^2 + C/2 sum_i w_i (y_i - f(x_i) - b)^2

    Parameters are those of `LSSVC` without `class_weight`.

    Attributes
    ----------
    dual_coef_ : coefficients c, (n,) for one output, (n, k) for more.
    intercept_ : b, a number or (k,).
    loo_error_ : leave-one-out mean squared error, a number or (k,).
    All others as in `LSSVC`.

    """

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
        self.approximation = approximation
        self.solver = solver
        self.tol = tol
        self.max_time = max_time
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LSSVR":
        """Train on points X (n, d), dense or CSR, and targets y (n,) or (n, k); `sample_weight` (n,) multiplies C."""
        kind, X, Y = self._points_and_targets(X, y)
        self._single = Y.ndim == 1
        self._train(kind, X, Y[:, None] if self._single else Y, sample_weights(sample_weight, X))
        return self

    def _points_and_targets(self, X: Any, y: Any) -> tuple[Kind, Any, Array]:
        """Checked points, and targets as float64 in the shape they were given."""
        kind = kind_of(self.kernel, X)
        if kind in ("features", "precomputed"):
            options = {"dtype": np.float64, "order": "C", "accept_sparse": "csr", "accept_large_sparse": True}
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **options)
            if kind == "precomputed" and X.shape[0] != X.shape[1]:
                raise InvalidInput(f"a precomputed kernel matrix must be square; the shape of X is {X.shape}.")
        else:
            X = list(X) if kind == "objects" else X
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            check_consistent_length(X, y)
        Y = np.ascontiguousarray(y, dtype=np.float64)
        if Y.ndim > 2:
            raise InvalidInput(f"y must have one or two dimensions; it has {Y.ndim}.")
        return kind, X, Y

    def _publish(self) -> None:
        single = self._single
        self.dual_coef_ = self._coefficients[:, 0] if single else self._coefficients
        self.basis_coef_ = self._basis_coefficients[:, 0] if single else self._basis_coefficients
        self.intercept_ = float(self._intercepts[0]) if single else self._intercepts

    def predict(self, X: Any) -> Array:
        """Predicted values (n,) or (n, k)."""
        return self._shaped(self._values(X))

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._single else values

    @property
    def loo_error_(self) -> float | Array:
        """Leave-one-out mean squared error, of each output where there are several."""
        found = self.leave_one_out()
        errors = found.weights @ found.residuals**2 / np.sum(found.weights)
        return float(errors[0]) if self._single else np.asarray(errors)
