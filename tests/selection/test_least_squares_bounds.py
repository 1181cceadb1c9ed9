"""The bound never misses a leave-one-out error."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.selection.least_squares_bounds import (
    decode,
    error_bound,
    interval,
    one_versus_all,
    possible_class_errors,
    possible_errors,
)
from mercer.selection.leave_one_out import leave_one_out

SEEDS = st.integers(0, 10**6)


def points(seed, n=30, d=2, scale=1.0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, scale * np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 2)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, ridge=st.sampled_from([1e-3, 0.1, 1.0, 10.0]), scale=st.sampled_from([0.3, 1.0, 5.0]))
def test_every_leave_one_out_error_is_in_the_set_and_both_forms_agree(seed, ridge, scale):
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
    assert error_bound(y, f, np.diag(K), ridge) >= np.mean(errors)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_the_bound_holds_with_weights(seed):
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


def codes(classes, seed):
    rng = np.random.default_rng(seed)
    pairs = np.zeros((classes, classes * (classes - 1) // 2))
    for i, (a, b) in enumerate(combinations(range(classes), 2)):
        pairs[a, i], pairs[b, i] = 1, -1
    dense = rng.choice([-1.0, 1.0], (classes, 9))
    dense[:, 0] = one_versus_all(classes)[0]
    sparse = rng.choice([-1.0, 0.0, 1.0], (classes, 12), p=[0.25, 0.5, 0.25])
    keep = (sparse == 1).any(0) & (sparse == -1).any(0)
    return {"one versus all": one_versus_all(classes), "all pairs": pairs, "dense": dense, "sparse": sparse[:, keep]}


@pytest.mark.parametrize("name", ["one versus all", "all pairs", "dense", "sparse"])
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, ridge=st.sampled_from([0.03, 0.3, 3.0]))
def test_no_class_error_is_missed_and_exact_values_lie_in_the_intervals(name, seed, ridge):
    rng = np.random.default_rng(seed)
    X, K = points(seed)
    labels = rng.integers(0, 4, 30)
    X += labels[:, None] * 0.4
    M = codes(4, seed)[name]
    f, c, exact = (np.zeros((30, M.shape[1])) for _ in range(3))
    for i in range(M.shape[1]):
        target = M[labels, i]
        if not target.any():
            continue
        # A machine that does not use a point gives it weight zero; its leave-one-out output is then its output.
        found = leave_one_out(K, target, ridge, weights=np.abs(target))
        c[:, i], exact[:, i] = found.coefficients[:, 0], found.predictions[:, 0]
        f[:, i] = K @ c[:, i]
    a, b = interval(f, c, np.diag(K))
    assert np.all(exact >= np.minimum(a, b) - 1e-9)
    assert np.all(exact <= np.maximum(a, b) + 1e-9)
    errors = decode(M, exact) != labels
    assert not np.any(errors & ~possible_class_errors(M, labels, f, c, np.diag(K)))


def test_one_versus_all_set_is_a_comparison_of_worst_outputs():
    rng = np.random.default_rng(5)
    _, K = points(5)
    labels = rng.integers(0, 3, 30)
    Y = one_versus_all(3)[labels]
    c = leave_one_out(K, Y, 0.2).coefficients
    f = K @ c
    a, b = interval(f, c, np.diag(K))
    own = np.arange(3) == labels[:, None]
    rivals = np.max(np.where(own, -np.inf, np.maximum(a, b)), axis=1)
    truth = np.min(np.where(own, np.minimum(a, b), np.inf), axis=1)
    np.testing.assert_array_equal(possible_class_errors(one_versus_all(3), labels, f, c, np.diag(K)), rivals >= truth)


def test_decoding_is_by_least_square_loss():
    rng = np.random.default_rng(6)
    M, f = rng.choice([-1.0, 0.0, 1.0], (5, 7)), rng.standard_normal((20, 7))
    loss = ((1 - M[None] * f[:, None]) ** 2).sum(2)
    np.testing.assert_array_equal(decode(M, f), np.argmin(loss, axis=1))
    with pytest.raises(InvalidInput, match="code"):
        possible_class_errors([[2.0]], [0], [[1.0]], [[1.0]], [1.0])
