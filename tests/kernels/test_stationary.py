"""Gaussian, exponential, Laplacian, Matern, rational quadratic, periodic: values, limits and widths."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import kv

from mercer.errors import InvalidInput
from mercer.kernels import Exponential, Gaussian, Laplacian, Matern, Periodic, RationalQuadratic, median_sigma
from mercer.kernels.bessel import log_matern

r = np.linspace(0.0, 4.0, 41)


def mixture(nu: float, t: np.ndarray) -> np.ndarray:
    """The Matern function as a mixture of Gaussians, 1/Gamma(nu) int s^(nu-1) exp(-s - t^2/(4s)) ds, with s = e^v."""
    v = np.linspace(math.log(nu) - 30.0 - 30.0 / nu, math.log(nu + 60.0) + 3.0, 200_001)
    log_terms = nu * v - np.exp(v) - math.lgamma(nu) - np.square(t)[:, None] / 4.0 * np.exp(-v)
    return np.exp(log_terms).sum(axis=1) * (v[1] - v[0])


def test_gaussian_is_exp_of_minus_half_the_square_over_sigma_squared() -> None:
    X, Z = np.array([[1.0, 2.0]]), np.array([[0.0, 4.0]])
    assert Gaussian(sigma=3.0)(X, Z)[0, 0] == pytest.approx(math.exp(-5.0 / 18.0), rel=1e-15)
    assert Gaussian(sigma=3.0).gamma == 1.0 / 18.0
    assert Gaussian.from_gamma(0.7).gamma == pytest.approx(0.7, rel=1e-15)


def test_a_width_for_each_feature_is_a_scaling_of_the_features() -> None:
    random = np.random.default_rng(0)
    X, sigma = random.standard_normal((6, 4)), np.array([0.5, 1.0, 2.0, 4.0])
    for kind in (Gaussian, Exponential, Matern, RationalQuadratic):
        np.testing.assert_allclose(kind(sigma=sigma)(X), kind()(X / sigma), rtol=1e-12)
        assert kind(sigma=sigma) == kind(sigma=tuple(sigma.tolist()))
        assert not kind(sigma=sigma).isotropic
        with pytest.raises(InvalidInput, match="4 widths and the points have 3 features"):
            kind(sigma=sigma)(X[:, :3])
        with pytest.raises(InvalidInput, match="4 widths"):
            kind(sigma=sigma).diagonal(X[:, :3])


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 7.3, 30.0, 49.9, 50.0, 80.0, 1000.0])
def test_matern_equals_its_mixture_of_gaussians(nu: float) -> None:
    t = np.sqrt(2.0 * nu) * r
    np.testing.assert_allclose(Matern(nu=nu).of_distance(r, 1), mixture(nu, t), rtol=2e-9, atol=1e-13)


def test_matern_of_one_half_is_exponential_and_limits_are_right() -> None:
    np.testing.assert_allclose(Matern(sigma=1.3, nu=0.5).of_distance(r, 2), np.exp(-r / 1.3), rtol=1e-15)
    np.testing.assert_allclose(np.exp(log_matern(0.5, r)), np.exp(-r), rtol=1e-13)
    np.testing.assert_allclose(np.exp(log_matern(1.5, r)), (1 + r) * np.exp(-r), rtol=1e-13)
    np.testing.assert_allclose(np.exp(log_matern(2.5, r)), (1 + r + r * r / 3) * np.exp(-r), rtol=1e-13)
    for nu in (0.05, 0.5, 1.0, 1.5, 3.7, 60.0, 1e4):
        assert Matern(nu=nu).of_distance(np.zeros(1), 3)[0] == 1.0


def test_matern_with_the_width_of_hamers_divided_by_root_two_is_his_kernel() -> None:
    width, nu = 1.7, 3.2
    t = 2.0 * np.sqrt(nu) * r[1:] / width
    hamers = t**nu * kv(nu, t) / (2.0 ** (nu - 1.0) * math.gamma(nu))
    np.testing.assert_allclose(Matern(sigma=width / math.sqrt(2.0), nu=nu).of_distance(r[1:], 1), hamers, rtol=1e-11)


def test_matern_tends_to_the_gaussian_of_the_same_sigma() -> None:
    gaussian = Gaussian(sigma=0.8).of_distance(r, 2)
    errors = [np.abs(Matern(sigma=0.8, nu=nu).of_distance(r, 2) - gaussian).max() for nu in (10.0, 1e3, 1e5, 1e8)]
    assert errors[0] < 0.05
    for before, after in itertools.pairwise(errors):
        assert after < 0.02 * before
    assert errors[-1] < 1e-8


@pytest.mark.parametrize("nu", [3.2, 20.0, 45.0, 49.99, 50.0, 300.0, 1e6])
def test_matern_neither_overflows_nor_jumps_at_small_distances(nu: float) -> None:
    tiny = np.array([0.0, 1e-300, 1e-160, 1e-100, 1e-30, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        values = Matern(nu=nu).of_distance(tiny, 1)
    # To first order 1 - q nu / (2 (nu - 1)).
    np.testing.assert_allclose(1.0 - values, tiny**2 * nu / (2.0 * (nu - 1.0)), rtol=1e-5, atol=1e-11)
    assert (np.diff(values) <= 1e-12).all()


def test_matern_underflows_to_zero_far_away_without_a_warning() -> None:
    with np.errstate(all="raise", under="ignore"):
        for nu in (0.3, 1.0, 3.2, 60.0):
            far = Matern(nu=nu).of_distance(np.array([1e3, 1e6, 1e9]), 1)
            assert np.isfinite(far).all()
            assert far[-1] == 0.0


def test_the_two_ways_to_matern_meet_where_they_change_over() -> None:
    t = np.sqrt(100.0) * r
    below, above = log_matern(50.0 - 1e-9, t), log_matern(50.0, t)
    np.testing.assert_allclose(below, above, atol=1e-8)


def test_rational_quadratic_tends_to_the_gaussian() -> None:
    gaussian = Gaussian(sigma=0.8).of_distance(r, 2)
    np.testing.assert_allclose(RationalQuadratic(sigma=0.8, alpha=1e9).of_distance(r, 2), gaussian, atol=1e-8)
    assert RationalQuadratic(sigma=2.0, alpha=0.5).of_distance(np.array([2.0]), 1)[0] == pytest.approx(2.0**-0.5)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 5.0), st.floats(0.2, 3.0), st.integers(0, 1000), st.integers(1, 4))
def test_periodic_repeats_and_is_positive_definite_in_any_dimension(
    period: float, sigma: float, seed: int, d: int
) -> None:
    random = np.random.default_rng(seed)
    X = random.standard_normal((12, d)) * 3.0
    kernel = Periodic(period=period, sigma=sigma)
    np.testing.assert_allclose(kernel(X, X + period), kernel(X), atol=1e-9)
    assert np.linalg.eigvalsh(kernel(X))[0] >= -1e-12 * 12


def test_the_periodic_kernel_of_the_euclidean_distance_would_not_be_positive_definite() -> None:
    X = np.random.default_rng(0).random((60, 2)) * 4.0
    distance = np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=2))
    assert np.linalg.eigvalsh(np.exp(-2.0 * np.sin(np.pi * distance) ** 2))[0] < -0.1
    assert np.linalg.eigvalsh(Periodic()(X))[0] > -1e-12


def test_laplacian_uses_the_sum_of_absolute_differences() -> None:
    assert Laplacian(sigma=2.0)([[0.0, 1.0]], [[3.0, -1.0]])[0, 0] == pytest.approx(math.exp(-2.5))
    assert Laplacian().stationarity == "stationary"


@pytest.mark.parametrize("rule", ["loo", "median"])
def test_a_width_may_be_left_to_a_machine(rule: str) -> None:
    kernel = Gaussian(sigma=rule)
    assert repr(kernel) == f"Gaussian(sigma='{rule}')"
    assert kernel == Gaussian(sigma=rule) != Gaussian(sigma=1.0)
    assert kernel.placeholders == {"sigma": rule}
    assert kernel.profile is None
    for call in (kernel, kernel.diagonal, kernel.derivatives):
        with pytest.raises(InvalidInput, match=r"with_parameters\(sigma=\.\.\.\)"):
            call(np.ones((2, 2)))
    X = np.random.default_rng(0).standard_normal((5, 2))
    resolved = kernel.with_parameters(sigma=median_sigma(X))
    assert resolved.placeholders == {}
    assert resolved(X).shape == (5, 5)


def test_placeholders_are_found_inside_combinations() -> None:
    kernel = 2.0 * Gaussian(sigma="loo") + Laplacian(sigma="median") * Matern(sigma="loo", nu=2.5)
    assert kernel.placeholders == {
        "left__kernel__sigma": "loo",
        "right__left__sigma": "median",
        "right__right__sigma": "loo",
    }
    with pytest.raises(InvalidInput, match="left__kernel__sigma"):
        kernel(np.ones((2, 2)))
    resolved = kernel.with_parameters(**dict.fromkeys(kernel.placeholders, 1.5))
    assert resolved == 2.0 * Gaussian(1.5) + Laplacian(1.5) * Matern(1.5, nu=2.5)


@pytest.mark.parametrize("build, message", [
    (lambda: Gaussian(sigma=0.0), "sigma must be above zero"),
    (lambda: Gaussian(sigma=-1.0), "sigma must be above zero"),
    (lambda: Gaussian(sigma=math.nan), "sigma must be finite"),
    (lambda: Gaussian(sigma=math.inf), "sigma must be finite"),
    (lambda: Gaussian(sigma="best"), "sigma='best' is not known"),
    (lambda: Gaussian(sigma=True), "sigma must be a number"),
    (lambda: Gaussian(sigma=None), "sigma must be a number"),  # type: ignore[arg-type]
    (lambda: Gaussian(sigma=(1.0, 0.0)), r"sigma\[1\] must be above zero"),
    (lambda: Gaussian(sigma=()), "one number per feature"),
    (lambda: Gaussian(sigma=np.ones((2, 2))), "one number per feature"),  # type: ignore[arg-type]
    (lambda: Matern(nu=0.0), "nu must be above zero"),
    (lambda: RationalQuadratic(alpha=-2.0), "alpha must be above zero"),
    (lambda: Periodic(period=0.0), "period must be above zero"),
    (lambda: Laplacian(sigma=(1.0, 2.0)), "sigma must be a number"),  # type: ignore[arg-type]
    (lambda: Gaussian.from_gamma(0.0), "gamma must be above zero"),
    (lambda: Gaussian(sigma=(1.0, 2.0)).gamma, "one numeric width"),
])  # fmt: skip
def test_bad_parameters_are_refused_by_name(build: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()  # type: ignore[operator]


def test_numbers_of_every_kind_print_alike() -> None:
    assert repr(Gaussian(sigma=np.float32(2.0))) == repr(Gaussian(sigma=2)) == "Gaussian(sigma=2.0)"
    assert repr(Gaussian(sigma=np.array([1.0, 2.0]))) == "Gaussian(sigma=(1.0, 2.0))"
