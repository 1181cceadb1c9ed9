"""Bounds of coded classifiers: no leave-one-out error is missed, no training-error bound is exceeded."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.losses import Exponential, Hinge, Perceptron, Square
from mercer.selection.bounds import (
    coded_leave_one_out,
    decode,
    interval,
    one_versus_all,
    possible_class_errors,
    row_distance,
    training_error,
)
from mercer.selection.leave_one_out import leave_one_out
from tests.selection.retraining import gaussian

SEEDS = st.integers(0, 10**6)


def codes(classes, seed):
    rng = np.random.default_rng(seed)
    pairs = np.zeros((classes, classes * (classes - 1) // 2))
    for i, (a, b) in enumerate(combinations(range(classes), 2)):
        pairs[a, i], pairs[b, i] = 1, -1
    dense = rng.choice([-1.0, 1.0], (classes, 9))
    dense[:, 0] = one_versus_all(classes)[0]
    sparse = rng.choice([-1.0, 0.0, 1.0], (classes, 12), p=[0.25, 0.5, 0.25])
    keep = (sparse == 1).any(0) & (sparse == -1).any(0)
    complete = np.array([(1.0, *column) for column in product([-1.0, 1.0], repeat=classes - 1)])[:-1].T
    return {
        "one versus all": one_versus_all(classes),
        "all pairs": pairs,
        "complete": complete,
        "dense": dense,
        "sparse": sparse[:, keep],
    }


def coded_least_squares(K, M, labels, ridge):
    """Outputs, coefficients and exact leave-one-out outputs (n, machines) of the machines of a code."""
    f, c, exact = (np.zeros((len(labels), M.shape[1])) for _ in range(3))
    for i in range(M.shape[1]):
        target = M[labels, i]
        if not target.any():
            continue
        # A machine that does not use a point gives it weight zero; its leave-one-out output is then its output.
        found = leave_one_out(K, target, ridge, weights=np.abs(target))
        c[:, i], exact[:, i] = found.coefficients[:, 0], found.predictions[:, 0]
        f[:, i] = K @ c[:, i]
    return f, c, exact


def problem(seed, n=30, classes=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    X = rng.standard_normal((n, 2))
    return gaussian(X), labels


@pytest.mark.parametrize("name", ["one versus all", "all pairs", "complete", "dense", "sparse"])
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, ridge=st.sampled_from([0.03, 0.3, 3.0]))
def test_no_class_error_is_missed_and_exact_values_lie_in_the_intervals(name, seed, ridge):
    K, labels = problem(seed)
    M = codes(4, seed)[name]
    f, c, exact = coded_least_squares(K, M, labels, ridge)
    a, b = interval(f, c, np.diag(K))
    assert np.all(exact >= np.minimum(a, b) - 1e-9)
    assert np.all(exact <= np.maximum(a, b) + 1e-9)
    errors = decode(M, exact) != labels
    bound = coded_leave_one_out(M, labels, f, c, np.diag(K))
    assert not np.any(errors & ~bound.details["possible"])
    assert bound.value >= np.mean(errors)


def printed_rule(M, labels, f, c, diagonal):
    """The rule as the thesis prints it: one end for all rivals, f itself where m f > 1 (exact where m = 0)."""
    own = M[labels]
    worst = np.where(own * f < 1, f - c * diagonal[:, None], f)
    v = np.where(own == 0, f, worst)
    loss = ((1 - M[None] * v[:, None]) ** 2).sum(axis=2)
    truth = loss[np.arange(len(labels)), labels]
    loss[np.arange(len(labels)), labels] = np.inf
    return loss.min(axis=1) - truth < 0


def test_the_printed_endpoint_rule_misses_errors_of_codes_with_zeros_and_the_corrected_one_none():
    missed = {"printed": 0, "corrected": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 4, 30)
        X = rng.standard_normal((30, 2)) + 2.5 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[labels]
        K = (X @ X.T + 1) ** 2
        M = codes(4, seed)["all pairs"]
        f, c, exact = coded_least_squares(K, M, labels, 1.0)
        errors = decode(M, exact) != labels
        missed["printed"] += int(np.sum(errors & ~printed_rule(M, labels, f, c, np.diag(K))))
        missed["corrected"] += int(np.sum(errors & ~possible_class_errors(M, labels, f, c, np.diag(K))))
    assert missed["corrected"] == 0
    assert missed["printed"] > 0


@pytest.mark.parametrize("name", ["one versus all", "all pairs", "sparse"])
@pytest.mark.parametrize("loss", [Hinge(), Exponential()], ids=["hinge", "exponential"])
def test_the_bound_serves_support_vector_machines_without_bias(name, loss):
    n, C = 12, 2.0
    for seed in range(2):
        K, labels = problem(seed, n=n, classes=3)
        M = codes(3, seed + 3)[name]
        f, c, exact = (np.zeros((n, M.shape[1])) for _ in range(3))
        for i, target in enumerate(M[labels].T):
            used = np.flatnonzero(target)
            if not used.size:
                continue
            c[used, i] = without_bias(K[np.ix_(used, used)], target[used], C) * target[used]
            f[:, i] = exact[:, i] = K @ c[:, i]
            for j in used:
                rest = used[used != j]
                a = without_bias(K[np.ix_(rest, rest)], target[rest], C)
                exact[j, i] = K[j, rest] @ (a * target[rest])
        totals = np.stack([loss.value(1.0, row * exact).sum(axis=1) for row in M], axis=1)
        truth = totals[np.arange(n), labels].copy()
        totals[np.arange(n), labels] = np.inf
        errors = totals.min(axis=1) < truth - 1e-6
        possible = possible_class_errors(M, labels, f, c, np.diag(K), loss=loss)
        assert not np.any(errors & ~possible)


def without_bias(K, y, C):
    """Dual variables of the machine without bias, also where all labels agree: coordinate ascent on the box."""
    Q, a = K * np.outer(y, y), np.zeros(len(K))
    for _ in range(80):
        for i in range(len(K)):
            a[i] = np.clip(a[i] + (1 - Q[i] @ a) / Q[i, i], 0, C)
    return a


def test_one_versus_all_set_is_a_comparison_of_worst_outputs():
    rng = np.random.default_rng(5)
    K, _ = problem(5)
    labels = rng.integers(0, 3, 30)
    Y = one_versus_all(3)[labels]
    c = leave_one_out(K, Y, 0.2).coefficients
    f = K @ c
    a, b = interval(f, c, np.diag(K))
    own = np.arange(3) == labels[:, None]
    rivals = np.max(np.where(own, -np.inf, np.maximum(a, b)), axis=1)
    truth = np.min(np.where(own, np.minimum(a, b), np.inf), axis=1)
    np.testing.assert_array_equal(possible_class_errors(one_versus_all(3), labels, f, c, np.diag(K)), rivals >= truth)


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("one versus all", Square()),
        ("one versus all", Hinge()),
        ("all pairs", Square()),
        ("sparse", Square()),
        ("sparse", Hinge()),
    ],
    ids=str,
)
def test_points_are_possible_errors_where_some_mixture_of_ends_puts_a_rival_first(name, loss):
    rng = np.random.default_rng(7)
    n, M = 600, codes(3, 3)[name]
    labels = rng.integers(0, 3, n)
    own, diagonal = M[labels], rng.uniform(1.0, 4.0, n)
    # Outputs on both sides of their targets, as least squares leaves them: the residuals have either sign.
    f = own + 0.8 * rng.standard_normal(own.shape)
    c = np.where(own == 0, 0.0, own - f)
    expected, together = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for corner in product((0.0, 1.0), repeat=M.shape[1]):  # which machines move: every choice is tried
        v = f - np.array(corner) * c * diagonal[:, None]
        wrong = any_rival_as_good(M, labels, v, loss)
        expected |= wrong
        if len(set(corner)) == 1:
            together |= wrong
    np.testing.assert_array_equal(possible_class_errors(M, labels, f, c, diagonal, loss=loss), expected)
    assert np.sum(expected & ~together) > 5


def any_rival_as_good(M, labels, v, loss):
    """Points (n,) at which the total loss of some other class is no more than that of their own."""
    totals = np.stack([loss.value(1.0, row * v).sum(axis=1) for row in M], axis=1)
    rival = np.arange(len(M)) != labels[:, None]
    return np.any((totals <= totals[~rival][:, None]) & rival, axis=1)


def test_decoding_is_by_least_square_loss():
    rng = np.random.default_rng(6)
    M, f = rng.choice([-1.0, 0.0, 1.0], (5, 7)), rng.standard_normal((20, 7))
    loss = ((1 - M[None] * f[:, None]) ** 2).sum(2)
    np.testing.assert_array_equal(decode(M, f), np.argmin(loss, axis=1))
    with pytest.raises(InvalidInput, match="code"):
        possible_class_errors([[2.0]], [0], [[1.0]], [[1.0]], [1.0])


def mistakes(M, labels, f, loss, decoder):
    """Number of points whose true class is not strictly the best, ties counted as mistakes."""
    if decoder == "loss":
        totals = np.stack([loss.value(1.0, row * f).sum(axis=1) for row in M], axis=1)
    else:
        totals = np.stack([((1 - np.sign(row * f)) / 2).sum(axis=1) for row in M], axis=1)
    n = np.arange(len(labels))
    truth = totals[n, labels].copy()
    totals[n, labels] = np.inf
    return int(np.sum(totals.min(axis=1) <= truth + 1e-12))


@pytest.mark.parametrize("decoder", ["loss", "hamming"])
@pytest.mark.parametrize("loss", [Square(), Hinge(), Exponential()], ids=["square", "hinge", "exponential"])
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, scale=st.sampled_from([0.05, 0.5, 2.0]))
def test_the_training_error_never_exceeds_its_bound(decoder, loss, seed, scale):
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(3, 6))
    for M in codes(classes, seed).values():
        if M.shape[1] == 0 or row_distance(M) == 0:
            continue
        labels = rng.integers(0, classes, 12)
        f = M[labels] * rng.uniform(0, 1.5) + scale * rng.standard_normal((12, M.shape[1]))
        bound = training_error(M, labels, f, loss=loss, decoder=decoder)
        assert bound.holds
        assert mistakes(M, labels, f, loss, decoder) / 12 <= bound.value + 1e-9


def test_the_bound_needs_the_number_of_machines_not_of_classes():
    # Outputs agree with the code where two rows agree and vanish elsewhere: every point is a tie, hence a mistake.
    M = codes(4, 0)["complete"]
    labels = np.zeros(10, dtype=int)
    f = np.where(M[0] == M[1], M[0], 0.0)[None].repeat(10, axis=0)
    bound = training_error(M, labels, f, loss=Hinge())
    assert mistakes(M, labels, f, Hinge(), "loss") == 10
    assert bound.value >= 1.0
    assert bound.value * len(M) / M.shape[1] < 1.0


def test_row_distance_counts_zeros_one_half():
    assert row_distance(one_versus_all(4)) == 2.0
    assert row_distance([[1, -1, 0], [-1, 0, 1]]) == 2.0
    slides = [[-1, -1, -1, 1, 1, 1], [-1, 1, 1, -1, -1, 1], [1, -1, 1, -1, 1, -1], [1, 1, -1, -1, 1, 1]]
    assert row_distance(slides) == 3.0


def test_says_when_the_training_error_bound_does_not_apply():
    M = one_versus_all(3)
    assert not training_error(M, [0], [[1.0, -1.0, -1.0]], loss=Perceptron()).holds
    twice = training_error(np.vstack([M, M[:1]]), [0], [[1.0, -1.0, -1.0]])
    assert not twice.holds
    assert twice.vacuous
    with pytest.raises(InvalidInput, match="decoder"):
        training_error(M, [0], [[1.0, -1.0, -1.0]], decoder="other")
