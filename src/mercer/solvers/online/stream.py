"""Machines that learn a stream of points in fixed memory (Schoelkopf and Smola 2002, section 10.6.3).

Each point is seen once: it is predicted, counted, and becomes a term of the expansion where its rule says so.  Points
come in blocks, so that kernel values are computed many at a time; the result is that of one point after the other.
What is held are the newest `budget` terms and the kernel values of one block with them.

There is no certificate: a stream has no set of points whose objective could be bounded.  What is known instead is the
mean loss of all points before they were learnt, an honest estimate for a target that stays, and how much the terms that
were dropped can matter.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.arrays import Array
from mercer.errors import BudgetTooSmall
from mercer.gram import KernelColumns, size, take
from mercer.resources import show
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.online.passing import learn_block
from mercer.solvers.online.rules import Rule
from mercer.solvers.online.schedules import Schedule
from mercer.solvers.online.truncation import forgotten

Index = NDArray[np.int64]

BLOCK = 256  # points whose kernel values are computed at a time, unless memory allows fewer
MOST_TERMS = 1 << 20  # where only memory bounds their number
NOTHING = 1.0  # in the place of a logarithm of decays, which is never positive: no term was dropped
TINY = 1e-300  # where no weight was seen yet
COPIES = 3  # of the points: the terms, terms and block together, and the form in which kernel values are computed


@dataclass(eq=False)
class Stream:
    """k outputs on one expansion, and how they learn."""

    kernel: Any
    rule: Rule
    schedule: Schedule
    outputs: int
    budget: int
    nu: float = 0.0
    biased: bool = True
    width: Array = field(default_factory=lambda: np.zeros(1))
    """rho, eps or sigma of each output (k,)."""
    dtype: Any = np.float64
    block: int = BLOCK

    points: Any = None
    """The terms, oldest first: (T, d) dense or CSR, or a list of objects; None before the first block."""
    numbers: Index = field(default_factory=lambda: np.empty(0, np.int64))
    """Their places in the stream (T,)."""
    seen: int = 0
    """Points that came, those of weight zero included."""

    def __post_init__(self) -> None:
        k = self.outputs
        self.width = np.broadcast_to(self.width, k).astype(np.float64)
        self.coefficients = np.empty((k, 0))
        self.bias = np.zeros(k)
        self.births = np.empty(0)
        self.lengths = np.empty(0)
        self.totals = np.zeros((k, 4))
        self.clock = np.array([0.0, 0.0, NOTHING, 0.0])
        self.radius = 0.0  # the largest sqrt(k(x, x)) that was seen

    # Learning ------------------------------------------------------------------------------------------------------

    def learn(
        self, X: Any, targets: Array, weights: Array, monitor: Monitor | None = None, order: Index | None = None
    ) -> bool:
        """Learn points X, with targets (k, n) and weights (n,); False where the monitor ended it.

        They are learnt in their order, or as `order` (p,) names them, a point as often as it is there.
        """
        watched = listening(monitor)
        reported = time.perf_counter()
        before, steps = self.seen, size(X) if order is None else len(order)
        for start in range(0, steps, self.block):
            stop = min(steps, start + self.block)
            rows = np.arange(start, stop) if order is None else order[start:stop]
            part: Any = slice(start, stop) if order is None else rows
            self._learn_block(take(X, part), targets[:, part], weights[part], before + rows)
            self.seen = before + (stop if order is None else size(X))
            if watched.due(reported):
                reported = time.perf_counter()
                watched.watch(self.steps, self.mean_loss, math.nan, terms=len(self.numbers))
            if not watched.go_on():
                return False
        return True

    def _learn_block(self, X: Any, targets: Array, weights: Array, numbers: Index) -> None:
        rows = size(X)
        X = X if self.points is None else _in_form_of(self.points, X)
        together = X if self.points is None else _joined(self.points, X)
        values = KernelColumns(self.kernel, together, self.dtype).values(X)
        old = len(self.numbers)
        own = np.asarray(values[np.arange(rows), old + np.arange(rows)], dtype=np.float64)
        lengths = np.concatenate([self.lengths, np.sqrt(np.maximum(own, 0.0))])
        self.radius = max(self.radius, float(lengths.max()))
        births = np.concatenate([self.births, np.zeros(rows)])
        c = np.hstack([self.coefficients, np.zeros((self.outputs, rows))])
        alive = np.arange(old + rows) < old
        schedule = (self.schedule.shape, self.schedule.rate, self.schedule.regularisation)
        learn_block(
            int(self.rule), schedule, self.nu, self.biased, self.budget, values, np.ascontiguousarray(targets), weights,
            c, births, lengths, alive, self.bias, self.width, self.totals, self.clock,
        )  # fmt: skip
        kept = np.flatnonzero(alive)
        self.points = take(together, kept)
        numbers = np.concatenate([self.numbers, numbers])
        self.numbers, self.births, self.lengths = numbers[kept], births[kept], lengths[kept]
        self.coefficients = np.ascontiguousarray(c[:, kept])

    # What is known -------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Points that were learnt."""
        return int(self.clock[0])

    @property
    def mean_loss(self) -> float:
        """Mean loss of the points before they were learnt, summed over the outputs."""
        return float((self.totals[:, 1] / np.maximum(self.totals[:, 0], TINY)).sum())

    @property
    def mistakes(self) -> float:
        """Share of points that were predicted wrongly, novel, or beyond the width, before they were learnt."""
        return float(self.clock[3] / max(self.totals[0, 0], TINY))

    def count_anew(self) -> None:
        """Forget losses and mistakes, not what was learnt from them."""
        self.totals[:, :2] = self.clock[3] = 0.0

    @property
    def truncation_error(self) -> float:
        """Bound on ||f - f_kept|| by the coefficients that were dropped, each multiplied by the decays since."""
        return float(self.totals[:, 2].max(initial=0.0))

    @property
    def truncation_bound(self) -> float:
        """The bound of proposition 10.8 on the same, from the age of the newest term that was dropped."""
        if self.clock[2] == NOTHING:
            return 0.0
        if self.schedule.regularisation == 0.0:
            return self.truncation_error
        product, cut = self.clock[1], self.clock[2]
        slope, radius = float(self.totals[:, 3].max()), self.radius
        return forgotten(self.schedule.regularisation, product - cut, product, slope, radius)


def _in_form_of(old: Any, new: Any) -> Any:
    """New points, dense or CSR as the terms are."""
    if isinstance(new, list) or sp.issparse(old) == sp.issparse(new):
        return new
    return type(old)(new) if sp.issparse(old) else new.toarray()


def _joined(old: Any, new: Any) -> Any:
    """Points one after the other."""
    if isinstance(new, list):
        return [*old, *new]
    return sp.vstack([old, new], format="csr") if sp.issparse(new) else np.concatenate([old, new])


def room(budget: int | None, d: int, memory: int) -> tuple[int, int]:
    """Terms and rows of a block that fit in `memory` bytes, for points of d numbers; refused if too few."""
    row = 8 * COPIES * (d + 1)

    def needed(terms: int, rows: int) -> int:
        return row * (terms + rows) + 8 * rows * (terms + rows)

    terms = budget if budget is not None else min(MOST_TERMS, max(1, memory // (row + 8 * 16) - 32))
    rows = BLOCK
    while rows > 1 and needed(terms, rows) > memory:
        rows //= 2
    if needed(terms, rows) > memory:
        raise BudgetTooSmall(
            f"{terms} terms of {d} numbers need {show(needed(terms, 1))}, and the budget is {show(memory)}: lower "
            "budget, or raise memory"
        )
    return terms, rows
