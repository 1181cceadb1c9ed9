"""Pictures of ranks and orders: what a latent function makes of every rank, and how good an order is in every query.

A rank has the colour of its place, the same in all pictures of a page.
"""

from typing import Any

import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from mercer.ordinal.by_query import ByQuery
from mercer.report import ink

Array = NDArray[np.float64]

BINS = (12, 40)  # of a histogram, fewest and most
CENTRAL = (0.5, 99.5)  # percent of the values that a histogram shows; the others are in its ends
MOST = 8  # ranks with colours of their own
DASHED = {"color": ink.INK, "linewidth": 0.9, "linestyle": (0, (4, 3))}


def plot_boundaries(y: ArrayLike, utility: ArrayLike, thresholds: ArrayLike, classes: ArrayLike, ax: Any = None) -> Any:
    """Draw the utility of the points of every rank as histograms on one another, and the thresholds between them."""
    ax = ink.axes(ax)
    labels, values, edges = np.asarray(y), np.asarray(utility, dtype=np.float64), np.asarray(thresholds)
    ranks = np.asarray(classes)
    low, high = np.percentile(values, CENTRAL)
    low, high = min(low, float(edges.min())), max(high, float(edges.max()))
    low, high = low - 0.02 * (high - low), high + 0.02 * (high - low)
    count = int(np.clip(len(values) // 5, *BINS))
    bins = np.linspace(low, high, count + 1)
    bottom, handles = np.zeros(count), []
    for place, label in enumerate(ranks.tolist()):
        counts = np.histogram(np.clip(values[labels == label], low, high), bins)[0]
        colour = ink.colour(place) if len(ranks) <= MOST else ink.GREYS[place % 2 + 1]
        ax.bar(bins[:-1], counts, np.diff(bins), bottom, align="edge", color=colour, alpha=0.75, linewidth=0)
        handles.append(Patch(color=colour, alpha=0.75, label=ink.short(label)))
        bottom = bottom + counts
    for edge in edges:
        ax.axvline(edge, **DASHED)
    ax.set(xlabel="utility f(x)", ylabel="points", xlim=(low, high))
    ink.whole(ax, "y")
    ink.legend(ax, handles=handles if len(ranks) <= MOST else [], title="true rank")
    return ax


def plot_rank_errors(truth: ArrayLike, answer: ArrayLike, classes: ArrayLike, ax: Any = None) -> Any:
    """Draw, for every true rank by its number (n,), the share of answers that are too low, right and too high."""
    ax = ink.axes(ax)
    true, said, names = np.asarray(truth), np.asarray(answer), [ink.short(label) for label in np.asarray(classes)]
    places, left = np.arange(len(names))[::-1], np.zeros(len(names))
    apart = said - true
    groups = ((apart < -1, "two or more too low", 2), (apart == -1, "one too low", 1), (apart == 0, "right", 0),
              (apart == 1, "one too high", 1), (apart > 1, "two or more too high", 2))  # fmt: skip
    handles = []
    for chosen, name, shade in groups:
        shares = np.array([chosen[true == k].mean() if (true == k).any() else 0.0 for k in range(len(names))])
        hatch = "///" if "high" in name else ""
        drawn = ax.barh(places, shares, left=left, color=ink.GREYS[shade], hatch=hatch, edgecolor=ink.LINE, linewidth=0)
        left = left + shares
        if chosen.any():
            handles.append(drawn)
            drawn.set_label(name)
    ax.set_yticks(places, names)
    ax.grid(visible=False, axis="y")
    ax.set(xlabel="share of the points of a rank", ylabel="true rank", xlim=(0.0, 1.0))
    ink.legend(ax, handles=handles)
    return ax


def plot_by_query(values: ArrayLike, name: str, mean: float, ax: Any = None) -> Any:
    """Draw a measure (q,) of every query, from the worst to the best, with its mean over all."""
    ax = ink.axes(ax)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    ax.stairs(ordered, fill=True, color=ink.GREYS[0])
    ax.stairs(ordered, color=ink.GREYS[2], linewidth=1.2)
    ax.axhline(mean, label=f"mean {mean:.3f}", **DASHED)
    ax.set(xlabel="queries, worst first", ylabel=name, xlim=(0, len(ordered)), ylim=(min(0.0, ordered[0]), 1.03))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    ink.legend(ax)
    return ax


def plot_pairs_by_query(found: ByQuery, ax: Any = None) -> Any:
    """Draw the share of wrong pairs of every query against the number of its pairs."""
    ax = ink.axes(ax)
    there = found.pairs > 0
    shares = found.wrong[there] / found.pairs[there]
    ax.scatter(found.pairs[there], shares, s=12, color=ink.GREYS[1], alpha=0.7, linewidths=0)
    ax.axhline(0.5, label="chance", **DASHED)
    ax.set(xlabel="pairs of different rank in the query", ylabel="share in the wrong order", ylim=(-0.03, 1.03))
    ink.logarithmic(ax, "x")
    ax.minorticks_off()
    ink.legend(ax)
    return ax


def plot_utility_by_relevance(y: ArrayLike, utility: ArrayLike, groups: ArrayLike | None, ax: Any = None) -> Any:
    """Draw the utility less its mean in the query, by relevance: median, quartiles, and the central ninety percent."""
    ax = ink.axes(ax)
    relevance, values = np.asarray(y), np.asarray(utility, dtype=np.float64)
    codes = np.zeros(len(values), dtype=np.intp) if groups is None else np.unique(groups, return_inverse=True)[1]
    means = np.bincount(codes, values) / np.bincount(codes)
    above = values - means[codes]
    grades = np.unique(relevance)
    ax.boxplot(
        [above[relevance == grade] for grade in grades], positions=np.arange(len(grades)), whis=(5, 95), widths=0.55,
        showfliers=False, patch_artist=True, boxprops={"facecolor": ink.GREYS[0], "edgecolor": ink.GREYS[2]},
        medianprops={"color": ink.INK, "linewidth": 1.6}, whiskerprops={"color": ink.GREYS[2]},
        capprops={"color": ink.GREYS[2]},
    )  # fmt: skip
    ax.set_xticks(np.arange(len(grades)), [f"{grade:g}" for grade in grades.tolist()])
    ax.grid(visible=False, axis="x")
    ax.set(xlabel="relevance", ylabel="utility less the mean of its query")
    return ax
