"""approximation="auto": the whole kernel matrix, or landmarks, by size and memory.

    linear kernel                      exact: the points are its features
    n <= 10,000 and K fits             exact: a few seconds
    otherwise                          Nystrom(m), m = 4 sqrt(n) between 500 and 5,000, less where memory is short

Exact machines take of the order of n^3 operations and n^2 numbers; a landmark machine takes n m^2 and m^2, and the
number of landmarks that keeps the learning rate of the exact machine grows like sqrt(n) for the usual decay of
eigenvalues (Rudi, Camoriano and Rosasco 2015).
"""

from math import isqrt, sqrt
from typing import NamedTuple

from mercer.errors import BudgetTooSmall
from mercer.kernels import Kernel
from mercer.lowrank.approximations import MATRICES, Approximation, Nystrom
from mercer.resources import Resources, show

EXACT = 10_000
FEWEST, MOST = 500, 5_000


class Decision(NamedTuple):
    """The approximation, None for the exact machine, and the reason in words."""

    approximation: Approximation | None
    reason: str


def approximation_for(kernel: Kernel, n: int, *, resources: Resources, row_bytes: int = 0) -> Decision:
    """What "auto" means for n points; `row_bytes` per landmark and point where all features are held at once."""
    if kernel.profile is not None and kernel.profile.name == "linear":
        return Decision(None, "exact: the points are the features of a linear kernel")
    if not kernel.positive_definite:
        return Decision(None, "exact: a kernel that is not positive definite has no feature map")
    allowed = resources.budget
    if n <= EXACT and 8 * n * n <= allowed:
        return Decision(None, f"exact: the kernel matrix of {n} points takes {show(8 * n * n)} of {show(allowed)}")
    m = int(min(n, max(FEWEST, min(MOST, 4.0 * sqrt(n)))))
    room = isqrt(allowed // (8 * MATRICES))
    if row_bytes:
        room = min(room, allowed // (row_bytes * n))
    if room < 1:
        raise BudgetTooSmall(f"memory of {show(allowed)} does not hold a single landmark for {n} points: raise it")
    because = f"{n} points are too many for the exact machine" if n > EXACT else "the kernel matrix does not fit"
    if m > room:
        return Decision(Nystrom(room), f"Nystrom with {room} landmarks, as many as {show(allowed)} hold: {because}")
    return Decision(Nystrom(m), f"Nystrom with {m} landmarks, about 4 sqrt(n): {because}")
