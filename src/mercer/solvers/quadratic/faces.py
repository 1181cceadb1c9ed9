"""The minimum over the free variables of a set, all at once: what pair steps reach last, and slowly.

At a large C most of the time goes into variables that are free and stay free: on their face the program is a plain
quadratic, and a pair at a time it is minimised like a system of equations by relaxation, in millions of steps.  Here
the free variables x of a set (one of each point), with gradients g, move together by the d that solves

    minimise  1/2 d'(K + R + delta I)d + g'd     x + d in the box,  sum of d over each group zero

A Newton step cut off at the first bound would fix one variable at a time.  The box is kept instead by block pivoting
(Portugal, Judice and Vicente 1994): with the variables of a set A fixed at bounds b,

    d = -h + [Z V_A] x,   h = H^-1 g,  Z = H^-1 E,  V_A = H^-1 I_A,     x from  E'd = 0,  d_A = b

for E (f, groups) of the groups' sums; those that leave the box join A, those whose multiplier has the wrong sign leave
it.  One Cholesky factor of H serves all of it, a variable that joins costs two triangular solves, and three to five
turns suffice in practice.  Where they do not, nothing moves and pair steps go on.

The small delta is that of a proximal step: kernel values in float32 leave the smallest eigenvalues undetermined, and
the further a step may go the more bounds it meets.  It is adapted to how many it met.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense, threads
from mercer.compiled import loop

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FEWEST = 50  # free variables below which pairs are as good
# Pair steps on m points that take as long as the face of f of them: WORTH f^3 / m, and never below LEAST for a point.
WORTH = 0.01
LEAST = 20.0
LONGEST_WAIT = 16.0
USEFUL = 0.9  # share of the violation that a face may leave, or else the next one has to wait longer
# delta in units of the mean curvature: where it begins, and the least by the bytes of the kernel values.
DAMPING = 1e-4
LEAST_DAMPING = {4: 1e-5, 8: 1e-9}
MOST_DAMPING = 1e-1
MOST_FIXED = 0.16  # share of the variables that may come to lie at bounds
FEW_FIXED = 0.05  # below this share the next face is damped less
TURNS = 30
REPEATS = 3  # proximal steps with one factor
ROUNDING = 1e-12


@loop
def _gather(K: Any, at: Any, H: Any) -> None:
    """Lower triangle of K[at, at] in float64."""
    for i in range(at.shape[0]):
        row = K[at[i]]
        for j in range(i + 1):
            H[i, j] = row[at[j]]


@loop
def _carry(K: Any, at: Any, d: Any, F: Any) -> None:
    """F += K[:, at] d, summed in float64."""
    for i in range(at.shape[0]):
        row, amount = K[at[i]], d[i]
        if amount != 0.0:
            for k in range(F.shape[0]):
                F[k] += amount * np.float64(row[k])


class Faces:
    """Minimises over free variables when that is due; remembers between sets how it went."""

    def __init__(self, most: int) -> None:
        """`most` free variables may have their matrix in memory."""
        self.most = most
        self.damping = DAMPING
        self.wait = 1.0
        self.count = 0
        self.spent = 0  # steps since the last face of the set
        self.before = np.inf  # the violation that face found
        self.room: Array = np.empty(0)

    def begin(self) -> None:
        """A new set: what was learnt from the others counts for less."""
        self.wait = max(1.0, 0.5 * self.wait)
        self.spent, self.before = 0, np.inf

    def due_in(self, s: Array, program: Any) -> float:
        """How many steps on a set come before its next face: they cost as much, so that little is lost by either."""
        _, _, lower, upper, _ = program
        free = int(np.count_nonzero(((lower < s) & (s < upper)).any(axis=0)))
        if not FEWEST <= free <= self.most:
            return float("inf")
        m = s.shape[1]
        return float(max(0.0, self.wait * max(LEAST * m, WORTH * free**3 / m) - self.spent))

    def useful(self, violation: float) -> bool:
        """Whether to go on with faces: the last one, with the steps after it, must have lowered the violation."""
        if violation > USEFUL * self.before:
            self.wait, self.before = min(LONGEST_WAIT, 2.0 * self.wait), np.inf
            return False
        self.spent, self.before = 0, violation
        return True

    def minimise(self, K: Any, F: Array, s: Array, program: Any, groups: int, tol: float) -> bool:
        """Move the free variables of s (layers, m) to their minimum, and F (m,) with them; whether that succeeded."""
        linear, ridge, lower, upper, group = program
        points, layers = _free_variables(s, program, groups)
        low, high, bend = lower[layers, points], upper[layers, points], ridge[layers, points]
        f = points.size
        H = self._matrix(f)
        _gather(K, points, H)
        corner = np.einsum("ii->i", H)
        delta = self.damping * max(float(corner.mean() + bend.mean()), np.finfo(np.float64).tiny)
        corner += bend + delta
        self.count += 1
        if not dense.factorise(H, run=threads.run):
            self.damping = min(MOST_DAMPING, 10.0 * self.damping)
            return False
        sums = (group[layers, points][:, None] == np.arange(groups)).astype(np.float64)
        box = _BoxedSteps(H, sums, int(MOST_FIXED * f))
        moved = False
        for _ in range(REPEATS):
            x = s[layers, points]
            d = box.step(F[points] + linear[layers, points] + bend * x, low - x, high - x)
            if d is None:
                break
            moved = True
            _carry(K, points, d, F)
            s[layers, points] = _on_bounds(x + d, low, high)
            if delta * float(np.abs(d).max()) <= 0.1 * tol:
                break
        self._adapt(box, f, K.dtype.itemsize)
        return moved

    def _matrix(self, f: int) -> Array:
        """Room for a matrix (f, f), kept from face to face: touching new memory costs as much as the factor."""
        if self.room.size < f * f:
            self.room = np.empty(min(self.most, f + f // 4) ** 2)
        return self.room[: f * f].reshape(f, f)

    def _adapt(self, box: "_BoxedSteps", f: int, itemsize: int) -> None:
        """Damp the next face more where this one met too many bounds, less where it met few."""
        if box.failed:
            self.damping = min(MOST_DAMPING, 10.0 * self.damping)
        elif box.fixed <= FEW_FIXED * f:
            self.damping = max(LEAST_DAMPING[itemsize], 0.1 * self.damping)


class _BoxedSteps:
    """Minimisers of 1/2 d'Hd + g'd in a box with sums of zero, for many g and boxes from one factor of H (f, f)."""

    def __init__(self, factor: Array, sums: Array, most: int) -> None:
        self.factor, self.sums, self.most = factor, sums, most
        self.columns = np.array(dense.solve(factor, sums).T)  # rows: H^-1 times the sums, then times unit vectors
        self.column: Index = np.full(len(factor), -1, dtype=np.intp)
        self.failed = False
        self.fixed = 0

    def step(self, g: Array, low: Array, high: Array) -> Array | None:
        """Minimiser d (f,), or None where too many variables meet their bounds or the turns do not end."""
        groups = self.sums.shape[1]
        # A multiple of the sums taken off g changes the multipliers only, and leaves smaller numbers to subtract.
        sizes = self.sums.sum(axis=0)
        level = self.sums @ ((self.sums.T @ g) / np.maximum(sizes, 1.0))
        h = dense.solve(self.factor, g - level)
        side = np.zeros(g.size, dtype=np.int8)
        for _ in range(TURNS):
            fixed = np.flatnonzero(side)
            bound = np.where(side[fixed] > 0, high[fixed], low[fixed])
            if not self._provide(fixed):
                break
            rows = self.columns[np.concatenate([np.arange(groups), self.column[fixed]])]
            small = np.concatenate([self.sums.T @ rows.T, rows[:, fixed].T])
            wanted = np.concatenate([self.sums.T @ h, bound + h[fixed]])
            if wanted.size:
                if not dense.factorise(small):
                    break
                x = dense.solve(small, wanted)
                d = x @ rows - h
            else:
                x, d = wanted, -h
            slack = ROUNDING * (np.abs(d) + np.minimum(high - low, 1.0))
            outside = np.flatnonzero((side == 0) & ((d > high + slack) | (d < low - slack)))
            multipliers = side[fixed] * x[groups:]
            back = fixed[multipliers > ROUNDING * np.abs(x).max(initial=0.0)]
            if outside.size + back.size == 0:
                self.fixed = max(self.fixed, fixed.size)
                d[fixed] = bound
                return self._with_sums(np.clip(d, low, high), low, high)
            side[outside] = np.where(d[outside] > 0.0, 1, -1)
            side[back] = 0
        self.failed = True
        return None

    def _provide(self, fixed: Index) -> bool:
        """Columns of H^-1 for these variables; False where there would be too many."""
        new = fixed[self.column[fixed] < 0]
        if len(self.columns) + new.size > self.most + self.sums.shape[1]:
            return False
        if new.size:
            units = np.zeros((new.size, len(self.factor)))
            units[np.arange(new.size), new] = 1.0
            threads.run(dense.solve_rows, [(self.factor, units[a:b]) for a, b in threads.split(new.size)])
            self.column[new] = len(self.columns) + np.arange(new.size)
            self.columns = np.concatenate([self.columns, units])
        return True

    def _with_sums(self, d: Array, low: Array, high: Array) -> Array:
        """Step d with sums of zero: the variable of each group that is farthest from its bounds takes the rest."""
        room = np.minimum(high - d, d - low)
        for members in self.sums.T:
            taker = int(np.argmax(np.where(members > 0.0, room, -1.0)))
            d[taker] -= float(members @ d)
        return d


def _free_variables(s: Array, program: Any, groups: int) -> tuple[Index, Index]:
    """Points and layers of the free variables, the first of each point."""
    _, _, lower, upper, group = program
    free = (lower < s) & (s < upper)
    if groups:
        free &= group >= 0
    points = np.flatnonzero(free.any(axis=0))
    return points, np.argmax(free[:, points], axis=0)


def _on_bounds(x: Array, low: Array, high: Array) -> Array:
    """Variables in the box, on a bound where it is within rounding of it."""
    reach = ROUNDING * np.minimum(high - low, np.maximum(np.abs(x), 1.0))
    return np.where(x >= high - reach, high, np.where(x <= low + reach, low, x))
