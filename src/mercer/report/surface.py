"""The criterion by which parameters were chosen, over C and the width of the kernel.

Every search tells what it evaluated: `loo_surface_` of a least-squares machine, `cv_results_` of a search in
scikit-learn's manner, `table()` of a search of `mercer.selection`.  Here it becomes points (C, width, value).  Points
that fill a grid are drawn as tiles, others as dots; without a width, the criterion is a curve over C.

Not every candidate is judged to the end: a search by halving drops some after a round on fewer points, a path of C
stops where larger C have become worse, time runs out.  Scores on fewer points are not comparable, so the best is
sought among those judged to the end, and the others are marked and explained.
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
UNFINISHED = {
    "sample": "judged on a sample of the points",
    "dropped": "dropped after a round on fewer points",
    "stopped early": "not tried: larger C had become worse",
    "not reached": "not reached in the time there was",
    "failed": "without a score",
}
WHITE_DOT = {"markerfacecolor": "#ffffff", "markeredgecolor": "#000000", "markeredgewidth": 0.5}
SIGNS = ("", "s", "x", "+", "1")  # of the reasons, in their order
RANGE = 0.9  # tiles worse than this quantile share one colour, so that the best region keeps its shades


class SurfaceDisplay:
    """Values (m,) of a criterion at C (m,) and widths (m,).

    Parameters
    ----------
    C, values : (m,); width : (m,) or None where the kernel has none to choose.
    criterion : its name; larger_is_better : whether the best value is the largest.
    width_name : "sigma" or "gamma".
    steps : (m,) True for points of a descent, which are drawn as dots over the tiles of the others.
    status : (m,) "done", or a key of `UNFINISHED`.

    Attributes
    ----------
    best_ : index of the candidate chosen.
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
        status: Sequence[str] | None = None,
    ) -> None:
        self.C, self.values = (np.asarray(v, dtype=np.float64).ravel() for v in (C, values))
        self.width = None if width is None else np.asarray(width, dtype=np.float64).ravel()
        if len(self.C) != len(self.values) or (self.width is not None and len(self.width) != len(self.C)):
            raise InvalidInput("C, values and width must have the same number of entries")
        if not np.isfinite(self.values).any():
            raise InvalidInput("values: there is no finite value to draw")
        self.criterion, self.larger_is_better, self.width_name = criterion, larger_is_better, width_name
        self.steps = np.zeros(len(self.C), dtype=bool) if steps is None else np.asarray(steps, dtype=bool).ravel()
        known = ["done" if np.isfinite(value) else "failed" for value in self.values] if status is None else status
        self.status = np.asarray(known, dtype=object)
        self.best_ = self._best()

    def _best(self) -> int:
        """The best of the candidates judged to the end; of all where there is none."""
        signed = self.values if self.larger_is_better else -self.values
        done = np.where(self.status == "done", signed, np.nan)
        return int(np.nanargmax(done if np.isfinite(done).any() else signed))

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
            best = getattr(source, "best_params_", None) or getattr(source, "best", None)
            return cls._from_table(table, best if isinstance(best, Mapping) else None)
        return None

    @classmethod
    def _from_leave_one_out(cls, points: Sequence[Any]) -> "SurfaceDisplay | None":
        """A coarse grid, where there was one, and the steps of the descent that began at its best point."""
        names = set(points[0].parameters) - {"C"}
        width = names.pop() if len(names) == 1 else None
        if "C" not in points[0].parameters:
            return None
        most = max(p.points for p in points)
        return cls(
            [p.parameters["C"] for p in points],
            [p.value for p in points],
            None if width is None else [p.parameters[width] for p in points],
            criterion="leave-one-out criterion",
            larger_is_better=False,
            width_name=width or "sigma",
            steps=[p.stage != "coarse" for p in points],
            status=["done" if p.points == most else "sample" for p in points],
        )

    @classmethod
    def _from_table(cls, table: Mapping[str, Any], best: Mapping[str, Any] | None) -> "SurfaceDisplay | None":
        """From parameters by name, which may carry the prefix of a pipeline's step."""
        rows = [_unprefixed(parameters) for parameters in table["params"]]
        values = np.asarray(table["mean_test_score"], dtype=np.float64)
        if not rows or not all(_is_number(row.get("C")) for row in rows) or not np.isfinite(values).any():
            return None
        name = next((w for w in WIDTHS if all(_is_number(row.get(w)) for row in rows)), None)
        width = None if name is None else np.array([float(row[name]) for row in rows])
        if width is not None and len(np.unique(width)) == 1:
            width = None
        status = np.array(table.get("status", ["done"] * len(rows)), dtype=object)
        status[~np.isfinite(values) & (status == "done")] = "failed"
        C = np.array([float(row["C"]) for row in rows])
        kept = _best_of_repeated(C, values, width, status)
        found = cls(
            C[kept],
            values[kept],
            None if width is None else width[kept],
            criterion="cross-validated score",
            width_name=name or "sigma",
            status=status[kept].tolist(),
        )
        if best is not None:
            own = _unprefixed(best)
            here = np.isclose(found.C, float(own["C"]), rtol=1e-12)
            if found.width is not None:
                here &= np.isclose(found.width, float(own[found.width_name]), rtol=1e-12)
            found.best_ = int(np.flatnonzero(here)[0]) if here.any() else found.best_
        return found

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
        """Draw; the candidate chosen is marked with a ring, those not judged to the end with signs of their own."""
        self.ax_ = ax = ink.axes(ax)
        self.figure_ = ax.figure
        best = self.best_
        ring = {"marker": "o", "linestyle": "none", "markersize": 10, "markerfacecolor": "none"}
        if self.width is None:
            order = np.argsort(self.C)
            ax.plot(self.C[order], self.values[order], color=ink.GREYS[2], marker=".", markersize=4)
            place, name = (self.C[best], self.values[best]), f"chosen: C = {self.C[best]:.3g}"
            ax.plot(*place, **ring, markeredgecolor=ink.INK, markeredgewidth=1.6, label=name)
            self._unfinished(ax, self.values)
            ax.set(ylabel=self.criterion)
        else:
            self._plane(ax)
            # Tiles are dark here and bright there: a dark ring around a white one is seen on all.
            place = (self.C[best], self.width[best])
            name = f"chosen: C = {self.C[best]:.3g}, {self.width_name} = {self.width[best]:.3g}"
            ax.plot(*place, **ring, markeredgecolor="#000000", markeredgewidth=3.4)
            ax.plot(*place, **ring, markeredgecolor="#ffffff", markeredgewidth=1.6)
            ax.plot([], [], **ring, markeredgecolor=ink.INK, markeredgewidth=1.6, label=name)
            self._unfinished(ax, self.width)
            ink.logarithmic(ax, "y")
            ax.set(ylabel=self.width_name)
            ax.grid(visible=False)
        ink.logarithmic(ax, "x")
        ax.set(xlabel="C")
        ink.legend(ax)
        return self

    def _unfinished(self, ax: Any, heights: Array) -> None:
        """Mark the candidates that were not judged to the end, at heights (m,), one sign for each reason."""
        for number, (reason, text) in enumerate(UNFINISHED.items()):
            own = (self.status == reason) & ~self.steps
            if reason == "sample" or not own.any():
                continue
            name = f"{text} ({np.count_nonzero(own)})"
            scored = np.isfinite(self.values)
            if (own & scored).any():
                at = self.C[own & scored], heights[own & scored]
                ax.plot(*at, SIGNS[number], markersize=3.5, label=name, **WHITE_DOT)
                name = "_"
            if (own & ~scored).any():
                # A curve has no height where there is no score: those signs stand on the axis.
                where = {"transform": ax.get_xaxis_transform()} if self.width is None else {}
                y = np.full(np.count_nonzero(own & ~scored), 0.03) if self.width is None else heights[own & ~scored]
                ax.plot(
                    self.C[own & ~scored], y, SIGNS[number], markersize=4, markerfacecolor="none",
                    markeredgecolor=ink.GREYS[1], label=name, **where,
                )  # fmt: skip

    def explained(self) -> list[str]:
        """Sentences on the candidates that were not judged to the end."""
        texts = []
        for reason, text in UNFINISHED.items():
            count = int(np.count_nonzero((self.status == reason) & ~self.steps))
            if count:
                texts.append(f"{count} of {np.count_nonzero(~self.steps)} candidates: {text}.")
        return texts

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
            drawn = ax.pcolormesh(_edges(C), _edges(width), values, edgecolors="face", linewidth=0.3, **options)
            assert self.width is not None
            if self.steps.any():
                at = self.C[self.steps], self.width[self.steps]
                ax.plot(*at, "o", markersize=3, label="steps of a descent", **WHITE_DOT)
        else:
            drawn = ax.scatter(self.C, self.width, c=self.values, s=22, linewidths=0, **options)
        bar = ax.figure.colorbar(drawn, ax=ax)
        bar.set_label(self.criterion)
        bar.outline.set_visible(False)
        bar.solids.set_edgecolor("face")  # no hairlines between its steps


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and float(value) > 0.0


def _unprefixed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name.rpartition("__")[2]: value for name, value in parameters.items()}


def _best_of_repeated(C: Array, values: Array, width: Array | None, status: NDArray[Any]) -> NDArray[np.intp]:
    """One candidate for each C and width: over what is not shown, such as epsilon, the best of those judged longest."""
    keys = (np.zeros(len(C)) if width is None else width, C)
    order = np.lexsort((-np.nan_to_num(values, nan=-np.inf), status != "done", *keys))
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    return np.asarray(order[first])


def _edges(centres: Array) -> Array:
    """Borders between values in equal ratios."""
    logs = np.log(centres)
    middle = 0.5 * (logs[1:] + logs[:-1])
    ends = [logs[0] - (middle[0] - logs[0])], [logs[-1] + (logs[-1] - middle[-1])]
    return np.asarray(np.exp(np.concatenate([ends[0], middle, ends[1]])))


def plot_surface(source: Any, ax: Any = None) -> Any:
    """Draw the criterion of a search over C and width, and return the axes."""
    return SurfaceDisplay.from_estimator(source, ax=ax).ax_
