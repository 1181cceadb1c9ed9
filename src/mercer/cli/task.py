"""What is asked of a target: a class, or a number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data import Dataset
from mercer.data.targets import Task, looks_like, refuse_measurement
from mercer.errors import InvalidInput

MEASURED = "use --machine svr or lssvr, or write classes as texts"


def target_of(data: Dataset) -> NDArray[Any]:
    """The target, which must be there."""
    if data.y is None:
        raise InvalidInput(f"{data.source}: has no target; give a file that has one, or name its column with --target")
    return data.y


def settle(y: NDArray[Any], wanted: Task | None, source: str, *, part: bool = False) -> Task:
    """The task that was asked for, or the one the target looks like; a target that cannot serve it is refused.

    part : whether y is a part of a target that was found to serve; it may have fewer points of a class.
    """
    task = wanted or looks_like(y)
    if task == "regression":
        if y.dtype.kind in "USO":
            raise InvalidInput(f"{source}: the target holds texts, which are classes; use --machine svc or lssvc")
        return task
    if y.ndim == 2:
        raise InvalidInput(f"{source}: has several targets; lssvr takes them, a classifier takes one")
    if not part:
        texts = "choose another --target, or write fewer classes"
        refuse_measurement(y, source, texts if y.dtype.kind in "US" else MEASURED)
    if len(np.unique(y)) < 2:
        raise InvalidInput(
            f"{source}: all points are of class {y[0]}; a classifier needs points of at least two classes"
        )
    return task
