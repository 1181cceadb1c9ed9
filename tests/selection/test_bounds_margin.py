"""The constants of learning theory: printed values, tightness, monotonicity, and the perceptron counted."""

import math

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.selection.bounds import (
    convex_combination,
    covered_margin,
    covering_exponent,
    fat_margin_bound,
    fat_shattering,
    fat_shattering_absolute,
    margin_bound,
    margin_dimension,
    margin_error,
    perceptron_mistakes,
    regression_deviation,
    uniform_margin_bound,
    vapnik_bound,
    vc_bound,
)


@pytest.mark.parametrize("n, zero, general", [(10**5, 2.04, 2.38), (10**6, 0.267, 0.861), (10**7, 0.0339, 0.306)])
def test_the_margin_bound_has_its_known_values(n, zero, general):
    assert margin_bound(0.0, 1.0, 1.0, n).value == pytest.approx(zero, rel=5e-3)
    # The term beside a margin error that is almost nothing.
    assert margin_bound(1e-12, 1.0, 1.0, n).value == pytest.approx(general, rel=5e-3)
    assert margin_bound(0.0, 1.0, 1.0, n).vacuous == (zero >= 1)


@pytest.mark.parametrize("ratio, crossing", [(1, 34_838), (4, 156_071), (16, 691_788), (100, 4_884_300)])
def test_the_fat_margin_bound_starts_to_say_something_at_the_known_sizes(ratio, crossing):
    assert fat_margin_bound(64 * ratio, crossing).value <= 1
    assert fat_margin_bound(64 * ratio, crossing - 1).value > 1


def test_the_fat_margin_bound_at_a_million_points():
    assert fat_margin_bound(64, 10**6).value == pytest.approx(0.0587, abs=5e-5)
    assert not fat_margin_bound(1000, 100).holds


def test_orthogonal_vectors_attain_the_fat_shattering_dimension():
    R, n = 2.0, 9
    rho = R / math.sqrt(n)
    assert fat_shattering(R, rho).value == pytest.approx(n)
    X = R * np.eye(n)
    rng = np.random.default_rng(0)
    for y in rng.choice([-1.0, 1.0], (50, n)):
        w = y / math.sqrt(n)
        assert np.linalg.norm(w) == pytest.approx(1.0)
        assert np.all(y * (X @ w) >= rho - 1e-12)
    assert fat_shattering_absolute(2.0, 0.5, 10, c=1.0).value == pytest.approx(16 * math.log(22))


def test_margin_error_counts_strictly_and_rises_with_the_margin():
    y, f = np.array([1.0, 1.0, -1.0, -1.0]), np.array([0.0, 0.5, -0.5, 0.2])
    assert margin_error(y, f, 0.0) == 0.25
    assert margin_error(y, f, 0.5) == 0.5
    values = [margin_error(y, f, rho) for rho in np.linspace(-1, 1, 21)]
    assert values == sorted(values)


def perceptron_updates(X, y):
    w, b, updates = np.zeros(X.shape[1]), 0.0, 0
    while True:
        clean = True
        for x, label in zip(X, y, strict=True):
            if label != (1.0 if x @ w + b >= 0 else -1.0):
                w, b, updates, clean = w + label * x, b + label, updates + 1, False
        if clean:
            return updates


def test_the_perceptron_never_needs_more_updates_than_its_bound():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(3)
        w /= np.linalg.norm(w)
        b = rng.uniform(-0.5, 0.5)
        X = rng.uniform(-1, 1, (60, 3))
        X = X[np.abs(X @ w + b) > 0.1]
        y = np.where(X @ w + b > 0, 1.0, -1.0)
        rho = float(np.min(y * (X @ w + b)))
        R = float(np.max(np.linalg.norm(X, axis=1)))
        assert perceptron_updates(X, y) <= perceptron_mistakes(R, rho, b).value


def test_bounds_move_the_right_way():
    sizes = [10**3, 10**4, 10**5, 10**6]
    for falling in (
        [vc_bound(0.1, 10, n, c=1.0).value for n in sizes],
        [vapnik_bound(0.1, 10, n).value for n in sizes],
        [margin_bound(0.1, 1.0, 0.5, n).value for n in sizes],
        [uniform_margin_bound(0.1, 1.0, 0.5, n, c=1.0).value for n in sizes],
        [uniform_margin_bound(0.0, 1.0, 0.5, n, c=1.0).value for n in sizes],
        [convex_combination(0.1, 5, 0.5, n, c=1.0).value for n in sizes],
        [margin_bound(0.1, 1.0, rho, 10**6).value for rho in (0.1, 0.3, 1.0)],
        [vapnik_bound(0.1, 10, 500, delta=delta).value for delta in (0.001, 0.01, 0.1)],
    ):
        assert falling == sorted(falling, reverse=True)
    rising = [vapnik_bound(0.0, h, 1000).value for h in (1, 10, 100, 1000, 10_000)]
    assert rising == sorted(rising)


def test_the_vc_bound_covers_thresholds_on_the_line():
    # Thresholds have VC dimension 1; the best one on the sample has a true risk below the bound.
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.uniform(size=200)
        y = np.where(rng.uniform(size=200) < 0.1, -1, 1) * np.where(x > 0.4, 1, -1)
        cuts = np.append(x, 0.0)
        errors = np.array([np.mean(np.where(x > cut, 1, -1) != y) for cut in cuts])
        cut = cuts[errors.argmin()]
        risk = 0.1 + 0.8 * abs(cut - 0.4)
        assert risk <= vapnik_bound(float(errors.min()), 1, 200).value


def test_margin_dimension_takes_the_smaller_of_margin_and_features_and_warns_of_its_use():
    assert margin_dimension(2.0, 1.0).value == 5.0
    assert margin_dimension(2.0, 1.0, d=2).value == 3.0
    assert "new ones too" in margin_dimension(2.0, 1.0).assumptions[0]


def test_covers_and_deviations():
    exponent = covering_exponent(fat_shattering(1.0, 1 / 8).value, 0.5, 2000, 2.0)
    assert exponent.value == pytest.approx(192 * math.log2(32 * math.e * 1000) ** 2)
    assert covering_exponent(100, 0.5, 50, 1.0).failed
    assert covered_margin(0.0, exponent.value, 1000).value == margin_bound(0.0, 1.0, 1.0, 1000).value
    assert regression_deviation(10.0, 10**6, 0.1).value == pytest.approx(4 * 2**10 * math.exp(-(10**4) / 32))
    assert regression_deviation(1e6, 100, 0.1).vacuous


def test_refusals_name_the_argument():
    with pytest.raises(InvalidInput, match="rho"):
        margin_bound(0.0, 1.0, 0.0, 10)
    with pytest.raises(InvalidInput, match="VC dimension"):
        convex_combination(0.1, 50, 0.5, 20, c=1.0)
    with pytest.raises(InvalidInput, match="delta"):
        vc_bound(0.1, 3, 10, c=1.0, delta=2.0)


def test_the_uniform_margin_bound_does_not_depend_on_the_unit_of_the_points():
    for error in (0.0, 0.2):
        values = [uniform_margin_bound(error, 3.0 * unit, 0.5 * unit, 5000, c=2.0).value for unit in (1e-6, 1.0, 1e6)]
        np.testing.assert_allclose(values, values[1], rtol=1e-12)
    term = 2.0 / 5000 * (36.0 * math.log(6.0 * 5000) ** 2 + math.log(20.0))
    assert uniform_margin_bound(0.2, 3.0, 0.5, 5000, c=2.0).value == pytest.approx(0.2 + math.sqrt(term), rel=1e-12)


def test_no_margin_exceeds_the_radius():
    assert uniform_margin_bound(0.0, 1.0, 1.0, 5000, c=2.0).holds
    beyond = uniform_margin_bound(0.0, 1.0, 1.5, 5000, c=2.0)
    assert not beyond.holds
    assert beyond.vacuous


@pytest.mark.parametrize("delta", [0.05, 0.5])
@pytest.mark.parametrize("h, n", [(1, 200), (10, 500), (600, 200)])
def test_the_vc_bound_solves_growth_times_deviation_equals_delta(h, n, delta):
    # P(sup (R - R_n) > eps) <= 4 S(2n) exp(-n eps^2), S(2n) <= min((2 n e / h)^h, 2^(2n)): eps makes it delta.
    eps = vapnik_bound(0.25, h, n, delta=delta).value - 0.25
    growth = min(h * np.log(2 * n * np.e / h), 2 * n * np.log(2)) if h < 2 * n else 2 * n * np.log(2)
    assert np.log(4) + growth - n * eps**2 == pytest.approx(np.log(delta), rel=1e-9)
