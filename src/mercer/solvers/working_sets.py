"""The one engine of working sets, for every dual that is optimised a few points at a time.

    repeat   survey all points for violations of the optimality conditions
             choose a working set W, optimise the variables of W with all others fixed
             carry the change to the outputs F = K c of all points
    until    the violation, or the relative duality gap, is small enough, in exact arithmetic

(Osuna, Freund and Girosi 1997; Rifkin 2002, section 2.4; Schoelkopf and Smola 2002, section 10.4.)  The cost of a
round is |changed| n kernel values, so what counts is how often a support vector must change before it is right.
Taking the worst violators, as the literature does, wastes rounds: they are neighbours of one another, and once a few
have moved the rest are satisfied.  Here the set is a *random sample* of all violators, together with the worst ones
(which prove convergence), the still free points of the last set and, where nearly all violate in one direction and sums
are fixed, others that can take up what they give away; far fewer values are needed: 1.2 to 2.3 times the
floor n x (number of support vectors) on a9a, ijcnn1 and covtype, whose support vectors are mostly bounded.

Rounds, sampling, patience, limits, reports, checkpoints, verification in float64 and the final certificate are here,
once.  What differs between problems is a `Strategy`: what is violated, how the variables of a set are optimised, and
what certificate its problem has.  A new machine with a dual of its own is a new strategy.
"""

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.gram import finer
from mercer.problems.certificate import SCALED_FROM, Certificate, Uncertainty
from mercer.solvers.contract import step_limit
from mercer.solvers.monitor import SILENT, Monitor
from mercer.solvers.solution import Record, Solution, Stopped
from mercer.solvers.verification import negligible

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Up to so many points the working set is everything.
WHOLE = 1400
WORKING_SET = 1024
LARGEST_WORKING_SET = 8192
# The rows of more points than NEAR are in no cache: a step took 2.1 microseconds on 4,096 points and 9.5 on 7,373 (AMD
# EPYC, 32 MB).  Where the points of a set take more than SHORT steps each, time goes into steps: sets stay below NEAR.
NEAR = 4096
SHORT = 1
# A working set is solved to this share of the present violation: further digits are undone by the next set.
INNER = 0.1
STEPS_PER_POINT = 60
# So many rounds that lower neither violation nor gap by a twentieth, nor the objective by this share (for kernel values
# of so many bytes), are numerical noise.
PATIENCE = 60
PROGRESS = {4: 1e-9, 8: 1e-13}
# Steps on all points run in slices of so many values of rows, a tenth of a second, between which the monitor is asked.
VALUES_PER_SLICE = 60_000_000
VALUES_OF_A_STEP = 80  # what a step takes beside its row: five million steps on 4 points took 2.2 seconds
SHORTEST_SLICE, LONGEST_SLICE = 1000, 10_000_000
ROUNDS_BETWEEN_SCALES = 8  # of checks of the gap that look for a better multiple of the function too
# A report is followed by a silence of so many times what it took, unless somebody asked to hear of every round.
QUIET = 10
# After so many passes in float64 that did not suffice the kernel values are kept in float64 too.
REFINEMENTS = 6


def steps_of_a_slice(n: int) -> int:
    """Steps on n points between two questions to the monitor."""
    return max(SHORTEST_SLICE, VALUES_PER_SLICE // (n + VALUES_OF_A_STEP))


class Strategy(Protocol):
    """One kind of problem, with its present variables and the outputs F = K c at all n points."""

    name: str
    gram: Any
    n: int
    exact: bool
    """Whether the outputs at the start were computed in float64."""
    violation: float
    """The largest violation that the last survey, or the last steps on all points, have seen."""
    kernel_values: int
    """How many kernel values were asked for."""
    largest_set: int
    """The most points that a working set may grow to."""
    finishes: bool
    """Whether steps on all points lead to the optimum itself, with nothing to survey between them."""

    def at_once(self) -> bool:
        """Whether to work on all points from the start."""

    def goes_whole(self, short: bool, steps: float) -> bool:
        """Whether to take steps on all points where free points crowd a working set.

        `short`: its points took about one step each; `steps` were taken in all for each point of the problem.
        """

    def survey(self) -> None:
        """Look at all points: sets `violation` and what the four methods below answer from."""

    def distances(self) -> tuple[float, ...]:
        """What falls to zero towards the optimum: the violation, and the gap where a survey gives it."""

    def objective(self) -> float:
        """The value that every step lowers."""

    def violators(self) -> Index:
        """Points that violate the optimality conditions, from which the working set is drawn."""

    def counterparts(self) -> Index:
        """Points that violators need beside them to move, where those themselves do not do."""

    def worst(self) -> Index:
        """Points that are always in the working set."""

    def free(self, points: Index) -> NDArray[np.bool_]:
        """Which of these points have a variable strictly inside its bounds."""

    def solve(self, W: Index | None, tol: float, most: int) -> tuple[int, float]:
        """Steps on the points W (None: all) until their violation is at most tol, and the outputs of all points.

        Returns the number of steps, at most `most`, and the violation left on W.
        """

    def settle(self) -> bool:
        """Make exactly true what the steps reach only in the limit; whether anything moved."""

    def certificate(self, aim: float | None = None, uncertainty: Uncertainty | None = None) -> Certificate:
        """The certificate at the present point; without `uncertainty` the cheapest one that holds."""

    def predicted(self, steps: int, dtype: Any) -> Uncertainty:
        """What rounding in `dtype` lets one expect of outputs built up in so many steps (0: computed at once)."""

    def sampled(self, seed: int) -> Uncertainty | None:
        """What a random sample of outputs, computed again in float64, shows; None where none is taken."""

    def recompute(self) -> None:
        """The outputs from the coefficients, in float64."""

    def use(self, gram: Any) -> None:
        """Go on with another operator for the same kernel values."""

    def coefficients(self) -> Array:
        """Expansion coefficients (n,) or (n, k)."""

    def variables(self) -> Array:
        """The variables, in the shape the problem has them."""

    def expansion(self) -> Array:
        """K c at the training points, without any bias."""

    def facts(self) -> dict[str, Any]:
        """What a strategy has to tell of its work besides."""


class Search:
    """One solve: a strategy, and what has been spent on it.

    It ends at a violation of at most `tol` or, where `gap_tol` is given, at a relative gap of at most that; a problem
    whose violation has no tolerance has tol = None.  Where `tol` is met, `tightened` says what it is at that point.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        tol: float | None,
        gap_tol: float | None,
        monitor: Monitor,
        seed: int,
        tightened: Callable[[], float] | None = None,
    ) -> None:
        self.tightened = tightened
        self.strategy, self.tol, self.gap_tol, self.monitor, self.seed = strategy, tol, gap_tol, monitor, seed
        self.aim = SCALED_FROM if gap_tol is None else gap_tol
        self.began = self.reported = time.perf_counter()
        self.history: list[Record] = []
        self.steps = self.rounds = 0
        self.size = 0
        self.fixed: int | None = None
        self.last: Index = np.empty(0, dtype=np.intp)
        self.confirmed: Certificate | None = None  # that of the last point, once nothing moves any more
        # Numbers of steps when the outputs were last computed in float64, and when the point was last settled.
        self.exact_at = 0 if strategy.exact else -1
        self.settled_at = -1
        self.refreshed = 0
        self.stalled_at = np.inf
        self.patience = Patience(strategy.gram.dtype)

    @cached_property
    def random(self) -> np.random.Generator:
        """What working sets are drawn with; a search on all points at once needs none."""
        return np.random.default_rng(self.seed)

    def run(self, max_iter: int = -1, working_set: int | None = None) -> Solution:
        """Rounds until convergence in exact arithmetic, a limit or an interruption.

        `max_iter` bounds the number of steps (-1: no bound), `working_set` fixes the number of points worked on.
        """
        stopped = self.rounds_until(max_iter, working_set)
        while not self._confirmed(stopped):
            if self.exact_at == self.steps:  # what was noise may be progress from exact values
                self.patience = Patience(self.strategy.gram.dtype)
            stopped = self._search(step_limit(max_iter))
        solution = self.solution(stopped)
        if self.monitor.has_callbacks and self.monitor.stopped is None:
            last = solution.history[-1]
            self.monitor.watch(last.iteration, last.primal, last.dual, snapshot=lambda: solution, **last.facts)
        return solution

    # Rounds ----------------------------------------------------------------------------------------------------

    def rounds_until(self, max_iter: int = -1, working_set: int | None = None) -> Stopped:
        """Rounds until the outputs, as they are, say that nothing is left to do: no certificate is made."""
        self.fixed = working_set
        self.size = working_set or (self.strategy.n if self.strategy.at_once() else WORKING_SET)
        return self._search(step_limit(max_iter))

    def _search(self, limit: int) -> Stopped:
        """Rounds until the outputs, as they are, say that nothing is left to do."""
        strategy = self.strategy
        while True:
            everything = self.size >= strategy.n
            if everything and strategy.finishes:
                return self._finish(limit)
            strategy.survey()
            if self._converged():
                return "converged"
            if strategy.violation == 0.0 or self.patience.exhausted(strategy.distances(), strategy.objective()):
                return "stalled"
            if self.steps >= limit:
                return "iterations"
            if not self._report():
                return self.monitor.stopped or "interrupted"
            W, crowded = (None, False) if everything else self._choose()
            points = strategy.n if W is None else W.size
            inner = max(0.5 * (self.tol or 0.0), INNER * strategy.violation)
            done, _ = strategy.solve(W, inner, int(min(STEPS_PER_POINT * points, limit - self.steps)))
            self.steps += done
            self.rounds += 1
            if crowded and self.fixed is None:
                self._grow(done / points)

    def _finish(self, limit: int) -> Stopped:
        """Steps on all points at once, in slices between which the monitor is asked."""
        strategy = self.strategy
        slice_steps = LONGEST_SLICE
        if self.monitor is not SILENT:
            slice_steps = steps_of_a_slice(strategy.n)
        while True:
            tol = self.tol or 0.0
            most = int(min(slice_steps, limit - self.steps))
            done, strategy.violation = strategy.solve(None, tol, most)
            self.steps += done
            self.rounds += 1
            if self._converged():
                return "converged"
            if self.steps >= limit:
                return "iterations"
            if strategy.violation <= tol and self.tol is not None and self.tol < tol:  # it was tightened
                continue
            if done < most or self.patience.exhausted(strategy.distances(), strategy.objective()):
                return "stalled"
            if not self._report():
                return self.monitor.stopped or "interrupted"

    def _choose(self) -> tuple[Index, bool]:
        """Working set: free points of the last one, the worst, and a sample of all violators.

        Also says whether the free points had to be cut to half of the set, which then is too small.
        """
        strategy, size = self.strategy, self.size
        chosen = np.zeros(strategy.n, dtype=bool)
        free = self.last[strategy.free(self.last)]
        crowded = free.size > size // 2
        if crowded:
            free = self.random.choice(free, size // 2, replace=False, shuffle=False)
        chosen[free] = True
        chosen[strategy.worst()] = True
        found, others = strategy.violators(), strategy.counterparts()
        if others.size:
            room = size - int(np.count_nonzero(chosen))
            self._draw(others, max(0, min(found.size, room // 2)), chosen)
        self._draw(found, max(1, size - int(np.count_nonzero(chosen))), chosen)
        self.last = np.flatnonzero(chosen)
        return self.last, crowded

    def _draw(self, points: Index, most: int, chosen: NDArray[np.bool_]) -> None:
        """Choose a random sample of at most so many points."""
        if points.size > most:
            points = self.random.choice(points, most, replace=False, shuffle=False)
        chosen[points] = True

    def _grow(self, steps: float) -> None:
        """A larger set, or all points, where free points crowd this one, whose points took `steps` steps each."""
        strategy = self.strategy
        short = steps <= SHORT
        large = self.size >= NEAR // 2
        if large and strategy.finishes and strategy.goes_whole(short, self.steps / strategy.n):
            self.size = strategy.n
        else:
            largest = strategy.largest_set if short else max(self.size, min(NEAR, strategy.largest_set))
            self.size = min(largest, strategy.n, self.size + self.size // 2)

    def _converged(self) -> bool:
        """Whether violation or gap are small enough at the outputs as they are."""
        violation = self.strategy.violation
        if self.gap_tol is None:
            if self.tol is not None and violation <= self.tol and self.tightened is not None:
                self.tol = min(self.tol, self.tightened())
            return self.tol is not None and violation <= self.tol
        # Away from the optimum a better multiple of the function closes little, and looking for it costs several
        # certificates.
        near = (self.tol is not None and violation <= self.tol) or self.rounds % ROUNDS_BETWEEN_SCALES == 0
        return self.strategy.certificate(self.gap_tol if near else None).converged(self.gap_tol)

    # What is true in exact arithmetic --------------------------------------------------------------------------

    def _confirmed(self, stopped: Stopped) -> bool:
        """Find out how far F is from K c, and compute it again in float64 where that matters; whether to stop.

        The steps go on from the exact values in the precision they had: what they add is off by their own size only,
        so that each time the error falls by a factor.  Where it does not, or errors are larger than rounding explains
        (a narrow kernel, points far from their centre), the kernel values become float64.
        """
        strategy = self.strategy
        self.confirmed = None
        if self._settle() and stopped == "converged":
            return False
        doubt = self._doubt()
        if self.exact_at == self.steps or not hasattr(strategy.gram, "exact_dot"):
            return True
        double = strategy.gram.dtype == np.float64
        if double and self._negligible(doubt):
            return True
        sampled = strategy.sampled(self.seed)
        if (sampled is not None and self._negligible(sampled)) or stopped in ("time", "interrupted"):
            self.confirmed = self.confirmed or strategy.certificate(self.aim, sampled or doubt)
            return True
        self.exact_at = self.steps
        strategy.recompute()
        self.refreshed += 1
        if stopped == "iterations" or self.refreshed > 2 * REFINEMENTS:
            return True
        if stopped == "stalled" and double:
            # Exact values may take a search further that had stalled, but not twice to the same violation.
            again, self.stalled_at = strategy.violation > 0.5 * self.stalled_at, strategy.violation
            return again
        coarse = sampled is not None and sampled.level > doubt.level
        if not double and (coarse or stopped == "stalled" or self.refreshed > REFINEMENTS):
            return not self._switch_to_double() and self.refreshed > REFINEMENTS
        return False

    def _settle(self) -> bool:
        """Settle a point that has moved since; whether that changed it."""
        if self.settled_at == self.steps:
            return False
        self.settled_at = self.steps
        moved = self.strategy.settle()
        if moved:
            self.exact_at = -1
        return moved

    def _doubt(self) -> Uncertainty:
        """What rounding lets one expect of the outputs as they came about."""
        steps = self.steps - self.exact_at
        return self.strategy.predicted(steps, self.strategy.gram.dtype if steps else np.float64)

    def _negligible(self, doubt: Uncertainty) -> bool:
        """Whether the doubt about F leaves the violation and the gap as they are."""
        found = self.strategy.certificate(self.aim, doubt)
        plain, size = found.gap - found.arithmetic, max(abs(found.primal), abs(found.dual))
        if self.gap_tol is not None and plain <= self.gap_tol * size < found.gap:
            return False
        level, tol = (0.0, self.aim) if self.tol is None else (doubt.level, self.tol)
        if not negligible(level, found.arithmetic, plain, size, tol):
            return False
        self.confirmed = found
        return True

    def _switch_to_double(self) -> bool:
        """Kernel values in float64 from now on, in the memory that those in float32 had; whether there are any."""
        gram = finer(self.strategy.gram)
        if gram is not None:
            self.strategy.use(gram)
        return gram is not None

    # What comes out --------------------------------------------------------------------------------------------

    def _report(self) -> bool:
        """Tell the monitor, at most a few times a second unless it has callbacks; whether to go on."""
        if not self.monitor.due(self.reported):
            return self.monitor.go_on()
        began = time.perf_counter()
        record = self._record(self.strategy.certificate())
        self.history.append(record)
        ended = time.perf_counter()
        self.reported = ended + QUIET * (ended - began)
        return self.monitor.watch(
            record.iteration,
            record.primal,
            record.dual,
            snapshot=lambda: self.solution("interrupted"),
            **record.facts,
        )

    def _record(self, certificate: Certificate) -> Record:
        """The present point as a line of the history."""
        coefficients = self.strategy.coefficients()
        support = np.count_nonzero(coefficients if coefficients.ndim == 1 else coefficients.any(axis=1))
        facts = {"violation": self.strategy.violation, "support": int(support)}
        seconds = time.perf_counter() - self.began
        return Record(self.steps, seconds, certificate.primal, certificate.dual, certificate.gap, facts)

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        strategy = self.strategy
        if self._settle() or self.confirmed is None:
            certificate = strategy.certificate(self.aim, self._doubt())
        else:
            certificate = self.confirmed
        return Solution.certified(
            certificate,
            strategy.coefficients(),
            strategy.variables(),
            solver=strategy.name,
            iterations=self.steps,
            stopped=stopped,
            seconds=time.perf_counter() - self.began,
            history=(*self.history, self._record(certificate)),
            details={
                "f0": strategy.expansion(),
                "violation": strategy.violation,
                "rounds": self.rounds,
                "kernel_values": strategy.kernel_values,
                "float64_passes": self.refreshed,
                **strategy.facts(),
            },
        )


class Patience:
    """Tells slow progress from numerical noise."""

    def __init__(self, dtype: Any) -> None:
        self.progress = PROGRESS[np.dtype(dtype).itemsize]
        self.best: Array | None = None
        self.lowest, self.waited = np.inf, 0

    def exhausted(self, distances: tuple[float, ...], objective: float) -> bool:
        """Take note of a round; whether too many in a row have gained nothing, or numbers have overflowed."""
        if not np.isfinite(objective):
            return True
        now = np.array(distances)
        best = np.full(now.size, np.inf) if self.best is None else self.best
        fallen = objective < self.lowest - self.progress * abs(objective)
        self.waited = 0 if fallen or (now < 0.95 * best).any() else self.waited + 1
        self.best, self.lowest = np.minimum(best, now), min(self.lowest, objective)
        return self.waited > PATIENCE
