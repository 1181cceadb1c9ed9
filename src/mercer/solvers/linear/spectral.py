"""Least squares by eigendecomposition: K = V diag(s) V', then every ridge r costs one diagonal scaling.

    (K + r I)^-1 T = V ((V'T) / (s + r)).

With weights w the decomposition is that of W^1/2 K W^1/2, since W^1/2 (K + W^-1/C) W^1/2 = W^1/2 K W^1/2 + I/C.
About ten times the cost of a Cholesky factorisation, paid once for any number of C values and targets.

C = inf is interpolation.  With P the projector on Phi'c = 0, the system K c + Phi beta = Y becomes (P K P) c = P Y;
its least-norm solution is the pseudo-inverse applied to P Y, the limit of the solutions as C grows (Hamers 2004,
appendix B).  Where P Y is not in the range of P K P no function of the space takes those values, as when two equal
points carry different targets: an error says so.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import dense, threads
from mercer.arrays import Array
from mercer.errors import Infeasible, NotPositiveDefinite
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear.bordered import project
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution


@dataclass(frozen=True, eq=False)
class Decomposition:
    """W^1/2 K W^1/2 = V diag(values) V' on the points of positive weight, with root = W^1/2 (n, 1)."""

    values: Array
    vectors: Array
    root: Array

    def solve(self, T: Array, C: float) -> Array:
        """(K + W^-1/C)^-1 T, (n, m)."""
        shifted = self.values + 1.0 / C
        if shifted[0] <= 0:
            raise NotPositiveDefinite(
                f"K + ridge has the eigenvalue {shifted[0]:.3g}: lower C, or use a positive definite kernel"
            )
        inner = self.vectors.T @ (self.root * T)
        return np.asarray(self.root * (self.vectors @ (inner / shifted[:, None])))

    def condition(self, C: float) -> float:
        """cond_2 of W^1/2 (K + W^-1/C) W^1/2: (s_max + 1/C) / (s_min + 1/C)."""
        return float((self.values[-1] + 1.0 / C) / (self.values[0] + 1.0 / C))


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem whose n x n matrix fits in memory."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "the spectral solver takes least-squares problems only")
    return Acceptance(True, "takes singular matrices and C = inf")


def decompose(system: LinearSystem, poll: dense.Poll | None = None) -> Decomposition:
    """Eigenvalues and eigenvectors of the weighted kernel matrix; C plays no part.  `poll` is called meanwhile."""
    root = np.sqrt(system.weights)[:, None]
    A = system.kernel_matrix()
    if system.projection is not None:
        project(A, system.projection)
    A *= root
    A *= root.T
    # LAPACK's eigh of the transpose: the same symmetric matrix, in the order it wants.
    vectors = A.T
    values = threads.apart(lambda: dense.diagonalise(vectors), poll)
    # Rounding pushes the zero eigenvalues of a positive semidefinite matrix slightly below zero.
    noise = len(values) * np.finfo(np.float64).eps * max(abs(values[0]), abs(values[-1]))
    values[np.abs(values) <= noise] = 0.0
    return Decomposition(values, vectors, root)


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    start: Start = None,
    monitor: Monitor | None = None,
    decomposition: Decomposition | None = None,
) -> Solution:
    """Solve directly; `decomposition` from `decompose` of the same points, kernel and weights is used again.

    `tol` and `start` are taken for the contract's sake.  details["decomposition"] holds the one used.
    """
    del tol, start
    require(accepts(problem))
    system = LinearSystem(problem)
    details: dict[str, Any] = {}
    with listening(monitor) as watch:
        if np.isinf(problem.C):
            c, variables = _interpolate(system, watch.poll), None
        else:
            decomposition = decompose(system, watch.poll) if decomposition is None else decomposition
            details = {"decomposition": decomposition, "condition": decomposition.condition(problem.C)}
            variables = decomposition.solve(system.T, problem.C)
            c, _ = system.eliminate(variables)
        return system.exact(c, system.certify(c), "spectral", watch, variables=variables, details=details)


def _interpolate(system: LinearSystem, poll: dense.Poll) -> Array:
    """The least-norm c with P K P c = P Y and P c = c."""
    A, right = system.kernel_matrix(), system.Y
    if system.q:
        Q = dense.orthonormal(system.Phi)
        project(A, Q)
        right = right - Q @ (Q.T @ right)
    vectors = np.asfortranarray(0.5 * (A + A.T))
    values = threads.apart(lambda: dense.diagonalise(vectors), poll)
    large = np.abs(values) > len(values) * np.finfo(np.float64).eps * np.max(np.abs(values), initial=0.0)
    V = vectors[:, large]
    c = V @ ((V.T @ right) / values[large][:, None])
    left = np.linalg.norm(A @ c - right, axis=0)
    if (left > 1e-7 * np.linalg.norm(system.Y, axis=0)).any():
        raise Infeasible(
            "no function of this kernel takes the given values exactly (equal points with different targets, or a "
            "kernel of too low rank): choose a finite C"
        )
    return np.asarray(c)
