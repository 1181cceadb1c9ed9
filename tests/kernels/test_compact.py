"""Compactly supported kernels, and the dimensions in which they are kernels."""

import numpy as np
import pytest
from scipy.special import jv

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import CompactGaussian, Gaussian, Matern, Taper, Wendland

NODES, WEIGHTS = np.polynomial.legendre.leggauss(250)


def distances(X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=2))


def test_the_taper_with_too_small_an_exponent_has_negative_eigenvalues() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 5), axis=-1).reshape(-1, 5)
    r = distances(grid)
    assert np.linalg.eigvalsh(np.maximum(0.0, 1.0 - r / 3.0))[0] < -0.2
    assert np.linalg.eigvalsh(Taper(theta=3.0, nu=3.0)(grid))[0] > 0.0
    with pytest.raises(NotPositiveDefinite, match=r"nu >= \(d \+ 1\) / 2 = 3.0"):
        Taper(theta=3.0, nu=1.0)(grid)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7])
def test_the_dimension_condition_is_the_exact_boundary(d: int) -> None:
    X = np.random.default_rng(d).random((30, d))
    for kernel in (Taper(theta=0.8, nu=0.5 * (d + 1)), CompactGaussian(sigma=0.3, nu=0.5 * (d + 1))):
        assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
        for call in (kernel.with_parameters(nu=0.5 * (d + 1) - 0.25), kernel.with_parameters(nu=0.5 * (d + 1) - 1e-9)):
            with pytest.raises(NotPositiveDefinite, match="nu"):
                call(X)
            with pytest.raises(NotPositiveDefinite, match="nu"):
                call.diagonal(X)
            with pytest.raises(NotPositiveDefinite, match="nu"):
                call.of_distance(np.ones(2), d)


@pytest.mark.parametrize("d, nu", [(1, 1.0), (2, 3.0), (3, 3.0), (4, 5.0)])
def test_the_exponent_left_open_is_the_next_odd_number(d: int, nu: float) -> None:
    X = np.random.default_rng(0).random((6, d))
    np.testing.assert_array_equal(Taper(theta=0.7)(X), Taper(theta=0.7, nu=nu)(X))
    np.testing.assert_array_equal(CompactGaussian(sigma=0.3)(X), CompactGaussian(sigma=0.3, nu=nu)(X))


@pytest.mark.parametrize("nu", [2.0, 2.5, 3.0, 4.0])
def test_even_and_fractional_exponents_truncate_too(nu: float) -> None:
    values = Taper(theta=1.0, nu=nu).of_distance(np.array([0.0, 0.5, 1.0, 1.5, 10.0]), 2)
    np.testing.assert_allclose(values, [1.0, 0.5**nu, 0.0, 0.0, 0.0])


def test_compact_gaussian_is_taper_times_gaussian_cut_at_three_of_hamers_widths() -> None:
    X = np.random.default_rng(2).standard_normal((8, 3)) * 2.0
    sigma = 0.9
    kernel = CompactGaussian(sigma=sigma)
    assert kernel.support == pytest.approx(3.0 * np.sqrt(2.0) * sigma)
    hamers = np.exp(-(distances(X) ** 2) / (2.0 * sigma**2)) * np.maximum(0.0, 1.0 - distances(X) / kernel.support) ** 3
    np.testing.assert_allclose(kernel(X), hamers, rtol=1e-12)
    product = Gaussian(sigma=sigma) * Taper(theta=kernel.support)
    np.testing.assert_allclose(product(X), hamers, rtol=1e-12)
    assert product.compact
    assert product.support == kernel.support


def test_sinc_grid_sparsity_of_the_literature() -> None:
    x = np.arange(-20.0, 20.0, 0.03)[:, None]
    kernel = CompactGaussian(sigma=3.70 / np.sqrt(2.0))
    assert len(x) == 1334
    assert np.count_nonzero(kernel(x)) == pytest.approx(850_160, rel=2e-3)


def test_matern_times_taper_stays_positive_definite() -> None:
    X = np.random.default_rng(4).random((40, 2))
    assert np.linalg.eigvalsh((Matern(sigma=0.5, nu=2.5) * Taper(theta=0.4))(X))[0] > 0.0


@pytest.mark.parametrize("d, k, polynomial", [
    (1, 0, lambda r: (1 - r)),
    (3, 0, lambda r: (1 - r) ** 2),
    (1, 1, lambda r: (1 - r) ** 3 * (3 * r + 1)),
    (3, 1, lambda r: (1 - r) ** 4 * (4 * r + 1)),
    (1, 2, lambda r: (1 - r) ** 5 * (8 * r**2 + 5 * r + 1)),
    (3, 2, lambda r: (1 - r) ** 6 * (35 * r**2 + 18 * r + 3) / 3),
    (3, 3, lambda r: (1 - r) ** 8 * (32 * r**3 + 25 * r**2 + 8 * r + 1)),
])  # fmt: skip
def test_wendland_polynomials_are_those_of_the_tables(d: int, k: int, polynomial: object) -> None:
    r = np.linspace(0.0, 1.0, 21)
    values = Wendland(theta=2.0, k=k, dimension=d).of_distance(2.0 * r, d)
    np.testing.assert_allclose(values, polynomial(r), atol=1e-14)  # type: ignore[operator]


@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_wendland_is_positive_definite_up_to_its_dimension_and_refused_beyond(d: int, k: int) -> None:
    X = np.random.default_rng(d).random((30, d))
    kernel = Wendland(theta=0.9, k=k, dimension=d)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
    beyond = np.random.default_rng(d).random((5, d + 1))
    with pytest.raises(NotPositiveDefinite, match=f"set dimension={d + 1}"):
        kernel(beyond)
    with pytest.raises(NotPositiveDefinite, match="dimension"):
        kernel.diagonal(beyond)


def test_wendland_beyond_its_dimension_is_indefinite() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 5), axis=-1).reshape(-1, 5)
    assert min(np.linalg.eigvalsh(np.maximum(0.0, 1.0 - distances(grid) / theta))[0] for theta in (2.0, 3.0)) < -0.1


def test_bad_parameters_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="k=4 is not provided"):
        Wendland(k=4)
    with pytest.raises(InvalidInput, match="theta must be above zero"):
        Taper(theta=0.0)
    with pytest.raises(InvalidInput, match="theta must be above zero"):
        CompactGaussian(theta=-1.0)
    assert Taper(theta="loo").placeholders == {"theta": "loo"}
    assert Taper(theta="loo").support is None
    assert CompactGaussian(sigma="loo").support is None


def transform(d: int, nu: float) -> np.ndarray:
    """Fourier transform of max(0, 1 - r)^nu on R^d at many frequencies w, times a positive power of w.

    int_0^1 r^(d/2) J_(d/2-1)(w r) (1 - r)^nu dr by Gauss-Legendre quadrature.
    """
    r = 0.5 * (NODES + 1.0)
    w = np.concatenate([np.linspace(0.5, 20.0, 20), np.linspace(180.0, 200.0, 40)])
    terms = WEIGHTS * r ** (0.5 * d) * (1.0 - r) ** nu
    return np.asarray(jv(0.5 * d - 1.0, w[:, None] * r) @ terms * w ** (0.5 * d + 2.0))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_the_fourier_transform_of_the_taper_is_negative_somewhere_just_below_the_condition(d: int) -> None:
    below = 0.25 if d <= 3 else 0.5
    assert transform(d, 0.5 * (d + 1)).min() > 0.0
    assert transform(d, 0.5 * (d + 1) - below).min() < -1.0
