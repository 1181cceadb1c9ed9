"""The pictures of a report: each with its title, its caption, and a text for those who cannot see it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from sklearn.metrics import roc_auc_score

from mercer.problems.certificate import gap_text
from mercer.report import classification, ink, regression
from mercer.report.convergence import ConvergenceDisplay
from mercer.report.cross import CrossPlotDisplay
from mercer.report.estimates import HeldOut
from mercer.report.importance import SHOWN, Importance, draw_importance
from mercer.report.learning import LearningCurve, draw_learning
from mercer.report.margins import MarginDisplay
from mercer.report.surface import SurfaceDisplay

FEWEST_CALIBRATED = 30  # points, below which a bin of the calibration curve holds one or two
LEGEND_ROW = 0.17  # inches that a line of the legend adds to a picture


@dataclass(frozen=True)
class Picture:
    """SVG with its name and words."""

    name: str
    title: str
    svg: Markup
    caption: str


def picture(
    name: str, title: str, caption: str, draw: Callable[[Any], Any], *, width: float = 4.6, height: float = 3.3
) -> Picture:
    """Draw into new axes; the caption is also the text for those who cannot see the picture."""
    with ink.canvas(width, height) as figure:
        ax = figure.add_subplot()
        draw(ax)
        figure.set_figheight(height + LEGEND_ROW * ink.legend_rows(ax))
        # The text is escaped by Matplotlib and, in its label, by `ink.svg`.
        return Picture(name, title, Markup(ink.svg(figure, name, f"{title}. {caption}")), caption)


def convergence(display: ConvergenceDisplay) -> Picture:
    """The fall of the duality gap."""
    first, last = display.relative_gap_[0], display.relative_gap_[-1]
    caption = (
        f"The relative duality gap fell from {gap_text(first)} to {gap_text(last)} in "
        f"{display.iterations[-1]:.0f} iterations. The distance from the optimum is below the line all the way."
    )
    return picture("convergence", "Convergence", caption, lambda ax: display.plot(ax=ax))


def surface(display: SurfaceDisplay) -> Picture:
    """The criterion over C and width."""
    best = display.best_
    at = f"C = {display.C[best]:.3g}"
    if display.width is not None:
        at += f", {display.width_name} = {display.width[best]:.3g}"
    caption = (
        f"{len(display.C)} candidates. The one chosen has {display.criterion} {display.values[best]:.4g}, at {at}."
    )
    caption = " ".join([caption, *display.explained()])
    finite = display.C[np.isfinite(display.values)]
    if display.C[best] in (finite.min(), finite.max()) and len(np.unique(finite)) > 2:
        caption += " It lies at the edge of what was tried: a wider range of C may be better."
    title = "Choice of C" if display.width is None else f"Choice of C and {display.width_name}"
    return picture("surface", title, caption, lambda ax: display.plot(ax=ax))


def margins(display: MarginDisplay) -> Picture:
    """Margins of the training points by group."""
    lines = ", ".join(f"{edge:g}" for edge in display.edges)
    caption = f"Dashed: {lines}. Values past the central 99 % are in the ends."
    return picture("margins", "Margins of the training points", caption, lambda ax: display.plot(ax=ax))


def cross(display: CrossPlotDisplay) -> Picture:
    """Outputs of two machines."""
    caption = f"Each dot is a point; the correlation of the two outputs is {display.correlation:.3f}."
    return picture("cross", "Two machines, point by point", caption, lambda ax: display.plot(ax=ax), height=3.6)


def learning(curve: LearningCurve) -> Picture:
    """Score against size."""
    means = curve.test_scores.mean(axis=1)
    caption = (
        f"With {curve.sizes[0]} points the held-out {curve.score_name} is {means[0]:.3f}, with {curve.sizes[-1]} it is "
        f"{means[-1]:.3f} (means over {curve.test_scores.shape[1]} random splits, one standard deviation shaded; "
        "parameters held)."
    )
    caption += "" if curve.complete else " Larger sizes would have taken longer than the time allowed."
    return picture("learning", "Learning curve", caption, lambda ax: draw_learning(curve, ax))


def importance(found: Importance) -> Picture:
    """Loss of score without each feature."""
    rows = min(len(found.names), SHOWN)
    first = ", ".join(found.names[:3])
    caption = (
        f"Bars: mean loss of {found.score_name} over {found.losses.shape[1]} permutations; lines: one standard "
        f"deviation. The most important: {first}."
    )
    title, height = "Permutation importance", 1.1 + 0.2 * rows
    return picture("importance", title, caption, lambda ax: draw_importance(found, ax), height=height)


def of_classes(held: HeldOut, classes: Any, shown: Any = None) -> list[Picture]:
    """ROC, precision and recall, calibration, confusion; of many classes only those of `shown` have curves."""
    y, values, several = held.y, held.outputs, len(classes) > 2
    each = "each class against the rest" if several else f"class {classes[1]} counts as positive"
    if several and len(classes) > classification.MOST:
        each += f"; the {classification.MOST} worst of {len(classes)} classes are drawn"
    wrong = int(np.sum(held.predicted != y))
    size = min(6.0, 3.3 + 0.12 * max(0, len(classes) - 4))
    found = [
        picture(
            "confusion",
            "Confusion matrix",
            f"{wrong} of {len(y)} points are taken for another class. Rows are true classes. From {held.how}.",
            lambda ax: classification.plot_confusion(y, held.predicted, classes, ax),
            width=max(4.6, size),
            height=size,
        )
    ]
    if len(np.unique(y)) < 2:
        return found
    if not several:
        each += f"; the area under the curve is {roc_auc_score(y == classes[1], values):.3f}"
    roc = f"Found against falsely found as the threshold falls: {each}. From {held.how}."
    purity = f"How pure the finds are against how many are found. From {held.how}."
    drawn = (y, values, classes)
    found += [
        picture("roc", "ROC curve", roc, lambda ax: classification.plot_roc(*drawn, ax, shown=shown)),
        picture(
            "precision-recall", "Precision and recall", purity,
            lambda ax: classification.plot_precision_recall(*drawn, ax, shown=shown),
        ),
    ]  # fmt: skip
    if len(y) < FEWEST_CALIBRATED:
        return found
    given = held.probabilities is not None
    p = held.probabilities if held.probabilities is not None else classification.calibrated(y, values, classes)
    origin = "the machine's own" if given else "from Platt's sigmoid, fitted to the outputs of the other points"
    text = f"Of the points given probability p, a share p should belong to the class. Probabilities are {origin}."
    return [*found, calibration(y, p, classes, text, shown)]


def calibration(y: Any, p: Any, classes: Any, caption: str, shown: Any = None) -> Picture:
    """Observed shares against probabilities p, (n,) or (n, k)."""

    def draw(ax: Any) -> Any:
        return classification.plot_calibration(y, p, classes, ax, shown=shown)

    return picture("calibration", "Calibration", caption, draw)


def of_numbers(held: HeldOut) -> list[Picture]:
    """Targets and residuals against predictions."""
    y, f = np.asarray(held.y, dtype=np.float64), held.outputs
    exact = f"On the dashed line a prediction is exact. From {held.how}."
    left = f"A trend or a widening fan is something the machine has not learnt. From {held.how}."
    return [
        picture("predictions", "True against predicted", exact, lambda ax: regression.plot_predictions(y, f, ax)),
        picture("residuals", "Residuals", left, lambda ax: regression.plot_residuals(y, f, ax)),
    ]
