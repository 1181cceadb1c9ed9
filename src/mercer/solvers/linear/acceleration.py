"""Graves-Morris acceleration of a vector sequence that converges like a geometric one.

Three consecutive iterates z_{l-2}, z_{l-1}, z_l with differences D_l = z_l - z_{l-1} give the estimate of the limit

    t_l = z_{l-1} - D_l (D_{l-1}'D_{l-1}) / (D_{l-1}'(D_l - D_{l-1})),

exact when D_l = rho D_{l-1}: then t_l = z_{l-1} + D_l / (1 - rho).  Hamers 2004, equation 3.8, prints z_l as the
anchor; that form has the same limit but is off by D_l, and on the sequence 1 - 0.9^l it gives 1.09 in place of 1.  It
is kept as `anchor="printed"` for comparison only.

Two ways to use t: `monitor` reports t_l beside an iteration that goes on undisturbed; `restart` puts t back as the
new iterate after every three iterates and collects three new ones.
"""

from typing import Literal

import numpy as np

from mercer.arrays import Array

Mode = Literal["none", "monitor", "restart"]
Anchor = Literal["corrected", "printed"]


def graves_morris(before: Array, middle: Array, last: Array, anchor: Anchor = "corrected") -> Array:
    """Estimate the limit (n, m) from three consecutive iterates (n, m), column by column; the last where none moves."""
    first, second = middle - before, last - middle
    bottom = np.sum(first * (second - first), axis=0)
    top = np.sum(first * first, axis=0)
    # D_l nearly equal to D_{l-1} says the limit is far away or the differences are rounding noise.
    usable = np.abs(bottom) > 1e-12 * top
    factor = np.divide(top, bottom, out=np.zeros_like(top), where=usable)
    base = middle if anchor == "corrected" else last
    return np.where(usable, base - factor * second, last)


class GravesMorris:
    """Feeds on the iterates of a stationary method; `push` returns what to go on from and the best estimate.

    The estimate presumes that one real eigenvalue dominates.  Where it does not (SOR has complex ones), putting it
    back can do harm: if steps have grown since the last restart, the method is left to itself for a while, and for
    twice as long the next time.
    """

    def __init__(self, mode: Mode = "restart", anchor: Anchor = "corrected") -> None:
        self.mode, self.anchor = mode, anchor
        self.kept: list[Array] = []
        self.step_before = np.inf
        self.pause, self.next_pause = 0, 6

    def push(self, Z: Array) -> tuple[Array, Array]:
        """Take the newest iterate (n, m); return the iterate to continue from and the estimate of the limit."""
        if self.mode == "none":
            return Z, Z
        self.kept.append(Z.copy())
        if len(self.kept) < 3:
            return Z, Z
        estimate = graves_morris(self.kept[0], self.kept[1], self.kept[2], self.anchor)
        if self.mode == "monitor":
            del self.kept[0]
            return Z, estimate
        if self._does_harm():
            del self.kept[0]
            return Z, Z
        self.kept.clear()
        return estimate.copy(), estimate

    def _does_harm(self) -> bool:
        """Whether to hold the restart back."""
        if self.pause > 0:
            self.pause -= 1
            return True
        step = float(np.linalg.norm(self.kept[2] - self.kept[1]))
        grown = step > self.step_before
        self.step_before = step
        if grown:
            self.pause, self.next_pause = self.next_pause, 2 * self.next_pause
        return grown
