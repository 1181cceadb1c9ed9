"""What holds for every kernel."""

import copy
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.kernels
from mercer.errors import InvalidInput
from mercer.kernels import Kernel, kernel_diagnostics, kernel_from_dict, polynomial_basis

from .catalogue import NUMERIC, ON_HISTOGRAMS, D, points

every_kernel = pytest.mark.parametrize("kernel", NUMERIC, ids=repr)
some_kernel = st.sampled_from(NUMERIC)
few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 10_000)


@every_kernel
def test_matrix_is_exactly_symmetric_and_agrees_with_rectangular_evaluation(kernel: Kernel) -> None:
    X = points(kernel, 9, 1)
    K = kernel(X)
    assert K.shape == (9, 9)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel(X[:4], X[4:]), K[:4, 4:], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(X, X), K, rtol=1e-12, atol=1e-12)


@every_kernel
def test_diagonal_is_the_diagonal_of_the_matrix(kernel: Kernel) -> None:
    X = points(kernel, 8, 2)
    X[0] = 0.0
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel(X)), rtol=1e-12, atol=1e-12)


@every_kernel
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_points_give_the_same_values(kernel: Kernel, index: type) -> None:
    X, Z = points(kernel, 7, 3), points(kernel, 5, 4)
    X[2] = 0.0
    sparse = []
    for dense in (X, Z):
        rows = sp.csr_matrix(dense)
        rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
        sparse.append(rows)
    expected = kernel(X, Z)
    tight = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(kernel(sparse[0], sparse[1]), expected, **tight)
    np.testing.assert_allclose(kernel(sparse[0], Z), expected, **tight)
    np.testing.assert_allclose(kernel(X, sp.csc_array(Z)), expected, **tight)
    np.testing.assert_allclose(kernel(sparse[0]), kernel(X), **tight)
    np.testing.assert_allclose(kernel.diagonal(sparse[0]), kernel.diagonal(X), **tight)
    for name, slope in kernel.derivatives(X, Z).items():
        np.testing.assert_allclose(kernel.derivatives(*sparse)[name], slope, rtol=1e-10, atol=1e-12)


@every_kernel
def test_float32_points_give_float32_values_and_a_mixture_float64(kernel: Kernel) -> None:
    X = points(kernel, 6, 5).astype(np.float32)
    K = kernel(X)
    assert K.dtype == kernel.diagonal(X).dtype == np.float32
    assert kernel(X, X.astype(np.float64)).dtype == np.float64
    assert all(slope.dtype == np.float32 for slope in kernel.derivatives(X).values())
    assert kernel(sp.csr_array(X)).dtype == np.float32
    np.testing.assert_allclose(K, kernel(X.astype(np.float64)), rtol=1e-6, atol=1e-30)


@every_kernel
def test_any_storage_type_is_taken(kernel: Kernel) -> None:
    X = np.random.default_rng(0).integers(0, 4, size=(5, D))
    expected = kernel(X.astype(np.float64))
    for kind in (np.uint8, np.int16, np.int64, object):
        np.testing.assert_array_equal(kernel(X.astype(kind)), expected)
    np.testing.assert_array_equal(kernel(X.tolist()), expected)


@every_kernel
def test_repr_rebuilds_the_kernel_and_equality_is_by_value(kernel: Kernel) -> None:
    again = eval(repr(kernel), {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__})
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert type(again) is type(kernel)
    assert copy.deepcopy(kernel) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@every_kernel
def test_json_carries_the_kernel(kernel: Kernel) -> None:
    assert kernel_from_dict(json.loads(json.dumps(kernel.to_dict()))) == kernel


@every_kernel
def test_parameters_can_be_put_back(kernel: Kernel) -> None:
    assert kernel.with_parameters(**kernel.parameters) == kernel
    assert set(kernel.derivatives(points(kernel, 3, 0))) <= set(kernel.parameters)
    with pytest.raises(InvalidInput, match="has no parameter 'nonsense'"):
        kernel.with_parameters(nonsense=1.0)


def _shifted(value: object, index: int | None, step: float) -> object:
    """A parameter moved by step: the whole number, or one entry of a tuple."""
    if index is None:
        return value + step  # type: ignore[operator]
    return tuple(item + step * (p == index) for p, item in enumerate(value))  # type: ignore[arg-type,var-annotated]


def _difference(kernel: Kernel, name: str, index: int | None, function: str, *sets: object) -> np.ndarray:
    """Difference of fourth order by one parameter: central, or forward from the edge of its range at zero."""
    step = 1e-3

    def value(multiple: int) -> np.ndarray:
        moved = kernel.with_parameters(**{name: _shifted(kernel.parameters[name], index, multiple * step)})
        return np.asarray(getattr(moved, function)(*sets))

    if kernel.parameters[name] == 0.0:
        return (-25.0 * value(0) + 48.0 * value(1) - 36.0 * value(2) + 16.0 * value(3) - 3.0 * value(4)) / (12.0 * step)
    return (8.0 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12.0 * step)


@every_kernel
def test_derivatives_agree_with_finite_differences(kernel: Kernel) -> None:
    X, Z = points(kernel, 6, 8), points(kernel, 5, 9)
    X[0] = 0.0
    derivatives, on_diagonal = kernel.derivatives(X, Z), kernel.diagonal_derivatives(X)
    assert derivatives.keys() == on_diagonal.keys() == kernel.derivatives(X).keys()
    assert all(np.isfinite(slope).all() for slope in kernel.derivatives(X).values())
    for name, slope in derivatives.items():
        several = isinstance(kernel.parameters[name], tuple)
        for index in range(len(kernel.parameters[name])) if several else [None]:
            tolerance = {"rtol": 1e-6, "atol": 1e-7 * (1.0 + np.abs(slope).max())}
            got = slope if index is None else slope[index]
            np.testing.assert_allclose(got, _difference(kernel, name, index, "__call__", X, Z), **tolerance)
            got = on_diagonal[name] if index is None else on_diagonal[name][index]
            np.testing.assert_allclose(got, _difference(kernel, name, index, "diagonal", X), **tolerance)
        assert slope.shape == ((len(kernel.parameters[name]), 6, 5) if several else (6, 5))


CONTINUOUS = {"sigma", "theta", "gamma", "offset", "alpha", "beta", "factor", "value", "a", "b", "scale", "period"}


@every_kernel
def test_every_continuous_parameter_has_a_derivative(kernel: Kernel) -> None:
    wanted = {
        name
        for name, value in kernel.parameters.items()
        if name.rpartition("__")[2] in CONTINUOUS and value is not None
    }
    assert wanted <= set(kernel.derivatives(points(kernel, 3, 0)))


@few
@given(some_kernel, seeds, st.integers(2, 14))
def test_matrices_are_positive_semidefinite_up_to_the_stated_order(kernel: Kernel, seed: int, n: int) -> None:
    X = points(kernel, n, seed)
    K = kernel(X)
    if kernel.conditional_order < 0:
        assert not kernel.positive_definite
        return
    size = np.abs(np.linalg.eigvalsh(K)).max()
    if kernel.conditional_order > 0:
        basis = polynomial_basis(X, kernel.conditional_order - 1)
        vectors = np.linalg.svd(basis, full_matrices=True)
        rank = int((vectors[1] > 1e-10 * vectors[1][0]).sum())
        complement = vectors[0][:, rank:]
        K = complement.T @ K @ complement
    if K.size:
        assert np.linalg.eigvalsh(K)[0] >= -1e-9 * size


@few
@given(some_kernel, seeds)
def test_cauchy_schwarz(kernel: Kernel, seed: int) -> None:
    if not kernel.positive_definite:
        return
    X = points(kernel, 6, seed)
    diagonal = kernel.diagonal(X)
    assert (kernel(X) ** 2 <= np.outer(diagonal, diagonal) * (1.0 + 1e-10) + 1e-12).all()


@every_kernel
def test_flags_say_what_the_kernel_depends_on(kernel: Kernel) -> None:
    X, Z = points(kernel, 6, 11), points(kernel, 5, 12)
    K = kernel(X, Z)
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((D, D)))[0]
    shifts = kernel not in ON_HISTOGRAMS
    shift = np.array([0.3, -1.1, 2.0])
    assert (shifts and np.allclose(kernel(X + shift, Z + shift), K, rtol=1e-9, atol=1e-10)) == kernel.stationary
    if kernel.dot_product or kernel.isotropic:
        np.testing.assert_allclose(kernel(X @ rotation, Z @ rotation), K, rtol=1e-8, atol=1e-10)
    if kernel.isotropic:
        assert kernel.stationary
        r = np.sqrt(np.sum((X[:, None] - Z[None]) ** 2, axis=2))
        np.testing.assert_allclose(kernel.of_distance(r, D), K, rtol=1e-9, atol=1e-12)
    else:
        with pytest.raises(InvalidInput, match="distance alone"):
            kernel.of_distance(np.ones(2), D)
    if kernel.isotropic:
        assert kernel.stationarity == "isotropic"


@every_kernel
def test_compact_kernels_vanish_beyond_their_support_and_not_before(kernel: Kernel) -> None:
    radius = kernel.support_in(D)
    assert kernel.compact == (radius is not None)
    assert kernel.support is None or kernel.support == radius
    if radius is None:
        return
    corner = np.full(D, 1.0 / np.sqrt(D))
    X = np.outer([0.0, 0.98 * radius, 1.0001 * radius], corner)
    K = kernel(X)
    assert K[0, 2] == 0.0
    assert K[0, 1] > 0.0


@every_kernel
def test_profile_is_the_same_kernel(kernel: Kernel) -> None:
    profile = kernel.profile
    if profile is None:
        return
    X, Z = points(kernel, 6, 13), points(kernel, 5, 14)
    scale = np.ones(D) if profile.scale is None else profile.scale
    U, V, p = X * scale, Z * scale, profile.parameters
    t = U @ V.T if profile.base == "product" else np.sum((U[:, None] - V[None]) ** 2, axis=2)
    r = np.sqrt(np.abs(t))
    values = {
        "linear": lambda: t,
        "polynomial": lambda: (p[0] * t + p[1]) ** p[2],
        "sigmoid": lambda: np.tanh(p[0] * t + p[1]),
        "gaussian": lambda: np.exp(-p[0] * t),
        "exponential": lambda: np.exp(-p[0] * r),
        "matern32": lambda: (1 + np.sqrt(3) * p[0] * r) * np.exp(-np.sqrt(3) * p[0] * r),
        "matern52": lambda: (1 + np.sqrt(5) * p[0] * r + 5 / 3 * (p[0] * r) ** 2) * np.exp(-np.sqrt(5) * p[0] * r),
        "rational_quadratic": lambda: (1 + t / (2 * p[0] * p[1] ** 2)) ** (-p[0]),
    }
    np.testing.assert_allclose(kernel(X, Z), values[profile.name](), rtol=1e-11, atol=1e-14)


@every_kernel
@pytest.mark.parametrize("wrong, message", [
    (np.array([1.0, 2.0]), "reshape"),
    (np.zeros((0, D)), "at least one point"),
    (np.full((2, D), np.nan), "NaN"),
    (np.full((2, D), np.inf), "NaN or infinite"),
    (np.ones((2, D), dtype=complex), "not real numbers"),
    ([["a", "b", "c"]], "not real numbers"),
    ([[1.0, 2.0], [3.0]], "different length"),
])  # fmt: skip
def test_bad_points_are_refused_by_name(kernel: Kernel, wrong: object, message: str) -> None:
    for call in (lambda: kernel(wrong), lambda: kernel.diagonal(wrong), lambda: kernel.derivatives(wrong)):
        with pytest.raises(InvalidInput, match=message):
            call()
    with pytest.raises(InvalidInput, match="Z"):
        kernel(np.ones((2, D)), wrong)
    with pytest.raises(InvalidInput, match="features"):
        kernel(np.ones((2, D)), np.ones((2, D + 1)))


def test_kernels_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        NUMERIC[0].sigma = 2.0  # type: ignore[attr-defined]


def test_the_catalogue_holds_every_exported_kernel_on_vectors() -> None:
    on_objects = {"Custom", "Mapped", "Precomputed", "Separable", "Spectrum"}
    exported = {
        name
        for name in mercer.kernels.__all__
        if isinstance(kind := getattr(mercer.kernels, name), type) and issubclass(kind, Kernel)
    }
    seen: set[str] = set()

    def visit(kernel: Kernel) -> None:
        seen.add(type(kernel).__name__)
        for child in kernel._children.values():
            visit(child)

    for kernel in NUMERIC:
        visit(kernel)
    assert exported - on_objects - {"Kernel", "Radial", "DotProduct"} == seen


def test_diagnostics_agree_with_the_flags() -> None:
    for kernel in NUMERIC:
        X = points(kernel, 12, 21)
        found = kernel_diagnostics(kernel(X), X, tol=1e-9 * np.abs(kernel(X)).sum())
        if kernel.conditional_order >= 0:
            assert 0 <= found.order <= kernel.conditional_order
