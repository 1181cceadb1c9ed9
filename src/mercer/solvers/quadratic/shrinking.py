"""Shrinking: points whose variables wait at their bounds are left out of rounds, and looked at again before the end.

A variable at its lower bound whose gradient lies above that of every variable that may fall, or at its upper bound
below that of every one that may rise, can be in no pair that violates the optimality conditions (Joachims 1999;
Schoelkopf and Smola 2002, section 10.2.3).  Late in a search that is most of the variables, and their outputs F need
not be kept up to date: of each change only the rows of the *active* points are computed.  What the others have missed
is made good at once, for all changes together, when no active variable violates any more or somebody asks for all
outputs: one column for each point that has changed at all, instead of one for each time that it has.  A variable that
then violates becomes active again, so that the end is the end of a search without shrinking.
"""

from typing import Any

import numpy as np

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.gram import GramOperator, streamed

Parts = tuple[Array, Array, Array, Array, Index]

# Of fewer points nothing is gained, and as many must be left out for it to pay: the points are copied.
FEWEST = 4096
WORTH = 0.6
# Searches that find violations among what they had left out so often do without it.
MOST = 6
# The share of the memory that points may take for copies of some of them to be made.
SHARE_OF_MEMORY = 0.125


def part_of(program: Parts, points: Index) -> Parts:
    """Linear term, ridge, bounds and groups of these points, in rows: compiled loops for other layouts are others."""
    linear, ridge, lower, upper = (np.take(part, points, axis=1) for part in program[:4])
    return linear, ridge, lower, upper, np.take(program[4], points, axis=1)


@loop
def may_move(G: Any, s: Any, program: Any, extremes: Any, worst: float, out: Any) -> int:
    """Points with a variable that may be in a violating pair, into out (n,); how many.

    G, s are (layers, n) and `extremes` (groups, 4) as in `mercer.solvers.quadratic.violations`; a variable in no group
    is compared with the `worst` violation.
    """
    _, _, lower, upper, group = program
    layers, n = s.shape
    count = 0
    for k in range(n):
        found = False
        for l in range(layers):
            g = group[l, k]
            low = extremes[g, 0] if g >= 0 else -worst
            high = extremes[g, 2] if g >= 0 else worst
            rises, falls = s[l, k] < upper[l, k], s[l, k] > lower[l, k]
            if (rises and (falls or G[l, k] <= high)) or (falls and G[l, k] >= low):
                found = True
        if found:
            out[count] = k
            count += 1
    return count


class Active:
    """The points (m,) that may still move, of those of an `outer` set (None: all), and what the others have missed."""

    def __init__(self, gram: GramOperator, points: Index, program: Parts, outer: "Active | None") -> None:
        self.points, self.outer, self.whole = points, outer, gram
        self.gram = streamed(gram, points)
        self.program = part_of(program, points)
        n = program[0].shape[1]
        self.position = np.full(n, -1, np.intp)
        self.position[points] = np.arange(points.size)
        self.missed = np.zeros(n)  # changes of coefficients that the outputs of the others have not seen

    def product(self, points: Index, change: Array) -> Array:
        """K[:, points] change at the active points, which all others miss."""
        layer: Active | None = self
        while layer is not None:
            layer.missed[points] += change
            layer = layer.outer
        return np.asarray(self.gram.columns_dot(self.position[points], change))

    def complete(self, F: Array, constant: float) -> int:
        """Add to F (n,) what the others have missed; the number of kernel values that took."""
        values = self.add_missed(F, constant)
        layer: Active | None = self
        while layer is not None:
            layer.missed[:] = 0.0
            layer = layer.outer
        return values

    def add_missed(self, F: Array, constant: float) -> int:
        """The same, for outputs F (n,) that are only looked at: what was missed remains to be made good."""
        changed, values = np.flatnonzero(self.missed), 0
        if changed.size:
            change = self.missed[changed]
            outer = self.outer
            among = np.arange(F.size) if outer is None else outer.points
            gram, columns = (self.whole, changed) if outer is None else (outer.gram, outer.position[changed])
            others = self.position[among] < 0
            product = gram.columns_dot(columns, change) + constant * float(change.sum())
            F[among[others]] += product[others]
            values = among.size * changed.size
        return values + (0 if self.outer is None else self.outer.add_missed(F, constant))


def can_shrink(gram: Any, n: int) -> bool:
    """Whether values are computed from points each time, and there are enough of them."""
    if n < FEWEST or not isinstance(gram, GramOperator) or gram.storage not in ("cached", "streamed"):
        return False
    return gram.symmetric and gram.plan().points <= SHARE_OF_MEMORY * gram.plan().budget
