"""Margins of the training points, by what the points are to the machine.

The optimality conditions tie the coefficient alpha of a point to its margin y f(x) (Rifkin 2002, section 2.2.5):

    alpha = 0        no support vector         y f >= 1
    0 < alpha < C    unbounded support vector  y f  = 1
    alpha = C        bounded support vector    y f <= 1 ,   errors (y f < 0) among them

so that a histogram of the margins in three colours (the groups of Rifkin 2002, figure 2-4) shows at a glance whether
a machine is trained to the end and how it lives: much at the bound, C is small or the classes overlap; all at y f = 1,
sigma is too small.

For several classes the margin of a point is the smallest over the binary machines it is part of.  Regression has the
residual instead, with the edges of the tube at -epsilon and epsilon; the one-class machine has f(x) - rho.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.report import ink
from mercer.report.machine import GROUPS, binary_margins, groups, has_bounds, inner, outputs, solutions_of, task_of

Array = NDArray[np.float64]

AXES = {
    "binary": "margin y f(x)",
    "classes": "smallest margin over the machines of a point",
    "regression": "residual y - f(x)",
    "outliers": "decision value f(x) - rho",
}


class MarginDisplay:
    """Histogram of margins in groups.

    Parameters
    ----------
    margins : (n,) margins, residuals or decision values.
    groups : (n,) 0 for no support vector, 1 for an unbounded and 2 for a bounded one; None where all points carry.
    edges : values at which the conditions change: 1 for the margin, -epsilon and epsilon for the tube.
    name : text of the axis.

    Attributes
    ----------
    counts_ : {group: counts of the bins}; bins_ : their edges.
    ax_, figure_ : where it is drawn.

    """

    def __init__(
        self,
        margins: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        edges: tuple[float, ...] = (1.0,),
        name: str = "margin y f(x)",
    ) -> None:
        self.margins = np.asarray(margins, dtype=np.float64)
        self.groups = None if groups is None else np.asarray(groups, dtype=np.intp)
        if self.groups is not None and self.groups.shape != self.margins.shape:
            raise InvalidInput(f"groups {self.groups.shape} must have the shape of margins {self.margins.shape}")
        self.edges = edges
        self.name = name

    @classmethod
    def from_estimator(
        cls, machine: Any, X: Any, y: Any = None, *, sample_weight: Any = None, ax: Any = None, bins: int = 40
    ) -> "MarginDisplay":
        """Margins of a fitted machine at its training points X (n, d) with y (n,), drawn."""
        return cls.of(machine, X, y, sample_weight=sample_weight).plot(ax=ax, bins=bins)

    @classmethod
    def of(cls, machine: Any, X: Any, y: Any = None, *, sample_weight: Any = None) -> "MarginDisplay":
        """The same, not yet drawn."""
        task = task_of(machine)
        if y is None and task != "outliers":
            raise InvalidInput("y: the margins of a supervised machine need the targets")
        edges: tuple[float, ...] = (0.0,)
        if task == "regression":
            margins = np.asarray(y, dtype=np.float64) - outputs(machine, X)
            width = _tube(machine)
            edges = (0.0,) if width is None else (-width, width)
        elif task == "outliers":
            margins = outputs(machine, X)
        else:
            margins, edges = binary_margins(machine, X, y), (0.0, 1.0)
        n = len(margins)
        known = has_bounds(machine) and inner(machine).shape_fit_[0] == n
        return cls(margins, groups(machine, y, n, sample_weight) if known else None, edges=edges, name=AXES[task])

    def plot(self, ax: Any = None, *, bins: int = 40) -> "MarginDisplay":
        """Draw; values past the central 99 % are put into the outermost bins."""
        self.ax_ = ax = ink.axes(ax)
        self.figure_ = ax.figure
        low, high = np.quantile(self.margins, [0.005, 0.995])
        low, high = min(low, *self.edges), max(high, *self.edges)
        pad = 0.02 * (high - low) or 1.0
        self.bins_ = np.linspace(low - pad, high + pad, bins + 1)
        clipped = np.clip(self.margins, self.bins_[0], self.bins_[-1])
        parts = {"training points": np.ones(len(clipped), dtype=bool)}
        colours: tuple[str, ...] = (ink.GREYS[1],)
        if self.groups is not None:
            parts = {name: self.groups == number for number, name in enumerate(GROUPS)}
            colours = ink.GREYS
        ax.hist(
            [clipped[part] for part in parts.values()],
            self.bins_,
            stacked=True,
            color=list(colours),
            label=[f"{name} ({part.sum()})" for name, part in parts.items()],
        )
        self.counts_ = {name: np.histogram(clipped[part], self.bins_)[0] for name, part in parts.items()}
        for edge in self.edges:
            ax.axvline(edge, color=ink.INK, linewidth=0.8, linestyle=(0, (4, 3)))
        ax.set(xlabel=self.name, ylabel="points")
        ink.whole(ax, "y")
        ink.legend(ax)
        return self


def _tube(machine: Any) -> float | None:
    """Half the width of the tube of a regression machine, None where it has none."""
    found = inner(machine)
    if hasattr(found, "epsilon"):
        return float(found.epsilon)
    for solution in solutions_of(found):
        if "epsilon" in solution.multipliers:
            return float(np.asarray(solution.multipliers["epsilon"]))
    return None


def plot_margins(machine: Any, X: Any, y: Any = None, ax: Any = None, *, bins: int = 40) -> Any:
    """Draw the margins of the training points by group, and return the axes."""
    return MarginDisplay.from_estimator(machine, X, y, ax=ax, bins=bins).ax_
