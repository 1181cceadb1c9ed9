"""The linear system behind a least-squares problem, in the form every solver here starts from.

On the points of positive weight, with H = K + R (n, n), Phi (n, q) the unpenalised columns and Y (n, k) the targets,

    H c + Phi beta = Y,    Phi' c = 0.

H is symmetric positive definite.  Solve H eta = Phi and H nu = Y as one block H Z = T, T = [Phi, Y], and eliminate
beta (`bordered`).  Since Phi'c = 0 for *any* eta and nu, every intermediate Z is a usable model, and its gap follows
from the residual T - H Z without a further product.

*Conditionally positive definite kernels* of order m (those that are positive definite only on vectors orthogonal to
polynomials of degree < m, as -|x - z| with m = 1) give an H with negative eigenvalues, on which Cholesky and
conjugate gradients fail.  The projection of `bordered`, P K P + R in place of H, is positive definite whenever Phi
spans those polynomials.  The multiple of z z' that Hamers adds (section 3.2) does the same, but needs a constant
nobody knows beforehand.

*How far is the solution?*  For relative residual rho = |r| / |t| and kappa = cond(H) (Hamers 2004, equation 3.10)

    rho / kappa  <=  |z* - z| / |z*|  <=  kappa rho.
"""

from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any, TypedDict

import numpy as np

from mercer import dense
from mercer.arrays import Array, Index
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.problems.certificate import Certificate
from mercer.problems.least_squares import LeastSquares, certify
from mercer.solvers.contract import Start
from mercer.solvers.iteration import Iteration
from mercer.solvers.linear.bordered import eliminate, project
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.verification import coarse

WIDE_OPEN = 1e-3  # relative gap beyond which values in float32 have not solved the problem


def error_bounds(relative_residual: float, condition: float) -> tuple[float, float]:
    """Lower and upper bound on the relative error of a solution from its relative residual and cond(H)."""
    return relative_residual / condition, relative_residual * condition


class LinearSystem:
    """H, Phi and Y of a problem on its points of positive weight; counts its passes over the kernel matrix."""

    def __init__(self, problem: LeastSquares, definite: bool = True) -> None:
        """`definite=False`: take H as it is, also where the kernel is only conditionally positive definite."""
        self.problem = problem
        self.active = None if (problem.weights > 0).all() else np.flatnonzero(problem.weights > 0)
        self.weights = self.take(problem.weights)
        self.ridge = self.take(problem.ridge)
        self.Phi = self.take(problem.columns)
        self.Y = self.take(problem.Y)
        self.T = np.hstack([self.Phi, self.Y])
        self.projection = self._projection() if definite else None
        self.passes = 0
        self.began = perf_counter()

    @property
    def n(self) -> int:
        """Number of points of positive weight."""
        return int(self.Y.shape[0])

    @property
    def q(self) -> int:
        """Number of unpenalised columns."""
        return int(self.Phi.shape[1])

    @property
    def uniform(self) -> bool:
        """Whether R is a multiple of the identity."""
        return bool(np.all(self.ridge == self.ridge[0]))

    @cached_property
    def balance(self) -> Array:
        """S (n, 1), at most 1, such that S R S is a multiple of the identity."""
        factors: Array = np.sqrt(self.ridge.min(initial=np.inf) / self.ridge)
        return factors[:, None]

    def limit(self, iterations: int | None) -> int:
        """The most iterations of a Krylov method: those asked for, or more than rounding should make necessary."""
        return 10 * self.n + 100 if iterations is None else iterations

    def take(self, values: Array) -> Array:
        """The rows that belong to points of positive weight."""
        return values if self.active is None else values[self.active]

    def expand(self, values: Array) -> Array:
        """Rows for all points; zero where the weight is zero."""
        if self.active is None:
            return values
        whole = np.zeros((self.problem.n, *values.shape[1:]))
        whole[self.active] = values
        return whole

    def _projection(self) -> Array | None:
        order = int(getattr(getattr(self.problem.gram, "kernel", None), "conditional_order", 0))
        if order <= 0:
            return None
        constant = np.ones((self.n, 1))
        if self.q == 0 or np.linalg.norm(constant - self.Phi @ dense.least_squares(self.Phi, constant)) > 1e-8 * self.n:
            raise NotPositiveDefinite(
                f"the kernel is positive definite only up to polynomials of degree < {order}: "
                'use bias="free", and for orders above 1 pass those polynomials as basis'
            )
        Q: Array = dense.orthonormal(self.Phi)
        return Q

    def kernel_dot(self, V: Array) -> Array:
        """(K + constant) V, (n, m): one pass over the kernel matrix."""
        self.passes += 1
        gram = self.problem.gram
        product = np.asarray(gram.dot(self.expand(V)), dtype=np.float64)
        out = self.take(product)
        if self.problem.constant:
            out = out + self.problem.constant * V.sum(axis=0)
        return out

    def dot(self, V: Array) -> Array:
        """H V for V (n, m), with P K P in place of K for conditionally positive definite kernels."""
        Q = self.projection
        if Q is None:
            out = self.kernel_dot(V)
        else:
            out = self.kernel_dot(V - Q @ (Q.T @ V))
            out = out - Q @ (Q.T @ out)
        out = out + self.ridge[:, None] * V
        return np.asarray(out)

    def diagonal(self) -> Array:
        """The diagonal of H, (n,)."""
        diagonal = self.take(np.asarray(self.problem.gram.diagonal(), dtype=np.float64)) + self.problem.constant
        if self.projection is not None:
            Q, (KQ, inner) = self.projection, self._projected
            diagonal = diagonal - 2.0 * np.einsum("ij,ij->i", Q, KQ) + np.einsum("ij,ij->i", Q @ inner, Q)
        return np.asarray(diagonal + self.ridge)

    @cached_property
    def _projected(self) -> tuple[Array, Array]:
        """K Q (n, q) and Q'K Q (q, q), by one pass over the kernel matrix."""
        assert self.projection is not None
        KQ = self.kernel_dot(self.projection)
        return KQ, self.projection.T @ KQ

    def kernel_rows(self, index: Index) -> Array:
        """Rows of K + constant, (len(index), n)."""
        chosen = index if self.active is None else self.active[index]
        rows = np.asarray(self.problem.gram.block(chosen, None), dtype=np.float64)
        if self.active is not None:
            rows = rows[:, self.active]
        return rows + self.problem.constant if self.problem.constant else rows

    def rows(self, index: Index) -> Array:
        """Rows of H, (len(index), n)."""
        rows = np.array(self.kernel_rows(index))
        if self.projection is not None:
            Q, (KQ, inner) = self.projection, self._projected
            rows -= Q[index] @ (KQ - Q @ inner).T + KQ[index] @ Q.T
        rows[np.arange(len(index)), index] += self.ridge[index]
        return rows

    def kernel_matrix(self) -> Array:
        """K + constant as a new (n, n) array that the caller may overwrite."""
        self.passes += 1
        gram = self.problem.gram
        # Both calls give an array of the caller's own.
        whole = gram.dense() if self.active is None else gram.block(self.active, self.active)
        K = np.require(whole, dtype=np.float64, requirements=["C", "W"])
        if self.problem.constant:
            K += self.problem.constant
        return K

    def matrix(self) -> Array:
        """H as a new (n, n) array that the caller may overwrite."""
        H = self.kernel_matrix()
        Q = self.projection
        if Q is not None:
            project(H, Q)
        H.flat[:: self.n + 1] += self.ridge
        return H

    def eliminate(self, Z: Array) -> tuple[Array, Array]:
        """Coefficients c (n, k) with Phi'c = 0 and offsets beta (q, k) from Z = [eta, nu] (n, q + k)."""
        return eliminate(Z, self.Phi)

    def certificate(self, Z: Array, residual: Array) -> Certificate:
        """Certificate of the model in Z whose residual T - H Z (n, q + k) is known: no kernel work."""
        c, beta = self.eliminate(Z)
        HZ = self.T - residual
        f = HZ[:, self.q :] - HZ[:, : self.q] @ beta - self.ridge[:, None] * c
        return certify(c, f, self.Y, self.Phi, self.weights, self.problem.C)

    def certify(self, c: Array) -> Certificate:
        """Certificate of c (n, k), Phi'c = 0, by a product with the kernel matrix."""
        return certify(c, self.kernel_dot(c), self.Y, self.Phi, self.weights, self.problem.C)

    def start(self, start: Start) -> Array:
        """Z (n, q + k) to begin from: a solution's variables, or its coefficients as a first guess of nu; or zero."""
        Z = np.zeros_like(self.T)
        if start is None:
            return Z
        values = np.asarray(start.variables if isinstance(start, Solution) else start, dtype=np.float64)
        if values.shape == (self.problem.n, Z.shape[1]):
            return np.array(self.take(values))
        coefficients = start.coefficients if isinstance(start, Solution) else values
        if coefficients.shape != self.problem.Y.shape:
            raise InvalidInput(
                f"start must be a solution of a problem with {self.problem.n} points and {self.problem.k} outputs, "
                f"or an array of shape {(self.problem.n, Z.shape[1])}"
            )
        Z[:, self.q :] = self.take(coefficients)
        return Z

    def solution(self, Z: Array, certificate: Certificate, solver: str, **work: Any) -> Solution:
        """The Solution of Z (n, q + k), with what `certified` takes; where H was projected it is certified anew."""
        c, _ = self.eliminate(Z)
        if self.projection is not None:
            certificate = self.certify(c)
        return self.certified(c, certificate, solver, variables=Z, **work)

    def exact(
        self, c: Array, certificate: Certificate, solver: str, monitor: Monitor | None, **result: Any
    ) -> Solution:
        """The Solution of a direct method, which is one step; `result` are variables and details."""
        listening(monitor).watch(1, certificate.primal, certificate.dual)
        return self.certified(c, certificate, solver, iterations=1, monitor=monitor, **result)

    def certified(
        self,
        c: Array,
        certificate: Certificate,
        solver: str,
        *,
        variables: Array | None = None,
        iterations: int = 0,
        stopped: Stopped = "converged",
        monitor: Monitor | None = None,
        details: dict[str, Any] | None = None,
    ) -> Solution:
        """The Solution of coefficients c (n, k) whose certificate is known; `variables` default to c.

        Kernel values in float32 made a certificate of their own matrix: it is drawn again from values in float64, and
        a gap that they leave wide open is not called converged.
        """
        whole = self.expand(c)
        gram: Any = self.problem.gram
        if coarse(gram):
            values = self.problem.values(whole, gram.exact_dot(None, None, whole))
            certificate = certify(c, self.take(values), self.Y, self.Phi, self.weights, self.problem.C)
            if stopped == "converged" and not certificate.relative_gap <= WIDE_OPEN:
                stopped = "stalled"
        offsets = certificate.multipliers["offsets"]
        bias, basis = self.problem.split_offsets(whole, np.asarray(offsets))
        norms = np.linalg.norm(self.Y, axis=0)
        residual = certificate.outputs["residual"] / np.where(norms > 0, norms, 1.0)
        facts = {"gaps": certificate.outputs["gap"], "residual": float(residual.max()), "passes": self.passes}
        return Solution.certified(
            replace(certificate, bias=bias, multipliers={"offsets": offsets, "basis": basis}),
            whole,
            whole if variables is None else self.expand(variables),
            solver=solver,
            iterations=iterations,
            stopped=stopped,
            seconds=perf_counter() - self.began,
            history=tuple(listening(monitor).history),
            details=facts | (details or {}),
        )


class LinearLimits(TypedDict, total=False):
    """What `solve` of the Krylov methods takes besides its own parameters, with the defaults of `LinearIteration`."""

    tol: float | None
    start: Start
    monitor: Monitor | None
    residual: float | None
    iterations: int | None


class LinearIteration(Iteration):
    """An iteration on a linear system until a relative `gap`, or a share `residual` of the first one, if any is asked.

    `iterations` is their limit.
    """

    def __init__(
        self,
        system: LinearSystem,
        *,
        tol: float | None = 1e-10,
        start: Start = None,
        monitor: Monitor | None = None,
        residual: float | None = None,
        iterations: int | None = None,
    ) -> None:
        super().__init__(system.problem, tol or 0.0, start, listening(monitor))
        self.system, self.limit = system, system.limit(iterations)
        self.gap, self.residual = tol, residual

    def solved(self) -> Solution:
        """Run to the end and certify what was reached."""
        with self.monitor:
            return self.solution(self.run(self.limit))

    def spent(self, stopped: Stopped, **details: Any) -> dict[str, Any]:
        """What `LinearSystem.certified` takes besides the point."""
        return {"iterations": self.iterations, "stopped": stopped, "monitor": self.monitor, "details": details}
