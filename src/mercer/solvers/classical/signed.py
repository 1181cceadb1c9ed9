"""Signed variables with a kink at zero: classification, regression, one-class and nu problems as one problem.

    minimise  1/2 c'K~c + sum_k psi_k(u_k),     lower <= u <= upper,  sum of u over each group fixed,
    c_i = sum of the u_k on point i,            psi_k(u) = left_k u + rho_k u^2 / 2   for u < 0
                                                           right_k u + r_k u^2 / 2    for u > 0,     left <= right

The two variables alpha_i and -alpha*_i of a point in epsilon-insensitive regression are one here, u = alpha - alpha* =
beta of Schoelkopf and Smola 2002, section 10.5.3, whose tube is the kink: left = -y - eps, right = -y + eps.  Elsewhere
left = right.  With F = K~c the slopes of the objective in a variable that rises, and in one that falls, are

    rise_k = F + (right_k + r_k u_k  where u_k >= 0,   left_k + rho_k u_k  where u_k < 0)
    fall_k = F + (right_k + r_k u_k  where u_k > 0,    left_k + rho_k u_k  where u_k <= 0)

and u is optimal when within each group no variable that may rise has a smaller slope than one that may fall:

    e_hi = min over u_k < upper_k of rise_k,   e_lo = max over u_k > lower_k of fall_k,     e_lo <= e_hi

(section 10.5.4, the thresholds of Keerthi et al. 2001 and Shevade et al. 2000).  -e is the bias that fits the variable.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.problems.program import QuadraticProgram
from mercer.solvers.quadratic.analytic_step import SNAP, pair_length, snapped

# Stands for "may not move"; so large that an output added to it changes nothing.
NEVER = 1e300


class Signed(NamedTuple):
    """What is fixed of M signed variables, each array (M,)."""

    point: Index
    lower: Array
    upper: Array
    left: Array
    right: Array
    left_ridge: Array
    right_ridge: Array
    group: Index

    @classmethod
    def of(cls, program: QuadraticProgram) -> "Signed":
        """The variables of a program; two on one point, of one group and of opposite signs, become one."""
        groups = np.full(program.size, -1, dtype=np.intp) if program.groups is None else program.groups
        group = np.ascontiguousarray(groups, dtype=np.intp)
        if not has_kinks(program):
            linear, ridge = program.linear.copy(), program.ridge.copy()
            point = np.ascontiguousarray(program.point, dtype=np.intp)
            return cls(point, program.lower.copy(), program.upper.copy(), linear, linear, ridge, ridge, group)
        n = program.n
        return cls(
            np.arange(n, dtype=np.intp),
            program.lower[n:].copy(),
            program.upper[:n].copy(),
            program.linear[n:].copy(),
            program.linear[:n].copy(),
            program.ridge[n:].copy(),
            program.ridge[:n].copy(),
            group[:n].copy(),
        )

    def part(self, index: Index) -> "Signed":
        """The variables at `index` alone, the k-th of them on point k."""
        return Signed(
            np.arange(index.size, dtype=np.intp),
            self.lower[index],
            self.upper[index],
            self.left[index],
            self.right[index],
            self.left_ridge[index],
            self.right_ridge[index],
            self.group[index],
        )

    def merged(self, s: Array) -> Array:
        """U (M,) of the program's variables s (N,)."""
        M = self.point.size
        return np.array(s if s.size == M else s[:M] + s[M:], dtype=np.float64)

    def split(self, u: Array, size: int) -> Array:
        """The program's variables (size,) of u (M,)."""
        return u.copy() if u.size == size else np.concatenate((np.maximum(u, 0.0), np.minimum(u, 0.0)))


def has_kinks(program: QuadraticProgram) -> bool:
    """Whether every point has one variable >= 0 and then one <= 0, both of the same group."""
    n, groups = program.n, program.groups
    if program.size != 2 * n or not np.array_equal(program.point, np.tile(np.arange(n), 2)):
        return False
    opposite = not program.lower[:n].any() and not program.upper[n:].any()
    together = groups is None or np.array_equal(groups[:n], groups[n:])
    return bool(opposite and together and (program.linear[n:] <= program.linear[:n]).all())


@loop
def offsets(signed: Any, u: Any, rise: Any, fall: Any, k: int) -> None:
    """What is added to F for the two slopes of variable k, or what keeps it from moving, into rise and fall (M,).

    The two are equal exactly where the variable is free: neither at a bound nor at its kink.
    """
    right = signed.right[k] + signed.right_ridge[k] * u[k]
    left = signed.left[k] + signed.left_ridge[k] * u[k]
    rise[k] = NEVER if u[k] >= signed.upper[k] else right if u[k] >= 0.0 else left
    fall[k] = -NEVER if u[k] <= signed.lower[k] else right if u[k] > 0.0 else left


@loop
def all_offsets(signed: Any, u: Any, rise: Any, fall: Any) -> None:
    """`offsets` of all variables."""
    for k in range(u.shape[0]):
        offsets(signed, u, rise, fall, k)


def slope_offsets(signed: Signed, u: Array) -> tuple[Array, Array]:
    """What is added to F for the slopes of all variables, rise and fall (M,) each."""
    rise, fall = np.empty(u.size), np.empty(u.size)
    all_offsets(signed, u, rise, fall)
    return rise, fall


@loop
def lowest_rise(signed: Any, F: Any, rise: Any, group: int) -> tuple[float, int]:
    """e_hi of a group and its variable; NEVER and -1 where none may rise."""
    point, groups = signed.point, signed.group
    lowest, at = NEVER, -1
    for k in range(rise.shape[0]):
        slope = F[point[k]] + rise[k]
        if slope < lowest and groups[k] == group:
            lowest, at = slope, k
    return lowest, at


@loop
def highest_fall(signed: Any, F: Any, fall: Any, group: int) -> tuple[float, int]:
    """e_lo of a group and its variable; -NEVER and -1 where none may fall."""
    point, groups = signed.point, signed.group
    highest, at = -NEVER, -1
    for k in range(fall.shape[0]):
        slope = F[point[k]] + fall[k]
        if slope > highest and groups[k] == group:
            highest, at = slope, k
    return highest, at


@loop
def best_move(signed: Any, u: Any, i: int, j: int, slope: float, bends: float, shared: float) -> tuple[float, float]:
    """How far u_i rises and u_j falls (one of them alone where the other is -1), and what the objective loses by it.

    `slope` < 0 is that of the objective; `bends` is K_ii + K_jj and `shared` K_ij (alone: K_ii and 0).  Along the pair
    the objective is quadratic between the kinks, at most two of them: from piece to piece while it falls.  These are
    the three regions of section 10.5.3 from any start, and the clip to the box.
    """
    a, b = u[i] if i >= 0 else 0.0, u[j] if j >= 0 else 0.0
    room = min(signed.upper[i] - a if i >= 0 else np.inf, b - signed.lower[j] if j >= 0 else np.inf)
    moved = gained = 0.0
    while True:
        bend, kink = _rising_piece(signed, i, a)
        other, far = _falling_piece(signed, j, b)
        bend += bends + other
        step = pair_length(-slope, bend, shared, min(kink, far), room)
        curvature = max(bend - 2.0 * shared, 0.0)
        gained -= step * (slope + 0.5 * curvature * step)
        moved += step
        room -= step
        slope += curvature * step
        if step < min(kink, far) or room <= 0.0:
            return moved, gained
        # A kink that is reached is met exactly, whatever the rounding of the sums.
        if kink <= step:
            slope += signed.right[i] - signed.left[i]
        if far <= step:
            slope += signed.right[j] - signed.left[j]
        if slope >= 0.0:
            return moved, gained
        a = 0.0 if kink <= step else a + step
        b = 0.0 if far <= step else b - step


@loop
def _rising_piece(signed: Any, k: int, value: float) -> tuple[float, float]:
    """Curvature of psi_k just above `value`, and how far its kink is."""
    if k < 0:
        return 0.0, np.inf
    return (signed.right_ridge[k], np.inf) if value >= 0.0 else (signed.left_ridge[k], -value)


@loop
def _falling_piece(signed: Any, k: int, value: float) -> tuple[float, float]:
    """Curvature of psi_k just below `value`, and how far its kink is."""
    if k < 0:
        return 0.0, np.inf
    return (signed.left_ridge[k], np.inf) if value <= 0.0 else (signed.right_ridge[k], value)


@loop
def apply_move(signed: Any, u: Any, i: int, j: int, moved: float) -> tuple[float, float]:
    """Raise u_i and lower u_j by `moved` (-1: neither); returns their changes.  Next to a bound is put on it."""
    up = down = 0.0
    if i >= 0:
        before = u[i]
        u[i] = _settled(signed, i, before, moved)
        moved = up = u[i] - before
    if j >= 0:
        before = u[j]
        u[j] = _settled(signed, j, before, -moved)
        down = u[j] - before
    return up, down


@loop
def _settled(signed: Any, k: int, before: float, change: float) -> float:
    """The sum of both, or the bound or kink that it has all but reached."""
    lower, upper, value = signed.lower[k], signed.upper[k], before + change
    # Of an infinite box, what rounding of the sum may leave.
    near = SNAP * (abs(before) + abs(change))
    if abs(value) <= near and lower <= 0.0 <= upper:
        return 0.0
    if lower < 0.0 < upper:
        return snapped(value, 0.0, upper) if value > 0.0 else snapped(value, lower, 0.0)
    return snapped(value, lower, upper)
