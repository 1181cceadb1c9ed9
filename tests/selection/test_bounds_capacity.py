"""Dimensions of the theorems against shattering by trial: no set of points beats them, and some attain them."""

import math
from itertools import product

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.selection.bounds import (
    cover,
    covering_exponent,
    fat_shattering,
    margin_dimension,
    shattered_width,
    shatters,
)
from tests.selection.retraining import train


@pytest.mark.parametrize("d", [1, 2, 3])
def test_affine_functions_shatter_one_point_more_than_there_are_features(d):
    random = np.random.default_rng(d)
    assert shatters(np.vstack([np.zeros(d), np.eye(d)]))
    for _ in range(5):
        assert shatters(random.standard_normal((d + 1, d)))
        assert not shatters(random.standard_normal((d + 2, d)))
    assert not shatters(np.vstack([np.eye(d)[:1], np.eye(d)[:1]]))


def test_the_width_is_the_smallest_of_the_largest_margins():
    X = np.random.default_rng(0).standard_normal((4, 6))
    K = X @ X.T
    margins = []
    assert shattered_width(np.vstack([X, X[0] + X[1]]) @ np.vstack([X, X[0] + X[1]]).T) == 0.0
    for y in product((1.0, -1.0), repeat=4):
        alpha, _ = train(K, np.array(y), 1e6, "none")
        w = (alpha * y) @ X
        margins.append(1.0 / np.linalg.norm(w))
    assert shattered_width(K) == pytest.approx(min(margins), rel=1e-4)


@pytest.mark.parametrize("d", [2, 4, 8])
def test_no_points_are_shattered_at_a_width_beyond_the_theorem(d):
    random = np.random.default_rng(d)
    for n in range(1, 9):
        X = random.standard_normal((n, d))
        R = float(np.linalg.norm(X, axis=1).max())
        width = shattered_width(X @ X.T)
        if n > d:
            assert width == 0.0  # through the origin d points are the most
        else:
            assert n <= fat_shattering(R, width).value * (1 + 1e-9)
            assert n <= margin_dimension(R, width, d).value


def test_orthogonal_points_attain_the_theorem():
    for n in (1, 2, 5, 8):
        width = shattered_width(4.0 * np.eye(n))
        assert width == pytest.approx(2.0 / math.sqrt(n), rel=1e-6)
        assert fat_shattering(2.0, width).value == pytest.approx(n, rel=1e-6)


def test_a_cover_covers_shrinks_with_the_radius_and_stays_below_its_exponent():
    random = np.random.default_rng(1)
    X = random.standard_normal((6, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    angles = np.linspace(0, 2 * np.pi, 500)
    values = np.column_stack([np.cos(angles), np.sin(angles)]) @ X.T
    sizes = []
    for eps in (0.05, 0.1, 0.2, 0.5, 2.0):
        centres = cover(values, eps)
        apart = np.max(np.abs(values[:, None] - values[None, centres]), axis=2)
        assert apart.min(axis=1).max() <= eps
        between = np.max(np.abs(values[centres][:, None] - values[None, centres]), axis=2)
        assert between[~np.eye(len(centres), dtype=bool)].min(initial=np.inf) > eps
        sizes.append(len(centres))
        # Centres more than eps apart need balls of radius eps/2 each: log2 of their number is below the exponent there.
        bound = covering_exponent(fat_shattering(1.0, eps / 8).value, eps / 2, 10**6, 2.0)
        assert bound.holds
        assert math.log2(len(centres)) <= bound.value
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


def test_refusals():
    with pytest.raises(InvalidInput, match="every labelling"):
        shatters(np.zeros((20, 2)))
    with pytest.raises(InvalidInput, match="features"):
        shatters([1.0, 2.0])
    with pytest.raises(InvalidInput, match="eps"):
        cover([[0.0]], 0.0)
    with pytest.raises(InvalidInput, match="functions"):
        cover([], 1.0)
