"""What strategies of working sets share whose duals have a block of variables for each point, or each pair of points.

A survey gives every point a violation psi_i >= 0, in sum or in its worst variable, and the gap at once; working sets
are made of points, and steps on all points use their matrix as it stands (`mercer.solvers.working_sets`).
"""

from typing import Any

import numpy as np

from mercer.arrays import Array, Index
from mercer.solvers.working_sets import INNER, WHOLE

GREED = 0.5  # what lies within this factor of the worst is stepped on before violations are looked at again
WORST = 32  # points of largest violation in every working set


class PointBlocks:
    """Violations psi (n,) of the points, their largest, and the primal value and gap of the last survey."""

    finishes = False
    exact = True
    c: Array
    """Coefficients (n,) or (n, k)."""

    def __init__(self, n: int, gram: Any) -> None:
        self.n, self.kernel_values = n, 0
        self.psi = np.empty(n)
        self.primal = self.gap = self.violation = np.inf
        self.use(gram)

    def use(self, gram: Any) -> None:
        """Go on with another operator for the same values."""
        self.gram = gram
        self.matrix: Any = None

    def whole_matrix(self) -> Any:
        """K (n, n), formed once."""
        if self.matrix is None:
            self.matrix = np.ascontiguousarray(self.gram.block(None, None))
            self.kernel_values += self.n * self.n
        return self.matrix

    def exact_columns(self, points: Index, c: Array) -> Array:
        """K[:, points] c with every value in float64 where the operator can give it."""
        self.kernel_values += self.n * points.size
        if hasattr(self.gram, "exact_dot"):
            return np.asarray(self.gram.exact_dot(None, points, c), dtype=np.float64)
        return np.asarray(self.gram.columns_dot(points, c), dtype=np.float64)

    def at_once(self) -> bool:
        """Few points."""
        return self.n <= WHOLE

    def goes_whole(self, short: bool, steps: float) -> bool:
        """Sets grow no further than the largest."""
        return False

    def violators(self) -> Index:
        """Points whose violation a set would not leave."""
        return np.flatnonzero(self.psi > INNER * INNER * self.violation)

    def counterparts(self) -> Index:
        """None: the points of these problems move alone."""
        return np.empty(0, dtype=np.intp)

    def worst(self) -> Index:
        """The points of largest violation."""
        count = min(WORST, self.n)
        return np.argpartition(self.psi, -count)[-count:]

    def distances(self) -> tuple[float, ...]:
        """Violation and gap."""
        return self.violation, self.gap

    def objective(self) -> float:
        """Minus the dual value."""
        return self.gap - self.primal

    def settle(self) -> bool:
        """Nothing is reached in the limit only."""
        return False

    def sampled(self, seed: int) -> None:
        """None: values in float32 are always computed again."""
        return None

    def coefficients(self) -> Array:
        """A copy of them."""
        return self.c.copy()

    def facts(self) -> dict[str, Any]:
        """Nothing more."""
        return {}
