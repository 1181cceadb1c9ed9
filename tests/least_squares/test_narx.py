"""Series as windows, one-step prediction and free run."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.least_squares import LSSVR, NARX, LagWindow


def test_windows_hold_the_past_and_predict_the_present():
    X, t = LagWindow(3).cut(np.arange(6.0))
    np.testing.assert_array_equal(X, [[0, 1, 2], [1, 2, 3], [2, 3, 4]])
    np.testing.assert_array_equal(t, [3, 4, 5])


def test_windows_with_inputs_hold_the_present_input():
    X, t = LagWindow(2, input_lag=2).cut(np.arange(5.0), 10 * np.arange(5.0))
    np.testing.assert_array_equal(X, [[0, 1, 10, 20], [1, 2, 20, 30], [2, 3, 30, 40]])
    np.testing.assert_array_equal(t, [2, 3, 4])
    wide, _ = LagWindow(1, input_lag=3).cut(np.arange(4.0), np.arange(4.0))
    np.testing.assert_array_equal(wide, [[1, 0, 1, 2], [2, 1, 2, 3]])


def test_several_series_share_a_window():
    series = np.column_stack([np.arange(4.0), 10 * np.arange(4.0)])
    X, t = LagWindow(2).cut(series)
    np.testing.assert_array_equal(X, [[0, 0, 1, 10], [1, 10, 2, 20]])
    np.testing.assert_array_equal(t, [[2, 20], [3, 30]])


def test_free_run_feeds_predictions_back():
    series = np.sin(0.3 * np.arange(80)) + 0.1 * np.cos(1.1 * np.arange(80))
    model = NARX(LSSVR(C=1e4, kernel=Gaussian(sigma=2.0)), lag=6).fit(series)
    window = list(series[-6:])
    expected = []
    for _ in range(10):
        value = float(model.estimator_.predict([window[-6:]])[0])
        expected.append(value)
        window.append(value)
    np.testing.assert_allclose(model.predict(10), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict(10, past=series), expected, atol=1e-12)
    np.testing.assert_allclose(model.one_step(series)[:3], model.estimator_.predict(LagWindow(6).cut(series)[0])[:3])


def test_a_sine_is_continued():
    t = np.arange(240)
    series = np.sin(0.2 * t)
    model = NARX(LSSVR(C="loo", kernel=Gaussian(sigma="loo")), lag=8).fit(series[:200])
    np.testing.assert_allclose(model.predict(40), series[200:], atol=0.05)


def test_a_linear_recurrence_with_inputs_is_found_exactly():
    rng = np.random.default_rng(0)
    u = rng.standard_normal(120)
    y = np.zeros(120)
    for t in range(2, 120):
        y[t] = 0.6 * y[t - 1] - 0.3 * y[t - 2] + 0.5 * u[t] - 0.2 * u[t - 1]
    model = NARX(LinearRegression(), lag=2, input_lag=2).fit(y[:100], u[:100])
    np.testing.assert_allclose(model.predict(20, inputs=u[100:]), y[100:], atol=1e-9)
    np.testing.assert_allclose(model.predict(20, past=y[:100], inputs=u), y[100:], atol=1e-9)


def test_inputs_beyond_the_end_of_the_series_do_not_take_part_in_the_fit():
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=60), rng.normal(size=40)
    exact = NARX(LinearRegression(), lag=2, input_lag=3).fit(y, u[:40])
    more = NARX(LinearRegression(), lag=2, input_lag=3).fit(y, u)
    np.testing.assert_array_equal(more.predict(5, inputs=u[40:45]), exact.predict(5, inputs=u[40:45]))


def test_several_outputs_run_together():
    t = np.arange(150)
    series = np.column_stack([np.sin(0.2 * t), np.cos(0.2 * t)])
    model = NARX(LSSVR(C=1e4, kernel="linear"), lag=3).fit(series[:120])
    assert model.predict(30).shape == (30, 2)
    np.testing.assert_allclose(model.predict(30), series[120:], atol=0.02)
    assert clone(model).lag == 3


def test_bad_series_are_named():
    with pytest.raises(InvalidInput, match="need more"):
        LagWindow(5).cut(np.arange(5.0))
    with pytest.raises(InvalidInput, match="lag must be"):
        LagWindow(0)
    with pytest.raises(InvalidInput, match="go together"):
        LagWindow(2, 1).cut(np.arange(9.0))
    with pytest.raises(InvalidInput, match="finite"):
        LagWindow(2).cut([1.0, np.nan, 2.0])
    model = NARX(LinearRegression(), lag=4).fit(np.arange(20.0))
    with pytest.raises(InvalidInput, match="window needs"):
        model.predict(3, past=[1.0])
    with pytest.raises(InvalidInput, match="input_lag"):
        model.predict(3, inputs=[1.0, 2.0, 3.0])
