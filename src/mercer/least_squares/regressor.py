"""LSSVR: regression by least squares in the space of a kernel, for any number of outputs.

With a free bias it is the least-squares support vector machine (Suykens and Vandewalle 1999); without bias it is kernel
ridge regression with alpha = 1/C, and its outputs are the posterior mean of a Gaussian process with noise variance 1/C.
"""

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context

from mercer.errors import InvalidInput
from mercer.least_squares.machine import Array, LeastSquaresMachine
from mercer.machine.arguments import kind_of, sample_weights, training_data
from mercer.machine.fitted_state import Flag, State


class LSSVR(MultiOutputMixin, RegressorMixin, LeastSquaresMachine):  # type: ignore[misc]  # scikit-learn is untyped
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

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LSSVR":
        """Train on points X (n, d), dense or CSR, and targets y (n,) or (n, k); `sample_weight` (n,) multiplies C."""
        kind = kind_of(self.kernel, X)
        X, y = training_data(self, kind, X, y, numeric=True, several=True)
        Y = np.ascontiguousarray(y, dtype=np.float64)
        if Y.ndim > 2:
            raise InvalidInput(f"y must have one or two dimensions; it has {Y.ndim}.")
        self._single = Y.ndim == 1
        weights = sample_weights(sample_weight, X)
        self._train(kind, X, Y[:, None] if self._single else Y, weights, weights)
        return self

    def _state(self) -> State:
        return {**super()._state(), "_single": Flag()}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        return (1, 1) if self._single else (outputs, outputs)

    def _public(self, dual: Array, intercept: Array) -> tuple[Array, Any]:
        return (dual[0], float(intercept[0])) if self._single else (np.ascontiguousarray(dual.T), intercept)

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
