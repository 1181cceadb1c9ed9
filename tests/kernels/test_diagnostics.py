"""Kinds of matrices, norms, feature maps, widths."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import (
    Gaussian,
    Linear,
    Matern,
    Polynomial,
    Power,
    Sigmoid,
    empirical_map,
    kappa,
    kernel_diagnostics,
    median_sigma,
    polynomial_basis,
    rkhs_norm,
)

random = np.random.default_rng(0)
X = random.standard_normal((20, 2))


def test_the_four_kinds_of_matrix() -> None:
    assert kernel_diagnostics(Matern()(X)).kind == "positive definite"
    assert kernel_diagnostics(Linear()(X)).kind == "positive semidefinite"
    found = kernel_diagnostics(Power(1.0)(X))
    assert (found.kind, found.order, found.negative) == ("conditionally positive definite", 1, 1)
    found = kernel_diagnostics(Sigmoid(offset=-1.0)(X))
    assert (found.kind, found.order) == ("indefinite", -1)
    assert found.smallest < 0.0 < found.largest
    assert kernel_diagnostics(Power(3.0)(X)).kind == "indefinite"  # without the points only order 1 can be seen
    assert kernel_diagnostics(Power(3.0)(X), X).order == 2


def test_the_report_reads_as_a_sentence_and_carries_the_spectrum() -> None:
    found = kernel_diagnostics(Power(1.0)(X))
    assert str(found).startswith("conditionally positive definite of order 1: eigenvalues from -")
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(Power(1.0)(X)), atol=1e-12)
    assert kernel_diagnostics(np.eye(3)).condition == 1.0
    assert kernel_diagnostics(np.zeros((2, 2))).condition == np.inf


def test_smaller_widths_have_slower_spectral_decay() -> None:
    shares = []
    for sigma in (0.3, 1.0, 3.0):
        eigenvalues = kernel_diagnostics(Gaussian(sigma)(X)).eigenvalues
        shares.append(eigenvalues[-5:].sum() / eigenvalues.sum())
    assert shares[0] < shares[1] < shares[2]


def test_bad_matrices_are_refused() -> None:
    for wrong, message in [
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[np.nan]]), "NaN"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            kernel_diagnostics(wrong)


def test_polynomials_on_the_points() -> None:
    assert polynomial_basis(X, 0).shape == (20, 1)
    assert polynomial_basis(X, 2).shape == (20, 6)
    assert np.linalg.matrix_rank(np.column_stack([polynomial_basis(X, 1), np.ones(20), X])) == 3


def test_the_norm_of_a_linear_function_is_that_of_its_weights() -> None:
    c = random.standard_normal(20)
    assert rkhs_norm(c, Linear()(X)) == pytest.approx(np.linalg.norm(X.T @ c), rel=1e-12)
    many = random.standard_normal((20, 3))
    np.testing.assert_allclose(rkhs_norm(many, Linear()(X)), np.linalg.norm(X.T @ many, axis=0), rtol=1e-12)
    assert rkhs_norm(c, aslinearoperator(Linear()(X))) == pytest.approx(np.linalg.norm(X.T @ c), rel=1e-12)
    with pytest.raises(NotPositiveDefinite, match="c'Kc"):
        rkhs_norm(c, -np.eye(20))


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Matern(1.0, 2.5), Polynomial(2, 1.0), Linear()])
def test_functions_are_bounded_by_kappa_times_their_norm(kernel: object) -> None:
    K = kernel(X)  # type: ignore[operator]
    new = random.standard_normal((200, 2)) * 2.0
    for _ in range(10):
        c = random.standard_normal(20)
        values = kernel(new, X) @ c  # type: ignore[operator]
        assert np.abs(values).max() <= kappa(kernel, new) * rkhs_norm(c, K) * (1.0 + 1e-12)  # type: ignore[arg-type]


def test_kappa_of_an_indefinite_kernel_is_refused() -> None:
    with pytest.raises(NotPositiveDefinite, match="kappa"):
        kappa(Sigmoid(offset=-1.0), np.array([[0.1]]))


def test_a_finite_rank_kernel_reproduces_its_functions() -> None:
    """k = sum_i lambda_i phi_i phi_i: f(x) = <f, k(x, .)> with <f, g> = sum_i c_i d_i / lambda_i."""
    eigenvalues = np.array([2.0, 0.7, 0.1])

    def phi(x: np.ndarray) -> np.ndarray:
        return np.stack([np.ones_like(x), np.sqrt(2) * np.cos(np.pi * x), np.sqrt(2) * np.cos(2 * np.pi * x)], axis=1)

    x = random.random(8)
    K = phi(x) * eigenvalues @ phi(x).T
    alpha = random.standard_normal(8)
    c = eigenvalues * (phi(x).T @ alpha)  # f = sum_i c_i phi_i
    z = random.random(5)
    values = (phi(z) * eigenvalues @ phi(x).T) @ alpha
    np.testing.assert_allclose(values, ((eigenvalues * phi(z)) * c / eigenvalues).sum(axis=1), rtol=1e-12)
    assert rkhs_norm(alpha, K) ** 2 == pytest.approx(np.sum(c**2 / eigenvalues), rel=1e-12)


def test_the_empirical_map_gives_the_matrix_and_truncation_converges() -> None:
    K = Gaussian(1.0)(X)
    np.testing.assert_allclose(empirical_map(K) @ empirical_map(K).T, K, atol=1e-12)
    errors = [np.abs(empirical_map(K, rank) @ empirical_map(K, rank).T - K).max() for rank in (1, 4, 8, 16)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3
    features = empirical_map(Linear()(X))
    assert features.shape == (20, 2)
    np.testing.assert_allclose(Linear()(features), Linear()(X), atol=1e-12)
    with pytest.raises(NotPositiveDefinite, match="negative eigenvalue"):
        empirical_map(-np.eye(2))


def test_the_median_width() -> None:
    points = np.array([[0.0], [1.0], [3.0]])
    assert median_sigma(points) == 2.0
    assert median_sigma(np.repeat(points, 4, axis=0)) == 2.0
    assert median_sigma(sp.csr_array(points)) == 2.0
    large = random.standard_normal((600, 4))
    assert median_sigma(large, sample=200) == median_sigma(large, sample=200)
    assert median_sigma(large, sample=200) == pytest.approx(median_sigma(large), rel=0.1)
    with pytest.raises(InvalidInput, match="no two different points"):
        median_sigma(np.ones((3, 2)))


def test_projection_on_the_span_of_the_points_keeps_values_and_shrinks_the_norm() -> None:
    """The representer theorem: what is orthogonal to all k(x_i, .) costs norm and changes no value at the points."""
    points = random.standard_normal((6, 3))
    inhomogeneous = np.column_stack([points, np.ones(6)])
    features = np.einsum("ni,nj->nij", inhomogeneous, inhomogeneous).reshape(6, -1)
    w = random.standard_normal(features.shape[1])
    c = np.linalg.lstsq(features.T, w, rcond=None)[0]
    K = Polynomial(degree=2, offset=1.0)(points)
    np.testing.assert_allclose(K @ c, features @ w, rtol=1e-9)
    assert rkhs_norm(c, K) < np.linalg.norm(w)


def test_both_feature_maps_are_isometric() -> None:
    """<Phi(x), Phi(z)> = k(x, z) for the Mercer map sqrt(lambda) phi and for x -> k(x, .) with c'Kc."""
    K = Matern(1.0, 1.5)(X)
    mercer_map = empirical_map(K)
    for i, j in [(0, 1), (3, 3), (5, 9)]:
        ei, ej = np.eye(20)[i], np.eye(20)[j]
        assert mercer_map[i] @ mercer_map[j] == pytest.approx(K[i, j], abs=1e-12)
        reproducing = 0.25 * (rkhs_norm(ei + ej, K) ** 2 - rkhs_norm(ei - ej, K) ** 2)
        assert reproducing == pytest.approx(K[i, j], abs=1e-7)
