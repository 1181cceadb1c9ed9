"""Stochastic subgradient descent with steps 1/s (Ratliff, Bagnell and Zinkevich 2007; Shalev-Shwartz et al. 2007).

With s steps behind it, each on the highest plane v_i of one of n examples, and step lengths 1/s, w is the mean

    w = (n / s) sum of C_i v_i    over all steps so far.

After whole passes every example has been met s / n times, so that w = sum_i C_i (mean of its planes): a point of the
dual, with the means of the losses beside it.  The certificate therefore costs no more than inference on all examples,
once after each pass.  Descent is slow towards a small gap; it needs no memory but w, and the best points of both
problems, which need not be those of the last pass.
"""

from typing import Unpack

import numpy as np

from mercer.problems.structured import StructuredProblem, Vector
from mercer.solvers.contract import Start
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.structured.additive import add_pass
from mercer.solvers.structured.search import Limits, Reader, Search, accepts, solved

__all__ = ["NAME", "accepts", "solve"]

NAME = "subgradient descent"


def solve(problem: StructuredProblem, *, seed: int = 0, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of passes over the examples (-1: no bound)."""
    return solved(Subgradient, problem, seed=seed, **limits)


class Subgradient(Search):
    """The sum G (size,) of planes, each counted by its cost, that of their losses, and the number of passes.

    `best` is the point of the dual with the highest value so far, and the loss that goes with it.
    """

    name = NAME

    def __init__(self, problem: StructuredProblem, tol: float, start: Start, monitor: Monitor, seed: int) -> None:
        super().__init__(problem, tol, start, monitor)
        self.G, self.total, self.passes = np.zeros(problem.size), 0.0, 0
        self.best = np.zeros(problem.size), 0.0
        self.random = np.random.default_rng(seed)

    def run(self, limit: int) -> Stopped:
        """Passes until convergence, a limit or an interruption."""
        while True:
            w, loss = self.G / max(self.passes, 1), self.total / max(self.passes, 1)
            if self.learn_dual(w, loss) >= self.dual:
                self.best = w, loss
            self.learn_primal(w, self.problem.planes(w).bounds)
            if (stopped := self.ended(limit)) is not None:
                return stopped
            n = self.problem.n
            order, step = self.random.permutation(n), self.passes * n
            self.total += add_pass(self.problem, order, step, self.G, None, pace=float(n), augmented=True).loss
            self.passes += 1
            self.iterations += 1

    def state(self) -> Vector:
        """The sums and the best point of the dual for C = 1, and the best w."""
        C, (w, loss) = self.problem.C, self.best
        sums = [self.passes, self.total / C], self.problem.costs / C, self.G / C
        return np.concatenate((*sums, [loss / C], w / C, self.w))

    def resume(self, state: Vector) -> None:
        """Take up the sums and the best points, for the present C."""
        reader, C = Reader(state), self.problem.C
        self.passes, self.total = reader.number(), C * float(reader.take(1)[0])
        if not np.allclose(reader.take(self.problem.n), self.problem.costs / C):
            raise ValueError("its sums are for other weights of the examples")
        size = self.problem.size
        self.G, loss = C * reader.take(size), C * float(reader.take(1)[0])
        self.best, w = (C * reader.take(size), loss), reader.take(size)
        reader.close()
        self.learn_dual(*self.best)
        self.learn_primal(w, self.problem.planes(w).bounds)
