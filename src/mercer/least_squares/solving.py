"""The solver of a least-squares machine: chosen by `mercer.planning`, run, and its solution certified."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np

from mercer import dense, planning
from mercer.errors import BudgetTooSmall, NotPositiveDefinite
from mercer.gram import Gram, GramOperator, size
from mercer.kernels import Kernel, Precomputed
from mercer.planning.solvers import WHOLE, least_squares_bytes
from mercer.problems.least_squares import LeastSquares
from mercer.resources import Resources, show
from mercer.solvers.contract import Solver
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

SOLVERS = (
    "block_conjugate_gradient", "cholesky", "conjugate_gradient", "least_squares_smo", "minres", "multishift", "saddle",
    "sparse_direct", "spectral", "stationary", "symmlq", "woodbury",
)  # fmt: skip
DIRECT = ("cholesky", "saddle", "sparse_direct", "spectral", "woodbury")  # these take no iterations


@dataclass(frozen=True)
class Choice:
    """A solver, the Gram operator it works on, and the reason."""

    solver: str
    reason: str
    gram: GramOperator


def choose(solver: str, kernel: Kernel, X: Any, matrix: Any, *, C: float, resources: Resources) -> Choice:
    """The solver asked for, or the one advised, for points X (n, d) or a given matrix (n, n)."""
    n = size(X) if matrix is None else matrix.shape[0]
    name, reason = (
        planning.Choice.asked("solver", solver)
        if solver != "auto"
        else planning.least_squares_solver(kernel, X if matrix is None else None, n, C=C, resources=resources)
    )
    if name in WHOLE:
        _refuse_beyond(name, n, C, resources)
    return Choice(name, reason, gram_for(name, kernel, X, matrix, resources))


def _refuse_beyond(solver: str, n: int, C: float, resources: Resources) -> None:
    """Refuse a direct solver that would pass a budget that was stated."""
    memory = resources.memory
    if memory is not None and (needed := least_squares_bytes(solver, n, C)) > resources.budget:
        raise BudgetTooSmall(
            f"solver={solver!r} takes {show(needed)} for {n} points and memory={memory!r} was given: raise memory, or "
            "take solver='auto' or 'block_conjugate_gradient', which compute kernel values on the fly"
        )


def gram_for(solver: str, kernel: Kernel, X: Any, matrix: Any, resources: Resources) -> GramOperator:
    """The Gram operator in the form a solver uses best."""
    if matrix is not None:
        return Gram(Precomputed(), matrix, memory=resources.memory)
    form = {"woodbury": "lowrank", "sparse_direct": "sparse"}.get(solver, "auto")
    if solver in WHOLE or solver == "stationary":
        form = "streamed"  # the solver's own array is then the only n x n one
    return Gram(kernel, X, memory=resources.memory, precision=resources.precision, storage=form, access="products")


def solve(
    problem: LeastSquares,
    choice: Choice,
    *,
    tol: float,
    max_iter: int,
    start: Solution | None,
    monitor: Monitor | None,
    automatic: bool,
) -> Solution:
    """Run the chosen solver; a singular matrix met by the automatic choice at C = inf goes to the spectral one."""
    options: dict[str, Any] = {} if max_iter < 0 or choice.solver in DIRECT else {"iterations": max_iter}
    try:
        return _module(choice.solver).solve(problem, tol=tol, start=start, monitor=monitor, **options)
    except NotPositiveDefinite:
        if not (automatic and choice.solver == "cholesky" and np.isinf(problem.C)):
            raise
        return _module("spectral").solve(problem, tol=tol, monitor=monitor)


def certified(problem: LeastSquares, coefficients: Any, method: str, monitor: Monitor | None) -> Solution:
    """The solution whose coefficients (n, k) came with the leave-one-out, certified by one product with K."""
    system = LinearSystem(problem)
    c = system.take(np.asarray(coefficients))
    if system.q:  # rounding leaves Phi'c a little off zero
        Q = dense.orthonormal(system.Phi)
        c = c - Q @ (Q.T @ c)
    certificate = system.certify(c)
    if monitor is not None:
        monitor.watch(1, certificate.primal, certificate.dual)
    details = {"reason": "its coefficients came with the choice of the parameters"}
    return system.certified(c, certificate, method, iterations=1, monitor=monitor, details=details)


def _module(name: str) -> Solver:
    return cast(Solver, import_module(f"mercer.solvers.linear.{name}"))
