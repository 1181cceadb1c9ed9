"""Spans, balls and margins against explicit retraining and elementary geometry."""

from itertools import combinations

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.selection.bounds import enclosing_ball, radius_margin, span_bound, span_estimate
from tests.selection.retraining import gaussian, left_out, noisy, train


def smallest_circle(X):
    """Radius of the smallest circle around points of the plane: the best of all pairs and triples that hold all."""
    best = np.inf
    for size in (2, 3):
        for index in combinations(range(len(X)), size):
            P = X[list(index)]
            # The centre is equally far from all and in their affine hull.
            A = 2 * (P[1:] - P[0])
            centre = P[0] + np.linalg.pinv(A) @ (np.sum((P[1:] - P[0]) ** 2, axis=1))
            radius = np.max(np.linalg.norm(X - centre, axis=1))
            best = min(best, radius)
    return best


def test_the_ball_is_the_smallest_circle_in_the_plane():
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((12, 2))
        ball = enclosing_ball(X @ X.T)
        assert ball.radius == pytest.approx(smallest_circle(X), rel=1e-5)
        assert ball.weights.sum() == pytest.approx(1.0)
        centre = ball.weights @ X
        assert np.all(np.linalg.norm(X - centre, axis=1) <= ball.radius + 1e-9)
    assert enclosing_ball([[4.0]]).radius == 0.0
    assert enclosing_ball(np.diag([2.0, 2.0])).radius == pytest.approx(1.0)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [0.5, 5.0, 100.0])
def test_the_span_bound_misses_no_error(bias, C):
    for seed in range(3):
        _, K, y = noisy(seed)
        alpha, b = train(K, y, C, bias)
        bound = span_bound(K, y, alpha, C, bias=bias)
        margins, determined = left_out(K, y, C, bias)
        if bias == "none":
            determined[:] = True
        assert not np.any((margins <= 0) & determined & ~bound.details["possible"])
        # Under the conditions a span is at least the distance without them, and at most the diameter.
        plain = span_estimate(K, y, K @ (alpha * y) + b, alpha, C, bias=bias).details["spans"]
        spans = bound.details["spans"]
        free = np.isfinite(spans)
        assert np.all(spans[free] >= plain[free] - 1e-5)
        if bias == "free":
            assert np.all(spans[free] <= 2 * enclosing_ball(K).radius + 1e-6)


def kinds(alpha, C):
    return np.where(alpha < 1e-6 * C, 0, np.where(alpha > (1 - 1e-6) * C, 2, 1))


@pytest.mark.parametrize("bias", ["free", "none"])
def test_the_estimate_is_exact_where_no_point_changes_its_kind(bias):
    C, exact = 1.0, 0
    for seed in range(6):
        _, K, y = noisy(seed)
        n = len(y)
        alpha, b = train(K, y, C, bias)
        estimate = span_estimate(K, y, K @ (alpha * y) + b, alpha, C, bias=bias).details["margins"]
        for p in range(n):
            keep = np.arange(n) != p
            other, b_other = train(K[np.ix_(keep, keep)], y[keep], C, bias)
            same = np.array_equal(kinds(other, C), kinds(alpha, C)[keep])
            if same and np.any(kinds(other, C) == 1):
                exact += 1
                margin = y[p] * (K[p, keep] @ (other * y[keep]) + b_other)
                assert estimate[p] == pytest.approx(margin, abs=2e-4)
    assert exact > 10


@pytest.mark.parametrize("bias", ["free", "none"])
def test_radius_and_margin_bound_machines_without_slack(bias):
    for seed in range(4):
        _, K, y = noisy(seed, noise=0.1)
        C = 2.0
        alpha, b = train(K, y, C, bias, squared=True)
        f = K @ (alpha * y) + b
        margins, _ = left_out(K, y, C, bias, squared=True)
        bound = radius_margin(K, y, f + alpha * y / (2 * C), alpha, bias=bias, ridge=1 / (2 * C))
        assert bound.holds
        assert np.mean(margins <= 0) <= bound.value
        assert bound.details["norm"] == pytest.approx(alpha.sum(), rel=1e-4)


def test_the_radius_margin_bound_counts_a_free_bias_four_times():
    # Orthonormal points, as many of each class: alpha = 1, ||w||^2 = n, and a ball of R^2 = 1 - 1/n around their mean.
    # Without one point the bias turns to the larger class, and every point is an error: R^2 ||w||^2 / n is no bound.
    n, C = 6, 1e3
    K, y = np.eye(n), np.tile([-1.0, 1.0], n // 2)
    alpha, b = train(K, y, C, "free")
    margins, _ = left_out(K, y, C, "free")
    np.testing.assert_allclose(margins, -1.0 / (n - 1), atol=1e-6)
    bound = radius_margin(K, y, K @ (alpha * y) + b, alpha)
    assert bound.holds
    assert bound.value == pytest.approx(4.0 * (1.0 - 1.0 / n), rel=1e-5)
    assert radius_margin(K, y, y, np.ones(n), bias="none").value == pytest.approx(1.0)


def test_slack_breaks_the_radius_margin_bound_and_it_says_so():
    _, K, y = noisy(0)
    alpha, b = train(K, y, 0.2, "free")
    bound = radius_margin(K, y, K @ (alpha * y) + b, alpha)
    assert not bound.holds


def test_more_margin_lowers_the_radius_margin_bound():
    x = np.array([-1.0, 1.0])
    values = []
    for gap in (0.5, 1.0, 2.0):
        X = np.array([[-gap, 0.0], [gap, 0.0], [-gap, 1.0], [gap, 1.0]])
        y = np.tile(x, 2)
        alpha, b = train(X @ X.T, y, 1e3, "free")
        values.append(radius_margin(X @ X.T, y, X @ X.T @ (alpha * y) + b, alpha).value)
    assert values == sorted(values, reverse=True)


def test_span_of_a_machine_without_free_support_vectors():
    K = gaussian(np.array([[0.0, 0.0], [0.1, 0.0]]))
    bound = span_bound(K, [1.0, -1.0], [0.1, 0.1], 0.1)
    assert not bound.holds
    assert bound.value == 1.0
    estimate = span_estimate(K, [1.0, -1.0], [0.0, 0.0], [0.1, 0.1], 0.1)
    assert estimate.value == 1.0
    with pytest.raises(InvalidInput, match="bias"):
        span_bound(K, [1.0, -1.0], [0.1, 0.1], 0.1, bias="penalised")
    with pytest.raises(InvalidInput, match="square"):
        enclosing_ball(np.ones((2, 3)))
