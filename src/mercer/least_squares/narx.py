"""Time series as regression: the next value from a window of past ones (Hamers 2004, section 2.6.3).

`lag` is the number of past values in a window:  x_t = (y_{t-lag}, ..., y_{t-1}) predicts y_t.  With external inputs u
the window also holds (u_{t-input_lag+1}, ..., u_t), the present one included (a NARX model).  In a *free run* the model
is fed with its own predictions.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput

Array = NDArray[np.float64]


class LagWindow:
    """Cuts a series (T,) or (T, k) into windows (T - lag, lag k) and the values after them."""

    def __init__(self, lag: int, input_lag: int = 0) -> None:
        if lag < 1 or input_lag < 0:
            raise InvalidInput(f"lag must be at least 1 and input_lag at least 0; they are {lag} and {input_lag}.")
        self.lag, self.input_lag = int(lag), int(input_lag)

    @property
    def first(self) -> int:
        """The first time whose window is complete."""
        return max(self.lag, self.input_lag - 1)

    def cut(self, series: ArrayLike, inputs: ArrayLike | None = None) -> tuple[Array, Array]:
        """Windows and targets, in the order of time; row r is time `first` + r."""
        values = _series(series, "series")
        given = self._inputs(inputs, len(values))
        if len(values) <= self.first:
            raise InvalidInput(f"series has {len(values)} values; windows of lag {self.lag} need more.")
        times = np.arange(self.first, len(values))
        X = np.stack([self.window(values, given, t) for t in times.tolist()])
        return X, values[times] if np.ndim(series) == 2 else values[times, 0]

    def window(self, values: Array, inputs: Array | None, t: int) -> Array:
        """The window (lag k + input_lag p,) that predicts time t."""
        past = values[t - self.lag : t].ravel()
        if inputs is None:
            return np.asarray(past)
        return np.concatenate([past, inputs[t - self.input_lag + 1 : t + 1].ravel()])

    def _inputs(self, inputs: ArrayLike | None, length: int) -> Array | None:
        if (inputs is None) != (self.input_lag == 0):
            raise InvalidInput("inputs and input_lag go together: give both, or leave inputs out and input_lag at 0.")
        if inputs is None:
            return None
        given = _series(inputs, "inputs")
        if len(given) < length:
            raise InvalidInput(f"inputs has {len(given)} values for a series of {length}.")
        return given


class NARX(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor on windows of a series.

    Parameters
    ----------
    estimator : the regressor, such as LSSVR(C="loo"); it is cloned.
    lag : number of past values in a window.
    input_lag : number of external inputs in a window, the present one included; 0 for none.

    Attributes
    ----------
    estimator_ : the fitted regressor.

    """

    def __init__(self, estimator: Any, lag: int = 10, input_lag: int = 0) -> None:
        self.estimator = estimator
        self.lag = lag
        self.input_lag = input_lag

    def fit(self, series: ArrayLike, inputs: ArrayLike | None = None) -> "NARX":
        """Train on a series (T,) or (T, k), with inputs (T, p) where the model has them."""
        window = LagWindow(self.lag, self.input_lag)
        X, y = window.cut(series, inputs)
        self.estimator_ = clone(self.estimator).fit(X, y)
        self._window, self._flat = window, np.ndim(series) == 1
        # The end of the series is where a free run starts from.
        values = _series(series, "series")
        end = slice(len(values) - window.first, len(values))
        self._past = values[end].copy()
        self._past_inputs = None if inputs is None else _series(inputs, "inputs")[end].copy()
        return self

    def one_step(self, series: ArrayLike, inputs: ArrayLike | None = None) -> Array:
        """Predictions of the values after each window of a series: (T - lag,) or (T - lag, k)."""
        check_is_fitted(self)
        X, _ = self._window.cut(series, inputs)
        return np.asarray(self.estimator_.predict(X))

    def predict(self, steps: int, *, past: ArrayLike | None = None, inputs: ArrayLike | None = None) -> Array:
        """Free run: the next `steps` values (steps,) or (steps, k), each from the predictions before it.

        past : values to start after, at least a window; by default the end of the training series.
        inputs : external inputs (steps, p) of the times predicted; with `past`, of its times as well.
        """
        check_is_fitted(self)
        start = self._past if past is None else _series(past, "past")
        first = self._window.first
        if len(start) < first:
            raise InvalidInput(f"past has {len(start)} values; a window needs {first}.")
        given = self._future_inputs(inputs, past is None, len(start), steps)
        values = np.vstack([start, np.zeros((steps, start.shape[1]))])
        for t in range(len(start), len(values)):
            row = self._window.window(values, given, t)
            values[t] = np.ravel(self.estimator_.predict(row[None]))
        run = values[len(start) :]
        return run[:, 0] if self._flat else run

    def _future_inputs(self, inputs: ArrayLike | None, continued: bool, length: int, steps: int) -> Array | None:
        if (inputs is None) != (self.input_lag == 0):
            raise InvalidInput("inputs of the times predicted are needed exactly where the model has an input_lag.")
        if inputs is None:
            return None
        given = _series(inputs, "inputs")
        if continued:
            assert self._past_inputs is not None
            given = np.vstack([self._past_inputs, given])
        if len(given) < length + steps:
            raise InvalidInput(f"inputs must cover the {steps} steps predicted.")
        return given


def _series(values: ArrayLike, name: str) -> Array:
    """(T, k) float64 without NaN or infinity."""
    series = np.asarray(values, dtype=np.float64)
    series = series[:, None] if series.ndim == 1 else series
    if series.ndim != 2 or not np.isfinite(series).all():
        raise InvalidInput(f"{name} must be finite numbers of shape (T,) or (T, k).")
    return series
