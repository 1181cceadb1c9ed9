"""Linear machines with one problem for all classes: coordinate ascent that keeps the weight vectors W (k, d).

    repeat   a full pass over all points, which estimates violation and gap on the way
             passes over what is expected to move (`mercer.solvers.multiclass.linear_steps`)
    until    the gap of the full pass is small enough and an exact evaluation of all outputs confirms it

This is the method of LIBLINEAR's solver 4 (Keerthi et al. 2008; Fan et al. 2008) with outputs of all classes computed
along memory, points and classes shrunk, and a stop by the duality gap.  The cost of a pass is the number of entries of
the points times k, whatever n^2 may be.  Points may be dense or CSR.  A free bias is found as in
`mercer.solvers.multiclass.decomposition`.
"""

import time
from typing import Any, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.arrays import Array
from mercer.kernels.distances import used_columns
from mercer.problems.certificate import converged
from mercer.problems.multiclass import BredensteinerBennett, MulticlassProblem
from mercer.solvers.contract import Acceptance, Limits, Start
from mercer.solvers.iteration import Iteration, solved
from mercer.solvers.monitor import Monitor
from mercer.solvers.multiclass import decomposition
from mercer.solvers.multiclass.class_balance import balanced
from mercer.solvers.multiclass.linear_steps import one_pass
from mercer.solvers.multiclass.steps import survey
from mercer.solvers.solution import Solution, Stopped

# Passes over the active part end when its violation is below this share of the one of the full pass.
INNER = 0.3
INNER_PASSES = 20
# What lies this share of the violation away from moving is left out.
SLACK = 0.5
# Weight vectors of sparse points larger than this are kept in float32 while passes run: reading them is all the work.
# Nothing finer than this gap can be told apart then.
LARGE_WEIGHTS = 1 << 23
SINGLE_GAP = 1e-5
# So many full passes that neither lower violation or gap nor raise the dual by this share are numerical noise.
PATIENCE = 60
PROGRESS = {4: 1e-8, 8: 1e-13}
TINY = 1e-12


def accepts(problem: Any) -> Acceptance:
    """Problems of `mercer.problems.multiclass` on the linear kernel."""
    answer = decomposition.accepts(problem)
    if not answer:
        return answer
    profile = getattr(getattr(problem.equivalent.gram, "kernel", None), "profile", None)
    if profile is None or profile.name != "linear" or profile.scale is not None:
        return Acceptance(False, "the kernel is not linear")
    return Acceptance(True, "linear kernel")


def solve(
    problem: MulticlassProblem | BredensteinerBennett, *, tol: float = 1e-3, seed: int = 0, **limits: Unpack[Limits]
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of passes (-1: no bound).

    The weight vectors (k, d) are among the details of the solution, unless sparse points leave most columns empty.
    """
    found = solved(LinearSearch, problem, accepts(problem), tol=tol, seed=seed, **limits)
    return found.scaled(problem.scale)


class LinearSearch(Iteration):
    """The state of one solve: variables a (n, k), W as (k, d) or (d, k), sums of the coefficients (k,)."""

    name = "the linear solver"
    problem: MulticlassProblem

    def __init__(
        self, stated: MulticlassProblem | BredensteinerBennett, tol: float, start: Start, monitor: Monitor, seed: int
    ) -> None:
        problem = stated.equivalent
        super().__init__(problem, tol, start, monitor)
        self.name = f"{problem.name}, linear"
        self.n, self.k = problem.n, problem.k
        gram: Any = problem.gram
        X = gram.X
        self.sparse = bool(sp.issparse(X))
        none, nowhere = np.empty(0), np.zeros(1, dtype=np.int32)
        self.narrowed = False  # whether W is held on the columns in use only
        if self.sparse:
            X = sp.csr_array(X)
            self.narrowed = X.shape[1] > X.nnz
            X = used_columns(X)[0] if self.narrowed else X
            self.points = (True, np.empty((0, 0)), X.data.astype(np.float64, copy=False), X.indices, X.indptr)
        else:
            X = np.ascontiguousarray(X, dtype=np.float64)
        self.centre = np.zeros(X.shape[1])
        if not self.sparse:
            if problem.bias == "free":
                # A free bias takes up any shift of the points, and centred ones converge much faster.
                self.centre = X.mean(axis=0)
                X = X - self.centre
            self.points = (False, X, none, nowhere, nowhere)
        self.X = X
        squares = np.asarray(X.multiply(X).sum(axis=1) if self.sparse else np.einsum("ij,ij->i", X, X)).ravel()
        size = float(squares.mean())
        self.free = problem.bias == "free"
        self.constant = (size if size > 0 else 1.0) if self.free else problem.constant
        self.squares = np.maximum(squares, TINY * max(size, 1e-300))
        self.a = problem.feasible(np.zeros((self.n, self.k)) if self.initial is None else self.initial)
        self.b = np.zeros(self.k)
        self.outputs: Array | None = None  # W x (n, k), where W has not changed since
        if self.initial is None:
            self.sums = np.zeros(self.k)
            self.W: NDArray[Any] = np.zeros((X.shape[1], self.k) if self.sparse else (self.k, X.shape[1]))
        else:
            self._recompute()
        self.single = self.sparse and self.W.nbytes > LARGE_WEIGHTS and tol >= SINGLE_GAP
        self.order = np.arange(self.n)
        # The own class first: it is exchanged with the class 0 that was there.
        self.classes = np.tile(np.arange(self.k, dtype=np.int32), (self.n, 1))
        self.classes[np.arange(self.n), problem.y] = 0
        self.classes[:, 0] = problem.y
        self.active = np.empty(self.n, dtype=np.int32)
        self.state = np.array([seed * 2654435761 + 88172645463325252], dtype=np.uint64)
        self.steps = self.full = 0
        self.primal = self.gap = self.violation = np.inf

    def run(self, limit: int) -> Stopped:
        """Passes until convergence, a limit or an interruption."""
        best, highest, waited = np.array([np.inf, np.inf]), -np.inf, 0
        slack = np.inf
        while True:
            if self.iterations >= limit:
                return "iterations"
            self.active[:] = self.k
            count = self._pass(self.n, slack)
            self.full += 1
            slack = SLACK * self.violation
            if self._small(self.gap) and self._confirmed():
                return "converged"
            self._move_bias()
            now, dual = np.array([self.violation, self.gap]), self._dual()
            risen = not dual <= highest + PROGRESS[self.W.dtype.itemsize] * abs(dual)
            waited = 0 if risen or (now < 0.98 * best).any() else waited + 1
            best, highest = np.minimum(best, now), max(highest, dual)
            if waited > PATIENCE:
                return "stalled"
            if not self._report():
                return self.halted()
            target = INNER * self.violation
            primal, gap = self.primal, self.gap
            for _ in range(INNER_PASSES):
                if count == 0 or self.iterations >= limit or not self.monitor.go_on():
                    break
                count = self._pass(count, slack)
                if self.violation <= target:
                    break
            self.primal, self.gap = primal, gap  # those of a part of the points mean nothing

    def _pass(self, count: int, slack: float) -> int:
        """One pass over the first `count` points of the order; returns how many are left for the next."""
        p = self.problem
        if self.single and self.W.dtype != np.float32:
            self.W = self.W.astype(np.float32)
        left, steps, self.violation, loss, gap = one_pass(
            *self.points, self.W, self.squares, p.y, p.box, self.a, p.code, p.margin, self.constant, self.sums, self.b,
            self.order, count, self.classes, self.active, slack, self.state,
        )  # fmt: skip
        self.iterations += 1
        self.steps += steps
        self.outputs = None
        if self.free:
            gap += abs(float(self.sums @ (self.b + self.constant * self.sums)))
        self.primal, self.gap = 0.5 * self._norm() + loss, gap
        return int(left)

    def _norm(self) -> float:
        """Square of the weight vectors, and of a penalised bias."""
        norm = float(np.einsum("ij,ij->", self.W, self.W))
        return norm if self.free else norm + self.constant * float(self.sums @ self.sums)

    def _dual(self) -> float:
        """Dual value at the present variables, whose sums a free bias may still miss."""
        p = self.problem
        others = float(self.a.sum() - self.a[np.arange(self.n), p.y].sum())
        return p.margin * others - 0.5 * self._norm()

    def _small(self, gap: float) -> bool:
        """Whether the relative gap is at most `tol`."""
        return converged(self.primal, self.primal - gap, self.tol, gap)

    def _move_bias(self) -> None:
        """A step of the proximal point method once the points have settled as far as the bias is still pulled."""
        pull = self.constant * self.sums
        if self.free and self.violation <= np.abs(pull).max():
            self.b += pull

    # Exact values ----------------------------------------------------------------------------------------------

    def _expansion(self) -> Array:
        """W x (n, k) without any bias."""
        if self.outputs is None:
            self.outputs = np.asarray(self.X @ (self.W if self.sparse else self.W.T), dtype=np.float64)
        return self.outputs

    def _recompute(self) -> None:
        """W and the sums from the variables, free of what many updates have left."""
        c = self.problem.coefficients(self.a)
        W = np.asarray(self.X.T @ c)
        self.W = np.ascontiguousarray(W if self.sparse else W.T)
        self.sums = c.sum(axis=0)
        self.outputs = None

    def _confirmed(self) -> bool:
        """Whether the gap holds at outputs computed afresh, with a free bias for sums of zero."""
        p = self.problem
        if self.free and self.sums.any():
            self._balance()
        elif self.W.dtype != np.float64:
            self._recompute()
        f = self._expansion() + self.b + self.constant * self.sums
        loss, gap, product = survey(p.code, p.margin, f, self.a, p.y, p.box, 0, self.n, np.empty(self.n))
        self.primal, self.gap = 0.5 * float(product) + float(loss), float(gap)
        return self._small(self.gap)

    def _balance(self) -> None:
        """Make the sums zero, keeping the outputs' bias where it is."""
        self.b += self.constant * self.sums
        self.a = balanced(self.problem, self.a, self._expansion() + self.b)
        self._recompute()

    def _report(self) -> bool:
        """Tell the monitor, at most a few times a second unless it has callbacks; whether to go on."""
        if not self.monitor.due(self.reported):
            return self.monitor.go_on()
        self.reported = time.perf_counter()
        return self.tell(self.primal, self.primal - self.gap)

    def facts(self) -> dict[str, Any]:
        """The largest violation."""
        return {"violation": self.violation}

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate; with a free bias its sums are made zero first."""
        if self.free and self.sums.any():
            self._balance()
        elif self.W.dtype != np.float64:
            self._recompute()
        c = self.problem.coefficients(self.a)
        shift = (self.W.T if self.sparse else self.W) @ self.centre
        certificate = self.problem.certificate(self.a, self._expansion() + shift, self.b - shift)
        details = {"steps": self.steps, "full_passes": self.full, **self.facts()}
        if not self.narrowed:
            details["weights"] = self.W.T if self.sparse else self.W
        return self.certified(stopped, certificate, c, self.a.copy(), **details)
