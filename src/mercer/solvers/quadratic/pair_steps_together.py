"""Pair steps of a large problem on several cores: each member of a team has a part of the points.

The steps of `mercer.solvers.quadratic.pair_steps` on a stored matrix, to the last bit: what a step looks for, the
smallest gradient and then the largest gain, is found by each member among its own points and exchanged, and each member
updates the outputs of its own.  With 7,000 points a step reads half a megabyte, twice of it from memory, and takes ten
microseconds on one core; two meetings take one.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import threads
from mercer.arrays import Array
from mercer.compiled import borrowed, given_back, loop
from mercer.solvers.quadratic.analytic_step import pair_move
from mercer.solvers.quadratic.pair_steps import (
    CHUNK,
    NEVER,
    NOISE,
    layer_at,
    minimise_pairs,
    refresh,
    shift,
    smallest,
    steepest,
)
from mercer.teams import Team, meet

# A member has so many points at least: below, meetings take longer than steps.
FEWEST = 1024
# So many steps are taken alone before a team is called together, and then so many between two looks at the clock.
ALONE = 400
BURST, LONGEST_BURST = 1000, 50_000
# A team goes on while its steps take at most this share of the time that they take alone, or so many seconds in all.
WORTH = 0.9
SHORT = 1e-3
# After a team that was too slow some calls do without one: twice as many each time, up to these.
LONGEST_REST = 32
# Bursts are too short to tell slow progress from rounding.  After so many stretches of steps, over which
# `mercer.solvers.quadratic.pair_steps` can tell, one is taken alone.
STRETCHES = 10
# Steps on numbers of points that differ by no more than this share take about as long.
SIMILAR = 0.1


@loop
def team_steps(
    me: int, records: Any, K: Any, diagonal: Any, F: Any, s: Any, program: Any, offsets: Any, curvature: Any,
    tol: float, max_steps: int,
) -> tuple[int, float]:  # fmt: skip
    """Pair steps on K (n, n) until the violation is at most tol; F (n,) and the s (layers, n) of the first change.

    offsets (2, groups, n) and curvature (n,) are room that all share.
    """
    linear, ridge, lower, upper, group = program
    K, F, records = borrowed(K), borrowed(F), borrowed(records)
    offsets, curvature = borrowed(offsets), borrowed(curvature)
    members = records.shape[1]
    n, groups = F.shape[0], offsets.shape[1]
    units = (n + CHUNK - 1) // CHUNK
    a, b = min(n, CHUNK * (units * me // members)), min(n, CHUNK * (units * (me + 1) // members))
    rise, fall = offsets[0], offsets[1]
    for k in range(a, b):
        refresh(program, s, rise, fall, k)
        curvature[k] = diagonal[k] + ridge[0, k]
    # Everybody keeps account of all variables: a step needs those of two points, whoever they belong to.
    own = s if me == 0 else s.copy()
    found, best = records[0], records[1]
    room = np.empty(CHUNK, np.float32)
    gains = borrowed(room)
    steps = 0
    epoch = 0
    stretch = 10 * n + 10_000
    gained = 0.0
    for k in range(n):
        for l in range(s.shape[0]):
            gained -= s[l, k] * (0.5 * F[k] + linear[l, k] + 0.5 * ridge[l, k] * s[l, k])
    gained = gained_before = abs(gained)
    part = F[a:b]
    while True:
        violation = -1.0
        i = j = g = 0
        level = lift = drop = height = 0.0
        for h in range(groups):
            epoch += 1
            lowest, at = smallest(part, rise[h][a:b])
            found[me, 1], found[me, 2], found[me, 3] = lowest, a + at, rise[h, a + at]
            meet(records, 0, me, epoch)
            lowest = 2.0 * NEVER
            base = 0.0
            at = 0
            for other in range(members):
                if found[other, 1] < lowest:
                    lowest, at, base = found[other, 1], np.int64(found[other, 2]), found[other, 3]
            if lowest > 0.5 * NEVER:
                best[me, 1] = -1.0
                meet(records, 1, me, epoch)
                continue
            curve = np.float32(diagonal[at] + ridge[0, at])
            gain, partner, widest = steepest(part, fall[h][a:b], K[at][a:b], curvature[a:b], curve, lowest, gains)
            partner += a
            best[me, 1], best[me, 2], best[me, 3] = gain, partner, widest
            best[me, 4], best[me, 5] = F[partner], fall[h, partner]
            meet(records, 1, me, epoch)
            gain = np.float32(-2.0)
            widest = -NEVER
            value = down = 0.0
            for other in range(members):
                widest = max(widest, best[other, 3])
                if best[other, 1] > gain:
                    gain, partner = np.float32(best[other, 1]), np.int64(best[other, 2])
                    value, down = best[other, 4], best[other, 5]
            if widest > violation:
                violation = widest
                i, j, g, level, lift, drop, height = at, partner, h, lowest, base, down, value
        if violation <= tol or steps >= max_steps:
            break
        li = layer_at(linear, ridge, upper, own, group, g, i, lift)
        lj = layer_at(linear, ridge, lower, own, group, g, j, drop)
        bend, other_bend = diagonal[i] + ridge[li, i], diagonal[j] + ridge[lj, j]
        room_up = upper[li, i] - own[li, i]
        room_down = own[lj, j] - lower[lj, j]
        step, won = pair_move(height + drop, level, bend, other_bend, K[i, j], room_up, room_down)
        own[li, i] = upper[li, i] if step >= room_up else own[li, i] + step
        own[lj, j] = lower[lj, j] if step >= room_down else own[lj, j] - step
        shift(part, K[i][a:b], K[j][a:b], step)
        if a <= i < b:
            refresh(program, own, rise, fall, i)
        if a <= j < b:
            refresh(program, own, rise, fall, j)
        gained += won
        steps += 1
        if steps % stretch == 0:
            if gained - gained_before <= NOISE * gained:
                break
            gained_before = gained
    given_back(room)
    return steps, max(violation, 0.0)


class Crew:
    """Takes pair steps alone or together, whichever is faster at the time; remembers how it went.

    The steps are the same, so that what is faster, which other work on the machine decides, changes no result.
    """

    def __init__(self) -> None:
        self._resting, self._rest = 0, 1
        self._alone, self._points = 0.0, 0  # seconds of a step alone, on so many points

    def minimise(
        self, K: Any, diagonal: Array, F: Array, s: Array, program: Any, groups: int, tol: float, most: int
    ) -> tuple[int, float]:
        """As `minimise_pairs` on a matrix K (n, n)."""
        n = s.shape[1]

        def alone(most: int) -> tuple[int, float]:
            return minimise_pairs(K, (0, n, n), diagonal, F, s, program, groups, tol, most)

        members = min(threads.count(), n // FEWEST)
        if members < 2 or self._resting > 0:
            self._resting -= 1
            return alone(most)
        steps, violation, burst = 0, np.inf, BURST
        if abs(n - self._points) > SIMILAR * n:
            steps, violation = self._measured(alone, n, min(most, ALONE))
            if steps < min(most, ALONE) or violation <= tol:
                return steps, violation
        offsets, curvature = np.empty((2, groups, n)), np.empty(n, np.float32)
        stretch = 10 * n + 10_001
        looked = steps
        while steps < most:
            if steps - looked > STRETCHES * stretch:
                asked = min(stretch, most - steps)
                done, violation = alone(asked)
                steps += done
                looked = steps
                if done < asked:
                    break
                continue
            began, asked = time.perf_counter(), min(burst, most - steps)
            shared = (K, diagonal, F, s, program, offsets, curvature, tol, asked)
            done, violation = Team(members).run(team_steps, 2, *shared)
            steps += done
            fast = time.perf_counter() - began <= max(WORTH * self._alone * done, SHORT)
            self._rest = 1 if fast else min(LONGEST_REST, 2 * self._rest)
            if done < asked:
                break
            if not fast:
                self._resting, self._points = self._rest, 0
                done, violation = alone(most - steps)
                return steps + done, violation
            burst = min(LONGEST_BURST, 4 * burst)
        return steps, violation

    def _measured(self, alone: Callable[[int], tuple[int, float]], n: int, most: int) -> tuple[int, float]:
        """A few steps alone, to see how long they take."""
        began = time.perf_counter()
        steps, violation = alone(most)
        if steps:
            self._alone, self._points = (time.perf_counter() - began) / steps, n
        return steps, violation
