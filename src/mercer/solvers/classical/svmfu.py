"""SvmFu (Rifkin 2002, section 2.4): chunks large enough for the free support vectors, and a queue of all other points.

The inner algorithm solves the program of the chunk W with all other variables fixed (`svmfu_chunk`).

Outer algorithm: with f and the threshold theta of the last chunk the slack of a variable says how far it is from
violating,

    slack_k = min( rise_k - theta  where it may rise,   theta - fall_k  where it may fall ),

y f - 1 at alpha = 0 and 1 - y f at alpha = C.  All points outside wait in a queue, the smallest slack last seen first.
They are looked at in this order until all are seen, or R = max(chunk - #free - 200, 100) violators are found, or 200
more have been seen since the first violator (of the two readings of the text, the total).  Violators enter W, in the
place of those whose slack is largest; the others go back with their new slack.  Points far from the margin are hardly
ever looked at: soft shrinking.  A pass over all points without a violator is the end.  Where no step could be made on a
chunk, as may happen when it is smaller than the number of free support vectors, the maximal violating pair of all
points enters.

Explicit shrinking drops a point for good after so many looks in a row without a violation, and loses the guarantee; all
that were dropped are looked at again at the end, unless the user does not want it.

Outputs of a point outside are brought up to date when it is looked at, from the differences of the coefficients since
it was seen last (Schoelkopf and Smola 2002, section 10.1.3).
"""

import heapq
from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.resources import parse
from mercer.solvers.classical import keerthi
from mercer.solvers.classical.chunk_cache import ChunkCache
from mercer.solvers.classical.dual import ClassicalDual, Given, Limits, Stated, descend
from mercer.solvers.classical.row_cache import budget_for
from mercer.solvers.classical.signed import NEVER, Signed, slope_offsets
from mercer.solvers.classical.steps import State
from mercer.solvers.classical.svmfu_chunk import Chunk
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.solution import Solution

NAME = "svmfu"
ACCEPTS = "boxes and fixed sums of groups of variables, at least one sum, one variable on each point"
SECTION = "Rifkin 2002, section 2.4"

CHUNK = 2000  # section 2.6: start here, and enlarge it where free support vectors are evicted
NEAR = 200  # places kept for points near the margin, and looks after the first violator
LEAST = 100  # violators that may enter at a time, however many free support vectors there are
TOGETHER = 128  # points whose outputs are brought up to date at a time


def accepts(problem: Any) -> Acceptance:
    """Problems with sums to keep, and one variable, or two of opposite sign and one sum, on a point."""
    answer = keerthi.accepts(problem)
    if not answer:
        return answer
    program = problem.program() if isinstance(problem, Problem) else problem
    if Signed.of(program).point.size != program.n:
        return Acceptance(False, "two variables of different sums sit on a point: use 'smo'")
    return answer


def solve(
    problem: Stated,
    *,
    seed: int = 0,
    chunk: int | None = None,
    drop_after: int | None = None,
    final_check: bool = True,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    `chunk` points are worked on at a time, 2,000 where the budget allows; what is left of `memory` is for values of
    points outside.  `drop_after`: looks in a row without a violation after which a point is dropped (None: never);
    `final_check`: look at these again before the end.  `seed` orders points that were never looked at.
    """
    if chunk is not None and chunk < 2:
        raise InvalidInput(f"chunk must be at least 2, got {chunk}")
    if drop_after is not None and drop_after < 1:
        raise InvalidInput(f"drop_after must be at least 1, or None for never, got {drop_after}")
    require(accepts(problem), NAME)
    return descend(SvmFu, problem, order=seed, chunk=chunk, drop_after=drop_after, final_check=final_check, **limits)


class SvmFu(ClassicalDual):
    """The chunk in places of a `ChunkCache`, a queue of the points outside, and outputs known as of some version."""

    name = NAME

    cache: ChunkCache

    def __init__(
        self, given: Given, *, order: int, chunk: int | None, drop_after: int | None, final_check: bool
    ) -> None:
        self.asked, self.drop_after, self.final_check = chunk, drop_after, final_check
        super().__init__(given)
        self.signed = Signed.of(self.program)
        self.u = self.signed.merged(self.flat)
        self.flat[:] = self.signed.split(self.u, self.N)
        self.rank = np.random.default_rng(order).permutation(self.n)
        self.theta = np.zeros(self.groups)
        self.goal = 0.5 * self.tol
        self.size = 0  # of the chunk
        self.chunks = self.examined = 0
        # The coefficients of the versions at which outputs were computed, and the version of each point's output.
        self.version, self.past = 0, {0: self.u.copy()}
        self.seen = np.zeros(self.n, dtype=np.int64)
        self.content = np.zeros(self.n, dtype=np.int64)  # looks in a row without a violation
        self.dropped = np.zeros(self.n, dtype=np.bool_)
        self.given_up = self.stuck = False
        self.value = super().objective()
        self.kept = super().certificate()
        self.queue: list[tuple[float, int, int]] = []
        self._wait(np.arange(self.n))

    def new_cache(self, gram: Any, constant: float) -> ChunkCache:
        """Both caches, in the budget."""
        budget = budget_for(gram) if self.memory is None else parse(self.memory)
        n, itemsize = int(gram.shape[0]), np.dtype(gram.dtype).itemsize
        fits = max(2, int((0.5 * budget / itemsize) ** 0.5))
        return ChunkCache(gram, constant, min(n, self.asked or min(CHUNK, fits)), budget)

    def facts(self) -> dict[str, Any]:
        """How many chunks were solved, and points looked at."""
        return {**super().facts(), "chunks": self.chunks, "examined": self.examined, "chunk": self.cache.points.size}

    # Outer algorithm -------------------------------------------------------------------------------------------

    def survey(self) -> None:
        """Look for violators outside the chunk; where there are none, at the violation of all points."""
        if self.stuck:
            self._enter_worst_pairs()
            return
        entering, worst = self._violators()
        if not entering.size and self.dropped.any():
            if self.final_check:
                back = np.flatnonzero(self.dropped)
                self.dropped[:] = False
                self._wait(back)
                entering, worst = self._violators()
            else:
                self.given_up = True
        if entering.size:
            self._enter(entering)
            self.violation = max(2.0 * worst, 1.5 * self.tol)
            return
        self._bring_up(np.arange(self.n))
        super().survey()

    def _enter_worst_pairs(self) -> None:
        """Let the maximal violating pair of each group enter, wherever it is: a chunk that holds it moves."""
        self.stuck = False
        self._bring_up(np.arange(self.n))
        super().survey()
        if self.violation <= self.tol:
            return
        for g, (low, _, high, _) in enumerate(self.extremes):
            if np.isfinite(low) and np.isfinite(high):
                self.theta[g] = 0.5 * (low + high)
        pairs = np.unique(self.worst())
        entering = pairs[self.cache.place[pairs] < 0]
        self.queue = [waiting for waiting in self.queue if waiting[2] not in entering]
        heapq.heapify(self.queue)
        self.dropped[entering] = False
        self._enter(entering, forced=True)

    def _violators(self) -> tuple[Index, float]:
        """Points outside that enter the chunk, and the worst violation among them."""
        W = self.cache.points[: self.size]
        rise, fall = slope_offsets(self.signed.part(W), self.u[W])
        chunk, loose = self.cache.points.size, int(np.count_nonzero(rise == fall))
        # In small chunks half stay, or violators would find no partner there.
        most = max(min(max(chunk - loose - NEAR, LEAST), max(chunk - loose, chunk // 2)), chunk - self.size)
        found: list[int] = []
        back: list[int] = []
        worst, looked, first = 0.0, 0, -1
        while self.queue and len(found) < most and (first < 0 or looked < first + NEAR):
            batch = np.array([heapq.heappop(self.queue)[2] for _ in range(min(TOGETHER, len(self.queue)))])
            self.cache.look(batch)
            self._bring_up(batch)
            slack = self._slack(batch)
            for at, (k, distance) in enumerate(zip(batch.tolist(), slack.tolist())):
                if len(found) >= most or (first >= 0 and looked >= first + NEAR):
                    self._wait(batch[at:])
                    break
                looked += 1
                if distance < -self.goal:
                    first = looked if first < 0 else first
                    found.append(k)
                    worst = max(worst, -distance)
                    self.content[k] = 0
                else:
                    back.append(k)
        self.examined += looked
        held = np.array(back, dtype=np.intp)
        self.content[held] += 1
        if self.drop_after is not None:
            gone = held[self.content[held] >= self.drop_after]
            self.dropped[gone] = True
            held = held[self.content[held] < self.drop_after]
        self._wait(held)
        return np.array(found, dtype=np.intp), worst

    def _enter(self, entering: Index, *, forced: bool = False) -> None:
        """Give violators places: free ones first, then those of the points with the largest slack."""
        cache = self.cache
        room = np.arange(self.size, min(cache.points.size, self.size + entering.size))
        needed = entering.size - room.size
        leaving = np.empty(0, dtype=np.intp)
        if needed > 0:
            slack = self._slack(cache.points[: self.size])
            leaving = np.argsort(-slack, kind="stable")[:needed]
            if not forced:  # none leaves that would violate at once
                leaving = leaving[slack[leaving] >= -self.goal]
            self._wait(cache.points[leaving])
        places = np.concatenate((room, leaving))
        cache.replace(places, entering[: places.size])
        self._wait(entering[places.size :])
        self.size = max(self.size, int(places.max(initial=-1)) + 1)

    def _slack(self, points: Index) -> Array:
        """How far variables (m,), whose outputs are up to date, are from violating at theta."""
        part, F = self.signed.part(points), self.F[points]
        rise, fall = slope_offsets(part, self.u[points])
        theta = self.theta[part.group]
        return np.asarray(np.minimum(F + rise - theta, theta - F - fall))

    def _wait(self, points: Index) -> None:
        """Put points in the queue with their slack as last seen."""
        for k, key in zip(points.tolist(), self._slack(points).tolist()):
            heapq.heappush(self.queue, (key, int(self.rank[k]), k))

    def _bring_up(self, points: Index) -> None:
        """Outputs of points at the present coefficients, from the differences since they were seen."""
        for version in np.unique(self.seen[points]):
            behind = points[self.seen[points] == version]
            if version != self.version:
                change = self.u - self.past[int(version)]
                moved = np.flatnonzero(change)
                for at in range(0, behind.size, TOGETHER):
                    some = behind[at : at + TOGETHER]
                    self.F[some] += self.cache.outside(some, moved).astype(np.float64) @ change[moved]
                self.seen[behind] = self.version

    # Chunks ----------------------------------------------------------------------------------------------------

    def advance(self, aim: float, most: int) -> int:
        """Solve the chunk to a violation of `aim`."""
        self.goal = aim
        if self.given_up or not self.size:
            return 0
        W = self.cache.points[: self.size].copy()
        part = self.signed.part(W)
        state = State(self.u[W], self.F[W], *slope_offsets(part, self.u[W]), np.zeros(1))
        chunk = Chunk(part, state, self.cache, self.diagonal[W], self.groups)
        # Those who violate theta by `aim` must find a partner in the chunk, all of which is closer to theta.
        chunk.solve(0.5 * aim, most)
        self.u[W], self.F[W] = state.u, state.F
        self.flat[:] = self.signed.split(self.u, self.N)
        self.value -= float(state.gained[0])
        self._thresholds(part, state)
        self._next_version(W)
        self.chunks += 1
        done = int(chunk.made[0])
        self.stuck = not done
        return done

    def _thresholds(self, part: Signed, state: State) -> None:
        """Set theta of each group: the mean of the free variables, else the middle of the two thresholds."""
        for g in range(self.groups):
            own = part.group == g
            loose = own & (state.rise == state.fall)
            if loose.any():
                self.theta[g] = float(np.mean((state.F + state.rise)[loose]))
                continue
            low = float(np.min((state.F + state.rise)[own], initial=NEVER))
            high = float(np.max((state.F + state.fall)[own], initial=-NEVER))
            ends = [end for end in (low, high) if abs(end) < NEVER]
            self.theta[g] = sum(ends) / len(ends) if ends else 0.0

    def _next_version(self, W: Index) -> None:
        """A new version of the coefficients, which the outputs of the chunk have; those nobody has are forgotten."""
        self.version += 1
        self.seen[W] = self.version
        self.past[self.version] = self.u.copy()
        for old in set(self.past).difference(np.unique(self.seen).tolist(), [self.version]):
            del self.past[old]

    # Certificates ----------------------------------------------------------------------------------------------

    def objective(self) -> float:
        """The value so far: outputs of points outside need not be up to date."""
        return self.value

    def settle(self) -> bool:
        """Bring all outputs up to date; nothing moves by it."""
        self._bring_up(np.arange(self.n))
        return False

    def certificate(self, aim: float | None = None, uncertainty: Uncertainty | None = None) -> Certificate:
        """That of the problem; for reports between two chunks the last one, whose bounds still hold."""
        if uncertainty is None and (self.seen != self.version).any():
            assert self.kept is not None
            return self.kept
        self.settle()
        self.kept = super().certificate(aim, uncertainty)
        return self.kept

    def recompute(self) -> None:
        """F in float64 at all points, at the present coefficients."""
        super().recompute()
        if hasattr(self, "past"):
            self.past = {self.version: self.u.copy()}
            self.seen[:] = self.version
            self.value = super().objective()

    def use(self, gram: Any) -> None:
        """Go on with another operator; the caches are filled again."""
        waiting = self.cache.points[: self.size].copy()
        super().use(gram)
        self.size = 0
        self._wait(waiting)
