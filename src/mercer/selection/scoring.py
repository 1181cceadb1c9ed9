"""Scores of held-out predictions; larger is better, and every one is a mean over folds of a function of (y, f).

Classification: "accuracy", "balanced_accuracy" (mean recall of the classes that are there), and where probabilities are
predicted "neg_log_loss" and "neg_brier_score" (the squared distance to the indicator of the class).  Regression: "r2",
"neg_mean_squared_error", "neg_mean_absolute_error".  Points count by their weights: a weight of two is two points.  A
callable score(y, predicted) is taken as it is; one with an argument `sample_weight` gets the weights, one with `groups`
the queries of ranked points.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Weights = NDArray[np.float64] | None
CERTAIN = 1e-15  # probabilities below this count as this in a log loss
Score = Callable[..., float]  # of truth, prediction and weights (n,), and the groups of ranked points


def accuracy(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """Share of points whose class is right."""
    return float(np.average(y == predicted, weights=weights))


def balanced_accuracy(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """Mean over the classes in y of the share that is right."""
    own = [y == c for c in np.unique(y)]
    return float(np.mean([accuracy(y[at], predicted[at], None if weights is None else weights[at]) for at in own]))


def negative_squared_error(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """Minus the mean squared error."""
    return -float(np.average((y - predicted) ** 2, weights=weights))


def negative_absolute_error(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """Minus the mean absolute error."""
    return -float(np.average(np.abs(y - predicted), weights=weights))


def r2(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """1 - squared error over squared deviation; for constant y 1 when exact, else 0."""
    middle = np.average(y, weights=weights)
    error, spread = (float(np.average((y - f) ** 2, weights=weights)) for f in (predicted, middle))
    return 1.0 - error / spread if spread > 0.0 else float(error == 0.0)


def negative_log_loss(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """Mean logarithm of the probabilities (n, k) of the true classes."""
    true = np.maximum(predicted[np.arange(len(y)), y], CERTAIN)
    return float(np.average(np.log(true), weights=weights))


def negative_brier_score(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None) -> float:
    """Minus the mean squared distance of the probabilities (n, k) from the indicator of the true class."""
    squares = (predicted**2).sum(axis=1) - 2.0 * predicted[np.arange(len(y)), y] + 1.0
    return -float(np.average(squares, weights=weights))


CLASSIFICATION: dict[str, Score] = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy}
PROBABILITY: dict[str, Score] = {"neg_log_loss": negative_log_loss, "neg_brier_score": negative_brier_score}
REGRESSION: dict[str, Score] = {
    "r2": r2,
    "neg_mean_squared_error": negative_squared_error,
    "neg_mean_absolute_error": negative_absolute_error,
}


def score_of(scoring: Any, classifier: bool, probabilities: bool = False) -> Score:
    """The function behind a name; None is accuracy or r2, and log loss where probabilities are predicted.

    A function is then one of classes and probabilities (n, k).
    """
    known = (CLASSIFICATION | (PROBABILITY if probabilities else {})) if classifier else REGRESSION
    if scoring is None:
        return negative_log_loss if probabilities else accuracy if classifier else r2
    if callable(scoring):
        return _weighing(scoring)
    if scoring not in known:
        raise InvalidInput(f"scoring={scoring!r} is not known here; give one of {', '.join(known)} or a function")
    return known[scoring]


def takes_weights(scoring: Any) -> bool:
    """Whether a score counts points by their weights: all that have a name do, functions without a signature do not."""
    return not callable(scoring) or "sample_weight" in _arguments(scoring)


def _arguments(scoring: Callable[..., float]) -> set[str]:
    """Names of the arguments of a user's function; none where it has no signature."""
    try:
        return set(inspect.signature(scoring).parameters)
    except (TypeError, ValueError):
        return set()


def _weighing(scoring: Callable[..., float]) -> Score:
    """A user's function, with weights and groups where it takes them; functions without a signature do not."""
    taken = _arguments(scoring)

    def score(y: NDArray[Any], predicted: NDArray[Any], weights: Weights = None, groups: Any = None) -> float:
        known = {"sample_weight": weights, "groups": groups}
        return scoring(y, predicted, **{name: value for name, value in known.items() if name in taken})

    return score
