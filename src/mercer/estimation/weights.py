"""Weights that mean what they say: weight m is m copies of the point, weight zero is leaving it out.

Sample weights and class weights multiply; the product scales the box of the point's dual variable, whichever the
machine.  Points of weight zero are taken out before anything else looks at the data, so that they touch neither the
width of the default kernel nor the balance of the classes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from mercer.errors import InvalidInput

Vector = NDArray[np.float64]


def sample_weights(weights: Any, X: Any) -> Vector | None:
    """Weights (n,) as given by the caller, checked; None when all points count alike by default."""
    if weights is None:
        return None
    w: Vector = np.asarray(_check_sample_weight(weights, X, dtype=np.float64, allow_all_zero_weights=True))
    if w.size and w.max() <= 0.0:
        raise InvalidInput("Invalid input - all samples have zero or negative weights.")
    return w


def refuse_negative(weights: Vector) -> None:
    """A negative weight would reward mistakes, and the problem would have no minimum."""
    if weights.min() < 0.0:
        worst = int(weights.argmin())
        raise InvalidInput(
            f"sample_weight[{worst}] = {weights[worst]:g} is negative; use 0 to leave a point out of the training"
        )


def class_weights(class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector | None) -> Vector:
    """Weight of each class (k,); "balanced" counts points by their sample weights."""
    if class_weight is None:
        return np.ones(len(classes))
    return np.asarray(compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights))


def point_weights(weights: Vector | None, of_class: Vector, codes: NDArray[np.intp]) -> Vector | None:
    """Sample weight times class weight for every point (n,), None when all are one."""
    if weights is None:
        return None if (of_class == 1.0).all() else of_class[codes]
    return weights * of_class[codes]
