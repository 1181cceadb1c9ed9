"""Lagrangian support vector machine: a fixed-point iteration for squared losses with a penalised bias, or none.

With a_j = sigma_j s_j >= 0, sigma_j = +-1 the only direction in which variable j may move from zero, the dual of such a
problem is min over a >= 0 of 1/2 a'Qa - e'a, Q = diag(sigma) (K~ + diag(ridge)) diag(sigma), e = -sigma linear.  Its
optimality conditions, a and Qa - e both >= 0 and orthogonal, hold exactly when Qa - e = ((Qa - e) - gamma a)_+ for any
gamma > 0, which is solved by

    a <- Q^-1 ( ((Qa - e) - gamma a)_+ + e ),       a_0 = Q^-1 e .

||Q(a_k - a*)|| falls in every step by at least ||I - gamma Q^-1|| = max |1 - gamma / lambda| over the eigenvalues of Q,
which is below one for 0 < gamma < 2 min(ridge) <= 2 lambda_min.  (Mangasarian and Musicant 2001; Schoelkopf and Smola
2002, section 10.6.2 and problem 10.16, where the printed rate |1 - gamma / (lambda m)| is no bound: ridge is lambda m.)
Points of different weight have different ridges; with a sqrt(ridge) as the variables all of them are one, which is the
iteration above with gamma_j in proportion to ridge_j.  In these units lambda_min >= 1.

Q is factorised once: the whole matrix, or by the Woodbury formula where K~ has a thin factor, as the linear kernel
and every low-rank one have; the two variables of a point in regression are reduced to one (`BarrierSystem`).
"""

from typing import Any, Unpack

import numpy as np

from mercer import threads
from mercer.arrays import Array, Index
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.run import Limits, Run
from mercer.solvers.quadratic.interior_point import fits
from mercer.solvers.quadratic.thin_barrier import matrix_of, system_on
from mercer.solvers.solution import Solution

NAME = "lagrangian"
ACCEPTS = "squared hinge and squared epsilon-insensitive losses with bias 'penalised' or 'none'"
SECTION = "Schoelkopf and Smola 2002, section 10.6.2"

STEP = 1.9  # gamma in units of the smallest ridge, of which 2 is the limit


def accepts(problem: Any, *, memory: int | str | None = None) -> Acceptance:
    """Programs without equalities over variables >= 0 or <= 0 that have a ridge, and whose matrix fits."""
    if not isinstance(problem, Problem):
        return Acceptance(False, f"the Lagrangian method takes support vector problems, not {type(problem).__name__}")
    program = problem.program()
    if program.d.size:
        return Acceptance(False, "a free bias is an equality: use bias='penalised' or 'none'")
    moving = program.upper > program.lower
    one_sided = ((program.lower == 0.0) & np.isposinf(program.upper)) | (
        (program.upper == 0.0) & np.isneginf(program.lower)
    )
    if not (one_sided & (program.ridge > 0.0))[moving].all():
        return Acceptance(False, "the loss is not a squared one: use loss='squared_hinge' or its like for regression")
    return fits(program, memory)


def solve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    gamma: float | None = None,
    memory: int | str | None = None,
    **limits: Unpack[Limits],
) -> Solution:
    """Iterate to a relative duality gap of `gap_tol`, or of `tol` where that is None.

    gamma : the parameter of the iteration for the heaviest points, below twice their ridge (2 lambda m); None is 0.95
    of that.
    """
    require(accepts(problem, memory=memory), NAME)
    program = problem.program()
    on = np.flatnonzero(program.upper > program.lower)
    smallest = float(program.ridge[on].min(initial=np.inf))
    gamma = STEP * smallest if gamma is None else float(gamma)
    if not 0.0 < gamma < 2.0 * smallest:
        raise InvalidInput(
            f"gamma = {gamma:.6g} does not make the iteration converge: it must lie between 0 and 2 lambda m = "
            f"{2.0 * smallest:.6g}"
        )
    run = Run(problem, NAME, tol=tol, **limits)
    with threads.blas_threads(program.n), run.monitor:
        iteration = Iteration(program, on, gamma)
        a = iteration.start if run.given is None else iteration.unsigned(run.given)
        image = iteration.multiply(a)
        while run.goes_on():
            if run.due and not run.look(iteration.variables(a)):
                break
            a, image = iteration.step(a, image)
        return run.solution(gamma=gamma, rate=iteration.rate, factorisation=iteration.system.method)


class Iteration:
    """The fixed-point map of a program over its variables `on` that can move, as many as a has entries."""

    def __init__(self, program: QuadraticProgram, on: Index, gamma: float) -> None:
        relative = gamma / float(program.ridge[on].min())
        self.program, self.on, self.gamma = program, on, relative * program.ridge[on]
        self.sign = np.where(program.upper[on] > 0.0, 1.0, -1.0)
        self.e = -self.sign * program.linear[on]
        points, place = np.unique(program.point[on], return_inverse=True)
        K: Any = matrix_of(program)
        self.system = system_on(K, None if points.size == program.n else points, place.astype(np.intp))
        self.system.factor(program.ridge[on])
        self.start = self.divide(self.e)
        # All eigenvalues of Q, in units of the ridge, lie between one and the trace.
        diagonal = np.asarray(program.gram.diagonal(), dtype=np.float64) + program.constant
        highest = float((diagonal[program.point[on]] / program.ridge[on] + 1.0).sum())
        self.rate = max(abs(1.0 - relative), abs(1.0 - relative / highest))

    def multiply(self, a: Array) -> Array:
        """Q a."""
        return self.sign * self.system.multiply((self.sign * a)[:, None])[:, 0]

    def divide(self, b: Array) -> Array:
        """Q^-1 b."""
        return self.sign * self.system.solve((self.sign * b)[:, None])[:, 0]

    def step(self, a: Array, image: Array) -> tuple[Array, Array]:
        """The next point and its image under Q, from a and image = Q a."""
        image = np.maximum(image - self.e - self.gamma * a, 0.0) + self.e
        return self.divide(image), image

    def unsigned(self, s: Array) -> Array:
        """Variables a >= 0 of signed ones s (N,)."""
        return self.sign * s[self.on]

    def variables(self, a: Array) -> Array:
        """The feasible signed variables (N,) nearest to a."""
        s = np.zeros(self.program.size)
        s[self.on] = self.sign * np.maximum(a, 0.0)
        return s
