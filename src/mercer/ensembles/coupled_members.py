"""One member of a coupled ensemble before it is coupled: its rows, its basis, and the kernel and C it chooses itself.

Alone, a member minimises 1/2 sum_i w_i (K a - y)_i^2 + |a|^2 / (2 C), K (g, p) its basis at its points.  With
W^1/2 K = U S V' the fitted values are H W^1/2 y, H = U S^2 / (S^2 + 1 / C) U', and the error of a point whose target is
left out is (y_i - f_i) / (1 - H_ii) (Hamers 2004, section 6.7.1; Cawley 2006).  One decomposition serves all C.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.gram import KernelColumns
from mercer.kernels import Kernel
from mercer.machine.arguments import take
from mercer.selection.grid import scales, widths

Array = NDArray[np.float64]
Index = NDArray[np.intp]

COSTS = np.geomspace(1e-3, 1e6, 19)
WIDTHS = 8


@dataclass(frozen=True, eq=False)
class Member:
    """Rows (g,) it is fitted to, rows (p,) of its basis functions, its kernel and its C; how values are computed."""

    rows: Index
    basis: Index
    kernel: Kernel
    C: float
    precision: str

    def at(self, X: Any, places: Any) -> Array:
        """Values (m, p) of its basis functions, rows of the training points X (n, d), at m places."""
        columns = KernelColumns(self.kernel, take(X, self.basis), self.precision)
        return np.asarray(columns.values(places), dtype=np.float64)


def member_of(base: Any, X: Any, rows: Index, basis: Index, Y: Array, weights: Array) -> Member:
    """A member with the kernel and C of the base, or with its own choice where the base leaves it to be made.

    Targets Y (n, k) and weights (n,) are those of all points.
    """
    kernel: Kernel = base.kernel
    precision = "float32" if base.precision == "float32" else "float64"
    chosen = isinstance(base.C, str) or np.ndim(base.C) > 0
    costs = COSTS if isinstance(base.C, str) else np.atleast_1d(np.asarray(base.C, dtype=np.float64))
    if not (np.isfinite(costs).all() and (costs > 0.0).all()):
        raise InvalidInput("C of a member must be positive and finite: without a ridge its coefficients are not unique")
    if not chosen and not kernel.placeholders:
        return Member(rows, basis, kernel, float(costs[0]), precision)
    kernels = [kernel]
    if kernel.placeholders:
        if set(kernel.placeholders) != {"sigma"}:
            raise InvalidInput(f"a member chooses the width of a kernel only, and {kernel!r} leaves more open")
        found = scales(take(X, basis), None)
        kernels = [kernel.with_parameters(sigma=float(width)) for width in widths(found, WIDTHS)]
    root = np.sqrt(weights[rows])[:, None]
    best, choice = np.inf, (kernels[0], float(costs[0]))
    for one in kernels:
        K = Member(rows, basis, one, 1.0, precision).at(X, take(X, rows))
        errors = left_out_errors(root * K, root * Y[rows], costs)
        at = int(np.argmin(errors))
        if errors[at] < best:
            best, choice = float(errors[at]), (one, float(costs[at]))
    return Member(rows, basis, *choice, precision)


def left_out_errors(K: Array, Y: Array, costs: Array) -> Array:
    """Sums (c,) of the squared leave-one-out errors of ridge regressions on K (g, p), Y (g, k), one for each C."""
    U, s = dense.left_singular(K)
    projected = U.T @ Y
    found = np.empty(len(costs))
    for at, C in enumerate(costs):
        kept = s**2 / (s**2 + 1.0 / C)
        h = np.einsum("ij,j,ij->i", U, kept, U)
        errors = (Y - U @ (kept[:, None] * projected)) / np.maximum(1.0 - h, np.finfo(np.float64).tiny)[:, None]
        found[at] = float(np.sum(errors**2))
    return found
