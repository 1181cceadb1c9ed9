"""The one quadratic program behind all support-vector problems, in signed variables.

    minimise    1/2 s' K~ s + linear' s + 1/2 sum_j ridge_j s_j^2
    subject to  lower <= s <= upper,   A s = d,            K~_ij = K[point_i, point_j] + constant

The expansion f0 = sum_j s_j k(x_point_j, .) carries the sign of the label inside s, so that classification, regression
and one-class problems differ in data only.  With multipliers h of A s = d and q_j = (A'h)_j - f0_j - linear_j the
Lagrangian dual of this program is the machine's primal problem

    P(f0, h) = 1/2 ||f0||^2 - d'h + sum_j phi_j(q_j),
    phi_j(q) = max over lower_j <= s <= upper_j of  q s - ridge_j s^2 / 2,

and the machine's dual value is minus the objective above.  Hence, for A s = d and any h,

    gap = sum_j [ phi_j(q_j) - q_j s_j + ridge_j s_j^2 / 2 ],

a sum of Fenchel-Young terms, each >= 0 (Schoelkopf and Smola 2002, sections 10.1.1 and 10.3, with the signs corrected).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mercer import dense
from mercer.arrays import Index, Mask, Vector
from mercer.errors import Infeasible
from mercer.losses import interval_conjugate
from mercer.problems.scale import Tangent, best_scale
from mercer.problems.thresholds import best_threshold

# Sweeps of exact one-row minimisation over general equality rows; each only lowers the primal value.
SWEEPS = 20
# Projection onto general rows: its accuracy, most steps, what keeps a step defined, and the shortest one tried.
PROJECTED = 1e-10
NEWTON_STEPS = 100
DAMPING = 1e-12
SHORTEST = 1e-15


class GramLike(Protocol):
    """What a problem needs of the kernel matrix (n, n)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, n)."""

    def dot(self, V: Any, /) -> Any:
        """K @ V for V (n,) or (n, k)."""

    def diagonal(self) -> Any:
        """The diagonal (n,)."""

    def dense(self) -> Any:
        """The matrix (n, n)."""

    def block(self, rows: Any, columns: Any, /) -> Any:
        """K[rows][:, columns]."""


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """A box- and equality-constrained quadratic program over N signed variables that sit on n points.

    `groups` (N,) says, where every equality is "the variables of group g sum to d_g", to which group a variable belongs
    (-1: to none).  General equalities have `groups` None and their matrix in `rows` (r, N).
    """

    gram: GramLike
    point: Index
    lower: Vector
    upper: Vector
    linear: Vector
    ridge: Vector
    groups: Index | None
    d: Vector
    rows: Vector | None = None
    constant: float = 0.0

    @property
    def size(self) -> int:
        """Number of variables N."""
        return self.lower.size

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.gram.shape[0])

    @cached_property
    def identity(self) -> bool:
        """Whether variable i sits on point i for all i (N = n)."""
        return self.size == self.n and bool(np.array_equal(self.point, np.arange(self.size)))

    @cached_property
    def one_group(self) -> bool:
        """Whether the only equality is the sum over all variables."""
        return self.groups is not None and self.d.size == 1 and not self.groups.any()

    @cached_property
    def has_ridge(self) -> bool:
        """Whether any variable carries a quadratic term of its own."""
        return bool(self.ridge.any())

    @cached_property
    def equalities(self) -> Vector:
        """The matrix A (r, N)."""
        if self.rows is not None:
            return self.rows
        assert self.groups is not None
        return np.where(self.groups == np.arange(self.d.size)[:, None], 1.0, 0.0)

    @cached_property
    def rounding(self) -> float:
        """Gaps below this cannot be told from none: a few units in the last place of the costs of f = 0."""
        return 16.0 * float(np.finfo(np.float64).eps) * float(np.abs(self.costs(-self.linear)).sum())

    def with_rows(self, rows: Vector) -> "QuadraticProgram":
        """The program with more equalities, `rows` (q, N) times s = 0."""
        d = np.concatenate((self.d, np.zeros(len(rows))))
        return replace(self, groups=None, d=d, rows=np.vstack((self.equalities, rows)))

    def in_one_sum(self) -> "QuadraticProgram":
        """The program with all variables in one group that sums to zero."""
        return replace(self, groups=np.zeros_like(self.point), d=np.zeros(1))

    def coefficients(self, s: Vector) -> Vector:
        """Expansion coefficients (n,): the sum of the variables on each point."""
        if self.identity:
            return np.array(s, dtype=np.float64)
        return np.bincount(self.point, weights=s, minlength=self.n).astype(np.float64, copy=False)

    def values(self, coefficients: Vector, f0: Vector | None = None) -> Vector:
        """K~ c (n,) from coefficients c; `f0` = K c spares the product."""
        if f0 is None:
            f0 = np.asarray(self.gram.dot(coefficients), dtype=np.float64)
        return f0 + self.constant * float(coefficients.sum()) if self.constant else f0

    def plain_values(self, g: Vector, s: Vector) -> Vector:
        """f0 = K c (n,) from g = K~ c (n,) at variables s (N,), or at their coefficients, whose sum is the same."""
        return g - self.constant * float(s.sum()) if self.constant else g

    def objective(self, s: Vector, f0: Vector | None = None) -> float:
        """Value of the program at s (the machine's dual with opposite sign)."""
        c = self.coefficients(s)
        value = 0.5 * float(c @ self.values(c, f0)) + float(self.linear @ s)
        return value + 0.5 * float(self.ridge @ (s * s)) if self.has_ridge else value

    def gradient(self, s: Vector, f0: Vector | None = None) -> Vector:
        """Gradient (N,) of the objective."""
        c = self.coefficients(s)
        return self._at(self.values(c, f0)) + self.linear + self.ridge * s

    def slack_values(self, g: Vector, h: Vector) -> Vector:
        """Values q = A'h - K~s - linear (N,), given g = K~ c (n,)."""
        q = -self._at(g) - self.linear
        if self.d.size == 0:
            return q
        if self.groups is None:
            return q + np.asarray(h @ self.equalities, dtype=np.float64)
        if self.one_group:
            return q + float(h[0])
        return q + np.where(self.groups >= 0, h[self.groups], 0.0)

    def costs(self, q: Vector) -> Vector:
        """phi_j(q_j) (N,)."""
        return self.costs_and_response(q)[0]

    def costs_and_response(self, q: Vector) -> tuple[Vector, Vector]:
        """phi_j(q_j) and the maximising s_j, each (N,)."""
        return interval_conjugate(q, self.lower, self.upper, self.ridge if self.has_ridge else None)

    def evaluate(
        self, s: Vector, g: Vector, h: Vector, c: Vector | None = None, scale: float = 1.0
    ) -> tuple[float, float]:
        """(P, gap) at dual-feasible s and the primal point t f0, t = `scale`, with g = K~ c and multipliers h.

        The gap has the term (1 - t)^2 ||f0||^2 / 2 besides those at the head of this file.
        """
        c = self.coefficients(s) if c is None else c
        norm = float(c @ g)
        q = self.slack_values(scale * g if scale != 1.0 else g, h)
        phi = self.costs(q)
        primal = 0.5 * scale**2 * norm + float(phi.sum()) - (float(self.d @ h) if self.d.size else 0.0)
        gap = float(self._terms(s, q, phi).sum())
        return primal, gap + 0.5 * (1.0 - scale) ** 2 * max(norm, 0.0) if scale != 1.0 else gap

    def _terms(self, s: Vector, q: Vector, phi: Vector) -> Vector:
        """The Fenchel-Young terms (N,) at q (N,), whose costs are phi (N,).

        They are non-negative in exact arithmetic; rounding must not turn one into a credit.
        """
        terms = phi - q * s
        if self.has_ridge:
            terms += 0.5 * self.ridge * s * s
        return np.maximum(terms, 0.0, out=terms)

    def largest_gap(self, s: Vector, g: Vector, h: Vector, error: Vector, scale: float = 1.0) -> float:
        """The gap as `evaluate` gives it, for whatever values lie within `error` (n,) of g = K~ c (n,)."""
        q, wrong = self.slack_values(scale * g if scale != 1.0 else g, h), scale * self._at(error)
        # Every term is convex in q, and so largest at an end of what q may be.
        high, low = q + wrong, q - wrong
        terms = np.maximum(self._terms(s, high, self.costs(high)), self._terms(s, low, self.costs(low)))
        # Sums that are off by rounding make the dual no bound by that much times the multiplier.
        gap = float(terms.sum()) + (float(np.abs(h) @ np.abs(self.sums(s) - self.d)) if self.d.size else 0.0)
        if scale == 1.0:
            return gap
        c = self.coefficients(s)
        return gap + 0.5 * (1.0 - scale) ** 2 * (float(c @ g) + float(np.abs(c) @ error))

    def best_scale(self, s: Vector, g: Vector, h: Vector, c: Vector) -> tuple[float, Vector]:
        """The multiple t of f0 and the multipliers h (r,) that make P smallest, from those that are best at t = 1.

        The slope of P in t at the best h is that of the costs with responses s^ that satisfy A s^ = d, which is what
        makes h the best.  With general rows, whose best h is not known exactly, h is scaled along with f0.
        """
        norm = float(c @ g)
        at = self._at(g)

        def tangent(t: float) -> Tangent:
            if self.groups is None:
                q = self.slack_values(t * g, t * h)
                phi, response = self.costs_and_response(q)
                slope = float((h @ self.equalities - at) @ response - self.d @ h)
                return Tangent(t, float(phi.sum()) - t * float(self.d @ h), slope)
            best = h if t == 1.0 else self.best_multipliers(t * g)
            q = self.slack_values(t * g, best)
            phi, response = self.costs_and_response(q)
            self.share_ties(q, response)
            return Tangent(t, float(phi.sum()) - float(self.d @ best), -float(at @ response))

        t = best_scale(norm, tangent(1.0), tangent, -self.objective(s, self.plain_values(g, s)))
        if t == 1.0:
            return t, h
        return t, t * h if self.groups is None else self.best_multipliers(t * g)

    def share_ties(self, q: Vector, response: Vector) -> None:
        """Move the responses of variables with q = 0, where any is right, so that the groups sum to d."""
        assert self.groups is not None
        for k in range(self.d.size):
            tied = np.flatnonzero((q == 0.0) & (self.groups == k) & (self.upper > self.lower))
            missing = float(self.d[k]) - float(response[self.groups == k].sum())
            for j in tied:
                step = min(max(missing, self.lower[j] - response[j]), self.upper[j] - response[j])
                response[j] += step
                missing -= step

    def primal(self, coefficients: Vector, h: Vector, f0: Vector | None = None) -> float:
        """P(f0, h) for any expansion coefficients (n,), dual feasible or not."""
        g = self.values(coefficients, f0)
        phi = self.costs(self.slack_values(g, h))
        return 0.5 * float(coefficients @ g) + float(phi.sum()) - float(self.d @ h)

    def best_multipliers(self, g: Vector, s: Vector | None = None) -> Vector:
        """Multipliers h (r,) that make P smallest for given g = K~ c.

        Exact for groups (they separate).  For general rows: a least-squares fit on the variables strictly inside
        their box, improved by exact minimisation along one row at a time.
        """
        e = self._at(g) + self.linear
        if self.groups is None:
            return self._best_for_rows(e, s)
        ridge = self.ridge if self.has_ridge else None
        if self.one_group:
            return np.array([best_threshold(e, self.lower, self.upper, ridge, float(self.d[0]))])
        h = np.zeros(self.d.size)
        for k in range(self.d.size):
            own = self.groups == k
            own_ridge = None if ridge is None else ridge[own]
            h[k] = best_threshold(e[own], self.lower[own], self.upper[own], own_ridge, float(self.d[k]))
        return h

    def _best_for_rows(self, e: Vector, s: Vector | None) -> Vector:
        A, moving = self.equalities, self.upper > self.lower

        def value(h: Vector) -> float:
            return float(self.costs(h @ A - e).sum()) - float(self.d @ h)

        starts = [np.zeros(self.d.size), _fitted(A, e, moving)]
        if s is not None:
            width = self.upper - self.lower
            free = np.minimum(s - self.lower, self.upper - s) > 1e-6 * np.where(np.isfinite(width), width, 1.0)
            starts.append(_fitted(A, e + self.ridge * s, free))
        h = min(starts, key=value)
        best = value(h)
        for _ in range(SWEEPS):
            for k in range(h.size):
                h[k] = self._best_along_row(e - (h @ A - h[k] * A[k]), A[k], float(self.d[k]))
            if value(h) > best - 1e-14 * abs(best):
                break
            best = value(h)
        return h

    def _best_along_row(self, e: Vector, a: Vector, target: float) -> float:
        on = a != 0
        a, e, low, high = a[on], e[on], self.lower[on], self.upper[on]
        low, high = np.where(a > 0, a * low, a * high), np.where(a > 0, a * high, a * low)
        return best_threshold(e / a, low, high, self.ridge[on] / a**2 if self.has_ridge else None, target)

    def violation(self, s: Vector) -> tuple[float, float]:
        """(largest overshoot of the box, largest |A s - d|)."""
        box = max(0.0, float(np.max(self.lower - s, initial=0.0)), float(np.max(s - self.upper, initial=0.0)))
        return box, float(np.max(np.abs(self.sums(s) - self.d), initial=0.0))

    def sums(self, s: Vector) -> Vector:
        """A s (r,)."""
        if self.groups is None:
            return np.asarray(self.equalities @ s)
        if self.one_group:
            return np.array([s.sum()])
        return np.array([s[self.groups == k].sum() for k in range(self.d.size)])

    def project(self, s: Vector) -> Vector:
        """Nearest feasible point to s (N,)."""
        if self.groups is None:
            return _onto_rows(s, self.lower, self.upper, self.equalities, self.d)
        s = np.clip(s, self.lower, self.upper)
        sums = self.sums(s)
        for k in np.flatnonzero(sums != self.d):
            own = self.groups == k
            s[own] = onto_sum(s[own], self.lower[own], self.upper[own], float(self.d[k]))
        return s

    def start(self) -> Vector:
        """The feasible point nearest to zero: the cold start."""
        return self.project(np.zeros(self.size))

    def _at(self, g: Vector) -> Vector:
        return g if self.identity else g[self.point]


def onto_sum(s: Vector, lower: Vector, upper: Vector, target: float) -> Vector:
    """Euclidean projection of s onto {lower <= s <= upper, sum s = target}."""
    scale = max(1.0, abs(target), float(np.abs(s).sum()))
    if not lower.sum() - 1e-9 * scale <= target <= upper.sum() + 1e-9 * scale:
        raise Infeasible(
            f"no point of the box sums to {target:.6g}: sums run from {lower.sum():.6g} to {upper.sum():.6g}; "
            "change nu or C"
        )
    missing = target - float(s.sum())
    if abs(missing) > 1e-10 * scale:
        alike = s + missing / s.size  # where no bound is in the way
        if ((lower <= alike) & (alike <= upper)).all():
            s = alike
        else:
            s = np.clip(s + best_threshold(-s, lower, upper, np.ones_like(s), target), lower, upper)
    # What rounding leaves goes to one variable, the freest, so that those at a bound stay there.
    rest = target - float(s.sum())
    if s.size and rest != 0.0:
        room = np.minimum(s - lower, upper - s)
        k = int(np.argmax(room if room.max() > abs(rest) else (upper - s if rest > 0 else s - lower)))
        s[k] = min(max(float(s[k]) + rest, float(lower[k])), float(upper[k]))
    return s


def _onto_rows(s: Vector, lower: Vector, upper: Vector, A: Vector, d: Vector) -> Vector:
    """Euclidean projection of s onto {lower <= s <= upper, A s = d}: Newton steps on the multipliers h (r,).

    The projection is clip(s + A'h) with h a minimiser of sum_j phi_j(s_j + (A'h)_j) - d'h, phi_j of ridge one: convex,
    with a slope that is linear between the break points, so that few steps reach it.
    """
    size = 1.0 + np.abs(d) + np.abs(A) @ np.abs(s)

    def at(h: Vector) -> tuple[float, Vector, float]:
        costs, nearest = interval_conjugate(s + h @ A, lower, upper, 1.0)
        return float(costs.sum()) - float(d @ h), nearest, float((np.abs(d - A @ nearest) / size).max())

    h = np.zeros(d.size)
    value, found, off = at(h)
    noise = float(np.finfo(np.float64).eps) * float(np.square(found).sum())
    for _ in range(NEWTON_STEPS):
        moving = s + h @ A
        free = A[:, (lower < moving) & (moving < upper)]
        H = free @ free.T
        H.flat[:: d.size + 1] += DAMPING * (float(np.trace(H)) or float(np.square(A).sum()) or 1.0)
        step, share = dense.solve_square(H, d - A @ found), 1.0
        while share > SHORTEST and at(h + share * step)[0] > value + noise:
            share *= 0.5
        before, nearest = off, found
        h = h + share * step
        value, found, off = at(h)
        if before <= PROJECTED and off >= 0.5 * before:
            return nearest
    raise Infeasible(
        "no point of the box was found that satisfies the equality rows of the program: change C, nu or the basis"
    )


def _fitted(A: Vector, e: Vector, where: Mask) -> Vector:
    """Least-squares h of A'h = e over the variables `where`."""
    if not where.any():
        return np.zeros(A.shape[0])
    return dense.least_squares(A[:, where].T, e[where])
