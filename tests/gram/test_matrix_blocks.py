"""Scattered parts of a stored matrix are read as they are, whatever the number of threads and wherever it lies."""

import numpy as np
import pytest

from mercer import threads
from mercer.gram import matrix_blocks

random = np.random.default_rng(3)
N = 700
HALF = random.normal(size=(N, N))
MATRIX = HALF + HALF.T


def in_a_file(matrix, folder):
    """The matrix in a mapped file."""
    mapped = np.memmap(folder / "matrix.bin", dtype=matrix.dtype, mode="w+", shape=matrix.shape)
    mapped[:] = matrix
    return mapped


PLACES = {"memory": lambda matrix, folder: matrix, "Fortran's order": lambda matrix, folder: np.asfortranarray(matrix)}
PLACES["a mapped file"] = in_a_file


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2, 3, 401])
def test_scattered_blocks_and_columns_are_those_of_the_matrix(place, dtype, count, tmp_path):
    matrix = PLACES[place](MATRIX.astype(dtype), tmp_path)
    rows, columns = random.permutation(N)[:count], random.permutation(N)[: count + 50]
    V = random.normal(size=(len(columns), 1))
    for workers in (1, 3):
        with threads.limit(workers):
            block = np.full((count, len(columns)), np.nan, dtype)
            matrix_blocks.gather(matrix, rows, columns, block)
            np.testing.assert_array_equal(block, np.asarray(matrix)[np.ix_(rows, columns)])
            product = np.ones((N, 1))
            matrix_blocks.multiply(matrix, slice(0, N), columns, V, product, True)
            exact = 1.0 + np.asarray(matrix, dtype=np.float64)[:, columns] @ V
            np.testing.assert_allclose(product, exact, rtol=1e-12, atol=1e-11)
