"""What may be built from kernels, and what may not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import (
    Constant,
    Exp,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Multiquadric,
    Polynomial,
    Power,
    Product,
    Raised,
    Scaled,
    Sigmoid,
    Sum,
    Taper,
    ThinPlate,
)

X = np.random.default_rng(0).standard_normal((8, 3))
BASES = [Gaussian(1.2), Linear(), Polynomial(2, 0.5), Laplacian(2.0), Matern(1.0, 2.5), Taper(2.0)]


def trees(depth: int = 2) -> st.SearchStrategy[Kernel]:
    """Random combinations by every rule of closure."""
    base = st.sampled_from(BASES)
    if depth == 0:
        return base
    inner = trees(depth - 1)
    return st.one_of(
        base,
        st.builds(Sum, inner, inner),
        st.builds(Product, inner, inner),
        st.builds(Scaled, st.floats(0.1, 3.0), inner),
        st.builds(Raised, inner, st.integers(1, 3)),
        st.builds(lambda kernel: Exp(0.05 * kernel), base),
    )


@settings(max_examples=30, deadline=None)
@given(trees(), st.integers(0, 1000))
def test_every_rule_of_closure_keeps_positive_definiteness(kernel: Kernel, seed: int) -> None:
    points = np.random.default_rng(seed).standard_normal((7, 3))
    K = kernel(points)
    assert kernel.positive_definite
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.abs(K).max() * 7
    np.testing.assert_allclose(kernel.diagonal(points), np.diag(K), rtol=1e-9)


def test_operators_do_what_they_say() -> None:
    k, j = Gaussian(1.2), Linear()
    np.testing.assert_allclose((k + j)(X), k(X) + j(X))
    np.testing.assert_allclose((k * j)(X), k(X) * j(X))
    np.testing.assert_allclose((2.5 * k)(X), 2.5 * k(X))
    np.testing.assert_allclose((k / 4)(X), k(X) / 4)
    np.testing.assert_allclose((j**3)(X), j(X) ** 3)
    np.testing.assert_allclose(Exp(0.3 * j)(X), np.exp(0.3 * j(X)))
    np.testing.assert_allclose((k + 1.5)(X), k(X) + 1.5)
    assert 1.5 + k == Sum(Constant(1.5), k)
    assert np.float64(2.0) * k == k * 2 == Scaled(2.0, k)
    assert sum([k, j]) == Sum(k, j)
    assert k + 0 is k


def test_polynomials_with_positive_coefficients_are_kernels() -> None:
    j = Linear()
    np.testing.assert_allclose((j**2 + 2.0 * j + 1.0)(X), Polynomial(degree=2, offset=1.0)(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("build, reason", [
    (lambda: -1.0 * Gaussian(), "negative multiple"),
    (lambda: 0.0 * Gaussian(), "above zero"),
    (lambda: -Gaussian(), "negative of a kernel"),
    (lambda: Gaussian() / -2.0, "negative multiple"),
    (lambda: Gaussian() - Linear(), "difference of kernels"),
    (lambda: 1.0 - Gaussian(), "difference of kernels"),
    (lambda: Gaussian() - 0.5, "difference of kernels"),
    (lambda: Gaussian() + -0.5, "value must not be negative"),
    (lambda: Gaussian() ** 0.5, "fractional"),
    (lambda: Sigmoid() ** 2, "a power needs a positive definite kernel"),
    (lambda: Sigmoid() * Gaussian(), "a product needs a positive definite kernel"),
    (lambda: Gaussian() * Power(1.0), "only conditionally positive definite, of order 1"),
    (lambda: Multiquadric(u=1) ** 2, "only conditionally positive definite"),
    (lambda: Exp(Sigmoid()), "exp needs a positive definite kernel"),
    (lambda: Exp(ThinPlate()), "of order 2"),
])  # fmt: skip
def test_what_is_not_positive_definite_is_refused_with_the_reason(build: object, reason: str) -> None:
    with pytest.raises(NotPositiveDefinite, match=reason):
        build()  # type: ignore[operator]


@pytest.mark.parametrize("build", [
    lambda: Gaussian() ** 0,
    lambda: Gaussian() ** -1,
    lambda: Gaussian() ** "two",
    lambda: Gaussian() / 0.0,
    lambda: Scaled(float("nan"), Gaussian()),
    lambda: Sum(Gaussian(), "rbf"),  # type: ignore[arg-type]
    lambda: Product(1.0, Gaussian()),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_kernel_at_all_is_refused(build: object) -> None:
    with pytest.raises(InvalidInput):
        build()  # type: ignore[operator]
    with pytest.raises(TypeError):
        Gaussian() + "rbf"
    with pytest.raises(TypeError):
        [1.0, 2.0] * Gaussian()  # type: ignore[operator]


def test_the_refusals_are_needed() -> None:
    """Each refused construction has a matrix with a negative eigenvalue."""
    points = np.random.default_rng(3).standard_normal((10, 2))
    K = Gaussian()(points)
    assert np.linalg.eigvalsh(K - 2.0 * K)[0] < -0.1
    gram = np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 0.5], [0.0, 0.5, 1.0]])
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    assert np.linalg.eigvalsh(np.sqrt(gram))[0] < -0.1
    assert np.linalg.eigvalsh(Multiquadric(u=1)(points) * K)[0] < -0.1
    assert np.linalg.eigvalsh(np.exp(Power(beta=3.0)(points)))[0] < -0.1


def test_exp_of_order_one_is_positive_definite_by_schoenberg() -> None:
    for kernel in (Power(beta=1.0), Multiquadric(u=1), 2.0 * Power(beta=0.5) + Multiquadric(u=1)):
        combined = Exp(kernel)
        assert combined.positive_definite
        assert np.linalg.eigvalsh(combined(X))[0] > 0.0
    np.testing.assert_allclose(Exp(Power(beta=1.0))(X), Matern(sigma=1.0, nu=0.5)(X), rtol=1e-12)


def test_orders_of_sums_and_multiples() -> None:
    assert (Gaussian() + Power(1.0)).conditional_order == 1
    assert (3.0 * ThinPlate() + Power(1.0)).conditional_order == 2
    assert (Sigmoid() + Gaussian()).conditional_order == -1
    assert (2.0 * Sigmoid()).conditional_order == -1


def test_support_of_sums_and_products() -> None:
    small, large = Taper(1.0), Taper(3.0)
    assert (small * large).support == (small * Gaussian()).support == 1.0
    assert (small + large).support == 3.0
    assert (small + Gaussian()).support is None
    assert not (small + Gaussian()).compact
    assert (2.0 * small**2).support == 1.0
    assert not Exp(small).compact
    assert Exp(small).support is None


def test_names_of_parameters_inside_a_combination() -> None:
    kernel = 2.0 * Gaussian(1.5) + Linear() * Matern(0.7, nu=2.5)
    assert kernel.parameters == {
        "left__factor": 2.0,
        "left__kernel__sigma": 1.5,
        "right__right__sigma": 0.7,
        "right__right__nu": 2.5,
    }
    changed = kernel.with_parameters(left__factor=3.0, right__right__sigma=0.1)
    assert changed == 3.0 * Gaussian(1.5) + Linear() * Matern(0.1, nu=2.5)
    with pytest.raises(InvalidInput, match="has no parameter 'width'"):
        kernel.with_parameters(left__kernel__width=1.0)
