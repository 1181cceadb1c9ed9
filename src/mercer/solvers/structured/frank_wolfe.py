"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013).

The dual is a smooth function on a product of simplices, one for each example.  A step takes one example, has its
highest plane found, and moves its block there by the best share (`mercer.solvers.structured.blocks`): no step length
is to be chosen, the dual rises with every step, and one sweep over the examples costs one inference each.  Sweeps in
random order take turns with sweeps that draw the examples by what they had left of the gap (Osokin, Alayrac,
Lukasewitz, Dokania and Lacoste-Julien 2016).

The gap is P - D at one w, which is inference on all examples once more; it is measured when the parts of the gap that
the steps met on their way say that it might be closed, and at least every few sweeps.
"""

from typing import Unpack

import numpy as np

from mercer.problems.chains import ChainExamples
from mercer.problems.structured import Index, StructuredProblem, Vector
from mercer.solvers.contract import Start
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.structured.blocks import Blocks
from mercer.solvers.structured.chain_blocks import ChainBlocks
from mercer.solvers.structured.search import Limits, Search, accepts, solved

__all__ = ["NAME", "accepts", "solve"]

NAME = "block-coordinate Frank-Wolfe"

SWEEPS = 8  # at most, between two measurements of the gap
SLICE = 1024  # examples between two looks at the time limit and Ctrl-C


def solve(problem: StructuredProblem, *, seed: int = 0, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of sweeps over the examples (-1: no bound)."""
    return solved(FrankWolfe, problem, seed=seed, **limits)


class FrankWolfe(Search):
    """Sweeps, and a certificate now and then."""

    name = NAME

    def __init__(self, problem: StructuredProblem, tol: float, start: Start, monitor: Monitor, seed: int) -> None:
        super().__init__(problem, tol, start, monitor)
        examples = problem.examples
        self.blocks = ChainBlocks(problem, examples) if isinstance(examples, ChainExamples) else Blocks(problem)
        self.random = np.random.default_rng(seed)
        self.gaps = np.zeros(problem.n)
        self.unmeasured = 0

    def run(self, limit: int) -> Stopped:
        """Sweeps until convergence, a limit or an interruption."""
        self._measure()
        while not self.converged():
            if self.stalled:
                return "stalled"
            if self.iterations >= limit:
                return "iterations"
            if not self.report():
                return self.halted()
            ended = self._sweep(self._order())
            if not ended or self._due(limit):
                self._measure()
            if not ended and not self.report():
                return self.halted()
        return "converged"

    def _order(self) -> Index:
        """All examples in random order, or as many draws in proportion to what they had left."""
        total = float(self.gaps.sum())
        if self.iterations % 2 == 0 or not total > 0.0:
            return self.random.permutation(self.problem.n)
        return self.random.choice(self.problem.n, self.problem.n, p=self.gaps / total)

    def _sweep(self, order: Index) -> bool:
        """Steps on these examples; whether the monitor lets them come to their end."""
        for first in range(0, len(order), SLICE):
            self.blocks.sweep(order[first : first + SLICE], self.gaps)
            if not self.monitor.go_on():
                return False
        self.iterations += 1
        self.unmeasured += 1
        return True

    def _due(self, limit: int) -> bool:
        """Whether the gap may be closed, or was not measured for long."""
        expected = float(self.gaps.sum())
        close = self.iterations % 2 == 1 and expected <= self.tol * max(self.dual, expected)
        return close or self.unmeasured >= SWEEPS or self.iterations >= limit

    def _measure(self) -> None:
        """Primal and dual value at the present w."""
        w, loss = self.blocks.point()
        self.learn_dual(w, loss)
        self.learn_primal(w, self.problem.planes(w).bounds)
        self.unmeasured = 0
        self.stalled = self.stuck()

    def facts(self) -> dict[str, float]:
        """The number of examples whose block is not at the right structure."""
        return {"support": int(np.count_nonzero(self.blocks.loss))}

    def state(self) -> Vector:
        """The blocks."""
        return self.blocks.state()

    def resume(self, state: Vector) -> None:
        """Take up the blocks."""
        self.blocks.resume(state)
