"""Single kernel values: right, symmetric, counted, and never more than the budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import BudgetTooSmall
from mercer.gram import Gram
from mercer.kernels import Gaussian
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


def test_no_room_is_refused():
    with pytest.raises(BudgetTooSmall, match="element cache"):
        cache(ENTRY)
