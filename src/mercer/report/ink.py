"""Colours of the pictures, and the way from a Matplotlib figure to SVG inside a page.

A picture in a page must be readable on white and on black.  It is drawn with a few fixed colours on a transparent
ground; on the way into the page each of them becomes a CSS variable, which the page sets once for light and once for
dark.  Text stays text, so that it can be selected, searched and scaled.

Colours stand for classes, each with its own in every picture; what is not a class is drawn in greys.  Legends stand
above the axes, where no line can cross them, and axes have round numbers.
"""

import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

INK = "#31353b"  # text and axes
LINE = "#c3c8cf"  # grid and frames
SERIES = ("#2368b5", "#d2582a", "#2b8a57", "#8450b5", "#b07d12", "#1a8f9c", "#c23b78", "#6b7684")
GREYS = ("#b4bcc6", "#7c8794", "#39404a")  # faint, middle, strong
LEGEND_SIZE = 8.0
FEWEST_TICKS = 3
LONGEST = 20  # characters of a name in a picture
VARIABLES = (
    {INK: "currentColor", LINE: "var(--line)"}
    | {c: f"var(--s{i})" for i, c in enumerate(SERIES, start=1)}
    | {c: f"var(--g{i})" for i, c in enumerate(GREYS, start=1)}
)

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.0,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.unicode_minus": False,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "legend.fontsize": LEGEND_SIZE,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    # Names of classes and features are never read as formulas, whatever signs they hold.
    "text.parse_math": False,
    "text.color": INK,
    "xtick.color": LINE,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.color": LINE,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.0,
}

# From nothing to grey, half transparent: the ink stays readable on every shade, on white and on black.
SHADES = LinearSegmentedColormap.from_list("shades", [(0.486, 0.529, 0.58, 0.0), (0.486, 0.529, 0.58, 0.7)])


def colour(index: int) -> str:
    """The colour of a series; they repeat after the last."""
    return SERIES[index % len(SERIES)]


def short(label: Any) -> str:
    """A name that leaves room for the picture; names differ at their ends as often as at their beginnings."""
    text = str(label)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 11]}...{text[-8:]}"


def axes(ax: Any = None) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def logarithmic(ax: Any, which: str) -> None:
    """A logarithmic axis, "x" or "y", with plain round numbers: powers of ten, and 2 and 5 times those if they are few.

    To be called when all is drawn: the numbers depend on the range.
    """
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if which == "x" else ax.yaxis
    low, high = sorted(ax.get_xlim() if which == "x" else ax.get_ylim())
    for multiples in ((1.0,), (1.0, 2.0, 5.0), tuple(range(1, 10))):
        locator: Any = LogLocator(base=10.0, subs=multiples, numticks=7)
        if sum(low <= tick <= high for tick in locator.tick_values(low, high)) >= FEWEST_TICKS:
            break
    else:
        locator = MaxNLocator(nbins=5, steps=[1, 2, 5, 10])
    axis.set_major_locator(locator)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def whole(ax: Any, which: str) -> None:
    """Whole numbers on an axis of counts, "x" or "y"."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True))


def legend(ax: Any, handles: Sequence[Any] | None = None, title: str | None = None) -> None:
    """A legend above the axes, in as many columns as its names leave room for."""
    found = list(handles) if handles is not None else ax.get_legend_handles_labels()[0]
    if not found:
        return
    longest = max(len(str(handle.get_label())) for handle in found)
    columns = next(count for most, count in ((11, 3), (21, 2), (longest, 1)) if longest <= most)
    ax.legend(
        handles=found,
        title=title,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=min(columns, len(found)),
        alignment="left",
        borderpad=0.2,
        columnspacing=1.2,
        title_fontsize=LEGEND_SIZE,
    )


def legend_rows(ax: Any) -> int:
    """Lines of text in the legend above the axes."""
    found = ax.get_legend()
    if found is None:
        return 0
    return -(-len(found.get_texts()) // max(1, int(found._ncols))) + bool(found.get_title().get_text())


@contextmanager
def canvas(width: float = 4.6, height: float = 3.3) -> Iterator[Figure]:
    """A figure of the given size in inches that no window knows of, drawn in the style of the report."""
    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def svg(figure: Figure, name: str, label: str) -> str:
    """The figure as SVG to stand inside HTML, with `label` as its text for those who cannot see it.

    The same figure gives the same text.  Every id starts with `name`, so that pictures on one page do not share any.
    """
    file = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    head, body = text.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None, "Matplotlib writes a view box"
    body = re.sub(r"xlink:href=", "href=", body)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub("|".join(VARIABLES), lambda found: VARIABLES[found[0]], body)
    return f'<svg {box[0]} role="img" aria-label="{html.escape(label)}">{body}'.strip()
