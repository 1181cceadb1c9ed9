"""Random Fourier features against the kernels they stand for."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels import Exponential, Gaussian, Laplacian, Matern, Polynomial, RationalQuadratic
from mercer.lowrank.fourier import fourier_map

X = np.random.default_rng(0).standard_normal((40, 3))
KERNELS = [
    Gaussian(1.5),
    Gaussian((1.0, 2.0, 0.5)),
    2.0 * Gaussian(1.0),
    Laplacian(2.0),
    Exponential(1.5),
    Matern(1.0, 1.5),
    Matern(1.0, 3.2),
    RationalQuadratic(1.0, 0.7),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_converge_to_the_kernel(kernel: Any) -> None:
    K = kernel(X)
    errors = []
    for m in (200, 20_000):
        Z = fourier_map(kernel, 3, m, seed=0).features(X)
        errors.append(np.abs(Z @ Z.T - K).max())
        assert np.allclose(np.sum(Z**2, axis=1), np.diagonal(K))  # exact at x = z
    assert errors[1] < 0.06 * K.max()
    assert errors[1] < errors[0]


def test_features_are_unbiased() -> None:
    kernel = Gaussian(1.2)
    maps = [fourier_map(kernel, 3, 20, seed=seed).features(X) for seed in range(400)]
    mean = np.mean([Z @ Z.T for Z in maps], axis=0)
    assert np.abs(mean - kernel(X)).max() < 0.06


def test_orthogonal_features_are_unbiased_with_less_variance() -> None:
    kernel = Gaussian(1.5)

    def draws(orthogonal: bool) -> Any:
        maps = [fourier_map(kernel, 3, 12, seed=seed, orthogonal=orthogonal).features(X) for seed in range(300)]
        return np.array([Z @ Z.T for Z in maps])

    independent, orthogonal = draws(False), draws(True)
    assert np.abs(orthogonal.mean(axis=0) - kernel(X)).max() < 0.06
    assert orthogonal.var(axis=0).mean() < 0.8 * independent.var(axis=0).mean()


def test_blocks_of_frequencies_are_orthogonal() -> None:
    w = fourier_map(Gaussian(1.0), 4, 16, seed=0, orthogonal=True).frequencies
    for block in (w[:, :4], w[:, 4:]):
        G = block.T @ block
        assert np.allclose(G, np.diag(np.diagonal(G)), atol=1e-10)


def test_sparse_points_and_odd_numbers_of_features() -> None:
    found = fourier_map(Gaussian(1.0), 3, 7, seed=0)
    assert found.dimension == 8
    assert np.allclose(found.features(sp.csr_array(X)), found.features(X))
    assert found.expansion(np.ones(8)) is None


def test_kernels_without_a_spectral_density_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Nystrom"):
        fourier_map(Polynomial(degree=2), 3, 10)
    with pytest.raises(InvalidInput, match="RandomFourier"):
        fourier_map(Laplacian(), 3, 10, orthogonal=True)
    with pytest.raises(InvalidInput, match="widths"):
        fourier_map(Gaussian((1.0, 2.0)), 3, 10)
    with pytest.raises(InvalidInput, match="features"):
        fourier_map(Gaussian(), 2, 10).features(X)
