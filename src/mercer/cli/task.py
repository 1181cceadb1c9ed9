"""What is asked of a target: a class, a number, a rank, or an order."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data import Dataset
from mercer.data.targets import Task, looks_like, refuse_measurement
from mercer.errors import Advice, InvalidInput

MEASURED = "use --machine svr or lssvr, or write classes as texts"
MEASURED_RANKS = "use --task rank, which orders by any number, or --machine svr"


def target_of(data: Dataset) -> NDArray[Any]:
    """The target, which must be there."""
    if data.y is None:
        raise InvalidInput(f"{data.source}: has no target; give a file that has one, or name its column with --target")
    return data.y


def groups_of(data: Dataset, task: Task) -> dict[str, Any]:
    """The queries of a ranking as an argument of `fit`, where there are any."""
    return {"groups": data.query} if task == "rank" and data.query is not None else {}


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
    if task == "rank" and y.dtype.kind in "USO":
        raise InvalidInput(f"{source}: the target holds texts; --task ordinal takes them in alphabetical order")
    if not part and task != "rank":
        texts = "choose another --target, or write fewer classes"
        numbers = MEASURED_RANKS if task == "ordinal" else MEASURED
        refuse_measurement(y, source, texts if y.dtype.kind in "US" else numbers)
    if len(np.unique(y)) < 2:
        needs = "an order needs points" if task == "rank" else "a classifier needs points"
        raise InvalidInput(f"{source}: all points are of class {y[0]}; {needs} of at least two classes")
    return task


def hint(data: Dataset, task: Task, wanted: Task | None) -> None:
    """Say that the data look like ranks or a ranking where nobody has said what they are."""
    if wanted is not None:
        return
    if data.query is not None:
        warnings.warn(
            f"{data.source}: has query numbers, which a {task} does not use; --task rank learns an order inside them",
            Advice,
            stacklevel=2,
        )
    elif task == "classification" and _graded(target_of(data)):
        warnings.warn(
            f"{data.source}: the classes are numbered texts, as grades are; --task ordinal makes use of their order",
            Advice,
            stacklevel=2,
        )


def _graded(y: NDArray[Any]) -> bool:
    """Whether the labels are three or more texts that begin with different digits and go on with words."""
    labels = [str(label) for label in np.unique(y)] if y.dtype.kind in "US" else []
    begins = [label[0] for label in labels if len(label) > 2 and label[0].isdecimal() and not label[1].isalnum()]
    words = [label for label in labels if any(sign.isalpha() for sign in label)]
    return len(labels) >= 3 and len(set(begins)) == len(labels) == len(words)
