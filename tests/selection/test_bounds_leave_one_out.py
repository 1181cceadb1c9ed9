"""Bounds on binary leave-one-out errors never miss one that explicit retraining finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.selection.bounds import (
    Bound,
    coded_leave_one_out,
    jaakkola_haussler,
    least_squares,
    possible_errors,
    support_vector_count,
    xi_alpha,
)
from mercer.selection.leave_one_out import leave_one_out
from tests.selection.retraining import gaussian, left_out, noisy, train

SEEDS = st.integers(0, 10**6)


def points(seed, n=30, d=2, scale=1.0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, scale * gaussian(X)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, ridge=st.sampled_from([1e-3, 0.1, 1.0, 10.0]), scale=st.sampled_from([0.3, 1.0, 5.0]))
def test_every_least_squares_error_is_in_the_set_and_both_forms_agree(seed, ridge, scale):
    X, K = points(seed, scale=scale)
    y = np.where(X[:, 0] + np.random.default_rng(seed + 1).standard_normal(30) > 0, 1.0, -1.0)
    exact = leave_one_out(K, y, ridge)
    c = exact.coefficients[:, 0]
    f = K @ c
    errors = y * exact.predictions[:, 0] <= 0
    possible = possible_errors(y, f, np.diag(K), ridge)
    assert not np.any(errors & ~possible)
    assert not np.any(possible & (y * f > 1))
    clear = np.abs(y * (f - c * np.diag(K))) > 1e-9
    np.testing.assert_array_equal(possible[clear], (y * (f - c * np.diag(K)) <= 0)[clear])
    bound = least_squares(y, f, np.diag(K), ridge)
    assert bound.value >= np.mean(errors)
    assert bound.holds
    assert not least_squares(y, f, np.diag(K), ridge, free_bias=True).holds


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_the_least_squares_bound_holds_with_weights(seed):
    X, K = points(seed)
    rng = np.random.default_rng(seed)
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1.0, -1.0)
    w = rng.uniform(0.1, 3.0, 30)
    exact = leave_one_out(K, y, 0.5, weights=w)
    possible = possible_errors(y, K @ exact.coefficients[:, 0], np.diag(K), 0.5 / w)
    assert not np.any((y * exact.predictions[:, 0] <= 0) & ~possible)


def test_training_error_does_not_rise_with_the_weight_of_its_point():
    X, K = points(4)
    y = np.where(X[:, 1] > 0, 1.0, -1.0)
    for i in range(5):
        margins = []
        for a in np.linspace(0.0, 1.0, 6):
            w = np.ones(30)
            w[i] = a
            c = leave_one_out(K, y, 0.3, weights=w).coefficients[:, 0]
            margins.append(y[i] * (K[i] @ c))
        assert np.all(np.diff((1 - np.asarray(margins)) ** 2) <= 1e-12)


@pytest.mark.parametrize("C", [0.3, 1.0, 10.0])
def test_jaakkola_haussler_lies_between_retraining_and_the_count_of_support_vectors(C):
    for seed in range(4):
        _, K, y = noisy(seed)
        alpha, _ = train(K, y, C, "none")
        f = K @ (alpha * y)
        margins, _ = left_out(K, y, C, "none")
        bound = jaakkola_haussler(y, f, alpha, np.diag(K))
        assert not np.any((margins <= 0) & ~bound.details["possible"])
        assert np.mean(margins <= 0) <= bound.value <= support_vector_count(alpha).value
        # A left-out output lies between the output less the point's own share, and the output.
        assert np.all(margins <= y * f + 1e-5)
        assert np.all(margins >= y * f - alpha * np.diag(K) - 1e-5)


def test_jaakkola_haussler_says_that_a_free_bias_breaks_it():
    _, K, y = noisy(0)
    alpha, b = train(K, y, 1.0, "free")
    bound = jaakkola_haussler(y, K @ (alpha * y) + b, alpha, np.diag(K), free_bias=True)
    assert bound.failed == ("no free bias",)
    assert "FAILS" in str(bound)


@pytest.mark.parametrize("C", [0.3, 1.0, 10.0])
def test_xi_alpha_misses_no_error_where_the_bias_is_determined(C):
    for seed in range(5):
        _, K, y = noisy(seed)
        alpha, b = train(K, y, C, "free")
        f = K @ (alpha * y) + b
        margins, determined = left_out(K, y, C, "free")
        bound = xi_alpha(y, f, alpha, C, spread=float(K.max() - K.min()))
        if bound.holds:
            assert not np.any((margins <= 0) & determined & ~bound.details["possible"])


def test_xi_alpha_says_when_no_support_vector_is_free():
    # Two points of each class on top of each other at a small C: all are bounded, any bias in a range will do.
    K = np.ones((4, 4))
    y = np.array([1.0, 1.0, -1.0, -1.0])
    bound = xi_alpha(y, np.zeros(4), np.full(4, 0.1), 0.1, spread=0.0)
    assert not bound.holds
    assert bound.value == 1.0
    assert bound.vacuous
    assert K.max() - K.min() == 0.0


def test_xi_alpha_grows_with_the_spread_and_bounds_are_numbers():
    _, K, y = noisy(3)
    alpha, b = train(K, y, 1.0, "free")
    f = K @ (alpha * y) + b
    values = [xi_alpha(y, f, alpha, 1.0, spread=spread).value for spread in (0.0, 0.2, 0.5, 1.0, 2.0)]
    assert values == sorted(values)
    bound = Bound(0.25, ("x",), 0.95)
    assert float(bound) == 0.25
    assert not bound.vacuous
    assert "with probability 0.95" in str(bound)


def test_refuses_shapes_that_do_not_match():
    with pytest.raises(InvalidInput, match="match"):
        jaakkola_haussler([1, -1], [0.1], [0.1, 0.2], [1.0, 1.0])
    with pytest.raises(InvalidInput, match="spread"):
        xi_alpha([1.0], [0.1], [0.1], 1.0, spread=-1.0)


def test_bounds_that_read_a_fit_assume_that_it_is_optimal():
    y, f, a, K = np.array([1.0, -1.0]), np.array([0.5, -0.5]), np.array([0.2, 0.2]), np.ones(2)
    code = np.array([[1.0], [-1.0]])
    for bound in (
        jaakkola_haussler(y, f, a, K),
        least_squares(y, f, K, 1.0),
        xi_alpha(y, f, a, 1.0, spread=1.0),
        support_vector_count(a),
        coded_leave_one_out(code, [0, 1], f[:, None], (y * a)[:, None], K),
    ):
        assert any("trained to its optimum" in text for text in bound.assumptions)
