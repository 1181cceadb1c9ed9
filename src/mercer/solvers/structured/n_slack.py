"""n-slack cutting planes (Tsochantaridis, Joachims, Hofmann and Altun 2005).

Every example has planes of its own.  A round asks each example for its highest plane at the present w; one that lies
above those it has by more than a share of the gap joins them.  Sweeps of pair steps over all examples then solve the
dual of all planes (`mercer.solvers.structured.plane_steps`), whose value is a lower bound of the optimum.  Planes
that carried no weight for many rounds are dropped: the dual point is the same without them, and one that is needed
again comes back.

There are far more planes than in the one-slack form, and far fewer rounds: the choice where inference is expensive.
"""

from typing import Unpack

import numpy as np

from mercer.problems.structured import Plane, StructuredProblem, Vector
from mercer.solvers.contract import Start
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.structured.plane_steps import Planes
from mercer.solvers.structured.search import Limits, Search, accepts, solved

__all__ = ["NAME", "accepts", "solve"]

NAME = "n-slack cutting planes"

IDLE = 10  # rounds without weight after which a plane is dropped
INNER = 0.05  # the dual of all planes is solved to this share of the gap
SHARE = 0.1  # a plane joins where it rises above the others by this share of an example's part of the gap
SWEEPS = 500  # over all planes, in one round
SLICE = 64  # examples between two looks at the time limit and Ctrl-C


def solve(problem: StructuredProblem, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of rounds (-1: no bound)."""
    return solved(NSlack, problem, **limits)


class NSlack(Search):
    """The planes of all examples with their weights, and w."""

    name = NAME

    def __init__(self, problem: StructuredProblem, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, start, monitor)
        self.planes = Planes(problem.costs, problem.size)

    def run(self, limit: int) -> Stopped:
        """Rounds until convergence, a limit or an interruption."""
        while True:
            w, loss = self.planes.point()
            self.learn_dual(w, loss)
            found = self._ask()
            if found is None:
                self.report()
                return self.halted()
            self.learn_primal(w, np.array([plane.bound for plane in found]))
            if (stopped := self.ended(limit)) is not None:
                return stopped
            self._add(found)
            self._solve()
            self.iterations += 1

    def _ask(self) -> list[Plane] | None:
        """The highest planes of all examples at w; None where the monitor ended it."""
        found = []
        for i in range(self.problem.n):
            found.append(self.problem.examples.plane(self.planes.w, i))
            if i % SLICE == 0 and not self.monitor.go_on():
                return None
        return found

    def _add(self, found: list[Plane]) -> None:
        """Those that rise above what their examples have, by more than a share of the mean gap."""
        w, costs = self.planes.w, self.problem.costs
        allowed = SHARE * (self.primal - self.dual) / float(costs.sum())
        heights = np.array([plane.loss - plane.v.dot(w) for plane in found])
        new = np.flatnonzero((heights > self.planes.heights() + allowed) & (costs > 0.0))
        if new.size:
            self.planes.add(new.tolist(), [found[i] for i in new])

    def _solve(self) -> None:
        """Sweeps over the planes until they have little left to gain, and fewer planes after them."""
        aim = INNER * (self.primal - self.dual)
        for _ in range(SWEEPS):
            if self.planes.sweep() <= aim or not self.monitor.go_on():
                break
        self.planes.drop(IDLE)

    def facts(self) -> dict[str, int]:
        """The number of planes that are held."""
        return {"planes": len(self.planes)}

    def state(self) -> Vector:
        """The planes and their weights."""
        return self.planes.state()

    def resume(self, state: Vector) -> None:
        """Take up the planes."""
        self.planes.resume(state)
