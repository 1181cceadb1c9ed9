"""Support vector machines whose kernel matrix has a thin factor, K~ = Z Z': dual coordinate descent with w = Z's.

One variable at a time is minimised exactly, in O(p) operations for p features (the entries of the row where Z is
sparse), because w gives its gradient and takes up its change (Hsieh and others 2008); nothing of the size n x n is ever
formed.  Variables at a bound whose gradient
says that they stay there leave the passes, and all come back before an answer is given.

A free bias is the equality sum s = d, which single steps cannot keep.  It is met by the method of multipliers: with h
its multiplier and t = sum s - d, the passes see the gradient

    <z_i, w> + linear_i + ridge_i s_i - h + tau t,        then  h <- h - tau t,

that is, a penalised bias whose penalty is centred at the last one (proximal steps in b = -h).  tau starts at the mean
of the kernel's diagonal and grows when t does not shrink.  What is left of t at the end goes to the free variables, and
the certificate, exact primal and dual values and their gap, is that of the point so repaired.

Passes find quickly which variables stay at a bound, and slowly the values of the others when C is large.  So every few
passes the free variables F are moved together, by the Newton step of Z_F Z_F' + R_F + tau 1 1' cut off at the box; at
the optimum there are hardly more of them than features.  Documents have more features than there are documents, and so
many free variables that the passes alone are quicker; the step is left out where it would cost more than they do.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer import dense, threads
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.problems.certificate import SCALED_FROM, Certificate
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, starting_variables
from mercer.solvers.linear.woodbury import factor_of
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic.linear_dual_steps import NONE, gather, products, squared_norms, sweep
from mercer.solvers.quadratic.violations import largest_violation
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.verification import inside, predicted, recomputed

Array = NDArray[np.float64]
Index = NDArray[np.intp]

NAME = "linear dual"
ACCEPTS = "a thin factor in place of the kernel matrix, and at most one fixed sum: linear kernels, approximations"
SECTION = "Hsieh and others 2008"
SLOW = 0.5  # t must shrink at least to this share from one multiplier to the next, or tau grows
GROWTH, MOST_GROWTH = 4.0, 256.0
EVERY = 10  # passes between two joint steps of the free variables
ROUNDS = 5  # Newton steps in a joint step, while variables reach their bounds
SHARES = 4.0 ** -np.arange(0.0, 24.0)  # of a joint step that are tried
MOST_FREE = 4000
JITTER = 1e-10  # of the mean diagonal: more free variables than features make the matrix singular
CHEAP = 160  # multiplications of a dense factorisation that cost as much as four of a pass
SPARSE = 16  # multiplications of a dense product that cost as much as one of a sparse product of two matrices
UNSEEN = 5e7  # so many take a millisecond in any case
LOOK = 32  # passes between two looks at the gap where one is asked for


def accepts(problem: Any) -> Acceptance:
    """Quadratic programs over a factor, dense or CSR, with at most two variables on a point and one sum fixed."""
    if not isinstance(problem, Problem):
        return Acceptance(False, f"the linear dual solver takes support vector problems, not {type(problem).__name__}")
    program = problem.program()
    Z = factor_of(program.gram)
    if Z is None:
        return Acceptance(False, "the kernel matrix has no thin factor: give the machine an approximation")
    if program.d.size and not program.one_group:
        return Acceptance(False, "more than one sum of the variables is fixed: use decomposition")
    if np.bincount(program.point, minlength=program.n).max(initial=0) > 2:
        return Acceptance(False, "more than two variables sit on a point: use decomposition")
    return Acceptance(True, f"{Z.shape[1]} features of {Z.shape[0]} points")


def solve(
    problem: Problem,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    start: Array | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    seed: int = 0,
) -> Solution:
    """Descend until the optimality conditions are violated by at most `tol`, as in decomposition.

    gap_tol : stop at this relative duality gap instead; max_iter : most passes over the data, -1 for no limit; seed :
    of the order in which points are visited.
    """
    accepted = accepts(problem)
    if not accepted:
        raise InvalidInput(accepted.reason)
    began = time.perf_counter()
    # The joint steps are small; threads of BLAS would cost more than they bring.
    with threads.one_blas_thread(), listening(monitor) as watch:
        descent = _Descent(problem, starting_variables(problem.program(), start, monitor), watch, seed)
        stopped = descent.run(tol, gap_tol, max_iter)
        s, certificate = descent.answer()
        return Solution.certified(
            certificate,
            problem.coefficients(s),
            s,
            solver=NAME,
            iterations=descent.passes,
            stopped=stopped,
            seconds=time.perf_counter() - began,
            history=tuple(watch.history),
            details={"features": int(descent.Z.shape[1]), "multiplier updates": descent.updates},
        )


class _Descent:
    """The variables with their weight vector, the multiplier of the equality, and the passes over the points."""

    def __init__(self, problem: Problem, start: Array | None, monitor: Monitor, seed: int) -> None:
        self.problem, self.program, self.monitor = problem, problem.program(), monitor
        self.Z, self.rows = _factor(self.program)
        self.width = self.rows[0].size / max(self.Z.shape[0], 1)  # entries of a row
        self.random = np.random.default_rng(seed)
        self.norms = np.empty(self.Z.shape[0])
        squared_norms(*self.rows, self.norms)
        self.first, self.second = _variables_of(self.program)
        self.order = np.flatnonzero(self.first != NONE)
        self.s = self.program.start() if start is None else start
        self.w = np.empty(self.Z.shape[1])
        self.total = np.zeros(1)
        self.passes = self.updates = 0
        self._take_up()
        self.equality = bool(self.program.d.size)
        self.target = float(self.program.d[0]) if self.equality else 0.0
        # Without an equality the constant of a penalised bias is all that couples the variables.
        typical = float(self.norms[self.order].mean()) if self.order.size else 1.0
        self.coupling = (typical or 1.0) if self.equality else self.program.constant
        self.most_coupling = MOST_GROWTH * self.coupling
        self.multiplier = 0.0
        if self.equality and start is not None:
            self.multiplier = float(self.program.best_multipliers(self._values())[0])

    def _take_up(self) -> None:
        """Take w and the sum anew from the variables, free of the rounding that steps have gathered."""
        gather(*self.rows, self.program.coefficients(self.s), self.w)
        self.total[0] = float(self.s.sum())

    def _values(self) -> Array:
        """K~ s (n,)."""
        out = self._products()
        return out + self.program.constant * self.total[0] if self.program.constant else out

    def _products(self) -> Array:
        """Z w (n,)."""
        out = np.empty(self.Z.shape[0])
        threads.run(products, [(*self.rows, self.w, start, stop, out) for start, stop in threads.split(len(out))])
        return out

    def run(self, tol: float, gap_tol: float | None, max_iter: int) -> Stopped:
        """Pass over the points until done; says why it ended."""
        floor, count, missed = 0.5 * tol, len(self.order), np.inf
        bounds = np.array([np.inf, -np.inf])
        while max_iter < 0 or self.passes < max_iter:
            count = self._pass(count, bounds)
            if self.passes % EVERY == 0:
                self._move_free()
            if not self.monitor.go_on():
                return self.monitor.stopped or "interrupted"
            if gap_tol is not None and self.passes % LOOK == 0 and self._looked(gap_tol):
                return "converged"
            violation = max(float(bounds[0] - bounds[1]), 0.0)
            lack = self.coupling * abs(self.total[0] - self.target) if self.equality else 0.0
            if violation <= floor and lack <= floor:
                if count == len(self.order):
                    if self._looked(gap_tol) if gap_tol is not None else self._settled(tol):
                        return "converged"
                    floor *= 0.3
                count, bounds[:] = len(self.order), (np.inf, -np.inf)
                continue
            if lack > floor and violation <= max(floor, 0.5 * lack):
                missed = self._move_multiplier(lack, missed)
            # Gradients within the range of the last pass are worth looking at again; see LIBLINEAR.
            bounds[0] = bounds[0] if bounds[0] > 0.0 else np.inf
            bounds[1] = bounds[1] if bounds[1] < 0.0 else -np.inf
        return "iterations"

    def _pass(self, count: int, bounds: Array) -> int:
        self.passes += 1
        self.order[:count] = self.order[:count][self.random.permutation(count)]
        program = self.program
        return int(
            sweep(
                *self.rows,
                self.norms,
                self.first,
                self.second,
                program.lower,
                program.upper,
                program.linear,
                program.ridge,
                self.s,
                self.w,
                self.order,
                count,
                self.coupling,
                self.multiplier,
                self.target,
                bounds,
                self.total,
            )
        )

    def _move_free(self) -> None:
        """Newton steps of the variables inside their box, as many as lower the objective."""
        program = self.program
        for _ in range(ROUNDS):
            free = np.flatnonzero((self.s > program.lower) & (self.s < program.upper))
            f = len(free)
            cost = f * f * (self.width * (SPARSE if sparse.issparse(self.Z) else 1) + f / 3.0)
            if f == 0 or f > MOST_FREE or cost > max(UNSEEN, CHEAP * self.rows[0].size):
                return
            rows = self.Z[program.point[free]].astype(np.float64)
            pull = self.coupling * (float(self.total[0]) - self.target) - self.multiplier
            gradient = rows @ self.w + pull + program.linear[free] + program.ridge[free] * self.s[free]
            H = rows @ rows.T
            H = (H.toarray() if sparse.issparse(H) else H) + self.coupling
            H.flat[:: f + 1] += program.ridge[free]
            step = _newton_step(H, gradient, self.s[free], program.lower[free], program.upper[free])
            if step is None:
                return
            self.s[free] += step
            np.clip(self.s, program.lower, program.upper, out=self.s)
            self.w += rows.T @ step
            self.total[0] += float(step.sum())
            inside = (self.s[free] > program.lower[free]) & (self.s[free] < program.upper[free])
            if inside.all():
                return

    def _move_multiplier(self, lack: float, missed: float) -> float:
        """Set h to h - tau t; tau grows where t shrinks too slowly.  Returns |t|."""
        t = float(self.total[0]) - self.target
        self.multiplier -= self.coupling * t
        self.updates += 1
        if abs(t) > SLOW * missed:
            self.coupling = min(GROWTH * self.coupling, self.most_coupling)
        return abs(t)

    def _settled(self, tol: float) -> bool:
        """Whether the repaired point meets the optimality conditions to `tol`, seen without rounding."""
        s, f = self._repaired()
        certificate = self.problem.certificate(s, f)
        self.monitor.watch(self.passes, certificate.primal, certificate.dual)
        return largest_violation(self.program, s, f) <= tol or certificate.gap <= certificate.rounding

    def _looked(self, gap_tol: float) -> bool:
        """Whether the gap of the repaired point is small enough."""
        certificate = self.problem.certificate(*self._repaired())
        going = self.monitor.watch(self.passes, certificate.primal, certificate.dual)
        return going and certificate.converged(gap_tol)

    def answer(self) -> tuple[Array, Certificate]:
        """The feasible point reached, and its certificate."""
        s, _ = self._repaired()
        gram: Any = self.program.gram
        c = self.program.coefficients(s)
        doubt = predicted(c, np.asarray(gram.diagonal(), dtype=np.float64), inside(self.program, s))
        return s, self.problem.certificate(s, recomputed(gram, c), aim=SCALED_FROM, uncertainty=doubt)

    def _repaired(self) -> tuple[Array, Array]:
        """A feasible point next to s, and its values K s (n,), without the constant; s and w stay as they are."""
        kept = self.s, self.w.copy(), self.total.copy()
        self.s = _onto_equality(self.program, self.s)
        self._take_up()
        repaired, f = self.s, self._products()
        self.s, self.w, self.total = kept
        return repaired, f


def _factor(program: QuadraticProgram) -> tuple[Any, tuple[Any, Any, Any]]:
    """Z (n, p), dense or CSR, and the three arrays of its rows that the passes read."""
    Z = factor_of(program.gram)
    if not sparse.issparse(Z):
        Z = np.ascontiguousarray(Z)
        unread = np.zeros(0, dtype=np.int32)
        return Z, (Z, unread, unread)
    Z = sparse.csr_array(Z)
    return Z, (Z.data, Z.indices, Z.indptr)


def _newton_step(H: Array, gradient: Array, s: Array, lower: Array, upper: Array) -> Array | None:
    """The step from s to the minimum of its quadratic model, cut off at the box; None where it gains nothing."""
    H = H.copy(order="F")
    diagonal = np.einsum("ii->i", H)
    diagonal += JITTER * float(diagonal.mean())
    factor = H.copy(order="F")
    if not dense.factorise(factor):
        return None
    newton = -dense.solve(factor, gradient)
    best, gain = None, 0.0
    for share in SHARES:  # a search along the path that bends at the walls of the box
        step = np.clip(s + share * newton, lower, upper) - s
        here = -(float(gradient @ step) + 0.5 * float(step @ dense.symmetric_product(H, step)))
        if here > gain:
            best, gain = step, here
        elif best is not None:
            break
    return best


def _variables_of(program: QuadraticProgram) -> tuple[Index, Index]:
    """The first and second variable on every point (n,), NONE where there is none."""
    order = np.argsort(program.point, kind="stable")
    count = np.bincount(program.point, minlength=program.n)
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    first, second = np.full(program.n, NONE, dtype=np.intp), np.full(program.n, NONE, dtype=np.intp)
    first[count > 0] = order[starts[count > 0]]
    second[count > 1] = order[starts[count > 1] + 1]
    return first, second


def _onto_equality(program: QuadraticProgram, s: Array) -> Array:
    """The variables with what misses in the equality spread over those inside their box, as far as room goes."""
    if not program.d.size:
        return s.copy()
    miss = float(program.d[0]) - float(s.sum())
    inside = (s > program.lower) & (s < program.upper)
    room = np.where(inside, program.upper - s if miss > 0 else s - program.lower, 0.0)
    room = np.minimum(room, 1e3 * abs(miss))  # a box without end has room enough
    available = float(room.sum())
    if available > abs(miss):
        s = s + room * (miss / available)
    return program.project(s)

