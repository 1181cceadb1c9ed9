"""Normalised, restricted and mapped kernels, and the limits of rule 7."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import (
    Bilinear,
    Cosine,
    Gaussian,
    Linear,
    Mapped,
    Normalised,
    Polynomial,
    Power,
    Restricted,
    Sigmoid,
    Spectrum,
    ThinPlate,
    polarised,
)

X = np.random.default_rng(0).standard_normal((7, 4))
Z = np.random.default_rng(1).standard_normal((5, 4))


def lengths(strings: list[str]) -> np.ndarray:
    return np.array([[float(len(s)), float(s.count("a"))] for s in strings])


def squared(points: np.ndarray) -> np.ndarray:
    return np.asarray(points) ** 2


def test_the_normalised_linear_kernel_is_the_cosine() -> None:
    zero = np.concatenate([X, np.zeros((1, 4))])
    np.testing.assert_allclose(Normalised(Linear())(zero), Cosine()(zero), atol=1e-14)
    np.testing.assert_allclose(Normalised(Linear())(X, Z), Cosine()(X, Z), atol=1e-14)


def test_normalising_twice_is_normalising_once_and_a_normalised_gaussian_is_itself() -> None:
    kernel = Normalised(Polynomial(3, 0.5))
    np.testing.assert_allclose(Normalised(kernel)(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(np.diag(kernel(X)), 1.0)
    np.testing.assert_allclose(Normalised(3.0 * Gaussian())(X), Gaussian()(X), rtol=1e-12)
    np.testing.assert_allclose(Normalised(3.0 * Gaussian()).of_distance(np.ones(2), 4), np.exp(-0.5 * np.ones(2)))


def test_restriction_reads_the_columns_it_names() -> None:
    kernel = Restricted(Gaussian(0.8), columns=(3, 1))
    expected = Gaussian(0.8)(X[:, [3, 1]], Z[:, [3, 1]])
    np.testing.assert_array_equal(kernel(X, Z), expected)
    np.testing.assert_allclose(kernel(sp.csr_array(X), sp.csr_array(Z)), expected, rtol=1e-12)
    assert Restricted(Linear(), columns=2).columns == (2,)  # type: ignore[arg-type]
    assert Restricted(Linear(), columns=range(3)).columns == (0, 1, 2)  # type: ignore[arg-type]
    nested = Restricted(Restricted(Linear(), columns=(1,)), columns=(3, 2))
    np.testing.assert_allclose(nested(X), np.outer(X[:, 2], X[:, 2]))
    np.testing.assert_allclose(nested.diagonal(X), X[:, 2] ** 2)
    with pytest.raises(InvalidInput, match="names column 4"):
        Restricted(Linear(), columns=(0, 4))(X)
    with pytest.raises(InvalidInput, match="names column 4"):
        Restricted(Linear(), columns=(0, 4)).diagonal(X)


@pytest.mark.parametrize("columns", [(), (-1,), (0.5,), "ab", None])
def test_bad_columns_are_refused(columns: object) -> None:
    with pytest.raises(InvalidInput, match="columns"):
        Restricted(Linear(), columns=columns)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="works on objects"):
        Restricted(Spectrum(), columns=(0,))


def test_one_kernel_for_each_source_of_data() -> None:
    kernel = Restricted(Gaussian(1.0), (0, 1)) + 0.5 * Restricted(Linear(), (2, 3))
    np.testing.assert_allclose(kernel(X), Gaussian()(X[:, :2]) + 0.5 * X[:, 2:] @ X[:, 2:].T)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12


def test_a_map_comes_before_the_kernel() -> None:
    kernel = Mapped(Gaussian(2.0), squared)
    np.testing.assert_allclose(kernel(X, Z), Gaussian(2.0)(X**2, Z**2))
    np.testing.assert_allclose(kernel.diagonal(X), 1.0)
    np.testing.assert_allclose(kernel.derivatives(X)["kernel__sigma"], Gaussian(2.0).derivatives(X**2)["sigma"])
    strings = ["banana", "pear", "a"]
    on_strings = Mapped(Linear(), lengths) + Spectrum(1)
    expected = lengths(strings) @ lengths(strings).T + Spectrum(1)(strings)
    np.testing.assert_allclose(on_strings(strings), expected)
    np.testing.assert_allclose(on_strings.diagonal(strings), np.diag(expected))
    np.testing.assert_allclose(Mapped(Restricted(Linear(), (1,)), lengths).diagonal(strings), [9.0, 1.0, 1.0])


def test_definiteness_through_composition() -> None:
    assert Mapped(Power(1.0), squared).conditional_order == 1
    assert Restricted(ThinPlate(), (0, 1)).conditional_order == 2
    with pytest.raises(NotPositiveDefinite, match="of order 2"):
        Mapped(ThinPlate(), squared)
    with pytest.raises(NotPositiveDefinite, match="normalising needs"):
        Normalised(Sigmoid())
    with pytest.raises(InvalidInput, match="callable"):
        Mapped(Linear(), 3)  # type: ignore[arg-type]


def test_rule_seven_holds_for_quadratic_forms() -> None:
    A = np.array([[2.0, 0.3], [0.3, 1.0]])
    kernel = polarised(lambda x: float(x @ A @ x), 2)
    assert isinstance(kernel, Bilinear)
    np.testing.assert_allclose(kernel.matrix, A, atol=1e-12)


def test_rule_seven_fails_for_the_fourth_power() -> None:
    x = np.array([1.0, 2.0])
    matrix = 0.25 * ((x[:, None] + x[None]) ** 4 - (x[:, None] - x[None]) ** 4)
    np.testing.assert_array_equal(matrix, [[4.0, 20.0], [20.0, 64.0]])
    assert np.linalg.det(matrix) == pytest.approx(-144.0)
    for wrong in (lambda x: float(np.sum(x**4)), lambda x: float(np.sum(np.abs(x))), lambda x: float(np.cosh(x[0]))):
        with pytest.raises(NotPositiveDefinite, match="-144"):
            polarised(wrong, 2)
    with pytest.raises(NotPositiveDefinite, match="negative eigenvalue"):
        polarised(lambda x: float(x[0] ** 2 - x[1] ** 2), 2)
