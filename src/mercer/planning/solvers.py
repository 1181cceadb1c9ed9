"""Which solver, by what the problem is made of; the names are those of modules in `mercer.solvers`.

Least squares (after Hamers 2004, figure 1.7, with thresholds that follow from memory instead of a year's hardware):

    linear kernel, fewer features than points     woodbury: a system of the size of the features
    linear kernel on other sparse points          conjugate gradients: products take as long as X has entries
    a kernel of compact support                   conjugate gradients on its sparse matrix
    a kernel that is not positive definite        saddle: LDL' with pivots
    the matrix fits in the budget                 cholesky
    it does not                                   block conjugate gradients, kernel values computed on the fly

Support vector machines:

    basis functions                               interior point: their equalities are not sums of variables
    a thin factor (n, p) stands for the matrix    interior point while n p^2 is small, else coordinate ascent
    few points and a huge C, or a hard margin     interior point: steps on pairs take ever more rounds as C grows
    all else                                      decomposition on working sets; on few points that turn out to need
                                                  very many pair steps, the interior point method takes over
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels import Kernel
from mercer.planning.choice import Choice
from mercer.problems import HardMargin, Problem
from mercer.resources import Resources, show
from mercer.solvers.quadratic import interior_point, linear_dual

# The solvers that ask for the whole matrix at once, and take it straight from its tiles, with the number of n x n
# arrays each holds at its peak: LAPACK's divide and conquer works in two, and interpolation keeps its matrix besides.
WHOLE = {"cholesky": 1, "saddle": 2, "spectral": 3}
INTERPOLATION = 5
# Past this many features a d x d matrix costs more than products with sparse data.
MOST_FEATURES = 5000
SMALL = 1500  # points up to which the interior point method takes a second or two on one core
DIRECT = 3e10  # n p^2 up to which the interior point method takes about a minute on one core
# C k(x, x) beyond which pair steps are not tried on few points.  Chosen; measured at 1e6 on 1,000 overlapping points:
# the interior point method took 4 s, the decomposition had a gap of 0.4 after 20 s.
HUGE = 1e5
PATIENCE = 2000  # pair steps for each of few points, about the time the interior point method takes on them
ON_WORKING_SETS = Choice("decomposition", "working sets take the rows of the kernel matrix they need")


def least_squares_bytes(solver: str, n: int, C: float) -> int:
    """Bytes a direct solver takes for n points; at C = inf the spectral one may have to follow the one chosen."""
    return 8 * n * n * (WHOLE[solver] if np.isfinite(C) or solver == "saddle" else INTERPOLATION)


def least_squares_solver(kernel: Kernel, X: Any, n: int, *, C: float, resources: Resources) -> Choice:
    """A solver for n points X (n, d), None where the matrix is given, by the rules at the head of this file."""
    allowed = resources.budget
    profile = kernel.profile
    if X is not None and np.isfinite(C):
        if profile is not None and profile.name == "linear" and profile.scale is None:
            d = X.shape[1]
            if d < n and d <= MOST_FEATURES:
                return Choice("woodbury", f"linear kernel with {d} features for {n} points")
            if sp.issparse(X):
                return Choice("conjugate_gradient", f"linear kernel on sparse data, {n} points with {d} features")
        if kernel.compact:
            return Choice("conjugate_gradient", "a kernel of compact support has a sparse matrix")
    direct = "saddle" if kernel.conditional_order < 0 else "cholesky"
    size = f"the matrix of {show(8 * n * n)}"
    if least_squares_bytes(direct, n, C) > allowed:
        if np.isfinite(C):
            reason = f"{size} does not fit in {show(allowed)}: its values are computed on the fly"
            return Choice("block_conjugate_gradient", reason)
        return Choice("minres", f"{size} does not fit in {show(allowed)}, and C is infinite")
    if direct == "saddle":
        return Choice(direct, "the kernel is not positive definite")
    return Choice(direct, f"{size} fits in {show(allowed)}")


def quadratic_solver(problem: Problem, resources: Resources, *, bounded: bool = False) -> Choice:
    """A solver for one problem of a support vector machine, by the rules at the head of this file.

    A bound on the iterations is meant for pair steps: where one is given, few points go to working sets as well.
    """
    if problem.basis is not None:
        return Choice("interior_point", "basis functions are equality rows, which no other solver takes")
    factor = problem.gram.factor() if hasattr(problem.gram, "factor") else None
    if factor is not None:
        return _thin_solver(problem, factor, resources)
    if patience(problem) is None:
        return ON_WORKING_SETS
    reason = None
    if isinstance(problem, HardMargin):
        reason = "margins may be tiny, which is no matter to a second-order method"
    elif not bounded and _largest(problem) >= HUGE:
        reason = f"few points and C k(x, x) of {_largest(problem):.1g}: a second-order method"
    if reason is not None and interior_point.accepts(problem, memory=resources.memory):
        return Choice("interior_point", reason)
    return ON_WORKING_SETS


def patience(problem: Problem) -> int | None:
    """Pair steps after which the interior point method takes over; None where it would take longer than they do."""
    return PATIENCE * problem.n if problem.n <= SMALL else None


def solver_for_size(machine: str, kernel: Kernel, n: int, d: int, *, sparse: bool, resources: Resources) -> Choice:
    """The solver of a machine ("svc", "lssvr", ...) at its usual parameters, for n points of d features."""
    if machine.startswith("ls"):
        X = sp.csr_array((n, d)) if sparse else np.broadcast_to(0.0, (n, d))
        return least_squares_solver(kernel, X, n, C=1.0, resources=resources)
    return ON_WORKING_SETS


def _largest(problem: Problem) -> float:
    """C k(x, x): the largest finite bound of a variable times the mean of the diagonal."""
    program = problem.program()
    bounds = np.maximum(np.abs(program.lower), np.abs(program.upper))
    finite = bounds[np.isfinite(bounds)]
    return float(finite.max(initial=0.0)) * float(np.mean(np.abs(problem.gram.diagonal())))


def _thin_solver(problem: Problem, Z: Any, resources: Resources) -> Choice:
    """Where a factor Z (n, p) stands for the matrix, and takes part of the memory."""
    n, p = Z.shape
    left = resources.memory if resources.memory is None else max(1, resources.budget - int(getattr(Z, "nbytes", 0)))
    if float(n) * p * p <= DIRECT and interior_point.accepts(problem, memory=left):
        return Choice("interior_point", f"{p} features of {n} points: few enough, whatever C")
    if linear_dual.accepts(problem):
        return Choice("linear_dual", f"{p} features of {n} points: coordinate ascent takes n p operations in a pass")
    return ON_WORKING_SETS
