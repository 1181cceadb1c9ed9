"""Many binary machines for k classes: who plays whom, where coefficients lie, how votes are counted.

One against one has a machine for every pair i < j in lexical order, class i positive.  Support vectors are stored
once, ordered by class and then by index.  Row r of the dual coefficients, (k - 1, n_SV), holds for a vector of class
i its coefficient against class r if r < i, else against class r + 1 (the layout of LIBSVM).  So with D_i the
product of the kernel values of the vectors of class i with their coefficients, (n, k - 1), the decision value of the
pair is

    f_ij(x) = D_i[x, j - 1] + D_j[x, i] + b_ij ,

each kernel value is used once, and nothing is multiplied by the zeros of an (n_SV, k(k-1)/2) matrix.
"""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]
Counts = NDArray[np.int32]
Matrix = NDArray[np.float64]


@cache
def pairs_of(classes: int) -> tuple[Index, Index]:
    """First and second class of every pair i < j, (k(k-1)/2,) each, in lexical order; read only."""
    first, second = (index.astype(np.intp) for index in np.triu_indices(classes, 1))
    first.flags.writeable = second.flags.writeable = False
    return first, second


def lay_out(codes: Index, coefficients: list[Matrix], classes: int) -> tuple[Index, Counts, Matrix]:
    """Place the coefficients of all pair machines in LIBSVM's layout.

    codes (n,) are the classes 0..k-1; coefficients[p] are those of pair p, points of its first class before those of
    its second, each class in the order of the points.  Returns the support vectors' indices (n_SV,) by class and index,
    their number in each class (k,) and the dual coefficients (k - 1, n_SV).
    """
    order = np.argsort(codes, kind="stable")
    rows = np.zeros((classes - 1, len(codes)))  # points in this order: a class is a stretch of columns
    stretches = blocks_of(np.bincount(codes, minlength=classes))
    for i, j, values in zip(*pairs_of(classes), coefficients):
        size = stretches[i].stop - stretches[i].start
        rows[j - 1, stretches[i]] = values[:size]
        rows[i, stretches[j]] = values[size:]
    used = np.flatnonzero(rows.any(axis=0))
    support = order[used]
    counts = np.bincount(codes[support], minlength=classes)
    return support, counts.astype(np.int32), np.ascontiguousarray(rows[:, used])


def blocks_of(counts: NDArray[np.integer[Any]]) -> list[slice]:
    """Where the support vectors of each class lie."""
    borders = [0, *np.cumsum(counts).tolist()]
    return [slice(a, b) for a, b in pairwise(borders)]


def gather(products: list[Matrix], intercept: NDArray[np.float64]) -> Matrix:
    """Add up the class products D_i (n, k - 1) to the pair decision values (n, k(k-1)/2)."""
    first, second = pairs_of(len(products))
    values = np.empty((len(products[0]), len(first)))
    for pair, (i, j) in enumerate(zip(first, second)):
        np.add(products[i][:, j - 1], products[j][:, i], out=values[:, pair])
    values += intercept
    return values


def vote(values: Matrix, classes: int) -> Index:
    """Class with most wins in pair decision values (n, k(k-1)/2); a tie goes to the class that comes first."""
    first, second = pairs_of(classes)
    pair = np.arange(len(first))
    sides = np.zeros((len(first), classes), dtype=np.float32)
    sides[pair, first], sides[pair, second] = 1.0, -1.0
    wins = (values > 0.0).astype(np.float32) @ sides + np.arange(classes, dtype=np.float32)
    return np.asarray(wins.argmax(axis=1))


def primal_weights(dual: Matrix, vectors: Matrix, counts: Counts) -> Matrix:
    """w_ij = sum of coefficients times vectors of a linear kernel, (k(k-1)/2, d)."""
    products = [np.asarray((vectors[block].T @ dual[:, block].T).T) for block in blocks_of(counts)]
    first, second = pairs_of(len(products))
    return np.stack([products[i][j - 1] + products[j][i] for i, j in zip(first, second)])
