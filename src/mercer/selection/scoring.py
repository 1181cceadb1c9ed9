"""Scores of held-out predictions; larger is better, and every one is a mean over folds of a function of (y, f).

Classification: "accuracy", "balanced_accuracy" (mean recall of the classes that are there).  Regression: "r2",
"neg_mean_squared_error", "neg_mean_absolute_error".  A callable score(y, predicted) is taken as it is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Score = Callable[[NDArray[Any], NDArray[Any]], float]


def accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Share of points whose class is right."""
    return float(np.mean(y == predicted))


def balanced_accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Mean over the classes in y of the share that is right."""
    return float(np.mean([np.mean(predicted[y == c] == c) for c in np.unique(y)]))


def negative_squared_error(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Minus the mean squared error."""
    return -float(np.mean((y - predicted) ** 2))


def negative_absolute_error(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Minus the mean absolute error."""
    return -float(np.mean(np.abs(y - predicted)))


def r2(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """1 - squared error over squared deviation; for constant y 1 when exact, else 0."""
    error, spread = float(np.sum((y - predicted) ** 2)), float(np.sum((y - np.mean(y)) ** 2))
    return 1.0 - error / spread if spread > 0.0 else float(error == 0.0)


CLASSIFICATION: dict[str, Score] = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy}
REGRESSION: dict[str, Score] = {
    "r2": r2,
    "neg_mean_squared_error": negative_squared_error,
    "neg_mean_absolute_error": negative_absolute_error,
}


def score_of(scoring: Any, classifier: bool) -> Score:
    """The function behind a name; None is accuracy or r2."""
    known = CLASSIFICATION if classifier else REGRESSION
    if scoring is None:
        return accuracy if classifier else r2
    if callable(scoring):
        return scoring  # type: ignore[no-any-return]
    if scoring not in known:
        raise InvalidInput(f"scoring={scoring!r} is not known here; give one of {', '.join(known)} or a function")
    return known[scoring]
