"""The centre of mass of version space: kernel billiard, and the average of perceptrons.

Version space is the cone of all f = sum_j c_j k~(x_j, .) with y_i f(x_i) >= 0 at all points, k~ = k + 1 + softness on
the diagonal.  Its centre of mass on the unit sphere, the Bayes point, approximates the vote of all separating functions
(Herbrich, Graepel and Campbell 2001; Rujan 1997).

A ball that flies straight and is reflected at the walls visits the cone, cut by the unit ball, evenly.  In values at
the points, d = y f and v = y df/dt, a flight ends at the nearest of the walls, t_i = -d_i / v_i for v_i < 0, and of the
sphere, ||f + t df|| = 1; the reflections are

    at point m        df <- df - 2 (v_m / k~_mm) y_m k~(x_m, .)            at the sphere       df <- df - 2 <f, df> f

and the centre is the average of the path over time, whose direction is that of the centre on the sphere, because the
ball cut by a cone is the same at every radius.  A random direction now and then keeps the path from being periodic.

With softness lambda > 0 the matrix is positive definite and every labelling can be separated: lambda is the size of
the training errors allowed.
"""

from typing import NamedTuple

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Stopped

NULL = 1e-12  # share of the largest eigenvalue below which a function is none
NEW_DIRECTION = 50  # bounces after which the ball starts anew in a random direction, all values computed anew


class Centre(NamedTuple):
    """Coefficients (n,) of the centre of mass, of norm one, and how many bounces it took."""

    coefficients: Array
    bounces: int
    stopped: Stopped


def solve(
    K: Array,
    y: Array,
    start: Array,
    *,
    bounces: int,
    random: np.random.Generator,
    monitor: Monitor | None = None,
) -> Centre:
    """Play from `start` (n,), coefficients of some f inside version space; K (n, n) is that of k~."""
    watch = listening(monitor)
    ball = _Ball(K, y, start, random)
    centre, played, stopped = np.zeros(y.size), 0, "converged"  # type: tuple[Array, int, Stopped]
    while played < bounces:
        if played % NEW_DIRECTION == 0:
            if not (watch.go_on() and watch.watch(played, np.nan, np.nan)):
                stopped = watch.stopped or "interrupted"
                break
            ball.throw()
        centre += ball.fly()
        played += 1
    if played == 0:
        centre = ball.position
    return Centre(centre / np.sqrt(max(float(centre @ (K @ centre)), np.finfo(float).tiny)), played, stopped)


class _Ball:
    """Position and direction by coefficients and by values at the points."""

    def __init__(self, K: Array, y: Array, start: Array, random: np.random.Generator) -> None:
        self.K, self.y, self.random = K, y, random
        self.position = 0.5 * start / np.sqrt(float(start @ (K @ start)))  # inside the unit ball
        self.last = -1  # the wall it comes from
        values, vectors = dense.eigen(K)
        kept = values > NULL * values[-1]
        self.spread = vectors[:, kept] / np.sqrt(values[kept])  # coefficients of an orthonormal basis of the functions

    def throw(self) -> None:
        """Start in a random direction of length one; values are free of rounding again."""
        drawn = self.random.standard_normal(self.spread.shape[1])
        self.direction = self.spread @ (drawn / np.linalg.norm(drawn))
        self.d = np.maximum(self.y * (self.K @ self.position), 0.0)
        self.v = self.y * (self.K @ self.direction)
        if self.last >= 0 and self.v[self.last] < 0.0:
            self._reflect(self.last)

    def fly(self) -> Array:
        """Fly to the next wall and be reflected there; the integral of the position over the time of flight."""
        square, along = self._norm(self.position, self.d), float((self.y * self.position) @ self.v)
        # ||f + t df|| = 1 with ||df|| = 1.
        to_sphere = -along + np.sqrt(max(along * along + 1.0 - square, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(self.v < 0.0, -self.d / self.v, np.inf)
        if self.last >= 0:
            times[self.last] = np.inf if self.v[self.last] >= 0.0 else times[self.last]
        wall = int(times.argmin())
        t = min(float(times[wall]), to_sphere)
        middle = self.position + 0.5 * t * self.direction
        self.position = self.position + t * self.direction
        self.d = np.maximum(self.d + t * self.v, 0.0)
        if times[wall] <= to_sphere:
            self.d[wall] = 0.0
            self._reflect(wall)
            self.last = wall
        else:
            along = float((self.y * self.position) @ self.v)
            self.direction = self.direction - 2.0 * along * self.position
            self.v = self.v - 2.0 * along * self.d
            self.last = -1
        return np.asarray(t * middle)

    def _reflect(self, m: int) -> None:
        share = 2.0 * float(self.v[m]) / float(self.K[m, m])
        self.direction[m] -= share * self.y[m]
        self.v = self.v - share * self.y * self.y[m] * self.K[m]

    def _norm(self, c: Array, values: Array) -> float:
        """||f||^2 = c'K c from the values y K c."""
        return float((self.y * c) @ values)
