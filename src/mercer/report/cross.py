"""Outputs of two machines against one another, point by point.

Where the two agree the points lie on a line; the quadrants of classifiers hold the points on which both are right,
both wrong, or one alone (so Rifkin 2002, chapter 3, sets SVM outputs against those of least squares).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.report import ink
from mercer.report.machine import binary_margins, outputs, task_of, utility_of

MOST = 1500  # points drawn


class CrossPlotDisplay:
    """Outputs u (n,) of one machine against v (n,) of another, coloured by class where there are labels."""

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        names: tuple[str, str] = ("first machine", "second machine"),
    ) -> None:
        self.first, self.second = (np.asarray(values, dtype=np.float64) for values in (first, second))
        if self.first.shape != self.second.shape or self.first.ndim != 1:
            raise InvalidInput(f"the outputs {self.first.shape} and {self.second.shape} must be vectors of n values")
        self.labels: NDArray[Any] | None = None if labels is None else np.asarray(labels)
        self.classes = None if labels is None else np.unique(np.asarray(labels if classes is None else classes))
        self.names = names

    @classmethod
    def from_estimator(
        cls, machine: Any, other: Any, X: Any, y: Any = None, *, ax: Any = None, names: tuple[str, str] | None = None
    ) -> "CrossPlotDisplay":
        """Outputs of two fitted machines at X (n, d), drawn; for more than two classes their smallest margins."""
        return cls.of(machine, other, X, y, names=names).plot(ax=ax)

    @classmethod
    def of(
        cls, machine: Any, other: Any, X: Any, y: Any = None, *, names: tuple[str, str] | None = None
    ) -> "CrossPlotDisplay":
        """The same, not yet drawn."""
        tasks = {task_of(machine), task_of(other)}
        if len(tasks) > 1:
            raise InvalidInput(f"the two machines do different things: {' and '.join(sorted(tasks))}")
        own = names or (type(machine).__name__, type(other).__name__)
        if tasks <= {"ranks", "order"}:
            return cls(*(utility_of(m, X) for m in (machine, other)), names=own)
        if tasks == {"classes"}:
            if y is None:
                raise InvalidInput("y: machines of more than two classes are compared by their margins, which need it")
            values = [binary_margins(m, X, y) for m in (machine, other)]
        else:
            values = [outputs(m, X) for m in (machine, other)]
        if tasks != {"binary"} or y is None:
            return cls(values[0], values[1], names=own)
        return cls(values[0], values[1], y, classes=machine.classes_, names=own)

    @property
    def correlation(self) -> float:
        """Correlation of the two outputs; nan where one is constant."""
        u, v = self.first - self.first.mean(), self.second - self.second.mean()
        size = float(np.sqrt((u @ u) * (v @ v)))
        return float(u @ v) / size if size > 0.0 else float("nan")

    def plot(self, ax: Any = None) -> "CrossPlotDisplay":
        """Draw at most 1,500 of the points, chosen at random but the same ones each time."""
        self.ax_ = ax = ink.axes(ax)
        self.figure_ = ax.figure
        n = len(self.first)
        shown = np.arange(n) if n <= MOST else np.sort(np.random.default_rng(0).choice(n, MOST, replace=False))
        parts: list[tuple[Any, str, str | None]] = [(shown, ink.GREYS[1], None)]
        if self.labels is not None and self.classes is not None:
            parts = [
                (shown[self.labels[shown] == label], ink.colour(place), f"class {ink.short(label)}")
                for place, label in enumerate(self.classes)
            ]
        for part, colour, name in parts:
            ax.scatter(self.first[part], self.second[part], s=9, color=colour, alpha=0.65, linewidths=0, label=name)
        both = np.concatenate([self.first, self.second])
        ax.plot([both.min(), both.max()], [both.min(), both.max()], color=ink.INK, linewidth=0.8, label="equal outputs")
        if self.labels is not None:
            ax.axhline(0.0, color=ink.LINE, linewidth=0.9)
            ax.axvline(0.0, color=ink.LINE, linewidth=0.9)
        ax.set(xlabel=f"output of {self.names[0]}", ylabel=f"output of {self.names[1]}")
        ink.legend(ax)
        return self


def plot_cross(machine: Any, other: Any, X: Any, y: Any = None, ax: Any = None) -> Any:
    """Draw the outputs of two machines against one another, and return the axes."""
    return CrossPlotDisplay.from_estimator(machine, other, X, y, ax=ax).ax_
