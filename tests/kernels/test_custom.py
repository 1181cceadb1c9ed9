"""Matrices given beforehand, Python functions as kernels, rank one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from mercer.errors import InvalidInput
from mercer.kernels import Custom, Gaussian, Linear, Mapped, Precomputed, Separable


@dataclass(frozen=True)
class Tree:
    """An object no array can hold."""

    label: str
    children: tuple["Tree", ...] = ()


def count(tree: Tree) -> dict[str, int]:
    total = {tree.label: 1}
    for child in tree.children:
        for label, number in count(child).items():
            total[label] = total.get(label, 0) + number
    return total


def shared_labels(a: Tree, b: Tree) -> float:
    left, right = count(a), count(b)
    return float(sum(number * right.get(label, 0) for label, number in left.items()))


def product(x: Any, z: Any) -> float:
    return float(np.dot(x, z))


def matrix_product(X: Any, Z: Any) -> Any:
    return X @ Z.T


def first_feature(X: Any) -> Any:
    return np.asarray(X)[:, 0]


TREES = [Tree("a"), Tree("a", (Tree("b"), Tree("b"))), Tree("c", (Tree("a", (Tree("c"),)),))]


def test_any_objects_can_have_a_kernel() -> None:
    kernel = Custom(shared_labels)
    K = kernel(TREES)
    np.testing.assert_array_equal(K, [[shared_labels(a, b) for b in TREES] for a in TREES])
    np.testing.assert_array_equal(kernel(TREES[:1], TREES), K[:1])
    np.testing.assert_array_equal(kernel(tree for tree in TREES), K)
    np.testing.assert_array_equal(kernel.diagonal(TREES), np.diag(K))
    assert kernel.objects
    assert kernel.positive_definite
    assert not Custom(shared_labels, definite=False).positive_definite
    assert kernel.derivatives(TREES) == {}


def test_functions_of_two_points_and_of_two_sets_agree() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    for kernel in (Custom(product), Custom(matrix_product, matrix=True)):
        np.testing.assert_allclose(kernel(X), Linear()(X), rtol=1e-12)
        np.testing.assert_allclose(kernel(X[:3], X), Linear()(X[:3], X), rtol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(X), Linear().diagonal(X), rtol=1e-12)
    sparse = sp.csr_matrix(X)
    np.testing.assert_allclose(Custom(matrix_product, matrix=True)(sparse), Linear()(X), rtol=1e-12)
    one = Custom(lambda x, z: (x @ z.T).toarray()[0, 0])
    np.testing.assert_allclose(one(sparse[:5]), Linear()(X[:5]), rtol=1e-12)
    np.testing.assert_allclose(Custom(rbf_kernel, matrix=True)(X), rbf_kernel(X))


def test_custom_kernels_combine_with_others() -> None:
    X = np.random.default_rng(1).standard_normal((5, 2))
    kernel = 2.0 * Custom(product) + Gaussian() * Custom(matrix_product, matrix=True)
    expected = 2.0 * X @ X.T + Gaussian()(X) * (X @ X.T)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(kernel.derivatives(X)["left__factor"], X @ X.T, rtol=1e-12)


def test_repr_names_the_function_and_rebuilds_where_the_name_is_known() -> None:
    for kernel in (
        Custom(product),
        Custom(matrix_product, matrix=True, definite=False),
        Separable(first_feature, scale=2.0),
        Mapped(Gaussian(), first_feature),
    ):
        assert eval(repr(kernel), globals().copy()) == kernel
        with pytest.raises(InvalidInput, match="cannot carry"):
            (kernel + Gaussian()).to_dict()


def test_wrong_shapes_and_values_are_refused() -> None:
    X = np.ones((3, 2))
    with pytest.raises(InvalidInput, match="matrix=True"):
        Custom(lambda X, Z: np.ones((2, 2)), matrix=True)(X)
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        Custom(lambda x, z: np.nan)(X)
    with pytest.raises(InvalidInput, match="callable"):
        Custom("linear")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="X is empty"):
        Custom(product)([])


def test_a_separable_kernel_has_rank_one_and_its_ridge_inverse_is_explicit() -> None:
    X = np.random.default_rng(2).standard_normal((9, 2))
    kernel = Separable(first_feature, scale=1.7)
    K = kernel(X)
    a = X[:, 0]
    np.testing.assert_allclose(K, 1.7 * np.outer(a, a))
    assert np.linalg.matrix_rank(K) == 1
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K))
    np.testing.assert_allclose(kernel.derivatives(X)["scale"], np.outer(a, a))
    C = 3.0
    b = 1.7 * kernel.feature(X)
    inverse = C * (np.eye(9) - np.outer(a, b) / (1.0 / C + b @ a))
    np.testing.assert_allclose(inverse, np.linalg.inv(K + np.eye(9) / C), atol=1e-12)
    with pytest.raises(InvalidInput, match="one finite number per point"):
        Separable(lambda X: X)(X)
    with pytest.raises(InvalidInput, match="scale must be above zero"):
        Separable(first_feature, scale=-1.0)


def test_precomputed_gives_the_matrix_back() -> None:
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(Precomputed()(K), K)
    np.testing.assert_array_equal(Precomputed()(sp.csr_array(K)), K)
    np.testing.assert_array_equal(Precomputed().diagonal(K), [2.0, 3.0])
    np.testing.assert_array_equal(Precomputed()(K[:1]), K[:1])
    assert Precomputed()(K.astype(np.float32)).dtype == np.float32
    with pytest.raises(InvalidInput, match="leave Z out"):
        Precomputed()(K, K)
    with pytest.raises(InvalidInput, match="no diagonal"):
        Precomputed().diagonal(K[:1])
    with pytest.raises(InvalidInput, match="NaN"):
        Precomputed()([[np.nan]])
