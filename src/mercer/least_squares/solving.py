"""Which solver a least-squares machine uses, and why.

The advice of the literature (Hamers 2004, figure 1.7), with thresholds that follow from memory instead of a year's
hardware:

    linear kernel, fewer features than points     woodbury: a system of the size of the features
    a kernel of compact support                   conjugate gradients on its sparse matrix
    a kernel that is not positive definite        saddle: LDL' with pivots
    the matrix fits in the budget                 cholesky
    it does not                                   block conjugate gradients, kernel values computed on the fly
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from mercer.errors import NotPositiveDefinite
from mercer.estimation.similarity import is_linear
from mercer.gram import Gram, GramOperator
from mercer.gram.memory import budget, show
from mercer.kernels import Kernel, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Solver
from mercer.solvers.linear_system import LinearSystem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

SOLVERS = (
    "block_conjugate_gradient",
    "cholesky",
    "conjugate_gradient",
    "least_squares_smo",
    "minres",
    "multishift",
    "saddle",
    "sparse_direct",
    "spectral",
    "stationary",
    "symmlq",
    "woodbury",
)
# The solvers that ask for the whole matrix at once, and take it straight from its tiles.
WHOLE = ("cholesky", "saddle", "spectral")
# Past this many features a d x d matrix is dearer than products with sparse data.
MOST_FEATURES = 5000


@dataclass(frozen=True)
class Choice:
    """A solver, the Gram operator it works on, and the reason."""

    solver: str
    reason: str
    gram: GramOperator


def choose(
    solver: str, kernel: Kernel, X: Any, matrix: Any, *, C: float, memory: int | str | None, precision: str
) -> Choice:
    """The solver asked for, or the one advised, for points X (n, d) or a given matrix (n, n)."""
    name, reason = (
        (solver, f"solver={solver!r} was asked for")
        if solver != "auto"
        else advise(kernel, X, matrix, C=C, memory=memory)
    )
    return Choice(name, reason, gram_for(name, kernel, X, matrix, memory=memory, precision=precision))


def advise(kernel: Kernel, X: Any, matrix: Any, *, C: float, memory: int | str | None) -> tuple[str, str]:
    """A solver by the rules at the head of this file, and the reason in words."""
    n = _length(X) if matrix is None else matrix.shape[0]
    allowed = budget(memory)
    if matrix is None and is_linear(kernel) and np.isfinite(C):
        d = X.shape[1]
        if d < n and d <= MOST_FEATURES:
            return "woodbury", f"linear kernel with {d} features for {n} points"
        if sp.issparse(X) and n > d:
            return "conjugate_gradient", f"linear kernel on sparse data with {d} features"
    if kernel.compact and matrix is None and np.isfinite(C):
        return "conjugate_gradient", "a kernel of compact support has a sparse matrix"
    if 8 * n * n > allowed:
        if np.isfinite(C):
            return (
                "block_conjugate_gradient",
                f"the matrix of {show(8 * n * n)} does not fit in {show(allowed)}: its values are computed on the fly",
            )
        return "minres", f"the matrix of {show(8 * n * n)} does not fit in {show(allowed)}, and C is infinite"
    if kernel.conditional_order < 0:
        return "saddle", "the kernel is not positive definite"
    return "cholesky", f"the matrix of {show(8 * n * n)} fits in {show(allowed)}"


def gram_for(
    solver: str, kernel: Kernel, X: Any, matrix: Any, *, memory: int | str | None, precision: str
) -> GramOperator:
    """The Gram operator in the form a solver uses best."""
    if matrix is not None:
        return Gram(Precomputed(), matrix)
    kind = "float32" if precision == "float32" else "float64"
    if solver == "woodbury":
        return Gram(kernel, X, memory=memory, precision=kind, storage="lowrank")
    if solver == "sparse_direct":
        return Gram(kernel, X, memory=memory, precision=kind, storage="sparse")
    if solver in WHOLE:
        # Streamed: the solver's own array is then the only n x n one.
        return Gram(kernel, X, memory=memory, precision=kind, storage="streamed")
    return Gram(kernel, X, memory=memory, precision=kind, access="products")


def solve(problem: LeastSquares, choice: Choice, *, tol: float, monitor: Monitor | None, automatic: bool) -> Solution:
    """Run the chosen solver; a singular matrix met by the automatic choice at C = inf goes to the spectral one."""
    try:
        return _module(choice.solver).solve(problem, tol=tol, monitor=monitor)
    except NotPositiveDefinite:
        if not (automatic and choice.solver == "cholesky" and np.isinf(problem.C)):
            raise
        return _module("spectral").solve(problem, tol=tol, monitor=monitor)


def certified(problem: LeastSquares, coefficients: Any, road: str, monitor: Monitor | None) -> Solution:
    """The solution whose coefficients (n, k) came with the leave-one-out, certified by one product with K."""
    system = LinearSystem(problem)
    c = system.take(np.asarray(coefficients))
    if system.q:  # rounding leaves Phi'c a little off zero
        Q = np.linalg.qr(system.Phi)[0]
        c = c - Q @ (Q.T @ c)
    certificate = system.certify(c)
    if monitor is not None:
        monitor.watch(1, *certificate.total[:2])
    details = {"reason": "its coefficients came with the choice of the parameters"}
    return system.certified(c, certificate, road, iterations=1, monitor=monitor, details=details)


def _module(name: str) -> Solver:
    return cast(Solver, import_module(f"mercer.solvers.{name}"))


def _length(X: Any) -> int:
    return len(X) if isinstance(X, list) else int(X.shape[0])
