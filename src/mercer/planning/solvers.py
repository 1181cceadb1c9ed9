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
    a thin factor (n, p) stands for the matrix    interior point, coordinate ascent or working sets, by their times
    a linear kernel on few dense features         that factor, where pair steps would take longer (`thin_factor_pays`)
    few points and a huge C, or a hard margin     interior point: steps on pairs take ever more rounds as C grows
    all else                                      decomposition on working sets; on few points that turn out to need
                                                  very many pair steps, the interior point method takes over
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels import Kernel
from mercer.planning.advisor import DIRECT, FLOPS, POINT, SMALL, Situation, advise, asks_for_pairs
from mercer.planning.choice import Choice
from mercer.problems import Problem
from mercer.resources import Resources, show
from mercer.solvers.quadratic import interior_point, linear_dual

# The solvers that ask for the whole matrix at once, and take it straight from its tiles, with the number of n x n
# arrays each holds at its peak: LAPACK's divide and conquer works in two, and interpolation keeps its matrix besides.
WHOLE = {"cholesky": 1, "saddle": 2, "spectral": 3}
INTERPOLATION = 5
# Past this many features a d x d matrix costs more than products with sparse data.
MOST_FEATURES = 5000
PATIENCE = 2000  # pair steps for each of few points, about the time the interior point method takes on them
# Seconds of the interior point method on a thin factor before its first round, its rounds, and seconds of pair steps
# for a pair of points at C k(x, x) = 1, measured for linear kernels on two cores: 300 to 20,000 points of 8 to 123
# features, C k(x, x) from 0.1 to 12,000 (covtype, susy, california, a9a).  Below LEAST_COST pair steps take no less.
FIRST, ROUNDS_ON_FACTOR = 5e-3, 30
PAIR_STEPS, LEAST_COST = 3e-10, 10.0
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
    """A solver for one problem of a support vector machine, by the advisor (`mercer.planning.advisor`).

    A bound on the iterations is meant for pair steps: where one is given, few points go to working sets as well.
    """
    factor = problem.gram.factor() if hasattr(problem.gram, "factor") else None
    if problem.basis is None and factor is None and (patience(problem) is None or asks_for_pairs(problem)):
        return ON_WORKING_SETS  # more points than the interior point method is quick on, or nothing to weigh
    advice = advise(Situation.of(problem, bounded=bounded), memory=resources.memory)
    choice = Choice(advice.method, advice.reasons[-1])
    if choice.name != "interior_point" or problem.basis is not None:
        return choice
    left = resources.memory
    if left is not None and factor is not None:
        left = max(1, resources.budget - int(getattr(factor, "nbytes", 0)))
    if interior_point.accepts(problem, memory=left):
        return choice
    if factor is not None and linear_dual.accepts(problem):
        n, p = factor.shape
        return Choice("linear_dual", f"{p} features of {n} points: coordinate ascent takes n p operations in a pass")
    return ON_WORKING_SETS


def seconds_on_factor(n: int, d: int) -> float:
    """What the interior point method takes for a machine on n points of d features whose kernel is linear."""
    return FIRST + ROUNDS_ON_FACTOR * (n * float(d) ** 2 / FLOPS + n * POINT)


def thin_factor_pays(n: int, d: int, cost: float) -> bool:
    """Whether such a machine is trained sooner from its points than by pair steps.

    cost : C k(x, x).  The interior point method takes its few rounds whatever that is; pair steps grow with it.
    """
    few = d < n and n * float(d) ** 2 <= DIRECT
    return few and seconds_on_factor(n, d) < PAIR_STEPS * float(n) ** 2 * max(LEAST_COST, cost)


def patience(problem: Problem) -> int | None:
    """Pair steps after which the interior point method takes over; None where it would take longer than they do."""
    return PATIENCE * problem.n if problem.n <= SMALL else None


def solver_for_size(machine: str, kernel: Kernel, n: int, d: int, *, sparse: bool, resources: Resources) -> Choice:
    """The solver of a machine ("svc", "lssvr", ...) at its usual parameters, for n points of d features."""
    if machine.startswith("ls"):
        X = sp.csr_array((n, d)) if sparse else np.broadcast_to(0.0, (n, d))
        return least_squares_solver(kernel, X, n, C=1.0, resources=resources)
    return ON_WORKING_SETS
