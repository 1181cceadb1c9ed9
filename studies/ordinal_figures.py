"""Figures 2.2 to 2.5 of Herbrich, Graepel and Obermayer 2000, again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ordinal_text as text
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _plots() -> Any:
    """Pyplot that writes the same file for the same figure."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "ordinal"
    from matplotlib import pyplot as plt

    return plt


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    _plots().close(figure)


def _lines(axes: Any, sizes: Sequence[int], curves: dict[str, Array], title: str) -> None:
    for name, values in curves.items():
        half = 1.96 * values.std(axis=1) / np.sqrt(values.shape[1])
        axes.errorbar(sizes, values.mean(axis=1), yerr=half, label=name, capsize=2)
    axes.set(title=title, xlabel="training points m", ylim=(0.0, None))


def draw_curves(errors: dict[str, dict[str, Array]], sizes: Sequence[int], path: Path) -> None:
    """Figure 2.2: share of pairs in the wrong order, for both readings of the noise."""
    figure, panels = _plots().subplots(1, len(errors), figsize=(10, 4), sharey=True)
    for axes, (noise, curves) in zip(panels, errors.items()):
        _lines(axes, sizes, curves, noise)
    panels[0].set_ylabel("pairs in the wrong order")
    panels[0].legend(fontsize=8)
    _save(figure, path)


def draw_flips(
    found: dict[str, tuple[Array, NDArray[np.bool_]]],
    utility: Callable[[Array], Array],
    edges: Sequence[float],
    path: Path,
) -> None:
    """Figure 2.2(a): the points whose rank noise changes, and the true boundaries."""
    figure, panels = _plots().subplots(1, len(found), figsize=(9, 4.5))
    side = np.linspace(0.0, 1.0, 101)
    grid = np.meshgrid(side, side)
    heights = utility(np.column_stack([axis.ravel() for axis in grid])).reshape(101, 101)
    for axes, (noise, (X, flipped)) in zip(panels, found.items()):
        axes.contour(*grid, heights, levels=edges, colors="black", linewidths=1, linestyles="solid")
        axes.plot(*X[flipped].T, ".", markersize=3)
        axes.set(title=f"{noise}: {100 * flipped.mean():.0f} % of the points", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    _save(figure, path)


def draw_maps(maps: dict[str, list[Array]], sizes: Sequence[int], path: Path) -> None:
    """Figure 2.3: ranks over the unit square, one (black) to five (white)."""
    figure, panels = _plots().subplots(len(sizes), len(maps), figsize=(8, 8), squeeze=False)
    for column, (name, found) in enumerate(maps.items()):
        panels[0, column].set_title(name, fontsize=9)
        for row, ranks in enumerate(found):
            axes = panels[row, column]
            axes.imshow(
                ranks, cmap="gray", vmin=1, vmax=5, origin="lower", extent=(0, 1, 0, 1), interpolation="nearest"
            )
            axes.set(xticks=[], yticks=[])
            if column == 0:
                axes.set_ylabel(f"m = {sizes[row]}")
    _save(figure, path)


def draw_text(found: dict[str, dict[str, Array]], path: Path) -> None:
    """Figures 2.4 and 2.5 on the documents of the stand-in."""
    figure, panels = _plots().subplots(1, len(found), figsize=(14, 4))
    for axes, (kind, curves) in zip(panels, found.items()):
        _lines(axes, text.SIZES[: len(next(iter(curves.values())))], curves, f"{kind} (made-up documents)")
    panels[0].legend(fontsize=8)
    _save(figure, path)
