"""Kernels on histograms."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel

from mercer.errors import InvalidInput
from mercer.kernels import AdditiveChiSquare, ChiSquare, ChiSquareDistance, HistogramIntersection, kernel_diagnostics


def histograms(seed: int, n: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.random((n, 6)) * (random.random((n, 6)) < 0.6)


def test_values_agree_with_their_definitions() -> None:
    X, Z = histograms(0, 7), histograms(1, 5)
    with np.errstate(invalid="ignore"):
        harmonic = np.nan_to_num(2.0 * X[:, None] * Z[None] / (X[:, None] + Z[None])).sum(axis=2)
    for left, right in [(X, Z), (sp.csr_array(X), sp.csr_array(Z))]:
        np.testing.assert_allclose(ChiSquare(sigma=0.5)(left, right), chi2_kernel(X, Z, gamma=2.0), rtol=1e-12)
        np.testing.assert_allclose(ChiSquareDistance()(left, right), additive_chi2_kernel(X, Z), atol=1e-13)
        np.testing.assert_allclose(AdditiveChiSquare()(left, right), harmonic, atol=1e-13)
        shared = np.minimum(X[:, None], Z[None]).sum(axis=2)
        np.testing.assert_allclose(HistogramIntersection()(left, right), shared, atol=1e-13)


def test_the_chi_square_distance_is_conditionally_positive_definite_of_order_one() -> None:
    X = histograms(2, 15)
    assert kernel_diagnostics(ChiSquareDistance()(X)).order == 1
    assert kernel_diagnostics(AdditiveChiSquare()(X)).order == 0


@pytest.mark.parametrize("kernel", [ChiSquare(), AdditiveChiSquare(), ChiSquareDistance(), HistogramIntersection()])
def test_negative_features_are_refused(kernel: object) -> None:
    for wrong in (np.array([[1.0, -0.1]]), sp.csr_array(np.array([[1.0, -0.1]]))):
        with pytest.raises(InvalidInput, match="X has negative values"):
            kernel(wrong)  # type: ignore[operator]
        with pytest.raises(InvalidInput, match="Z has negative values"):
            kernel(np.ones((1, 2)), wrong)  # type: ignore[operator]
        with pytest.raises(InvalidInput, match="X has negative values"):
            kernel.diagonal(wrong)  # type: ignore[attr-defined]
