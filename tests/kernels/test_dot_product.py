"""Linear, polynomial, sigmoid, cosine and bilinear kernels."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import (
    Bilinear,
    Constant,
    Cosine,
    Linear,
    NormalisedPolynomial,
    Polynomial,
    Sigmoid,
    kernel_diagnostics,
)


def test_square_of_the_inner_product_is_the_inner_product_of_squares_and_products() -> None:
    random = np.random.default_rng(0)
    X, Z = random.standard_normal((5, 2)), random.standard_normal((4, 2))

    def features(P: np.ndarray) -> np.ndarray:
        return np.stack([P[:, 0] ** 2, P[:, 1] ** 2, math.sqrt(2.0) * P[:, 0] * P[:, 1]], axis=1)

    np.testing.assert_allclose(Polynomial(degree=2, offset=0.0)(X, Z), features(X) @ features(Z).T, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 0.7])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_equals_the_linear_kernel_on_all_its_monomials(offset: float, degree: int) -> None:
    random = np.random.default_rng(degree)
    X = random.standard_normal((6, 3))
    extended = np.column_stack([X, np.full(6, math.sqrt(offset))]) if offset else X
    monomials = []
    for chosen in itertools.combinations_with_replacement(range(extended.shape[1]), degree):
        count = math.factorial(degree) // math.prod(math.factorial(chosen.count(p)) for p in set(chosen))
        monomials.append(math.sqrt(count) * np.prod(extended[:, list(chosen)], axis=1))
    kernel = Polynomial(degree=degree, offset=offset)
    features = np.stack(monomials, axis=1)
    assert features.shape[1] == kernel.features(3)
    np.testing.assert_allclose(kernel(X), Linear()(features), rtol=1e-11, atol=1e-12)


def test_five_pixel_products_of_a_16_by_16_image() -> None:
    assert Polynomial(degree=5, offset=0.0).features(256) == 9_525_431_552


def test_linear_kernel_has_rank_at_most_d() -> None:
    X = np.random.default_rng(1).standard_normal((20, 3))
    assert np.linalg.matrix_rank(Linear()(X)) == 3


def test_a_negative_offset_is_refused_because_the_matrix_is_indefinite() -> None:
    X = np.random.default_rng(0).standard_normal((8, 2))
    assert np.linalg.eigvalsh((X @ X.T - 0.5) ** 1)[0] < -0.1
    assert np.linalg.eigvalsh((X @ X.T - 0.5) ** 3)[0] < -0.1
    for kind in (Polynomial, NormalisedPolynomial):
        with pytest.raises(NotPositiveDefinite, match="offset must not be negative"):
            kind(degree=3, offset=-0.5)


def test_sigmoid_is_marked_and_is_indefinite() -> None:
    kernel = Sigmoid(gamma=1.0, offset=-1.0)
    assert not kernel.positive_definite
    assert kernel.conditional_order == -1
    X = np.random.default_rng(0).standard_normal((20, 2))
    assert kernel_diagnostics(kernel(X), X).kind == "indefinite"


def test_cosine_of_the_zero_vector_is_zero() -> None:
    X = np.array([[0.0, 0.0], [3.0, 4.0], [-3.0, -4.0], [4.0, -3.0]])
    np.testing.assert_allclose(Cosine()(X), [[0, 0, 0, 0], [0, 1, -1, 0], [0, -1, 1, 0], [0, 0, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(NormalisedPolynomial(degree=2)(X)[1], [1.0, 4.0, 0.0, 1.0], atol=1e-15)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_bilinear_equals_the_form_and_takes_every_positive_matrix(seed: int, d: int) -> None:
    random = np.random.default_rng(seed)
    L = random.standard_normal((d, d))
    A = L @ L.T
    A = 0.5 * (A + A.T)
    X = random.standard_normal((7, d))
    np.testing.assert_allclose(Bilinear(A)(X), X @ A @ X.T, rtol=1e-9, atol=1e-9)  # type: ignore[arg-type]
    np.testing.assert_allclose(Bilinear(A).matrix, A)  # type: ignore[arg-type]


def test_bilinear_refuses_what_is_no_kernel() -> None:
    with pytest.raises(NotPositiveDefinite, match="negative eigenvalue -1"):
        Bilinear(((1.0, 2.0), (2.0, 1.0)))
    with pytest.raises(InvalidInput, match="symmetric"):
        Bilinear(((1.0, 2.0), (0.0, 1.0)))
    with pytest.raises(InvalidInput, match="square"):
        Bilinear(((1.0, 2.0),))
    with pytest.raises(InvalidInput, match="A is for 2 features"):
        Bilinear(((1.0, 0.0), (0.0, 1.0)))(np.ones((3, 4)))


@pytest.mark.parametrize("build, message", [
    (lambda: Polynomial(degree=0), "degree must be a whole number of at least 1"),
    (lambda: Polynomial(degree=2.5), "degree must be a whole number"),  # type: ignore[arg-type]
    (lambda: Polynomial(gamma=0.0), "gamma must be above zero"),
    (lambda: Sigmoid(offset=math.inf), "offset must be finite"),
    (lambda: Constant(-1.0), "value must not be negative"),
    (lambda: Bilinear(((1.0, 2.0), (2.0,))), "square matrix"),
])  # fmt: skip
def test_bad_parameters_are_refused_by_name(build: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()  # type: ignore[operator]
