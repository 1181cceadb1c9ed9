"""What is asked of a target: a class, or a number."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data import Dataset
from mercer.errors import InvalidInput

Task = Literal["classification", "regression"]

MOST_CLASSES = 50  # whole numbers with more different values than this are taken for a measurement


def looks_like(y: NDArray[Any]) -> Task:
    """Texts and few different whole numbers are classes; all else is a measurement."""
    if y.ndim == 1 and (y.dtype.kind in "US" or (y.dtype.kind in "biu" and len(np.unique(y)) <= MOST_CLASSES)):
        return "classification"
    return "regression"


def target_of(data: Dataset) -> NDArray[Any]:
    """The target, which must be there."""
    if data.y is None:
        raise InvalidInput(f"{data.source}: has no target; give a file that has one, or name its column with --target")
    return data.y


def settle(y: NDArray[Any], wanted: Task | None, source: str) -> Task:
    """The task that was asked for, or the one the target looks like; a target that cannot serve it is refused."""
    task = wanted or looks_like(y)
    if task == "regression":
        if y.dtype.kind in "USO":
            raise InvalidInput(f"{source}: the target holds texts, which are classes; use --machine svc or lssvc")
        return task
    if y.ndim == 2:
        raise InvalidInput(f"{source}: has several targets; lssvr takes them, a classifier takes one")
    if y.dtype.kind == "f":
        raise InvalidInput(f"{source}: the target is a measurement, not a class; use --machine svr or lssvr")
    if len(np.unique(y)) < 2:
        raise InvalidInput(
            f"{source}: all points are of class {y[0]}; a classifier needs points of at least two classes"
        )
    return task
