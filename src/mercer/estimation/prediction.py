"""Kernel expansions at new points: sum over support vectors v of k(x, v) times coefficients.

Every kernel value is computed once, in a tile that stays in cache, multiplied with the coefficients of all machines
that use its support vector, and forgotten.  Where the kernel is linear the expansion is one weight vector per
machine.

Kernels of distance, with values up to 1, run in float32 for large inputs as long as that cannot be seen: a value has
an error of about 5e-7, so that a sum with coefficients c is off by about 5e-7 |c|, which is held below `VISIBLE`.
All else runs in float64.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram.tiles import Tiles
from mercer.kernels import Kernel

Matrix = NDArray[np.float64]

SINGLE_ERROR = 5e-7
VISIBLE = 1.25e-4
SMALL = 1 << 20  # so few kernel values cost less than a millisecond in either precision
CHUNK = 1 << 22  # kernel values held at once where a kernel has to be called


def working_precision(kernel: Kernel, coefficients: Sequence[Matrix], values: int, precision: str) -> Any:
    """float32 or float64 for an expansion that needs `values` kernel values."""
    if precision != "auto":
        return np.dtype(precision)
    profile = kernel.profile
    if values <= SMALL or profile is None or profile.base != "squared_distance":
        return np.dtype(np.float64)
    squares = sum(np.einsum("ij,ij->j", c, c) for c in coefficients)
    norm = float(np.sqrt(np.max(squares))) if len(coefficients) else 0.0
    return np.dtype(np.float32 if SINGLE_ERROR * norm <= VISIBLE else np.float64)


def expand(
    kernel: Kernel,
    X: Any,
    vectors: Any,
    blocks: Sequence[slice],
    coefficients: Sequence[Matrix],
    precision: str = "auto",
) -> list[Matrix]:
    """K(X, vectors[block]) @ c for every block and its coefficients c (size of the block, k): a list of (n, k)."""
    n = len(X) if isinstance(X, list) else X.shape[0]
    results = [np.zeros((n, c.shape[1])) for c in coefficients]
    profile = kernel.profile
    if profile is None:
        _call_in_chunks(kernel, X, vectors, blocks, coefficients, results)
        return results
    if profile.name == "linear" and profile.scale is None:
        return [np.asarray(X @ (vectors[block].T @ c)) for block, c in zip(blocks, coefficients)]
    m = vectors.shape[0]
    if m:
        tiles = Tiles(profile, X, vectors, dtype=working_precision(kernel, coefficients, n * m, precision))
        for block, c, result in zip(blocks, coefficients, results):
            tiles.multiply(None, None if block == slice(0, m) else block, c, result)
    return results


def _call_in_chunks(
    kernel: Kernel, X: Any, vectors: Any, blocks: Sequence[slice], coefficients: Sequence[Matrix], results: list[Matrix]
) -> None:
    """The same for kernels that are known only by their call."""
    n, m = len(results[0]), blocks[-1].stop if blocks else 0
    step = max(1, CHUNK // max(1, m))
    for start in range(0, n if m else 0, step):
        part = slice(start, start + step)
        values = np.asarray(kernel(X[part], vectors), dtype=np.float64)
        for block, c, result in zip(blocks, coefficients, results):
            result[part] = values[:, block] @ c


def contract(values: Matrix, blocks: Sequence[slice], coefficients: Sequence[Matrix]) -> list[Matrix]:
    """The same for kernel values (n, n_SV) that are already there."""
    return [values[:, block] @ c for block, c in zip(blocks, coefficients)]
