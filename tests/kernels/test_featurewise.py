"""B-splines, splines and ANOVA."""

import itertools
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from scipy.integrate import quad

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import ANOVA, BSpline, Gaussian, Linear, Sigmoid, Spectrum, Spline
from mercer.kernels.featurewise import b_spline, b_spline_slope


def exact_b_spline(order: int, u: float) -> float:
    """The defining sum in rational arithmetic."""
    x = Fraction(u)
    total = Fraction(0)
    for r in range(order + 2):
        base = x + Fraction(order + 1, 2) - r
        if base > 0:
            total += (-1) ** r * comb(order + 1, r) * base**order
    return float(total / factorial(order))


def test_the_first_is_a_hat_and_the_third_peaks_at_two_thirds() -> None:
    u = np.linspace(-1.5, 1.5, 31)
    np.testing.assert_allclose(b_spline(1, u), np.maximum(0.0, 1.0 - np.abs(u)), atol=1e-15)
    assert b_spline(3, np.zeros(1))[0] == pytest.approx(2.0 / 3.0, rel=1e-15)
    assert BSpline(n=1)([[0.0]])[0, 0] == pytest.approx(2.0 / 3.0, rel=1e-15)


@pytest.mark.parametrize("order", [1, 2, 3, 5, 9, 31])
def test_b_splines_agree_with_rational_arithmetic_and_are_exactly_symmetric(order: int) -> None:
    u = np.linspace(-0.5 * order - 1.0, 0.5 * order + 1.0, 101)
    reference = np.array([exact_b_spline(order, float(item)) for item in u])
    np.testing.assert_allclose(b_spline(order, u), reference, atol=1e-11)
    np.testing.assert_array_equal(b_spline(order, u), b_spline(order, -u))
    assert (b_spline(order, u)[np.abs(u) >= 0.5 * (order + 1)] == 0.0).all()


def test_evaluation_on_the_other_side_would_lose_everything() -> None:
    u, order = 12.0, 31
    naive = sum(
        (-1.0) ** r * comb(order + 1, r) * max(u + 0.5 * (order + 1) - r, 0.0) ** order / factorial(order)
        for r in range(order + 2)
    )
    assert abs(naive - exact_b_spline(order, u)) > 1e-3
    assert abs(b_spline(order, np.array([u]))[0] - exact_b_spline(order, u)) < 1e-11


def test_slope_of_b_splines() -> None:
    u = np.array([0.2, 0.7, 1.3, 1.9])
    for order in (2, 3, 5):
        difference = (b_spline(order, u - 1e-6) - b_spline(order, u + 1e-6)) / 2e-6
        np.testing.assert_allclose(b_spline_slope(order, u), difference, atol=1e-8)


def test_odd_orders_are_positive_definite_and_even_orders_are_not() -> None:
    x = np.linspace(0.0, 10.0, 40)
    for order in (1, 3, 5):
        assert np.linalg.eigvalsh(b_spline(order, x[:, None] - x[None]))[0] > -1e-12
    for order in (2, 4):
        assert np.linalg.eigvalsh(b_spline(order, x[:, None] - x[None]))[0] < -1e-4


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_spline_is_the_integral_over_all_knots(degree: int) -> None:
    for x, z in [(0.3, 0.9), (1.4, 0.2), (0.0, 2.0), (1.1, 1.1)]:
        integral = quad(lambda t, x=x, z=z: max(x - t, 0.0) ** degree * max(z - t, 0.0) ** degree, 0.0, min(x, z))[0]
        expected = sum((x * z) ** r for r in range(degree + 1)) + integral
        assert Spline(degree=degree)([[x]], [[z]])[0, 0] == pytest.approx(expected, rel=1e-10)


def test_linear_spline_has_its_textbook_form() -> None:
    x, z = 0.7, 1.6
    m = min(x, z)
    expected = 1 + x * z + x * z * m - (x + z) / 2 * m**2 + m**3 / 3
    assert Spline()([[x]], [[z]])[0, 0] == pytest.approx(expected, rel=1e-14)


def test_spline_refuses_points_below_its_first_knot() -> None:
    with pytest.raises(InvalidInput, match=r"below lower=0\.0"):
        Spline()([[-0.1, 1.0]])
    assert Spline(lower=-1.0)([[-0.1, 1.0]]).shape == (1, 1)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_anova_is_the_sum_over_all_sets_of_features(degree: int) -> None:
    X = np.random.default_rng(0).standard_normal((5, 4))
    inner = Gaussian(sigma=0.8)
    single = [inner(X[:, [p]]) for p in range(4)]
    expected = sum(np.prod([single[p] for p in chosen], axis=0) for chosen in itertools.combinations(range(4), degree))
    np.testing.assert_allclose(ANOVA(inner, degree=degree)(X), expected, rtol=1e-12)


def test_anova_refuses_what_has_no_features_or_no_definiteness() -> None:
    with pytest.raises(InvalidInput, match="degree=4 needs at least as many features"):
        ANOVA(Gaussian(), degree=4)(np.ones((2, 3)))
    with pytest.raises(NotPositiveDefinite, match="ANOVA needs"):
        ANOVA(Sigmoid())
    with pytest.raises(InvalidInput, match="works on objects"):
        ANOVA(Spectrum())
    assert ANOVA(Linear(), degree=1)([[1.0, 2.0]])[0, 0] == 5.0
