"""The criterion by which parameters were chosen, over C and the width of the kernel.

Every search tells what it evaluated: `loo_surface_` of a least-squares machine, `cv_results_` of a search in
scikit-learn's manner, `table()` of a search of `mercer.selection`.  Here it becomes points (C, width, value).  Points
that fill a grid are drawn as tiles, others as dots; without a width, the criterion is a curve over C.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.report import ink

Array = NDArray[np.float64]

WIDTHS = ("sigma", "gamma")
RANGE = 0.9  # tiles worse than this quantile share one colour, so that the best region keeps its shades


class SurfaceDisplay:
    """Values (m,) of a criterion at C (m,) and widths (m,).

    Parameters
    ----------
    C, values : (m,); width : (m,) or None where the kernel has none to choose.
    criterion : its name; larger_is_better : whether the best value is the largest.
    width_name : "sigma" or "gamma".
    steps : (m,) True for points of a descent, which are drawn as dots over the tiles of the others.

    Attributes
    ----------
    best_ : index of the best value.
    ax_, figure_ : where it is drawn.

    """

    def __init__(
        self,
        C: ArrayLike,
        values: ArrayLike,
        width: ArrayLike | None = None,
        *,
        criterion: str = "score",
        larger_is_better: bool = True,
        width_name: str = "sigma",
        steps: ArrayLike | None = None,
    ) -> None:
        self.C, self.values = (np.asarray(v, dtype=np.float64).ravel() for v in (C, values))
        self.width = None if width is None else np.asarray(width, dtype=np.float64).ravel()
        if len(self.C) != len(self.values) or (self.width is not None and len(self.width) != len(self.C)):
            raise InvalidInput("C, values and width must have the same number of entries")
        if not np.isfinite(self.values).any():
            raise InvalidInput("values: there is no finite value to draw")
        self.criterion, self.larger_is_better, self.width_name = criterion, larger_is_better, width_name
        self.steps = np.zeros(len(self.C), dtype=bool) if steps is None else np.asarray(steps, dtype=bool).ravel()
        self.best_ = int(np.nanargmax(self.values) if larger_is_better else np.nanargmin(self.values))

    @classmethod
    def from_estimator(cls, source: Any, *, ax: Any = None) -> "SurfaceDisplay":
        """The surface of a machine or a search, drawn."""
        found = cls.of(source)
        if found is None:
            raise InvalidInput("source has no loo_surface_, cv_results_ or table(): nothing was searched over C")
        return found.plot(ax=ax)

    @classmethod
    def of(cls, source: Any) -> "SurfaceDisplay | None":
        """The surface of a machine or a search, not yet drawn; None where nothing was searched."""
        points = getattr(source, "loo_surface_", None)
        if points:
            return cls._from_leave_one_out(points)
        if hasattr(source, "result"):  # of mercer.tune, whose table is that of its search
            return cls.of(source.result)
        table = getattr(source, "cv_results_", None)
        if table is None and callable(getattr(source, "table", None)):
            table = source.table()
        if isinstance(table, Mapping) and "params" in table and "mean_test_score" in table:
            return cls._from(table["params"], table["mean_test_score"], "cross-validated score", larger=True)
        return None

    @classmethod
    def _from_leave_one_out(cls, points: Sequence[Any]) -> "SurfaceDisplay | None":
        """A coarse grid, where there was one, and the steps of the descent that began at its best point."""
        names = set(points[0].parameters) - {"C"}
        width = names.pop() if len(names) == 1 else None
        if "C" not in points[0].parameters:
            return None
        return cls(
            [p.parameters["C"] for p in points],
            [p.value for p in points],
            None if width is None else [p.parameters[width] for p in points],
            criterion="leave-one-out criterion",
            larger_is_better=False,
            width_name=width or "sigma",
            steps=[p.stage != "coarse" for p in points],
        )

    @classmethod
    def _from(
        cls, parameters: Sequence[Mapping[str, Any]], values: Any, criterion: str, larger: bool
    ) -> "SurfaceDisplay | None":
        """From parameters by name, which may carry the prefix of a pipeline's step."""
        rows = [{name.rpartition("__")[2]: value for name, value in p.items()} for p in parameters]
        values = np.asarray(values, dtype=np.float64)
        if not rows or not all(_is_number(row.get("C")) for row in rows) or not np.isfinite(values).any():
            return None
        name = next((w for w in WIDTHS if all(_is_number(row.get(w)) for row in rows)), None)
        width = None if name is None else np.array([float(row[name]) for row in rows])
        if width is not None and len(np.unique(width)) == 1:
            width = None
        C = np.array([float(row["C"]) for row in rows])
        C, values, width = _best_of_repeated(C, values, width, larger)
        return cls(C, values, width, criterion=criterion, larger_is_better=larger, width_name=name or "sigma")

    def grid(self) -> tuple[Array, Array, Array] | None:
        """C (c,), widths (s,) and values (s, c) where the points fill a grid; None where they do not."""
        if self.width is None:
            return None
        own = ~self.steps
        C, column = np.unique(self.C[own], return_inverse=True)
        width, row = np.unique(self.width[own], return_inverse=True)
        if len(C) < 2 or len(width) < 2 or np.count_nonzero(own) != len(C) * len(width):
            return None
        values = np.full((len(width), len(C)), np.nan)
        values[row, column] = self.values[own]
        return C, width, values

    def plot(self, ax: Any = None) -> "SurfaceDisplay":
        """Draw; the best point is marked with a ring."""
        self.ax_ = ax = ink.axes(ax)
        self.figure_ = ax.figure
        best = self.best_
        if self.width is None:
            order = np.argsort(self.C)
            ax.plot(self.C[order], self.values[order], color=ink.SERIES[0], marker=".", markersize=4)
            ax.plot(self.C[best], self.values[best], "o", color=ink.SERIES[1], label=f"best: C = {self.C[best]:.3g}")
            ax.set(ylabel=self.criterion)
        else:
            self._plane(ax)
            ax.plot(
                self.C[best],
                self.width[best],
                "o",
                markersize=9,
                markerfacecolor="none",
                markeredgecolor=ink.SERIES[1],
                markeredgewidth=2.2,
                label=f"best: C = {self.C[best]:.3g}, {self.width_name} = {self.width[best]:.3g}",
            )
            ink.logarithmic(ax, "y")
            ax.set(ylabel=self.width_name)
            ax.grid(visible=False)
        ink.logarithmic(ax, "x")
        ax.set(xlabel="C")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return self

    def _plane(self, ax: Any) -> None:
        """Tiles of a grid, or dots."""
        finite = self.values[np.isfinite(self.values)]
        low, high = float(finite.min()), float(finite.max())
        if self.larger_is_better:
            low = float(np.quantile(finite, 1.0 - RANGE))
        else:
            high = float(np.quantile(finite, RANGE))
        shades = mpl.colormaps["viridis" if self.larger_is_better else "viridis_r"].resampled(48)
        grid = self.grid()
        options = {"cmap": shades, "vmin": low, "vmax": high if high > low else low + 1e-12}
        if grid is not None:
            C, width, values = grid
            drawn = ax.pcolormesh(_edges(C), _edges(width), values, **options)
            assert self.width is not None
            ax.plot(self.C[self.steps], self.width[self.steps], ".", color=ink.INK, markersize=3)
        else:
            drawn = ax.scatter(self.C, self.width, c=self.values, s=22, linewidths=0, **options)
        bar = ax.figure.colorbar(drawn, ax=ax)
        bar.set_label(self.criterion)
        bar.outline.set_visible(False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and float(value) > 0.0


def _best_of_repeated(C: Array, values: Array, width: Array | None, larger: bool) -> tuple[Array, Array, Array | None]:
    """One value for each point: the best over parameters that are not shown, such as epsilon."""
    keys = C[:, None] if width is None else np.column_stack([C, width])
    places, where = np.unique(keys, axis=0, return_inverse=True)
    signed = np.where(np.isfinite(values), values if larger else -values, -np.inf)
    best = np.full(len(places), -np.inf)
    np.maximum.at(best, where.ravel(), signed)
    best = np.where(np.isfinite(best), best if larger else -best, np.nan)
    return places[:, 0], best, None if width is None else places[:, 1]


def _edges(centres: Array) -> Array:
    """Borders between values in equal ratios."""
    logs = np.log(centres)
    middle = 0.5 * (logs[1:] + logs[:-1])
    ends = [logs[0] - (middle[0] - logs[0])], [logs[-1] + (logs[-1] - middle[-1])]
    return np.asarray(np.exp(np.concatenate([ends[0], middle, ends[1]])))


def plot_surface(source: Any, ax: Any = None) -> Any:
    """Draw the criterion of a search over C and width, and return the axes."""
    return SurfaceDisplay.from_estimator(source, ax=ax).ax_
