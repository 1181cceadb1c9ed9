"""Pictures of a classifier's outputs: ROC, precision and recall, calibration, confusion; by scikit-learn's displays.

Every function takes labels y (n,) and outputs, (n,) for two classes (larger for classes[1]) or (n, k) for k classes,
of which each is then drawn against the rest.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
    average_precision_score,
    confusion_matrix,
    roc_auc_score,
)

from mercer.errors import InvalidInput
from mercer.estimation.probability import fit_sigmoid, sigmoid
from mercer.report import ink

Array = NDArray[np.float64]

MOST = 8  # curves in one picture; the worst ones are shown
CELLS = 20  # classes whose counts are written into the cells of a confusion matrix


def _against_rest(y: ArrayLike, values: ArrayLike, classes: ArrayLike) -> list[tuple[Any, NDArray[np.bool_], Array]]:
    """Class, whether a point belongs to it (n,), and its output (n,), for every curve that can be drawn."""
    y, values, classes = np.asarray(y), np.asarray(values, dtype=np.float64), np.asarray(classes)
    if values.ndim == 1:
        if len(classes) != 2:
            raise InvalidInput(f"outputs (n,) belong to two classes; there are {len(classes)}")
        curves = [(classes[1], y == classes[1], values)]
    else:
        if values.shape[1] != len(classes):
            raise InvalidInput(f"outputs {values.shape} must have one column for each of the {len(classes)} classes")
        curves = [(label, y == label, values[:, j]) for j, label in enumerate(classes)]
    return [curve for curve in curves if curve[1].any() and not curve[1].all()]


def _worst(curves: list[Any], score: Any) -> list[Any]:
    """At most MOST curves, those with the lowest score, in the order of the classes."""
    if len(curves) <= MOST:
        return curves
    lowest = np.sort(np.argsort([score(curve[1], curve[2]) for curve in curves], kind="stable")[:MOST])
    return [curves[i] for i in lowest]


def plot_roc(y: ArrayLike, values: ArrayLike, classes: ArrayLike, ax: Any = None) -> Any:
    """Draw the share of a class that is found against the share of the others taken for it; returns the axes."""
    ax = ink.axes(ax)
    curves = _worst(_against_rest(y, values, classes), roc_auc_score)
    for number, (label, positive, output) in enumerate(curves):
        style = {"color": ink.colour(number)}
        RocCurveDisplay.from_predictions(positive, output, ax=ax, name=ink.short(label), curve_kwargs=style)
    ax.plot([0, 1], [0, 1], color=ink.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="chance")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.legend(loc="lower right")
    return ax


def plot_precision_recall(y: ArrayLike, values: ArrayLike, classes: ArrayLike, ax: Any = None) -> Any:
    """Draw which share of what is taken for a class belongs to it, against the share of it found; returns the axes."""
    ax = ink.axes(ax)
    curves = _worst(_against_rest(y, values, classes), average_precision_score)
    for number, (label, positive, output) in enumerate(curves):
        style = {"color": ink.colour(number)}
        PrecisionRecallDisplay.from_predictions(
            positive, output, ax=ax, name=ink.short(label), drop_intermediate=True, curve_kwargs=style
        )
    ax.set(xlabel="recall", ylabel="precision", ylim=(-0.02, 1.05))
    ax.legend(loc="lower left")
    return ax


def plot_confusion(y: ArrayLike, predicted: ArrayLike, classes: ArrayLike, ax: Any = None) -> Any:
    """Draw how many points of each class (rows) were taken for which (columns); returns the axes."""
    ax = ink.axes(ax)
    classes = np.asarray(classes)
    counts = confusion_matrix(y, predicted, labels=classes)
    written = len(classes) <= CELLS
    shown = ConfusionMatrixDisplay(counts, display_labels=[ink.short(label) for label in classes])
    shown.plot(
        ax=ax,
        cmap=ink.SHADES,
        colorbar=False,
        include_values=written,
        values_format="d",
        xticks_rotation="vertical" if len(classes) > 6 else "horizontal",
        text_kw={"fontsize": 9.0 if len(classes) <= 8 else 6.0},
    )
    if written and shown.text_ is not None:
        for text in shown.text_.ravel():
            text.set_color(ink.INK)
    ax.grid(visible=False)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def plot_calibration(
    y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, ax: Any = None, *, bins: int = 8
) -> Any:
    """Draw the observed share of a class against its predicted probability, in bins of equal counts.

    `probabilities` are (n,), of classes[1], or (n, k).  Returns the axes.
    """
    ax = ink.axes(ax)
    p = np.asarray(probabilities, dtype=np.float64)
    p = p[:, 1] if p.ndim == 2 and p.shape[1] == 2 else p
    curves = _against_rest(y, p, classes)
    for number, (label, positive, own) in enumerate(sorted(curves, key=lambda curve: -int(curve[1].sum()))[:MOST]):
        CalibrationDisplay.from_predictions(
            positive, own, n_bins=bins, strategy="quantile", ax=ax, name=ink.short(label), ref_line=False,
            color=ink.colour(number), marker="o", markersize=3.5,
        )  # fmt: skip
    ax.plot([0, 1], [0, 1], color=ink.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="calibrated")
    ax.set(xlabel="predicted probability", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="upper left")
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
