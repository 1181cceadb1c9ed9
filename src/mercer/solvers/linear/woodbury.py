"""Least squares when K = F F' has a thin factor F (n, d): a d x d system in place of an n x n one.

By the Sherman-Morrison-Woodbury formula, with S = R^-1 (diagonal),

    (F F' + R)^-1 T = S T - S F (I + F' S F)^-1 F' S T,

associated from the right: O(n d^2) time, most of it for F'SF, and O(n d) memory (Hamers 2004, section 4.5; Rifkin
2002, section 3.5.2, equation 3.65 corrected).  The linear kernel has F = X, dense or sparse, so a million points of
twenty features take seconds; a rank-one kernel k(x, z) = g(x) g(z) has d = 1 and costs O(n); any low-rank Gram
operator brings its factor.  A penalised bias is one more column of ones in F.

S T - S F(...) cancels when the ridge is small beside K; one step of iterative refinement, O(n d), restores the digits.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import dense
from mercer.arrays import Array
from mercer.errors import NotPositiveDefinite
from mercer.gram import GramOperator
from mercer.problems.least_squares import LeastSquares, certify
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution


def factor_of(gram: Any) -> Any | None:
    """F (n, d), dense or CSR, with K = F F', where the Gram operator has one at hand; else None."""
    if not isinstance(gram, GramOperator):
        return None
    if gram.factor() is not None:
        return gram.factor()
    profile = getattr(gram.kernel, "profile", None)
    if profile is None or profile.name != "linear":
        return None
    X = gram.X
    if profile.scale is None:
        return X
    return X @ sp.diags_array(profile.scale) if sp.issparse(X) else X * profile.scale


def accepts(problem: Any) -> Acceptance:
    """Least-squares problems with a finite C whose kernel matrix comes as a product of thin factors."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "Woodbury's identity solves least-squares problems only")
    if np.isinf(problem.C):
        return Acceptance(False, "C = inf leaves no ridge to divide by: use spectral")
    F = factor_of(problem.gram)
    if F is None:
        return Acceptance(False, "the matrix has no thin factor: use the linear kernel or a low-rank Gram operator")
    return Acceptance(True, f"one system of size {F.shape[1]} in place of {problem.n}")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    start: Start = None,
    monitor: Monitor | None = None,
    refine: int = 1,
) -> Solution:
    """Solve directly, with `refine` steps of iterative refinement.

    `tol` and `start` are taken for the contract's sake.  details: "rank" d, and "weights" (d, k), F'c: for the linear
    kernel the weight vectors themselves.
    """
    del tol, start
    require(accepts(problem))
    system = LinearSystem(problem, definite=False)
    thin = ThinSystem(system)
    with listening(monitor) as watch:
        variables = thin.solve(system.T)
        for _ in range(refine):
            variables += thin.solve(system.T - thin.dot(variables))
        c, _ = system.eliminate(variables)
        inner = np.asarray(thin.F.T @ c)
        certificate = certify(c, np.asarray(thin.F @ inner), system.Y, system.Phi, system.weights, problem.C)
        details = {"rank": int(thin.F.shape[1]), "weights": inner[: thin.features]}
        return system.exact(c, certificate, "woodbury", watch, variables=variables, details=details)


class ThinSystem:
    """H = F F' + R with the factored core I + F'R^-1 F (d, d)."""

    def __init__(self, system: LinearSystem) -> None:
        F = factor_of(system.problem.gram)
        assert F is not None
        if system.active is not None:
            F = F[system.active]
        self.features = int(F.shape[1])
        if system.problem.constant:
            ones = np.full((system.n, 1), np.sqrt(system.problem.constant))
            F = sp.hstack([F, sp.csr_array(ones)], format="csr") if sp.issparse(F) else np.hstack([F, ones])
        self.F: Any = F if F.dtype == np.float64 else F.astype(np.float64)
        self.ridge = system.ridge[:, None]
        core = self._core()
        core.flat[:: len(core) + 1] += 1.0
        if not dense.factorise(core):
            raise NotPositiveDefinite("the core of the low-rank system is not positive definite: lower C")
        self.core = core

    def _core(self) -> Array:
        """F'R^-1 F, dense (d, d)."""
        if sp.issparse(self.F):
            product = self.F.T @ (sp.diags_array(1.0 / self.ridge[:, 0]) @ self.F)
            return np.array(product.toarray(), order="F")
        # Blocks of rows keep the scaled copy small.
        core = np.zeros((self.F.shape[1], self.F.shape[1]), order="F")
        step = max(1, 2**21 // max(1, self.F.shape[1]))
        for i in range(0, len(self.F), step):
            part = self.F[i : i + step] / np.sqrt(self.ridge[i : i + step])
            core += part.T @ part
        return core

    def dot(self, V: Array) -> Array:
        """H V."""
        return np.asarray(self.F @ (self.F.T @ V) + self.ridge * V)

    def solve(self, T: Array) -> Array:
        """H^-1 T."""
        scaled = T / self.ridge
        inner = dense.solve(self.core, self.F.T @ scaled)
        return np.asarray(scaled - (self.F @ inner) / self.ridge)
