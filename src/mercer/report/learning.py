"""Score against the number of training points: is it worth collecting more?

Sizes double up to the largest that cross-validation leaves.  A clock ends the series: a size is tried only when the
time it will take, judged by the last one and growth with n^2, is still there.
"""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import LearningCurveDisplay, ShuffleSplit, StratifiedShuffleSplit, learning_curve

from mercer.errors import InvalidInput
from mercer.report import ink
from mercer.report.machine import restated, task_of

Array = NDArray[np.float64]

SPLITS = 3
TEST_SHARE = 0.25
SMALLEST = 20


@dataclass(frozen=True)
class LearningCurve:
    """Sizes (t,) with scores on the training points and on held-out ones, (t, splits)."""

    sizes: NDArray[np.intp]
    train_scores: Array
    test_scores: Array
    score_name: str
    complete: bool


def measure_learning(
    machine: Any, X: Any, y: Any, *, time_limit: float = 20.0, random_state: int = 0
) -> LearningCurve | None:
    """The learning curve of a machine with its chosen parameters; None where there are too few points or no time."""
    again, y = restated(machine), np.asarray(y)
    regression = task_of(machine) == "regression"
    kind: Any = ShuffleSplit if regression else StratifiedShuffleSplit
    folds = kind(SPLITS, test_size=TEST_SHARE, random_state=random_state)
    largest = int(len(y) * (1.0 - TEST_SHARE))
    smallest = max(SMALLEST, 0 if regression else 2 * len(np.unique(y)))
    if largest < 2 * smallest or (not regression and np.min(np.unique(y, return_counts=True)[1]) < 2):
        return None
    sizes = np.unique(np.geomspace(smallest, largest, min(7, 1 + int(np.log2(largest / smallest)))).astype(int))
    train, test, last = [], [], 0.0
    started = time.perf_counter()
    for number, size in enumerate(sizes):
        expected = last * (size / sizes[number - 1]) ** 2 if number else 0.0
        if time.perf_counter() - started + expected > time_limit:
            break
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small samples may lack a class; their scores are NaN
            _, on_train, on_test = learning_curve(
                again, X, y, train_sizes=[int(size)], cv=folds, shuffle=True, random_state=random_state
            )
        last = time.perf_counter() - began
        train.append(on_train[0])
        test.append(on_test[0])
    known = len(train)
    finite = [i for i in range(known) if np.isfinite(test[i]).all() and np.isfinite(train[i]).all()]
    if len(finite) < 2:
        return None
    return LearningCurve(
        sizes[finite].astype(np.intp),
        np.array([train[i] for i in finite]),
        np.array([test[i] for i in finite]),
        "R2" if regression else "accuracy",
        known == len(sizes),
    )


def draw_learning(curve: LearningCurve, ax: Any = None) -> Any:
    """Draw a learning curve with one standard deviation around the means; returns the axes."""
    ax = ink.axes(ax)
    shown = LearningCurveDisplay(
        train_sizes=curve.sizes,
        train_scores=curve.train_scores,
        test_scores=curve.test_scores,
        score_name=curve.score_name,
    ).plot(ax=ax, line_kw={"marker": "o", "markersize": 3.5})
    for number, (line, band) in enumerate(zip(shown.lines_, shown.fill_between_)):
        line.set_color(ink.GREYS[1 + number])
        line.set_linestyle("--" if number == 0 else "-")
        band.set_color(ink.GREYS[1 + number])
        band.set_linewidth(0.0)
        line.set_label("training points" if number == 0 else "held-out points")
    ink.logarithmic(ax, "x")
    ax.minorticks_off()
    ax.set(xlabel="training points", ylabel=curve.score_name)
    ink.legend(ax, handles=list(shown.lines_))
    return ax


def plot_learning_curve(
    machine: Any, X: Any, y: Any, ax: Any = None, *, time_limit: float = 20.0, random_state: int = 0
) -> Any:
    """Measure and draw the learning curve of a machine within `time_limit` seconds; returns the axes."""
    curve = measure_learning(machine, X, y, time_limit=time_limit, random_state=random_state)
    if curve is None:
        raise InvalidInput("too few points, or too little time, for a learning curve of two sizes")
    return draw_learning(curve, ax)
