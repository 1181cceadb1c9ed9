"""The small programs of a cutting-plane method: the best function under the planes found so far.

Planes t have coefficients c_t (n,), products K c_t (n,) and offsets h_t; with the plane zero among them, the program is

    min  R + max_t (h_t - c_t'f),       R = 1/2 ||f||^2,  f = K c     or     R = ||a||,  f = K a,

a quadratic program in the weights b of the planes, c = sum_t b_t c_t, in the first case, and a linear program in the
second.  Both return the point, its values f, and a lower bound of the program without planes.
"""

from typing import NamedTuple

import numpy as np

from mercer.arrays import Mask, Vector
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.problems.normed_pairs import NormedPairs
from mercer.problems.program import QuadraticProgram
from mercer.solvers.norm_programs import minimise
from mercer.solvers.quadratic import interior_point

IDLE = 40  # iterations without weight after which a plane is dropped
WEIGHT = 1e-10  # weights below this share of the largest are none
INSIDE = 1e-12  # by which a dual point is moved inside its constraint, for the rounding of sums


class Model(NamedTuple):
    """Coefficients (n,), values f (n,) and a lower bound of the optimum."""

    coefficients: Vector
    f: Vector
    bound: float


class Planes:
    """Planes, those without weight for long dropped."""

    def __init__(self, n: int) -> None:
        self.c, self.K_c = np.zeros((0, n)), np.zeros((0, n))
        self.h, self.idle = np.zeros(0), np.zeros(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self.h)

    def add(self, c: Vector, K_c: Vector, offset: float) -> Mask:
        """One more plane; says which of the others were kept."""
        kept = self.idle <= IDLE
        self.c, self.K_c = np.vstack((self.c[kept], c)), np.vstack((self.K_c[kept], K_c))
        self.h, self.idle = np.append(self.h[kept], offset), np.append(self.idle[kept], 0)
        return kept

    def use(self, b: Vector) -> None:
        """Take note of the weights b (t,) of the planes."""
        self.idle = np.where(b > 0.0, 0, self.idle + 1)

    def best(self, accuracy: float) -> Model:
        """The best function under the planes."""
        raise NotImplementedError


class QuadraticPlanes(Planes):
    """Planes under 1/2 ||f||^2, with their matrix G_st = c_s'K c_t."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.G = np.zeros((0, 0))

    def add(self, c: Vector, K_c: Vector, offset: float) -> Mask:
        """One more plane."""
        kept = super().add(c, K_c, offset)
        G = np.empty((len(self), len(self)))
        G[:-1, :-1] = self.G[np.ix_(kept, kept)]
        G[-1] = G[:, -1] = self.c @ K_c
        self.G = G
        return kept

    def best(self, accuracy: float) -> Model:
        """Maximise h'b - 1/2 b'G b over b >= 0, sum b <= 1, to a relative gap of `accuracy`."""
        size = len(self) + 1  # the plane zero is the last
        program = QuadraticProgram(
            Gram(Precomputed(), np.pad(self.G, (0, 1))),
            np.arange(size),
            np.zeros(size),
            np.ones(size),
            np.append(-self.h, 0.0),
            np.zeros(size),
            np.zeros(size, dtype=np.intp),
            np.ones(1),
        )
        b = np.maximum(interior_point.solve(program, tol=accuracy).variables, 0.0)
        b[b < WEIGHT * b.max()] = 0.0
        b = b[:-1] / b.sum()
        self.use(b)
        c, f = b @ self.c, b @ self.K_c
        return Model(c, f, float(self.h @ b) - 0.5 * float(c @ f))


class NormPlanes(Planes):
    """Planes under a norm of the coefficients."""

    def __init__(self, problem: NormedPairs) -> None:
        super().__init__(problem.n)
        self.problem = problem

    def best(self, accuracy: float) -> Model:
        """A vertex of the linear program; the bound is that of its multipliers, put inside the dual constraint."""
        t, n = self.K_c.shape
        found, _ = minimise(self.problem.norm, -self.K_c, -np.ones((t, 1)), -self.h, np.ones(1), np.zeros(1))
        assert found is not None  # a = 0 is feasible
        b = np.maximum(found.multipliers, 0.0)
        self.use(b)
        size = max(1.0, float(b.sum()), self.problem.dual_size(b @ self.K_c) * (1.0 + INSIDE * n))
        return Model(found.a, np.empty(0), float(self.h @ b) / size)
