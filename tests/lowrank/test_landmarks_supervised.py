"""Leverage scores, orthogonal least squares and kernel principal components, against dense algebra."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.lowrank import choose
from mercer.lowrank.landmarks.kernel_pca import leading_eigenvectors
from mercer.lowrank.landmarks.sampling import drawn, leverage_scores
from mercer.lowrank.landmarks.task import LandmarkTask

KERNEL = Gaussian(sigma=1.0)


def points(n=80, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def task(X, m=10, weights=None):
    w = np.ones(len(X)) if weights is None else weights
    return LandmarkTask(KERNEL, X, m, np.arange(len(X)), w, None, np.random.default_rng(0), 1 << 28)


# Orthogonal least squares ---------------------------------------------------------------------------------------------


def error(K, index, Y, weights, bias):
    """Weighted squared error of the least-squares fit of Y on the columns at `index`."""
    columns = np.column_stack([K[:, index], np.ones(len(K))]) if bias else K[:, index]
    root = np.sqrt(weights)[:, None]
    if not columns.shape[1]:
        return np.sum((root * Y) ** 2)
    coefficients = np.linalg.lstsq(root * columns, root * Y, rcond=None)[0]
    return np.sum((root * (Y - columns @ coefficients)) ** 2)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_lowers_the_error_the_most_and_by_what_is_said(bias, outputs, weighted):
    X = points()
    rng = np.random.default_rng(1)
    Y = np.column_stack([np.sin((c + 1) * X[:, 0]) + X[:, 1] for c in range(outputs)]) + 2.0
    weights = rng.uniform(0.5, 2.0, 80) if weighted else np.ones(80)
    chosen = choose(
        KERNEL, X, 6, method="orthogonal_least_squares", y=Y, weights=weights if weighted else None, bias=bias
    )
    K, history = KERNEL(X), chosen.details["history"]
    offset = 1 if bias else 0
    for t in range(6):
        before = error(K, list(chosen.index[:t]), Y, weights, bias)
        assert history[t + offset] == pytest.approx(before, rel=1e-9)
        trials = [error(K, [*chosen.index[:t], j], Y, weights, bias) for j in range(80)]
        assert trials[chosen.index[t]] == pytest.approx(min(trials), rel=1e-9)
    assert (np.diff(history) < 0).all()


def test_supervised_points_fit_better_than_random_ones():
    X = points(300)
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    K = KERNEL(X)
    supervised = error(
        K, choose(KERNEL, X, 15, method="orthogonal_least_squares", y=y).index, y[:, None], 1.0 + 0 * y, 0
    )
    random = [error(K, choose(KERNEL, X, 15, seed=s).index, y[:, None], 1.0 + 0 * y, 0) for s in range(10)]
    assert supervised < min(random)


def test_orthogonal_least_squares_needs_targets():
    with pytest.raises(InvalidInput, match="give y"):
        choose(KERNEL, points(), 5, method="orthogonal_least_squares")


# Leverage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_with_all_points_as_pilots_are_the_diagonal_of_the_smoother(weighted):
    X = points()
    w = np.random.default_rng(1).uniform(0.2, 3.0, 80) if weighted else np.ones(80)
    scores, ridge, pilot = leverage_scores(task(X, weights=w), 0.3, None)
    K = KERNEL(X) * np.sqrt(w)[:, None] * np.sqrt(w)
    assert (ridge, pilot) == (0.3, 80)
    np.testing.assert_allclose(scores, np.diag(K @ np.linalg.inv(K + 0.3 * np.eye(80))), rtol=1e-9)


def test_scores_from_few_pilots_are_near_the_true_ones():
    X = points(1500)
    K = KERNEL(X)
    exact = np.diag(K @ np.linalg.inv(K + 5.0 * np.eye(1500)))
    scores, _, _ = leverage_scores(task(X), 5.0, 300)
    assert np.corrcoef(scores, exact)[0, 1] > 0.9
    assert scores.sum() == pytest.approx(exact.sum(), rel=0.2)


def test_the_ridge_left_open_leaves_half_as_many_dimensions_as_landmarks():
    chosen = choose(KERNEL, points(), 20, method="leverage", seed=0)
    assert chosen.details["dimensions"] == pytest.approx(10.0, rel=1e-6)


def test_draws_follow_the_scores_one_after_the_other():
    scores = np.array([1.0, 2.0, 3.0, 4.0])
    rng = np.random.default_rng(0)
    draws = np.array([drawn(rng, scores, 2) for _ in range(20_000)])
    np.testing.assert_allclose(np.bincount(draws[:, 0], minlength=4) / 20_000, scores / 10, atol=0.012)
    after_last = draws[draws[:, 0] == 3, 1]
    np.testing.assert_allclose(np.bincount(after_last, minlength=3) / len(after_last), scores[:3] / 6, atol=0.02)


# Kernel principal components ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, m", [(60, 5), (400, 10)])
def test_leading_eigenvectors_are_those_of_the_weighted_matrix(n, m):
    X = points(n)
    root = np.sqrt(np.random.default_rng(1).uniform(0.5, 2.0, n))
    values, vectors = leading_eigenvectors(Gram(KERNEL, X), root, m, np.random.default_rng(0))
    H = KERNEL(X) * root[:, None] * root
    np.testing.assert_allclose(values, np.linalg.eigvalsh(H)[::-1][:m], rtol=1e-9)
    np.testing.assert_allclose(H @ vectors, vectors * values, atol=1e-9)


def test_points_that_carry_the_components_explain_more_than_random_ones():
    X = points(400)
    carried = choose(KERNEL, X, 25, method="kernel_pca", seed=0)
    random = [choose(KERNEL, X, 25, seed=s).residual_trace for s in range(10)]
    assert carried.residual_trace < min(random)
    tail = np.linalg.eigvalsh(KERNEL(X))[:-25].sum()
    assert tail <= carried.residual_trace <= 6 * tail
