"""Sums of a free bias restored: variables a (n, k) moved as little as needed until sum_i c_im = 0 for every class m.

The solvers meet these sums only in the limit; a certificate needs them exactly.  A transfer from class u to class v at
a point lowers c_u and raises c_v by the same amount.  Points are chosen where it costs least in the dual, to first
order.  Where no point can do it at once, a chain of classes does: an imbalance of a flow always has a path along it.
"""

from typing import NamedTuple

import numpy as np

from mercer.arrays import Array
from mercer.problems.multiclass import CRAMMER_SINGER, LEE_LIN_WAHBA, MulticlassProblem

EXACT = 1e-15


class Edge(NamedTuple):
    """A transfer: the point that does it and the most it can do."""

    point: int
    most: float


def balanced(problem: MulticlassProblem, a: Array, f: Array) -> Array:
    """Feasible variables near a (n, k) whose coefficients sum to zero over the points; f (n, k) are the outputs."""
    a = a.copy()
    small = EXACT * max(float(np.abs(a).sum()), np.finfo(np.float64).tiny)
    if problem.code == LEE_LIN_WAHBA:
        _level(problem, a, f, small)
        return a
    for _ in range(20 * problem.k * problem.k):
        sums = problem.coefficients(a).sum(axis=0)
        u, v = int(sums.argmax()), int(sums.argmin())
        amount = min(sums[u], -sums[v])
        if amount <= small:
            break
        for start, end, edge in _path(problem, a, f, u, v):
            amount = min(amount, edge.most)
            _transfer(problem, a, edge.point, start, end, amount)
    return a


def _capacity(problem: MulticlassProblem, a: Array, u: int, v: int) -> Array:
    """How much c_u can fall and c_v rise at each point (n,)."""
    if problem.code == CRAMMER_SINGER:
        return a[:, v]
    room = np.where(problem.y == u, np.inf, problem.box - a[:, u])
    return np.minimum(room, np.where(problem.y == v, np.inf, a[:, v]))


def _edge(problem: MulticlassProblem, a: Array, f: Array, u: int, v: int) -> Edge | None:
    """The cheapest transfer from u to v, None where there is none."""
    most = _capacity(problem, a, u, v)
    gain = f[:, u] - f[:, v] + problem.margin * ((problem.y == v).astype(float) - (problem.y == u))
    gain = np.where(most > 0.0, gain, -np.inf)
    point = int(gain.argmax())
    return Edge(point, float(most[point])) if most[point] > 0.0 else None


def _path(problem: MulticlassProblem, a: Array, f: Array, u: int, v: int) -> list[tuple[int, int, Edge]]:
    """Transfers from u to v: one, or the fewest classes in between."""
    came: dict[int, tuple[int, Edge]] = {}
    front, seen = [u], {u}
    while front and v not in seen:
        ahead = []
        for start in front:
            for end in [v, *range(problem.k)]:
                if end not in seen and (edge := _edge(problem, a, f, start, end)) is not None:
                    seen.add(end)
                    came[end] = (start, edge)
                    ahead.append(end)
                    if end == v:
                        break
        front = ahead
    path = []
    at = v
    while at != u and at in came:
        start, edge = came[at]
        path.append((start, at, edge))
        at = start
    # Each transfer may do no more than the narrowest one, which therefore comes first.
    return sorted(path, key=lambda step: step[2].most)


def _transfer(problem: MulticlassProblem, a: Array, point: int, u: int, v: int, amount: float) -> None:
    own = -1 if problem.code == CRAMMER_SINGER else problem.y[point]
    if u != own:
        a[point, u] += amount
    if v != own:
        a[point, v] = max(a[point, v] - amount, 0.0)


def _level(problem: MulticlassProblem, a: Array, f: Array, small: float) -> None:
    """Lee-Lin-Wahba's sums are zero when the columns of a have equal sums: lower all to the smallest."""
    sums = a.sum(axis=0)
    target = sums.min()
    for j in range(problem.k):
        order = np.argsort(problem.margin + f[:, j], kind="stable")
        excess = sums[j] - target
        for i in order[a[order, j] > 0.0]:
            if excess <= small:
                break
            cut = min(excess, a[i, j])
            a[i, j] -= cut
            excess -= cut
