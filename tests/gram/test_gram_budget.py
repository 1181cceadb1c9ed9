"""Operators plan within their budget, allocate within their plan, and say what they need when it is too small."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram, SquaredDistances, cost
from mercer.kernels import Custom, Gaussian, Laplacian, Linear, Precomputed

KERNEL = Gaussian(sigma=1.0)
# Python objects of an operator and of a measured call: plans, index arrays, thread bookkeeping.
SLACK = 200_000


def points(n, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def smallest_named(error):
    return int(re.search(r"smallest workable budget is memory=(\d+)", str(error.value))[1])


def test_a_dense_matrix_of_5000_points_takes_200_million_bytes():
    assert cost.stored_bytes("dense", cost.MatrixTask(5000, 5000, 10, 8, budget=10**9)) == 2e8


@pytest.mark.parametrize("storage", ["dense", "streamed", "cached", "lowrank", "mapped"])
@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(sigma=1.0)], ids=repr)
@pytest.mark.filterwarnings("ignore::mercer.errors.PrecisionLoss")
def test_a_budget_below_the_smallest_piece_is_refused_and_the_named_budget_works(storage, kernel):
    X = points(400)
    with pytest.raises(BudgetTooSmall) as error:
        Gram(kernel, X, storage=storage, memory=100)
    smallest = smallest_named(error)
    with pytest.raises(BudgetTooSmall):
        Gram(kernel, X, storage=storage, memory=smallest - 1)
    gram = Gram(kernel, X, storage=storage, memory=smallest)
    assert gram.plan().bytes <= smallest
    if storage != "lowrank":
        np.testing.assert_allclose(gram @ X, kernel(X) @ X, atol=1e-10)


def test_a_budget_smaller_than_one_row_is_refused_for_every_access():
    X = points(1000)
    for access in ("products", "rows", "dense", "blocks"):
        with pytest.raises(BudgetTooSmall, match="smallest workable"):
            Gram(KERNEL, X, access=access, memory=1000 * 8 - 1)
    with pytest.raises(BudgetTooSmall):
        Gram(Precomputed(), KERNEL(X), memory=100)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 10**6),
    m=st.integers(1, 10**6),
    d=st.integers(1, 10**4),
    budget=st.integers(1, 10**11),
    itemsize=st.sampled_from([4, 8]),
    storage=st.sampled_from(["dense", "streamed", "cached", "sparse", "mapped"]),
    fused=st.booleans(),
    workers=st.integers(1, 64),
)
def test_no_plan_exceeds_its_budget(n, m, d, budget, itemsize, storage, fused, workers):
    task = cost.MatrixTask(n, m, d, itemsize, budget, symmetric=n == m, fused=fused, nonzeros=n, workers=workers)
    try:
        plan = cost.plan(storage, task)
    except BudgetTooSmall as error:
        named = int(re.search(r"memory=(\d+) \([^)]*\)(;|$)", str(error))[1])
        assert named > budget
        return
    assert plan.bytes <= budget
    assert 1 <= plan.block[0] <= n
    assert 1 <= plan.block[1] <= m
    assert storage != "cached" or 1 <= plan.slots <= n


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("storage", ["dense", "streamed", "cached", "mapped"])
@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(sigma=1.0)], ids=repr)
def test_operators_never_allocate_past_their_budget(measured, storage, kernel, precision):
    X = points(1500, 20)
    v = np.ones(1500)
    task_bytes = 1500 * 1500 * 8
    budget = 2 * task_bytes if storage == "dense" else task_bytes // 2

    def use():
        gram = Gram(kernel, X, storage=storage, precision=precision, memory=budget)
        for _ in range(2):
            handed_out = gram.dot(v), gram.rows([1, 5, 7]), gram.block([1, 2, 3], slice(0, 100))
        return gram, *handed_out

    use()  # compiled code is not the operator's, and which loops run depends on the size
    with measured() as peak:
        gram, result, rows, block = use()
    handed_out = result.nbytes + rows.nbytes + block.nbytes
    assert peak.bytes <= budget + handed_out + SLACK
    assert peak.bytes <= gram.plan().bytes + handed_out + SLACK


def test_a_streamed_product_takes_a_small_part_of_the_matrix(measured):
    X = points(3000, 10)
    gram = Gram(KERNEL, X, storage="streamed", precision="float32", memory="8 MiB")
    V = np.ones((3000, 40))
    gram.dot(V)  # compiled code is not the operator's
    with measured() as peak:
        gram.dot(V)
    assert peak.bytes < 8 * 2**20
    assert 3000 * 3000 * 4 > 4 * 8 * 2**20


def test_automatic_choice_follows_access_and_budget():
    X = points(1200)
    kinds = {
        ("products", None): "dense",
        ("products", "6 MB"): "streamed",
        ("rows", None): "cached",
        ("rows", "6 MB"): "cached",
        ("blocks", None): "streamed",
        ("dense", None): "dense",
    }
    for (access, memory), storage in kinds.items():
        gram = Gram(KERNEL, X, access=access, memory=memory)
        assert gram.plan().storage == storage == gram.storage
        assert gram.plan().reasons
    assert Gram(KERNEL, X, X[:10].copy()).storage == "streamed"
    assert Gram(Linear(), X).storage == "lowrank"
    assert Gram(Linear(), sp.csr_array(X)).storage == "lowrank"
    with pytest.raises(BudgetTooSmall):
        Gram(KERNEL, X, access="dense", memory="6 MB")


def test_a_plan_prints_what_it_holds_and_why():
    text = str(Gram(KERNEL, points(1200), memory="6 MB").plan())
    for word in ("streamed", "1200 x 1200", "float64", "5.722 MiB", "operations", "because", "whole matrix would need"):
        assert word in text


def test_shared_distances_keep_to_their_budget_or_refuse(measured):
    X = points(600, 10)
    with pytest.raises(BudgetTooSmall) as error:
        SquaredDistances(X, memory="1 MB")
    smallest = smallest_named(error)
    SquaredDistances(X, memory=smallest).gram(KERNEL)
    with measured() as peak:
        SquaredDistances(X, memory=smallest).gram(KERNEL)
    assert peak.bytes <= smallest + SLACK


@pytest.mark.parametrize(
    "X, words",
    [
        ([[1.0, np.nan]], "X contains NaN"),
        (np.array([[1.0], [np.inf]]), "X contains NaN or infinite"),
        ([1.0, 2.0, 3.0], r"reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        ([[1.0, 2.0], [3.0]], "equal length"),
        ([["a", "b"]], "numeric matrix"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "empty"),
        (np.array([[1j]]), "complex"),
        (sp.csr_array(np.array([[np.nan, 0.0]])), "X contains NaN"),
        (sp.csr_array(np.array([[1j]])), "complex"),
    ],
)
def test_bad_points_are_refused_with_the_remedy(X, words):
    with pytest.raises(InvalidInput, match=words):
        Gram(KERNEL, X)


def test_bad_pairs_options_and_vectors_are_refused_by_name():
    X = points(6)
    with pytest.raises(InvalidInput, match="Z has 3 features and X has 5"):
        Gram(KERNEL, X, points(4, 3))
    with pytest.raises(InvalidInput, match="Z contains NaN"):
        Gram(KERNEL, X, np.full((2, 5), np.nan))
    with pytest.raises(InvalidInput, match="storage='shelf'"):
        Gram(KERNEL, X, storage="shelf")
    with pytest.raises(InvalidInput, match="access='columns'"):
        Gram(KERNEL, X, access="columns")
    with pytest.raises(InvalidInput, match="precision='float16'"):
        Gram(KERNEL, X, precision="float16")
    with pytest.raises(InvalidInput, match="wrap a function"):
        Gram(lambda a, b: 1.0, X)
    gram = Gram(KERNEL, X)
    with pytest.raises(InvalidInput, match=r"V of shape \(5,\)"):
        gram.dot(np.ones(5))
    with pytest.raises(InvalidInput, match=r"outside 0\.\.5"):
        gram.rows([6])
    with pytest.raises(InvalidInput, match="rows must be"):
        gram.rows([0.5])
    with pytest.raises(InvalidInput, match="at least one index"):
        gram.subset([])
    with pytest.raises(InvalidInput, match="without Z"):
        Gram(KERNEL, X, points(3)).diagonal()
    with pytest.raises(InvalidInput, match="without Z"):
        Gram(KERNEL, X, points(3)).subset([0])
    with pytest.raises(InvalidInput, match="without Z"):
        Gram(KERNEL, X, points(3), storage="lowrank")
    with pytest.raises(InvalidInput, match="Z=None"):
        Gram(Precomputed(), np.eye(3), np.eye(3))
    with pytest.raises(InvalidInput, match="no other kernel"):
        Gram(Precomputed(), np.eye(3)).with_kernel(KERNEL)
    with pytest.raises(InvalidInput, match="X and Z must both"):
        Gram(Custom(lambda a, b: 1.0), ["a"], np.zeros((2, 2)))


def test_columns_of_out_must_fit():
    gram = Gram(KERNEL, points(6))
    with pytest.raises(InvalidInput, match="out has shape"):
        gram.columns_dot([1], [1.0], out=np.zeros(5))
