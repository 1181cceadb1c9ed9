"""Compiled passes over points for linear machines with one problem for all classes.

The outputs are f = W x + offset with W = sum_i c_i x_i' (k, d) kept up to date, so that a step on point i costs its
entries times the classes looked at.  Two layouts: dense points read rows of W (k, d), sparse points read rows of
W' (d, k), in both cases along memory.  A constant is one more feature without a column: its share of the outputs is
constant * sums, sums = sum_i c_i.

A pass visits its points in random order.  What is not expected to move is left out until the next full pass (Keerthi et
al. 2008; Fan et al. 2008, appendix E): a class of a Crammer-Singer point whose variable is zero and whose output lies
`slack` below every class in use, and a point of which no class but its own is left or whose variables are all at bounds
with gradients beyond `slack`.
"""

from typing import Any

import numpy as np

from mercer.compiled import loop
from mercer.solvers.multiclass.steps import (
    CRAMMER_SINGER,
    WESTON_WATKINS,
    best_variables,
    coefficient_change,
    loss_and_gap,
    violation_of,
)

SETTLED = 1e-12


@loop
def _outputs(
    sparse: bool, X: Any, data: Any, indices: Any, indptr: Any, W: Any, i: int, own: Any, m: int, f: Any
) -> None:
    """f[c] = (W x_i)[own[c]] for the first m classes of `own`."""
    if not sparse:
        d = X.shape[1]
        for c in range(m):
            r = own[c]
            total = 0.0
            for j in range(d):
                total += X[i, j] * W[r, j]
            f[c] = total
        return
    k = W.shape[1]
    if 4 * m > k:  # all classes along memory, then in the order of the list
        whole = np.zeros(k)
        for at in range(indptr[i], indptr[i + 1]):
            value = data[at]
            row = W[indices[at]]
            for r in range(k):
                whole[r] += value * row[r]
        for c in range(m):
            f[c] = whole[own[c]]
        return
    for c in range(m):
        f[c] = 0.0
    for at in range(indptr[i], indptr[i + 1]):
        value = data[at]
        row = W[indices[at]]
        for c in range(m):
            f[c] += value * row[own[c]]


@loop
def _add(
    sparse: bool, X: Any, data: Any, indices: Any, indptr: Any, W: Any, i: int, own: Any, m: int, change: Any
) -> None:
    """W[own[c]] += change[c] x_i for the classes that change; `own` and `change` are reordered to hold them first."""
    moved = 0
    for c in range(m):
        if change[c] != 0.0:
            own[moved] = own[c]
            change[moved] = change[c]
            moved += 1
    if not sparse:
        for c in range(moved):
            step = change[c]
            r = own[c]
            for j in range(X.shape[1]):
                W[r, j] += step * X[i, j]
        return
    for at in range(indptr[i], indptr[i + 1]):
        value = data[at]
        row = W[indices[at]]
        for c in range(moved):
            row[own[c]] += value * change[c]


@loop
def _at_rest(code: int, margin: float, bound: float, slack: float, f: Any, a: Any) -> bool:
    """Whether every variable of a point with box constraints is at a bound with its gradient beyond `slack`."""
    shift = margin - f[0] if code == WESTON_WATKINS else margin
    for c in range(1, f.shape[0]):
        d = shift + f[c]
        if not ((a[c] == 0.0 and d < -slack) or (a[c] == bound and d > slack)):
            return False
    return True


@loop
def _keep_classes(slack: float, f: Any, a: Any, classes: Any, i: int, m: int) -> int:
    """Move the classes of a Crammer-Singer point that stay to the front of its list; returns their number."""
    lowest = 1e300
    for c in range(m):
        if a[c] > 0.0:
            lowest = min(lowest, f[c])
    kept = m
    c = 1
    while c < kept:
        if a[c] > 0.0 or f[c] > lowest - slack:
            c += 1
        else:
            kept -= 1
            a[c], a[kept] = a[kept], a[c]
            f[c], f[kept] = f[kept], f[c]
            classes[i, c], classes[i, kept] = classes[i, kept], classes[i, c]
    return kept


@loop
def _next(state: Any) -> Any:
    """A pseudo-random 64 bit number (xorshift)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@loop
def one_pass(
    sparse: bool, X: Any, data: Any, indices: Any, indptr: Any, W: Any, squares: Any, y: Any, box: Any, a: Any,
    code: int, margin: float, constant: float, sums: Any, offset: Any, order: Any, count: int, classes: Any,
    active: Any, slack: float, state: Any,
) -> tuple[int, int, float, float, float]:  # fmt: skip
    """Visit the first `count` points of `order` once: points left, steps, largest violation, sums of loss and gap.

    classes (n, k) lists the classes of each point, its own first, of which the first active[i] are looked at.
    """
    k = a.shape[1]
    f, own_a, work, new, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    own = np.empty(k, np.int32)
    worst = 0.0
    loss = 0.0
    gap = 0.0
    steps = 0
    at = 0
    while at < count:
        other = at + int(_next(state) % np.uint64(count - at))
        i = order[other]
        order[other] = order[at]
        order[at] = i
        m = active[i]
        for c in range(m):
            own[c] = classes[i, c]
        _outputs(sparse, X, data, indices, indptr, W, i, own, m, f)
        for c in range(m):
            f[c] += constant * sums[own[c]] + offset[own[c]]
            own_a[c] = a[i, own[c]]
        if code == CRAMMER_SINGER:
            f[0] -= margin
        psi = violation_of(code, 0, margin, box[i], f[:m], own_a[:m])
        worst = max(worst, psi)
        of_loss, of_gap = loss_and_gap(code, 0, margin, box[i], f[:m], own_a[:m])
        loss += of_loss
        gap += of_gap
        if code == CRAMMER_SINGER:
            m = _keep_classes(slack, f, own_a, classes, i, m)
            active[i] = m
            gone = m == 1
            for c in range(m):
                own[c] = classes[i, c]
        else:
            gone = _at_rest(code, margin, box[i], slack, f, own_a)
        if gone:
            count -= 1
            order[at] = order[count]
            order[count] = i
            continue
        at += 1
        if psi <= SETTLED:
            continue
        A = squares[i] + constant
        best_variables(code, A, box[i], 0, margin, f[:m], own_a[:m], False, work[:m], new[:m])
        if coefficient_change(code, 0, own_a[:m], new[:m], change[:m]):
            for c in range(m):
                a[i, own[c]] = new[c]
                sums[own[c]] += change[c]
            _add(sparse, X, data, indices, indptr, W, i, own, m, change)
            steps += 1
    return count, steps, worst, loss, gap
