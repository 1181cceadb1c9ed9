"""Pictures of a classifier's outputs: ROC, precision and recall, calibration, confusion; by scikit-learn's displays.

Every function takes labels y (n,) and outputs, (n,) for two classes (larger for classes[1]) or (n, k) for k classes,
of which each is then drawn against the rest.  A class has the colour of its place among the classes.  Beyond eight of
them only those of `shown` are drawn, by default the eight with the smallest area under the ROC curve.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from numpy.typing import ArrayLike, NDArray
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
    confusion_matrix,
    roc_auc_score,
)

from mercer.errors import InvalidInput
from mercer.machine.probability import fit_sigmoid, sigmoid
from mercer.report import ink

Array = NDArray[np.float64]

MOST = 8  # curves in one picture; the worst ones are shown
ROOM = 36  # letters that fit under a confusion matrix
CELLS = 20  # classes whose counts are written into the cells of a confusion matrix


@dataclass(frozen=True)
class Curve:
    """A class against the rest: which points belong to it (n,), its output (n,), and its colour."""

    label: Any
    positive: NDArray[np.bool_]
    output: Array
    colour: str = ""

    @property
    def area(self) -> float:
        """Area under the ROC curve."""
        return float(roc_auc_score(self.positive, self.output))


def _against_rest(y: ArrayLike, values: ArrayLike, classes: ArrayLike) -> list[Curve]:
    """Every class of which there are points, and points of others too."""
    y, values, classes = np.asarray(y), np.asarray(values, dtype=np.float64), np.asarray(classes)
    if values.ndim == 1:
        if len(classes) != 2:
            raise InvalidInput(f"outputs (n,) belong to two classes; there are {len(classes)}")
        curves = [Curve(classes[1], y == classes[1], values)]
    else:
        if values.shape[1] != len(classes):
            raise InvalidInput(f"outputs {values.shape} must have one column for each of the {len(classes)} classes")
        curves = [Curve(label, y == label, values[:, j]) for j, label in enumerate(classes)]
    return [curve for curve in curves if curve.positive.any() and not curve.positive.all()]


def worst(y: ArrayLike, values: ArrayLike, classes: ArrayLike) -> NDArray[Any]:
    """At most MOST classes to draw: those with the smallest area under the ROC curve, in the order of the classes."""
    curves = _against_rest(y, values, classes)
    lowest = np.argsort([curve.area for curve in curves], kind="stable")[:MOST]
    return np.array([curves[i].label for i in np.sort(lowest)])


def colours(classes: ArrayLike, shown: ArrayLike | None = None) -> dict[Any, str]:
    """The colour of every class that has one: all where there are at most MOST, else those of `shown`."""
    drawn = np.asarray(classes if shown is None or np.size(classes) <= MOST else shown)[:MOST]
    return {label: ink.colour(place) for place, label in enumerate(drawn.tolist())}


def _curves(y: ArrayLike, values: ArrayLike, classes: ArrayLike, shown: ArrayLike | None) -> list[Curve]:
    """The curves to draw, with their colours."""
    if shown is None and np.size(classes) > MOST:
        shown = worst(y, values, classes)
    known = colours(classes, shown)
    curves = [replace(curve, colour=known.get(_plain(curve.label), "")) for curve in _against_rest(y, values, classes)]
    return [curve for curve in curves if curve.colour]


def _plain(label: Any) -> Any:
    """A label as a Python object, the key of `colours`."""
    return label.item() if isinstance(label, np.generic) else label


def plot_roc(
    y: ArrayLike, values: ArrayLike, classes: ArrayLike, ax: Any = None, *, shown: ArrayLike | None = None
) -> Any:
    """Draw the share of a class that is found against the share of the others taken for it; returns the axes."""
    ax = ink.axes(ax)
    for curve in _curves(y, values, classes, shown):
        drawn = RocCurveDisplay.from_predictions(
            curve.positive, curve.output, ax=ax, curve_kwargs={"color": curve.colour}
        )
        drawn.line_.set_label(f"{ink.short(curve.label)} ({curve.area:.3f})")
    ax.plot([0, 1], [0, 1], color=ink.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="chance")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="auto")
    ink.legend(ax, title="class, and area under its curve")
    return ax


def plot_precision_recall(
    y: ArrayLike, values: ArrayLike, classes: ArrayLike, ax: Any = None, *, shown: ArrayLike | None = None
) -> Any:
    """Draw which share of what is taken for a class belongs to it, against the share of it found; returns the axes."""
    ax = ink.axes(ax)
    for curve in _curves(y, values, classes, shown):
        drawn = PrecisionRecallDisplay.from_predictions(
            curve.positive, curve.output, ax=ax, drop_intermediate=True, curve_kwargs={"color": curve.colour}
        )
        drawn.line_.set_label(f"{ink.short(curve.label)} ({drawn.average_precision:.3f})")
    ax.set(xlabel="recall", ylabel="precision", ylim=(-0.02, 1.05), aspect="auto")
    ink.legend(ax, title="class, and average precision")
    return ax


def plot_confusion(y: ArrayLike, predicted: ArrayLike, classes: ArrayLike, ax: Any = None) -> Any:
    """Draw how many points of each class (rows) were taken for which (columns); returns the axes."""
    ax = ink.axes(ax)
    classes = np.asarray(classes)
    counts = confusion_matrix(y, predicted, labels=classes)
    written = len(classes) <= CELLS
    names = [ink.short(label) for label in classes]
    shown = ConfusionMatrixDisplay(counts, display_labels=names)
    shown.plot(
        ax=ax,
        cmap=ink.SHADES,
        colorbar=False,
        include_values=written,
        values_format="d",
        xticks_rotation="vertical" if len(classes) * max(map(len, names)) > ROOM else "horizontal",
        im_kw={"norm": PowerNorm(0.5)},  # so that few errors are seen beside many right answers
        text_kw={"fontsize": 9.0 if len(classes) <= 8 else 6.0},
    )
    if written and shown.text_ is not None:
        for text in shown.text_.ravel():
            text.set_color(ink.INK)
    ax.grid(visible=False)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def plot_calibration(
    y: ArrayLike,
    probabilities: ArrayLike,
    classes: ArrayLike,
    ax: Any = None,
    *,
    bins: int = 8,
    shown: ArrayLike | None = None,
) -> Any:
    """Draw the observed share of a class against its predicted probability, in bins of equal counts.

    `probabilities` are (n,), of classes[1], or (n, k).  Returns the axes.
    """
    ax = ink.axes(ax)
    p = np.asarray(probabilities, dtype=np.float64)
    p = p[:, 1] if p.ndim == 2 and p.shape[1] == 2 else p
    for curve in _curves(y, p, classes, shown):
        CalibrationDisplay.from_predictions(
            curve.positive, curve.output, n_bins=bins, strategy="quantile", ax=ax, name=ink.short(curve.label),
            ref_line=False, color=curve.colour, marker="o", markersize=3.5,
        )  # fmt: skip
    ax.plot([0, 1], [0, 1], color=ink.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="calibrated")
    ax.set(xlabel="predicted probability", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ink.legend(ax)
    return ax


def calibrated(y: ArrayLike, values: ArrayLike, classes: ArrayLike, *, folds: int = 5, random_state: int = 0) -> Array:
    """Probabilities from held-out outputs by Platt's sigmoid, each point's sigmoid fitted to the other folds.

    (n,) for outputs (n,); (n, k), with rows that sum to one, for outputs (n, k).
    """
    outputs = np.asarray(values, dtype=np.float64)
    columns = outputs[:, None] if outputs.ndim == 1 else outputs
    labels, names = np.asarray(y), np.asarray(classes)
    fold = np.random.default_rng(random_state).permutation(len(labels)) % min(folds, len(labels))
    p = np.empty_like(columns)
    for column in range(columns.shape[1]):
        positive = labels == (names[1] if outputs.ndim == 1 else names[column])
        for number in np.unique(fold):
            own = fold == number
            a, b = fit_sigmoid(columns[~own, column], positive[~own])
            p[own, column] = sigmoid(columns[own, column], a, b)
    if outputs.ndim == 1:
        return p[:, 0]
    return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300))
