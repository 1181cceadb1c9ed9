"""Single kernel values: right, symmetric, counted, and never more than the budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Precomputed
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers.classical import working_set
from mercer.solvers.classical.element_cache import ENTRY, ElementCache

N = 30
X = np.random.default_rng(0).normal(size=(N, 3))
K = Gaussian(sigma=1.5)(X)


def cache(memory, constant=0.0):
    return ElementCache(Gram(Gaussian(sigma=1.5), X, storage="streamed", precision="float64"), constant, memory)


PAIRS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), min_size=1, max_size=80)


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.integers(2, 2000), st.sampled_from([0.0, 0.5]))
def test_values_are_right_however_small_the_table(pairs, entries, constant):
    elements = cache(ENTRY * entries, constant)
    for i, j in pairs:
        assert elements.value(i, j) == pytest.approx(K[i, j] + constant, abs=1e-12)
    assert elements.report().bytes <= ENTRY * entries
    assert elements.hits + elements.misses == len(pairs)
    assert elements.evaluations == elements.misses


def test_a_pair_is_known_from_both_sides():
    elements = cache(2**16)
    elements.value(3, 11)
    elements.value(11, 3)
    assert (elements.hits, elements.misses, elements.evaluations) == (1, 1, 1)


def test_many_values_of_a_point_at_once():
    elements = cache(2**20)
    columns = np.array([4, 9, 1, 20])
    assert np.allclose(elements.values(7, columns), K[7, columns])
    assert np.allclose(elements.values(7, np.arange(N)), K[7])
    assert elements.evaluations == N


@pytest.mark.parametrize("memory", [None, ENTRY * 500])
@pytest.mark.parametrize("bias", ["free", "penalised"])
def test_working_sets_go_the_same_way_with_elements_as_with_rows(memory, bias):
    # Values that are computed row by row and one by one differ in the last digit; those of a stored matrix do not.
    gram = Gram(Precomputed(), K)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1.0, -1.0)
    problem = RegularisedRisk(gram, y, Hinge(), 5.0, bias=bias)
    rows, elements = (working_set.solve(problem, tol=1e-6, size=6, memory=memory, cache=c) for c in working_set.CACHES)
    assert elements.iterations == rows.iterations
    assert np.array_equal(elements.coefficients, rows.coefficients)
    assert (elements.primal, elements.gap) == (rows.primal, rows.gap)
    details = elements.details
    assert details["cache_hits"] > 0
    assert details["kernel_values"] >= details["cache_misses"] > 0
    assert elements.converged


def test_an_unknown_cache_is_refused():
    problem = RegularisedRisk(Gram(Gaussian(), X), np.sign(X[:, 0]), Hinge())
    with pytest.raises(InvalidInput, match="cache must be one of rows, elements"):
        working_set.solve(problem, cache="columns")


def test_blocks_and_products_are_those_of_the_matrix():
    elements = cache(2**12, 0.5)
    rows, columns, change = np.array([3, 8]), np.array([1, 3, 20]), np.array([0.3, -2.0])
    assert np.allclose(elements.block(rows, columns), K[np.ix_(rows, columns)] + 0.5)
    assert np.allclose(elements.dot(rows, change), (K[:, rows] + 0.5) @ change)
    elements.restrict(columns)
    assert np.allclose(elements.dot(rows, change), (K[np.ix_(columns, rows)] + 0.5) @ change)
    elements.restore()
    assert elements.dot(rows, change).shape == (N,)


def test_no_room_is_refused():
    with pytest.raises(BudgetTooSmall, match="element cache"):
        cache(ENTRY)
