"""The points a machine is trained on: distinct ones of positive weight, and their Gram operators.

A TrainingSet holds all the machine's training points in the form its kernel works on, and gives the Gram operator of
all of them or of a subset (a pair of classes, a fold).  Where the whole matrix is held, subsets are cut out of it, so
that each kernel value is computed once however many machines use it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.gram import Gram, GramOperator
from mercer.kernels import Kernel, Precomputed
from mercer.machine import definiteness
from mercer.machine.arguments import Kind, evaluate_all, is_linear, symmetrised, take
from mercer.machine.repeated_rows import DistinctRows
from mercer.planning import precision_for, thin_factor_pays
from mercer.planning.precision import EXACT
from mercer.resources import Resources

Index = NDArray[np.intp]

# Solvers of support vector machines that factorise the matrix, or its thin factor.
FACTORISING = ("interior_point", "lagrangian", "newton", "irwls")
SMALL_BUDGET = 1 << 28
SMALLEST_SHARE = 1 << 23  # bytes a machine that is trained beside others has for its own rows
SHARED_FROM_FEATURES = 64


class TrainingSet:
    """Points in training order, n of them in their working form, with the kernel between them.

    `rows` says which rows handed to `fit` they are (None: all, as given), `kept` are the positions of one row for each
    point.  `resources` bound the kernel values held; those of the set itself have the precision that was decided on.
    `largest` is about the largest coefficient the machines can have (C times a weight), `tol` their tolerance, and
    `machine` says how many of n points one of several small machines has that use parts of the matrix.
    """

    basis: NDArray[np.float64] | None = None
    """Values (n, q) of functions outside the norm at the points."""
    by_factor = False
    """Whether the solver works with a thin factor of the matrix where there is one, as a linear kernel has."""

    def __init__(
        self,
        kind: Kind,
        points: Any,
        rows: DistinctRows | None,
        kernel: Any,
        resources: Resources,
        largest: float = 1.0,
        tol: float = 1e-3,
        machine: Callable[[int], int | None] | None = None,
    ) -> None:
        self.kind = kind
        self.rows = rows
        self.kept = None if rows is None else rows.first
        self.kernel: Kernel = Precomputed() if kind in ("precomputed", "function") else kernel
        self.n = len(points) if isinstance(points, list) else int(np.shape(points)[0])
        self.points = evaluate_all(kernel, points, self.n, resources.memory) if kind == "function" else points
        self.shared = False
        self.reduction: Any = (
            None  # the low-rank kernel in the place of the exact one; see `mercer.machine.approximation`
        )
        self.rank: Index | None = None  # where each point lies in the matrix that `share` holds
        small = self.n <= EXACT
        precision = resources.precision
        if precision == "auto":
            precision = self._precision(largest, tol, None if machine is None else machine(self.n))
        # A small matrix is not worth asking the machine how much memory it has.
        memory = SMALL_BUDGET if resources.memory is None and small else resources.memory
        self.resources = Resources(memory, precision, resources.device, resources.threads)

    def _precision(self, largest: float, tol: float, machine: int | None) -> str:
        """The precision of kernel values that was left to mercer."""
        computed, diagonal = self.kind in ("features", "objects"), 0.0
        profile = self.kernel.profile
        if profile is not None and profile.base == "squared_distance":
            diagonal = 1.0  # functions of the distance with a profile are one there
        elif computed and self.n > EXACT:
            few = take(self.points, np.arange(16))
            diagonal = float(np.abs(np.asarray(self.kernel.diagonal(few), dtype=np.float64)).mean())
        return precision_for(self.n, largest=largest, diagonal=diagonal, tol=tol, of_many=machine, computed=computed)

    @property
    def thin(self) -> bool:
        """Whether the points stand for the matrix, as a factor of it."""
        return self.by_factor and is_linear(self.kernel) and int(np.shape(self.points)[1]) < self.n

    def take_factor(self, n: int, C: float) -> None:
        """Work from the points where a linear kernel makes them a thin factor that pays for machines of n points."""
        if self.kind != "features" or sp.issparse(self.points) or not np.isfinite(C):
            return
        cost = C * float(np.mean(self.kernel.diagonal(self.points)))
        self.by_factor = thin_factor_pays(n, int(np.shape(self.points)[1]), cost)
        if self.by_factor:
            self.resources = replace(self.resources, precision="float64")

    def share(self, codes: Index | None = None) -> None:
        """Hold the whole matrix where it fits and pays, because several machines will use parts of it.

        With the classes `codes` (n,) of the points, it is held in the order of the classes, where the part of a pair is
        a few stretches.  Values of a few features are cheaper to compute again than to fetch from memory.
        """
        if self.kind not in ("features", "objects") or self.thin:
            return
        cheap = self.kernel.profile is not None and np.shape(self.points)[1] < SHARED_FROM_FEATURES
        size = self.n**2 * self.itemsize
        if not self.shared and not cheap and size + SMALL_BUDGET // 2 <= self.resources.budget:
            self.shared = True
            points = self.points
            if codes is not None:
                order = np.argsort(codes, kind="stable")
                self.rank = np.empty_like(order)
                self.rank[order] = np.arange(len(order))
                points = take(points, order)
            memory, precision = self.resources.memory, self.resources.precision
            self.whole = Gram(self.kernel, points, memory=memory, precision=precision, storage="dense")

    @property
    def itemsize(self) -> int:
        """Bytes of a kernel value."""
        return np.dtype(self.resources.precision).itemsize

    def streamed(self, order: Index, precision: str | None = None) -> GramOperator:
        """The operator of the points at `order`, in that order, that computes its values each time."""
        memory, precision = self.resources.memory, precision or self.resources.precision
        return Gram(self.kernel, take(self.points, order), memory=memory, precision=precision, storage="streamed")

    @cached_property
    def whole(self) -> GramOperator:
        """The Gram operator of all points; in the order of `rank` where that is set."""
        if self.kind in ("precomputed", "function"):
            operator = Gram(self.kernel, self.points)
            return operator if operator.symmetric else Gram(self.kernel, symmetrised(self.points))
        memory, precision = self.resources.memory, self.resources.precision
        if self.thin:
            return Gram(self.kernel, self.points, memory=memory, precision=precision, storage="lowrank")
        return Gram(self.kernel, self.points, memory=memory, precision=precision, access="rows")

    def gram(self, index: Index | None = None, share: int = 1) -> GramOperator:
        """The Gram operator of all points, or of those at `index`, as one of `share` that are held at a time."""
        if index is None:
            return self.whole if self.rank is None else self.whole.subset(self.rank)
        return self.whole.subset(index if self.rank is None else self.rank[index], share)

    def side_by_side(self, machines: int) -> int:
        """How many of so many machines may be trained at a time, each with its share of the budget."""
        return max(1, min(machines, threads.count(), self.resources.budget // SMALLEST_SHARE))

    def forget(self) -> None:
        """Give back the memory of rows that machines trained so far have left in the cache."""
        self.whole.forget()

    def held(self, rows: Index, columns: Index) -> NDArray[np.float64] | None:
        """Kernel values between training points where the whole matrix is in memory, else None."""
        matrix = self.whole.held_values()
        if not isinstance(matrix, np.ndarray):
            return None
        if self.rank is not None:
            rows, columns = self.rank[rows], self.rank[columns]
        return np.asarray(matrix[np.ix_(rows, columns)], dtype=np.float64)

    def doubt(self, bias: str) -> str | None:
        """Why a machine with this bias has no certificate on these points, or None where it has one."""
        # Z Z' is positive semidefinite, and kernels with a profile are mercer's own, whose flags are known to be true.
        known = self.kernel.profile is not None and self.kernel.conditional_order == 0
        if self.reduction is not None or known:
            return None
        columns = np.ones((self.n, 1 if bias == "free" else 0))
        constant = 1.0 if bias == "penalised" else 0.0
        return definiteness.doubt(self.kernel, self.n, self.points, columns, constant, lambda: self.whole)
