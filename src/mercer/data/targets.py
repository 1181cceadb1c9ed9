"""What a target asks for: a class, or a number.

- Truth values and texts are classes.
- Numbers with a fraction are measurements; scikit-learn's `check_classification_targets`, which the estimators call,
  refuses them too.
- Whole numbers look like classes while there are at most MOST_CLASSES different ones.  A caller may take more of them
  for classes, but not where a class has fewer than FEW_POINTS points on average: those are ages, counts or prices.

Nothing tells ranks from classes: a task of ranks ("ordinal") or of orders ("rank") has to be asked for.

A classifier trained on a measurement has a machine for each of its values, or each pair of them, and is hardly ever
right.  The same holds for texts most of which occur once.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Task = Literal["classification", "regression", "ordinal", "rank"]

MOST_CLASSES = 50
FEW_POINTS, FEW_POINTS_OF_TEXTS = 10, 2


def looks_like(y: NDArray[Any]) -> Task:
    """The task that the target y, (n,) or (n, k), looks like."""
    if y.ndim == 1 and (y.dtype.kind in "USb" or (y.dtype.kind in "iu" and len(np.unique(y)) <= MOST_CLASSES)):
        return "classification"
    return "regression"


def refuse_measurement(y: NDArray[Any], source: str, remedy: str) -> None:
    """Refuse y (n,) as classes when it is a measurement; `remedy` says what serves instead."""
    values = len(np.unique(y))
    texts = y.dtype.kind in "US"
    if y.dtype.kind == "f":
        seen = f"{values} different numbers with fractions"
    elif values > MOST_CLASSES and len(y) < (FEW_POINTS_OF_TEXTS if texts else FEW_POINTS) * values:
        seen = f"{values} different {'texts' if texts else 'whole numbers'} at {len(y)} points"
    else:
        return
    raise InvalidInput(f"{source}: the target is a measurement, not a class ({seen}); {remedy}")
