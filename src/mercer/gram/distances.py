"""Squared distances between all points, kept once and turned into the matrix of any isotropic kernel.

D_ij = |x_i - x_j|^2 = |x_i|^2 + |x_j|^2 - 2 <x_i, x_j>, on centred points, with D_ij >= 0 and D_ii = 0.  A new width
of a Gaussian is then one elementwise pass, exp(-D / (2 sigma^2)), in place of a product over d features.
"""

from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import cost, memory
from mercer.gram.dense import DenseGram
from mercer.gram.entries import entries as entries_of
from mercer.gram.points import check
from mercer.gram.transform import CODES, preparation, transform_row
from mercer.kernels.profile import Profile

_STRIP = 256


@loop
def _transform(D: Any, start: Any, stop: Any, factor: Any, code: Any, parameters: Any, zero: Any, out: Any) -> None:
    """out[i] = g(-factor^2 D[i] / 2) for the rows start..stop."""
    half = D.dtype.type(-0.5 * factor * factor)
    for i in range(start, stop):
        for j in range(D.shape[1]):
            out[i, j] = half * D[i, j]
        transform_row(code, parameters, out[i], zero[0], zero)


class SquaredDistances:
    """All squared distances of X (n, d), dense or CSR; `values` is D (n, n).

    Parameters
    ----------
    X : the points.
    memory : budget for D and for one matrix made from it, 2 n^2 values; None: a quarter of the free memory.
    precision : "float64" or "float32".

    """

    def __init__(self, X: Any, *, memory: int | float | str | None = None, precision: str = "float64") -> None:
        self.X = check(X, "X")
        self.dtype = cost.value_type(precision)
        self.budget = _budget(self.X.shape, self.dtype.itemsize, memory)
        self.values = _squared_distances(self.X, self.dtype)

    def gram(self, kernel: Any) -> DenseGram:
        """The dense matrix of an isotropic kernel: one pass over the distances."""
        profile = kernel.profile
        out = np.empty_like(self.values)
        if profile is not None and _is_fused_distance(profile):
            self._fused(profile, out)
            return self._operator(kernel, out)
        if not kernel.isotropic:
            raise InvalidInput(f"{kernel!r} is not a function of the distance; build Gram(kernel, X) instead")
        for start in range(0, len(out), _STRIP):
            here = slice(start, start + _STRIP)
            out[here] = kernel.of_distance(np.sqrt(self.values[here]), self.X.shape[1])
        return self._operator(kernel, out)

    def _fused(self, profile: Profile, out: NDArray[Any]) -> None:
        """Kernel values by the vectorised transform, rows shared by the threads."""
        code, factor, parameters = preparation(profile)
        zero = np.zeros(len(out), dtype=self.dtype)
        threads.run(
            _transform,
            [(self.values, a, b, factor, code, parameters, zero, out) for a, b in threads.split(len(out), step=16)],
        )

    def _operator(self, kernel: Any, matrix: NDArray[Any]) -> DenseGram:
        values = entries_of(kernel, self.X, None, self.dtype)
        plan = cost.plan("dense", values.task(self.budget)).because("one pass over squared distances that are kept")
        return DenseGram(values, plan, matrix)


def _is_fused_distance(profile: Profile) -> bool:
    """Whether a profile is a compiled function of the plain squared distance."""
    return profile.base == "squared_distance" and profile.scale is None and profile.name in CODES


def _budget(shape: tuple[int, int], itemsize: int, limit: int | float | str | None) -> int:
    """The budget, refused where it does not hold D and one matrix made from it."""
    budget = memory.budget(limit)
    n, d = shape
    needed = 2 * n * n * itemsize + n * (8 * d + 64) + 4 * _STRIP * max(n, 1024) * 8
    if budget < needed:
        raise BudgetTooSmall(
            f"memory={budget} ({memory.show(budget)}) does not hold the distances of {n} points and a matrix made from "
            f"them: the smallest workable budget is memory={needed} ({memory.show(needed)}); build Gram(kernel, X) "
            "for each kernel instead"
        )
    return budget


def _squared_distances(X: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """D strip by strip; each strip is one product in float64."""
    n = X.shape[0]
    U = X.astype(np.float64) if sp.issparse(X) else X - X.mean(axis=0, dtype=np.float64)
    squares = U.multiply(U).sum(axis=1) if sp.issparse(U) else np.einsum("ij,ij->i", U, U)
    norms = np.asarray(squares, dtype=np.float64).ravel()
    D = np.empty((n, n), dtype=dtype)
    for start in range(0, n, _STRIP):
        here = slice(start, min(n, start + _STRIP))
        products = U[here] @ U.T
        strip = cast(NDArray[np.float64], products.toarray() if sp.issparse(products) else products)
        strip *= -2.0
        strip += norms[here, None]
        strip += norms
        np.maximum(strip, 0.0, out=strip)
        D[here] = strip
    np.fill_diagonal(D, 0.0)
    return D
