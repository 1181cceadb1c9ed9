"""The system of members that are trained together (`mercer.problems.coupled`), by elimination or by iteration.

chain : M is block tridiagonal, with diagonal blocks D_i and blocks E_i to the right of them.  Elimination from one end
to the other factorises U_1 = D_1 and U_i+1 = D_i+1 - E_i' U_i^-1 E_i, all positive definite, in time q p^3 for q
members of p unknowns each (Hamers 2004, equations 6.44 and 6.45).

ring : a chain and one more edge of weight l, between the ends: M_ring = M_chain + nu l W W' with W = [F_1'; 0; ...; 0;
-F_q'], so that with V = M_chain^-1 W (m more right-hand sides) x = x_chain - V (1 / (nu l) + W'V)^-1 W' x_chain.

graph : any other is eliminated as a whole.

Conjugate gradients take any graph, by products with K_j and F_j alone, preconditioned by the diagonal blocks where they
are small.
"""

import time
from typing import Any, Protocol

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate, converged
from mercer.problems.coupled import CoupledMembers
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear.conjugate_directions import ConjugateDirections
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Record, Solution, Stopped

SOLVERS = ("elimination", "conjugate_gradient")
REFUSED = "the coupled system is not positive definite to working precision: raise the ridge (a smaller C)"
LARGEST_BLOCK = 2000  # unknowns of a member up to which its diagonal block is factorised as a preconditioner
LONGEST = 10  # steps of conjugate gradients for each unknown, at most: rounding can spoil conjugacy


class Factor(Protocol):
    """M as something that can be solved with."""

    def solve(self, R: Array) -> Array:
        """M^-1 R for R (p, k)."""


def accepts(problem: Any) -> Acceptance:
    """Coupled members, and nothing else."""
    if not isinstance(problem, CoupledMembers):
        return Acceptance(False, "this is the solver of members that are trained together")
    return Acceptance(True, "one symmetric system for all members")


# Elimination -------------------------------------------------------------------------------------------------------


class Chain:
    """Block elimination of a problem whose Laplacian has its entries beside the diagonal."""

    def __init__(self, problem: CoupledMembers) -> None:
        self.problem = problem
        q = len(problem.values)
        self.right = [problem.block(i, i + 1) for i in range(q - 1)]
        self.factors: list[Array] = []
        for i in range(q):
            U = problem.block(i, i)
            if i:
                U -= self.right[i - 1].T @ dense.solve(self.factors[-1], self.right[i - 1])
            self.factors.append(dense.cholesky(U, REFUSED))

    def solve(self, R: Array) -> Array:
        """M^-1 R for R (p, k): down the chain, and back."""
        X = np.array(R)
        parts = [X[self.problem.part(i)] for i in range(len(self.factors))]
        for i, E in enumerate(self.right):
            parts[i + 1] -= E.T @ dense.solve(self.factors[i], parts[i])
        for i in range(len(self.factors) - 1, -1, -1):
            if i < len(self.right):
                parts[i] -= self.right[i] @ parts[i + 1]
            parts[i][:] = dense.solve(self.factors[i], parts[i])
        return X


class Ring:
    """A chain with the edge between its ends put back."""

    def __init__(self, problem: CoupledMembers) -> None:
        self.problem = problem
        weight = -float(problem.laplacian[0, -1])
        self.chain = Chain(opened(problem))
        first, last = problem.coupled[0], problem.coupled[-1]
        self.W = np.zeros((problem.size, len(first)))
        self.W[problem.part(0)], self.W[problem.part(len(problem.values) - 1)] = first.T, -last.T
        self.V = self.chain.solve(self.W)
        self.strength = problem.nu * weight
        small = self.strength * (self.W.T @ self.V)
        small[np.diag_indices_from(small)] += 1.0
        self.small = small

    def solve(self, R: Array) -> Array:
        """M^-1 R for R (p, k)."""
        X = self.chain.solve(R)
        # 1 + nu l W'V, which is symmetric, and positive definite for nu > 0 only.
        X -= self.V @ (self.strength * dense.solve_square(self.small, self.W.T @ X))
        return X


class Whole:
    """The Cholesky factor of M (p, p)."""

    def __init__(self, problem: CoupledMembers) -> None:
        self.factor = dense.cholesky(problem.dense(), REFUSED)

    def solve(self, R: Array) -> Array:
        """M^-1 R for R (p, k)."""
        return np.asarray(dense.solve(self.factor, R))


def opened(problem: CoupledMembers) -> CoupledMembers:
    """The same members without the edge between the first and the last."""
    L = problem.laplacian.copy()
    weight = -L[0, -1]
    L[[0, -1], [-1, 0]] = 0.0
    L[[0, -1], [0, -1]] -= weight
    return CoupledMembers(
        problem.values, problem.targets, problem.weights, problem.coupled, problem.ridges, L, problem.nu
    )


def shape_of(L: Array, nu: float) -> str:
    """Which elimination takes a graph of this Laplacian (q, q): that of a "chain", a "ring" or any "graph"."""
    far = np.abs(np.subtract.outer(np.arange(len(L)), np.arange(len(L)))) > 1
    if nu == 0.0 or not L[far].any():
        return "chain"
    far[0, -1] = far[-1, 0] = False
    return "graph" if L[far].any() else "ring"


def factorised(problem: CoupledMembers) -> Factor:
    """M, by the elimination that suits its graph."""
    kinds: dict[str, Any] = {"chain": Chain, "ring": Ring, "graph": Whole}
    factor: Factor = kinds[shape_of(problem.laplacian, problem.nu)](problem)
    return factor


# One way or the other ----------------------------------------------------------------------------------------------


def solve(
    problem: CoupledMembers,
    *,
    tol: float = 1e-8,
    start: Start = None,
    monitor: Monitor | None = None,
    method: str = "elimination",
    max_iter: int = -1,
) -> Solution:
    """Coefficients (p, k) of all members, one below the other, with a relative gap of at most `tol`.

    Elimination is exact up to rounding, of which one step of refinement takes care; `start` and `tol` are for conjugate
    gradients.
    """
    require(accepts(problem))
    if method not in SOLVERS:
        raise InvalidInput(f"solver={method!r} is not known; give one of {', '.join(SOLVERS)}")
    began, listener = time.perf_counter(), listening(monitor)
    _ = problem.curvature  # a problem without a minimum is refused at once
    iterations, stopped = 1, "converged"
    if method == "elimination":
        factor = factorised(problem)
        A = factor.solve(problem.right)
        A += factor.solve(problem.right - problem.dot(A))
        certificate = problem.certificate(A)
        listener.watch(1, certificate.primal, certificate.dual)
        if not converged(certificate.primal, certificate.dual, tol, certificate.gap):
            stopped = "stalled"
        history = [_record(1, began, certificate)]
    else:
        found = _iterate(problem, tol, start, listener, max_iter, began)
        A, certificate, iterations, stopped, history = found
    ended: Any = stopped
    return Solution.certified(
        certificate, A, A, solver=f"coupled {method}", iterations=iterations, stopped=ended,
        seconds=time.perf_counter() - began, history=history,
    )  # fmt: skip


def _record(iteration: int, began: float, certificate: Certificate) -> Record:
    return Record(iteration, time.perf_counter() - began, certificate.primal, certificate.dual, certificate.gap)


def _iterate(
    problem: CoupledMembers, tol: float, start: Any, monitor: Monitor, max_iter: int, began: float
) -> tuple[Array, Certificate, int, Stopped, list[Record]]:
    """Conjugate gradients until the certificate, computed afresh whenever the recursion believes in it, is small."""
    given = start.coefficients if isinstance(start, Solution) else start
    A = np.zeros_like(problem.right) if given is None else np.array(given, dtype=np.float64)
    if A.shape != problem.right.shape:
        raise InvalidInput(f"start has shape {A.shape}, this problem has {problem.right.shape} unknowns")
    most = LONGEST * problem.size if max_iter < 0 else max_iter
    precondition = _blocks(problem) if np.diff(problem.borders).max(initial=0) <= LARGEST_BLOCK else None
    search = ConjugateDirections(problem.dot, problem.right - problem.dot(A), A, precondition)
    history: list[Record] = []
    step = 0
    while True:
        certificate = problem.certificate(A)
        history.append(_record(step, began, certificate))
        if converged(certificate.primal, certificate.dual, tol, certificate.gap):
            return A, certificate, step, "converged", history
        if not monitor.watch(step, certificate.primal, certificate.dual):
            return A, certificate, step, monitor.stopped or "interrupted", history
        if step >= most:
            return A, certificate, step, "iterations", history
        search.step()
        step += 1


def _blocks(problem: CoupledMembers) -> Any:
    """The inverse of the diagonal blocks."""
    factors = [dense.cholesky(problem.block(j, j), REFUSED) for j in range(len(problem.values))]

    def precondition(R: Array) -> Array:
        return np.concatenate([dense.solve(L, R[problem.part(j)]) for j, L in enumerate(factors)])

    return precondition


# Leaving a target out ----------------------------------------------------------------------------------------------


def left_out(problem: CoupledMembers, A: Array, factor: Factor, member: int, at: list[Array]) -> Array:
    """Outputs (q, g, k) of all members at the g points of one, each had its target not been known.

    The point stays where it is as a basis or a coupling point; its term leaves the objective.  That takes w k k' off M,
    k its row of K_j, so that with z = M^-1 k and h = w k'z the residual e of the point becomes e / (1 - h), and the
    outputs fall by w at'z e / (1 - h).  `at` are the values (g, p_l) of the basis of every member l at the points.
    """
    K, w, here = problem.values[member], problem.weights[member], problem.part(member)
    embedded = np.zeros((problem.size, len(K)))
    embedded[here] = K.T
    Z = factor.solve(embedded)
    h = w * np.einsum("ip,pi->i", K, Z[here])
    residual = problem.targets[member] - K @ A[here]
    change = (w / (1.0 - h))[:, None] * residual
    outputs = []
    for other, values in enumerate(at):
        part = problem.part(other)
        outputs.append(values @ A[part] - np.einsum("ip,pi->i", values, Z[part])[:, None] * change)
    return np.stack(outputs)
