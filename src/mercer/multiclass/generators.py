"""The four ways to make codes of Dietterich and Bakiri (1995), by the number of classes.

    3 to 7      exhaustive codes: all columns
    8 to 11     columns chosen from the exhaustive code
    any         randomised hill climbing
    12 and up   words of a BCH code, or columns chosen from them

Their own matrices cannot be had again (parts were made by hand); these follow the descriptions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.multiclass.bch import bch
from mercer.multiclass.codes import Code, _best, complete, row_distances

MOST_EXHAUSTIVE = 16


def exhaustive(classes: int) -> Code:
    """All 2^(k-1) - 1 columns: row 1 all ones, row i alternating runs of 2^(k-i) zeros and ones (as -1 and +1)."""
    if not 3 <= classes <= MOST_EXHAUSTIVE:
        raise InvalidInput(f"exhaustive codes are for 3 to {MOST_EXHAUSTIVE} classes, got {classes}")
    return complete(classes)


def chosen_columns(classes: int, columns: int, *, draws: int = 1000, seed: Any = None) -> Code:
    """`columns` of the exhaustive code (8 to 11 classes in the source) that keep the rows farthest apart."""
    return _subset(exhaustive(classes), columns, draws, seed)


def bch_columns(classes: int, columns: int, *, draws: int = 1000, seed: Any = None) -> Code:
    """`columns` of the BCH code that keep the rows farthest apart."""
    return _subset(bch(classes), columns, draws, seed)


def _subset(M: Code, columns: int, draws: int, seed: Any) -> Code:
    k, F = M.shape
    if not 1 <= columns <= F or 2**columns < k:
        raise InvalidInput(f"columns={columns} must be from {int(np.ceil(np.log2(k)))} to the {F} there are")
    random = np.random.default_rng(seed)
    best = max(
        (np.sort(random.choice(F, columns, replace=False)) for _ in range(draws)),
        key=lambda some: float(row_distances(M[:, some])),
    )
    if row_distances(M[:, best]) <= 0:
        raise InvalidInput(f"no choice of {columns} columns told {k} classes apart: take more columns")
    return np.ascontiguousarray(M[:, best])


def hill_climbing(classes: int, columns: int, *, steps: int = 3000, seed: Any = None) -> Code:
    """Random words made better by four bits at a time.

    Each step takes the closest pair of rows and the pair of columns with the largest inner product in size (too equal
    or too opposite), and sets the four bits where they cross to the best of the 16 patterns: the one for which the
    rows are farthest apart and the columns least alike.  Where none is better, a random pair of each is taken next.
    The walk may cycle, so the best matrix met is kept.
    """
    if classes < 3 or 2**columns < classes or columns > 2 ** (classes - 1) - 1:
        raise InvalidInput(f"columns={columns} do not fit {classes} classes: from log2 k to 2^(k-1) - 1 are possible")
    random = np.random.default_rng(seed)
    M = _best(classes, columns, False, 1, random).astype(np.float64)
    best, value, stuck = M.copy(), _worth(M), False
    for _ in range(steps):
        rows = _random_pair(random, classes) if stuck else _extreme(M @ M.T)
        some = _random_pair(random, columns) if stuck else _extreme(np.abs(M.T @ M))
        stuck = not _improve(M, rows, some)
        worth = _worth(M)
        if worth > value:
            best, value = M.copy(), worth
    return np.asarray(best, dtype=np.int8)


def _random_pair(random: np.random.Generator, count: int) -> tuple[int, int]:
    a, b = random.choice(count, 2, replace=False)
    return int(a), int(b)


def _extreme(products: NDArray[np.float64]) -> tuple[int, int]:
    """The pair of the largest entry off the diagonal."""
    upper = np.triu_indices(len(products), 1)
    at = int(np.argmax(products[upper]))
    return int(upper[0][at]), int(upper[1][at])


def _improve(M: NDArray[np.float64], rows: tuple[int, int], columns: tuple[int, int]) -> bool:
    """Set the crossing bits of the pairs to the best pattern; whether it is better than what was there."""
    r, s = rows
    a, b = columns
    before = M[[r, r, s, s], [a, b, a, b]].copy()
    found, best = before, _local(M, rows, columns)
    changed = False
    for pattern in range(16):
        M[[r, r, s, s], [a, b, a, b]] = [1.0 if pattern >> bit & 1 else -1.0 for bit in range(4)]
        if any(abs(M[:, c].sum()) == len(M) for c in columns):
            continue
        if (worth := _local(M, rows, columns)) > best:
            found, best, changed = M[[r, r, s, s], [a, b, a, b]].copy(), worth, True
    M[[r, r, s, s], [a, b, a, b]] = found
    return changed


def _local(M: NDArray[np.float64], rows: tuple[int, int], columns: tuple[int, int]) -> float:
    """How far apart the two rows are and how little alike the two columns, in numbers of entries."""
    (r, s), (a, b) = rows, columns
    k, F = M.shape
    return float((F - M[r] @ M[s]) / 2.0 + (k - abs(M[:, a] @ M[:, b])) / 2.0)


def _worth(M: NDArray[np.float64]) -> tuple[float, float]:
    """Clean columns first, then the row distance."""
    alike = np.abs(M.T @ M)
    np.fill_diagonal(alike, 0.0)
    one_sided = int(np.sum(np.abs(M.sum(axis=0)) == len(M)))
    return -float(np.sum(alike == len(M))) - one_sided, float(row_distances(M))
