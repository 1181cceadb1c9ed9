"""Landmarks spread out: the quadratic Renyi entropy raised by swaps (Hamers 2004, section 5.4; Suykens et al. 2002).

H = -log( S / m^2 ), S = sum_ij k(s_i, s_j) over the m members.  A random member r makes room for a random outsider o
when that raises H, which changes S by

    -2 (u_r - k_rr) - k_rr + 2 (sum_j k(o, s_j) - k(o, s_r)) + k_oo,        u_j = sum_i k(s_j, s_i),

O(m) operations once the row k(o, S) is known.  Rows are computed for a block of outsiders at a time.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import loop
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram, take
from mercer.lowrank.landmarks.sampling import uniform
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, Rows
from mercer.resources import show

Array = NDArray[np.float64]

BLOCK = 256
# A change of the sum below this share of it is rounding.
ROUNDING = 1e-14


@loop
def swap(A: Any, P: Any, places: Any, B: Any, u: Any, total: Any, members: Any, history: Any) -> Any:
    """Try the proposals in turn; the new sum and the number accepted.

    A (b, m): kernel of proposals and members.  P (b, b): of proposals among themselves.  places (b,): the member each
    may replace.  B (m, m): kernel of the members, u (m,) its row sums, `total` its sum.  members (m,): replaced by
    -1 - p where proposal p came in.  history (b,): the sum after each accepted swap.
    """
    b, m = A.shape
    accepted = 0
    for p in range(b):
        r = places[p]
        row = 0.0
        for j in range(m):
            row += A[p, j]
        row -= A[p, r]
        change = 2.0 * (row - u[r]) + B[r, r] + P[p, p]
        if change >= -ROUNDING * abs(total):
            continue
        for j in range(m):
            if j != r:
                u[j] += A[p, j] - B[r, j]
                B[r, j] = A[p, j]
                B[j, r] = A[p, j]
        B[r, r] = P[p, p]
        u[r] = row + P[p, p]
        total += change
        for q in range(p + 1, b):
            A[q, r] = P[q, p]
        members[r] = -1 - p
        history[accepted] = total
        accepted += 1
    return total, accepted


def entropy(task: LandmarkTask, proposals: int | None = None, tol: float = 1e-5) -> Choice:
    """Random rows, then swaps that raise the entropy.

    proposals: how many swaps to try; None: 20 m, at least 5000.  tol: stop when as many proposals as there are members
    (at least 1000) have raised the entropy by no more than this.
    """
    limit = max(5000, 20 * task.m) if proposals is None else proposals
    if limit < 0 or limit != int(limit) or not tol >= 0:
        raise InvalidInput(
            f"proposals={proposals!r}, tol={tol!r}: give a whole number and a number, both zero or above"
        )
    need = 8 * (task.m**2 + 2 * BLOCK * (task.m + BLOCK))
    if need > task.memory // 2:
        raise BudgetTooSmall(
            f"memory={show(task.memory)} does not hold the matrix of {task.m} landmarks; give at least {show(2 * need)}"
        )
    start = uniform(task).index
    assert start is not None
    state = _State(task, start)
    window = max(1000, task.m)
    tried, marked, before = 0, 0, state.entropy()
    while tried < limit and task.m < len(task.active):
        tried += state.propose(min(BLOCK, int(limit) - tried))
        if tried - marked >= window:
            if state.entropy() - before <= tol:
                break
            marked, before = tried, state.entropy()
    sums = np.array(state.history)
    with np.errstate(divide="ignore", invalid="ignore"):
        history = -np.log(sums / task.m**2)
    said = {"rows": len(task.active), "proposals": tried, "accepted": len(sums) - 1, "history": history}
    return Choice(state.members, details=said | {"sum": state.total})


class _State:
    """Members, their matrix, its row sums and its sum, and the sum after every accepted swap."""

    def __init__(self, task: LandmarkTask, members: Rows) -> None:
        self.task = task
        self.members = members
        self.inside = np.zeros(task.n, dtype=np.bool_)
        self.inside[members] = True
        self.B: Array = Gram(task.kernel, take(task.X, members), memory=task.memory, storage="streamed").dense()
        self.u = self.B.sum(axis=1)
        self.total = float(self.u.sum())
        self.history = [self.total]

    def entropy(self) -> float:
        """-log(S / m^2), or the sum with its sign changed where it has no logarithm."""
        return -math.log(self.total / self.task.m**2) if self.total > 0 else -self.total

    def propose(self, most: int) -> int:
        """Try a block of random outsiders; how many there were."""
        outsiders = self._outsiders(most)
        task, b = self.task, len(outsiders)
        points = take(task.X, outsiders)
        # The order of the columns: members first, then the proposals themselves.
        both = take(task.X, np.concatenate([self.members, outsiders]))
        values = Gram(task.kernel, points, both, memory=task.memory, storage="streamed").dense()
        A, P = np.ascontiguousarray(values[:, : task.m]), np.ascontiguousarray(values[:, task.m :])
        # Values on the diagonal come out exactly, those of the tiles to rounding.
        P.flat[:: b + 1] = task.kernel.diagonal(points)
        places = task.rng.integers(0, task.m, b)
        marks, sums = self.members.copy(), np.empty(b)
        self.total, accepted = swap(A, P, places, self.B, self.u, self.total, marks, sums)
        self.history += sums[:accepted].tolist()
        new = marks < 0
        self.inside[self.members[new]] = False
        self.members = np.where(new, outsiders[np.where(new, -1 - marks, 0)], self.members)
        self.inside[self.members] = True
        return b

    def _outsiders(self, most: int) -> Rows:
        """Up to `most` different rows that are no members, in random order."""
        active, rng = self.task.active, self.task.rng
        if len(active) > 4 * (self.task.m + most):  # most rows are outsiders: draw, and drop the few that are not
            drawn = active[rng.integers(0, len(active), 2 * most)]
            _, first = np.unique(drawn, return_index=True)
            drawn = drawn[np.sort(first)]
            return drawn[~self.inside[drawn]][:most]
        outside = active[~self.inside[active]]
        return np.asarray(rng.permutation(outside)[:most], dtype=np.intp)
