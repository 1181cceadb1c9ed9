"""Which variables stay at their bound for now: look counts and sticky flags.

A variable that was at a bound and did not violate the optimality conditions at `looks` looks in a row is predicted to
end there and is left out of the problem, with its constant contribution kept: this is shrinking (Joachims 1999; Rifkin
2002, section 2.3.3).  It loses the guarantee unless all variables are looked at again before an answer is given, which
`mercer.solvers.classical.dual` does.

A sticky flag is the short form: a variable judged to be at its bound is not chosen in the next `length` rounds, which
keeps it from oscillating (Schoelkopf and Smola 2002, section 10.1.4).
"""

import numpy as np

from mercer.arrays import Mask

MOST = 0.5  # of the variables left, that may leave at one look


class LookCounts:
    """How many looks in a row each of N variables was at a bound without violating."""

    def __init__(self, size: int, looks: int) -> None:
        self.looks = looks
        self.count = np.zeros(size, dtype=np.int64)

    def look(self, settled: Mask, out: Mask | None = None) -> Mask:
        """Take note of who was at a bound and content; which variables (N,) are to be left out besides those of `out`.

        Of those that are still in at most a share MOST leaves, the longest content first.
        """
        if out is not None:
            settled = settled & ~out
        self.count = np.where(settled, self.count + 1, 0)
        ripe = self.count >= self.looks
        most = int(MOST * (settled.size - (0 if out is None else np.count_nonzero(out))))
        if np.count_nonzero(ripe) > most:
            kept = np.zeros(settled.size, dtype=np.bool_)
            kept[np.argsort(-self.count, kind="stable")[:most]] = True
            ripe &= kept
        return ripe

    def forget(self) -> None:
        """Start counting again."""
        self.count[:] = 0


class StickyFlags:
    """Variables (N,) that are not chosen for the next `length` rounds after they were judged to be at a bound."""

    def __init__(self, size: int, length: int) -> None:
        self.length = length
        self.left = np.zeros(size, dtype=np.int64)

    @property
    def stuck(self) -> Mask:
        """Who is not to be chosen in this round."""
        return self.left > 0

    def round(self, judged: Mask) -> None:
        """One round has passed, in which these variables were judged to be at their bound."""
        self.left = np.where(judged & (self.left == 0), self.length, np.maximum(self.left - 1, 0))

    def release(self) -> None:
        """All may be chosen again."""
        self.left[:] = 0
