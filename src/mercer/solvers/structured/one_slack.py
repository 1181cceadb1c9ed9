"""One-slack cutting planes (Joachims, Finley and Yu 2009).

    min 1/2 |w|^2 + R(w) ,     R(w) = sum_i C_i H_i(w) = max over combinations of structures of  l - w.v

Every round finds the highest planes of all examples and adds their weighted sum (v, l) = sum_i C_i (v_i, l_i), a plane
below R that touches it at w.  The problem with these planes in the place of R has the dual

    max over a >= 0, sum a = 1 of  l'a - 1/2 |V'a|^2 ,     w = V'a ,

whose size is the number of rounds, whatever the number of examples; pair steps on the small matrix V V' solve it from
where the last round ended.  Its value is a lower bound of the optimum, P(w) an upper one.  Planes that carried no
weight for many rounds are dropped: the dual point is the same without them, and one that is needed again comes back.
"""

from typing import Unpack

import numpy as np

from mercer.problems.structured import StructuredProblem, Sum, Vector
from mercer.solvers.contract import Start
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic.pair_steps import minimise_pairs
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.structured.search import Limits, Reader, Search, accepts, solved

__all__ = ["NAME", "accepts", "solve"]

NAME = "one-slack cutting planes"

IDLE = 30  # rounds without weight after which a plane is dropped
INNER = 0.01  # the small problem is solved to this share of the gap
STEPS = 1_000_000  # pair steps of one round


def solve(problem: StructuredProblem, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of rounds (-1: no bound)."""
    return solved(OneSlack, problem, **limits)


class OneSlack(Search):
    """Planes V (m, size) and l (m,), the first of them zero, products V V', weights a (m,), rounds without weight."""

    name = NAME

    def __init__(self, problem: StructuredProblem, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, start, monitor)
        self.V, self.l = np.zeros((1, problem.size)), np.zeros(1)
        self.products, self.a, self.idle = np.zeros((1, 1)), np.ones(1), np.zeros(1, dtype=np.intp)

    def run(self, limit: int) -> Stopped:
        """Rounds until convergence, a limit or an interruption."""
        while True:
            w = self.a @ self.V
            self.learn_dual(w, float(self.a @ self.l))
            found = self.problem.planes(w)
            self.learn_primal(w, found.bounds)
            if (stopped := self.ended(limit)) is not None:
                return stopped
            self._add(found)
            self._solve()
            self._drop()
            self.iterations += 1

    def _add(self, found: Sum) -> None:
        """One more plane, without weight."""
        column = self.V @ found.v
        corner = np.array([[float(found.v @ found.v)]])
        self.products = np.block([[self.products, column[:, None]], [column[None, :], corner]])
        self.V, self.l = np.vstack((self.V, found.v)), np.append(self.l, found.loss)
        self.a, self.idle = np.append(self.a, 0.0), np.append(self.idle, 0)

    def _solve(self) -> None:
        """Pair steps on the small problem until its own gap, at most the violation, is a share of what is left."""
        m = len(self.a)
        a, F = self.a[None, :].copy(), self.products @ self.a
        program = (-self.l[None, :], *(np.full((1, m), c) for c in (0.0, 0.0, 1.0)), np.zeros((1, m), dtype=np.intp))
        diagonal, aim = np.diagonal(self.products).copy(), INNER * (self.primal - self.dual)
        minimise_pairs(self.products, (0, m, m), diagonal, F, a, program, 1, aim, STEPS)
        self.a = np.maximum(a[0], 0.0)
        self.a /= self.a.sum()

    def _drop(self) -> None:
        """Leave out planes that carried no weight for many rounds; never the first."""
        self.idle = np.where(self.a > 0.0, 0, self.idle + 1)
        kept = self.idle < IDLE
        kept[0] = True
        if not kept.all():
            self.V, self.l, self.a, self.idle = self.V[kept], self.l[kept], self.a[kept], self.idle[kept]
            self.products = np.ascontiguousarray(self.products[np.ix_(kept, kept)])

    def facts(self) -> dict[str, int]:
        """The number of planes that are held."""
        return {"planes": len(self.a)}

    def state(self) -> Vector:
        """The planes for C = 1, and their weights."""
        C = self.problem.C
        return np.concatenate(([len(self.a)], self.a, self.l / C, (self.V / C).ravel(), self._relative_costs()))

    def _relative_costs(self) -> Vector:
        return self.problem.costs / self.problem.C

    def resume(self, state: Vector) -> None:
        """Take up the planes, for the present C."""
        reader, C = Reader(state), self.problem.C
        m = reader.number()
        self.a, self.l, self.V = reader.take(m), C * reader.take(m), C * reader.take(m, self.problem.size)
        if not np.allclose(reader.take(self.problem.n), self._relative_costs()):
            raise ValueError("its planes are sums for other weights of the examples")
        reader.close()
        self.products, self.idle = self.V @ self.V.T, np.zeros(m, dtype=np.intp)
