"""The saddle-point matrix as an operator, and what the Krylov methods for indefinite matrices share.

    A u = [[H, Phi], [Phi', 0]] [c; beta] = [Y; 0]

MINRES and SYMMLQ build on the Lanczos process b_{l+1} v_{l+1} = A v_l - a_l v_l - b_l v_{l-1}.  Their iterates meet
Phi'c = 0 only in the limit; the certificate moves c to the nearest point that does.  It costs a pass over the kernel
matrix, so it is computed only when the residual, known at every step, makes success likely.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate
from mercer.problems.least_squares import LeastSquares, certify
from mercer.solvers.contract import Start
from mercer.solvers.linear.system import LinearIteration, LinearLimits, LinearSystem
from mercer.solvers.solution import Solution, Stopped


class SaddleForm:
    """A as an operator on u = [c; beta] (n + q, k)."""

    def __init__(self, system: LinearSystem) -> None:
        self.system = system
        self.right = np.vstack([system.Y, np.zeros((system.q, system.Y.shape[1]))])
        self.Q: Array = dense.orthonormal(system.Phi) if system.q else system.Phi

    def dot(self, U: Array) -> Array:
        """A U: one pass over the kernel matrix."""
        system, n = self.system, self.system.n
        return np.vstack([system.dot(U[:n]) + system.Phi @ U[n:], system.Phi.T @ U[:n]])

    def feasible(self, c: Array) -> Array:
        """The nearest c with Phi'c = 0."""
        return np.asarray(c - self.Q @ (self.Q.T @ c))

    def certificate(self, U: Array) -> Certificate:
        """Certificate of the feasible point nearest to U, by a product with the kernel matrix."""
        return self.system.certify(self.feasible(U[: self.system.n]))

    def certificate_at_zero(self) -> Certificate:
        """Certificate of c = 0, where no product is needed."""
        system, zero = self.system, np.zeros_like(self.system.Y)
        return certify(zero, zero, system.Y, system.Phi, system.weights, system.problem.C)

    def start(self, start: Start) -> Array:
        """U (n + q, k) to begin from: coefficients and offsets of a solution, or zero."""
        U = np.zeros_like(self.right)
        if start is None:
            return U
        if isinstance(start, Solution):
            coefficients, offsets = start.coefficients, start.multipliers.get("offsets")
        else:
            coefficients, offsets = np.asarray(start, dtype=np.float64), None
        if coefficients.shape != self.system.problem.Y.shape:
            raise InvalidInput(f"start must have coefficients of shape {self.system.problem.Y.shape}")
        U[: self.system.n] = self.system.take(coefficients)
        if offsets is not None and np.shape(offsets) == (self.system.q, U.shape[1]):
            U[self.system.n :] = offsets
        return U


class Milestones:
    """Decides when an indefinite Krylov method computes a certificate: only when its residual estimate is promising.

    The gap is quadratic in the residual, so after a certificate with relative gap g the next one is due when the
    estimate has fallen by sqrt(tol / g).
    """

    def __init__(self, form: SaddleForm, tol: float | None, residual: float | None) -> None:
        self.form, self.tol, self.residual = form, tol, residual
        self.scale = float(np.max(np.linalg.norm(form.right, axis=0), initial=0.0)) or 1.0
        self.certificate = form.certificate_at_zero()
        self.due = np.inf if tol is None else np.sqrt(tol) * self.scale

    def reached(self, estimate: float, point: Callable[[], Array]) -> bool:
        """Whether the present point, with residual estimate `estimate`, is good enough."""
        if self.residual is not None and estimate <= self.residual * self.scale:
            return True
        if self.tol is None or estimate > self.due:
            return False
        self.certificate = self.form.certificate(point())
        gap = self.certificate.relative_gap
        shrink = np.sqrt(self.tol / gap) if 0 < gap < np.inf else 0.1
        self.due = min(self.due, estimate) * min(0.5, 0.5 * float(shrink))
        return bool(gap <= self.tol)


def quotient(top: Array, bottom: Array) -> Array:
    """The quotient, zero where the bottom is zero: a column whose Krylov space is exhausted stays where it is."""
    return np.divide(top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom != 0)


class LanczosRun(LinearIteration):
    """A run of MINRES or SYMMLQ: scalars are (k,), vectors (n + q, k), `history` the largest residual norms."""

    def __init__(self, problem: LeastSquares, **limits: Unpack[LinearLimits]) -> None:
        super().__init__(LinearSystem(problem, definite=False), **limits)
        self.form = form = SaddleForm(self.system)
        self.U = U = form.start(self.given)
        self.goal = Milestones(form, self.gap, self.residual)
        R = form.right - form.dot(U) if U.any() else form.right.copy()
        self.first: Array = np.linalg.norm(R, axis=0)
        self.v: Array = quotient(R, self.first)
        self.v_before = np.zeros_like(R)
        self.beta = np.zeros_like(self.first)
        self.prepare()
        self.history = [self.norm()]

    @abstractmethod
    def prepare(self) -> None:
        """Set the recurrences up."""

    @abstractmethod
    def norm(self) -> float:
        """The largest residual norm of the columns."""

    @abstractmethod
    def point(self) -> Array:
        """The present solution (n + q, k)."""

    @abstractmethod
    def step(self) -> None:
        """One step, with one call of `lanczos`."""

    def lanczos(self) -> tuple[Array, Array, Array]:
        """a_l, b_{l+1} (k,) and the Lanczos vector v_l (n + q, k) they belong to; moves on to v_{l+1}."""
        v = self.v
        y = self.form.dot(v) - self.beta * self.v_before
        alpha = np.sum(v * y, axis=0)
        y -= alpha * v
        beta = np.linalg.norm(y, axis=0)
        # A Krylov space that is exhausted leaves only rounding noise; its column is finished.
        beta = np.where(beta > 1e-14 * (np.abs(alpha) + self.beta), beta, 0.0)
        self.v_before, self.v, self.beta = v, quotient(y, beta), beta
        return alpha, beta, v

    def run(self, limit: int) -> Stopped:
        """Step until the goal is reached, the residual no longer falls, the limit, or the monitor says stop."""
        patience = 2 * len(self.U) + 20
        best, since = np.inf, 0
        while True:
            size = self.history[-1]
            if self.goal.reached(size, self.point):
                return "converged"
            if not self.tell(self.goal.certificate.primal, self.goal.certificate.dual):
                return self.halted()
            if self.iterations >= limit:
                return "iterations"
            best, since = (size, 0) if size < 0.999 * best else (best, since + 1)
            if size <= 1e-15 * self.goal.scale or since > patience:
                return "stalled"
            self.step()
            self.iterations += 1
            self.history.append(self.norm())

    def facts(self) -> dict[str, Any]:
        """The largest residual norm, relative."""
        return {"residual": self.history[-1] / self.goal.scale}

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        U = self.point()
        c, spent = U[: self.system.n], self.spent(stopped, residuals=np.array(self.history) / self.goal.scale)
        return self.system.certified(self.form.feasible(c), self.form.certificate(U), self.name, **spent)
