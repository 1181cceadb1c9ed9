"""Conditionally positive definite kernels: their orders, and how many negative eigenvalues go with them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import Kernel, LocallyStationary, Log, Multiquadric, Power, ThinPlate, kernel_diagnostics

CONDITIONAL: list[tuple[Kernel, int]] = [
    (Log(), 1),
    (Log(beta=0.7), 1),
    (Power(beta=0.5), 1),
    (Power(beta=1.0), 1),
    (Power(beta=1.9), 1),
    (Power(beta=2.5), 2),
    (Power(beta=3.0), 2),
    (Power(beta=5.0), 3),
    (ThinPlate(k=1), 2),
    (ThinPlate(k=2), 3),
    (Multiquadric(u=1), 1),
    (Multiquadric(u=3), 2),
    (Multiquadric(u=5), 3),
]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel, order", CONDITIONAL, ids=lambda value: repr(value))
def test_the_stated_order_is_the_smallest_one(kernel: Kernel, order: int, d: int) -> None:
    X = np.random.default_rng(d).standard_normal((25, d))
    assert kernel.conditional_order == order
    assert not kernel.positive_definite
    found = kernel_diagnostics(kernel(X), X)
    assert found.kind == "conditionally positive definite"
    assert found.order == order
    assert 1 <= found.negative <= math.comb(order - 1 + d, d)


def test_order_two_in_two_dimensions_has_three_negative_eigenvalues_not_two() -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    found = kernel_diagnostics(Multiquadric(sigma=1.0, u=3)(X), X)
    assert (found.order, found.negative) == (2, 3)


@pytest.mark.parametrize("u", [1, 3, 5])
def test_in_one_dimension_negative_eigenvalues_count_the_order(u: int) -> None:
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    assert kernel_diagnostics(Multiquadric(sigma=0.3, u=u)(X), X).negative == (u + 1) // 2


@pytest.mark.parametrize("u", [-1, -3, -5])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_inverse_multiquadric_is_positive_definite(u: int, d: int) -> None:
    kernel = Multiquadric(sigma=0.7, u=u)
    assert kernel.positive_definite
    X = np.random.default_rng(d).standard_normal((20, d))
    assert np.linalg.eigvalsh(kernel(X))[0] > 0.0
    np.testing.assert_allclose(kernel.diagonal(X), 0.7**u)


def test_values_at_zero_distance_are_finite() -> None:
    zero = np.zeros(1)
    assert ThinPlate(k=2).of_distance(zero, 2)[0] == 0.0
    assert Power(beta=0.3).of_distance(zero, 2)[0] == 0.0
    assert Log().of_distance(zero, 2)[0] == 0.0
    assert ThinPlate().of_distance(np.array([2.0]), 2)[0] == pytest.approx(4.0 * math.log(2.0))
    assert Power(beta=3.0).of_distance(np.array([2.0]), 2)[0] == 8.0
    assert Multiquadric(sigma=1.0, u=1).of_distance(np.array([1.0]), 2)[0] == pytest.approx(-math.sqrt(2.0))


def test_the_unit_of_length_of_a_thin_plate_changes_nothing_the_side_conditions_leave() -> None:
    X = np.random.default_rng(5).standard_normal((10, 2))
    sides = np.column_stack([np.ones(10), X])
    complement = np.linalg.svd(sides)[0][:, 3:]
    one, other = (complement.T @ ThinPlate(sigma=s)(X) @ complement for s in (1.0, 3.0))
    np.testing.assert_allclose(one, 9.0 * other, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 4.0), st.floats(0.0, 1.0), st.integers(0, 1000))
def test_locally_stationary_is_positive_definite_exactly_from_a_quarter_on(a: float, share: float, seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((12, 2))
    kernel = LocallyStationary(a=a, b=0.25 * a * (1.0 + share))
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
    with pytest.raises(NotPositiveDefinite, match="below a/4"):
        LocallyStationary(a=a, b=0.25 * a * (1.0 - 1e-6))


def test_locally_stationary_below_the_condition_is_indefinite() -> None:
    x = np.linspace(-2.0, 2.0, 15)
    middle, difference = 0.5 * (x[:, None] + x[None]), x[:, None] - x[None]
    assert np.linalg.eigvalsh(np.exp(-1.0 * middle**2 - 0.2 * difference**2))[0] < -1e-3
    expected = np.exp(-1.0 * middle**2 - 0.3 * difference**2)
    np.testing.assert_allclose(LocallyStationary(a=1.0, b=0.3)(x[:, None]), expected, rtol=1e-12)
    assert LocallyStationary().stationarity == "locally stationary"


@pytest.mark.parametrize("build, error, message", [
    (lambda: Log(beta=2.5), NotPositiveDefinite, "0 < beta <= 2"),
    (lambda: Power(beta=2.0), NotPositiveDefinite, "is even"),
    (lambda: Power(beta=-1.0), InvalidInput, "beta must be above zero"),
    (lambda: ThinPlate(k=0), InvalidInput, "k must be a whole number of at least 1"),
    (lambda: Multiquadric(u=2), InvalidInput, "u must be an odd"),
    (lambda: Multiquadric(u=0.5), InvalidInput, "u must be an odd"),
    (lambda: LocallyStationary(a=-1.0), NotPositiveDefinite, "a must not be negative"),
])  # fmt: skip
def test_bad_parameters_are_refused_by_name(build: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        build()  # type: ignore[operator]
