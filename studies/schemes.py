"""The five multiclass schemes of Rifkin 2002, chapter 4: codes, decoding, data, printed numbers and tables of them.

A module that several studies share; it measures nothing of its own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays, table

from mercer import data
from mercer.losses import Hinge
from mercer.multiclass.agreement import Comparison, agreement
from mercer.multiclass.codes import make_code
from mercer.multiclass.decoders import loss_based

Array = NDArray[np.float64]
SCHEMES = {"OVA": "ova", "AVA": "ava", "COMP": "complete", "DEN": "dense", "SPA": "sparse"}
SEED = 0

PRINTED = {
    "satimage": {"OVA": 7.85, "AVA": 7.85, "COMP": 7.95, "DEN": 8.2, "SPA": 8.15},
    "yeast": {"OVA": 39.0, "AVA": 39.3, "COMP": 38.5, "DEN": 39.3, "SPA": 38.8},
}
ALLWEIN = {
    "satimage": {"OVA": 40.9, "AVA": 27.8, "COMP": 13.9, "DEN": 14.3, "SPA": 13.3},
    "yeast": {"OVA": 72.9, "AVA": 40.9, "COMP": 40.4, "DEN": 39.7, "SPA": 47.2},
}
PARAMETERS = {
    "satimage": {"OVA": (0.25, 2), "AVA": (0.25, 8), "COMP": (0.25, 2), "DEN": (0.25, 2), "SPA": (0.25, 1)},
    "yeast": {"OVA": (0.125, 1), "AVA": (0.25, 8), "COMP": (0.125, 1), "DEN": (0.125, 1), "SPA": (0.125, 2)},
}
AGREEMENT = {
    "satimage": (".987", ".995", ".995", ".980", ".986", ".986", ".979", ".997", ".980", ".980"),
    "yeast": (".888", ".970", ".920", ".950", ".906", ".894", ".870", ".923", ".967", ".924"),
}
PAIRS = [(a, b) for at, a in enumerate(SCHEMES) for b in list(SCHEMES)[at + 1 :]]
ALL_AGREE = {"satimage": 0.955, "yeast": 0.84}


def code_of(scheme: str, classes: int) -> NDArray[np.int8]:
    """The code matrix of a scheme; random ones are drawn once for the whole study."""
    return make_code(SCHEMES[scheme], classes, SEED)


def labels_of(scheme: str, outputs: Array, classes: int, loss: Any = None) -> NDArray[np.intp]:
    """Class numbers of outputs (n, machines) by loss-based decoding."""
    charges = loss_based(code_of(scheme, classes), outputs, Hinge() if loss is None else loss)
    return np.asarray(np.argmin(charges, axis=1))


def folds(y: NDArray[Any], count: int, seed: int) -> NDArray[np.intp]:
    """Fold number (n,), every class spread evenly."""
    rng = np.random.default_rng(seed)
    number = np.empty(len(y), dtype=np.intp)
    start = 0
    for label in np.unique(y):
        index = rng.permutation(np.flatnonzero(y == label))
        number[index] = (start + np.arange(len(index))) % count
        start += len(index)
    return number


def yeast() -> tuple[Array, NDArray[np.intp]]:
    """Points and classes numbered from 0."""
    found = data.benchmark("yeast", sparse=False)
    return np.asarray(found.X), np.unique(np.asarray(found.y), return_inverse=True)[1]


def synthetic(n: int, classes: int, seed: int) -> tuple[Array, NDArray[np.intp]]:
    """Overlapping blobs in the plane, for the smoke run."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    centres = 0.8 * np.array([[np.cos(t), np.sin(t)] for t in 2 * np.pi * np.arange(classes) / classes])
    return centres[y] + 0.5 * rng.standard_normal((n, 2)), y


def percent(value: float) -> str:
    return f"{100 * value:.2f}"


def between(low: float, high: float) -> str:
    return f"{percent(low)} to {percent(high)}"


def difference(test: Comparison) -> str:
    return f"{100 * test.difference:+.2f} [{100 * test.low:+.2f}, {100 * test.high:+.2f}], p = {test.p:.2g}"


def agreement_table(name: str, parts: dict[str, Arrays]) -> str:
    found = agreement({scheme: part["predicted"] for scheme, part in parts.items()})
    rows = [
        [f"{a}-{b}", printed, f"{found.between(a, b):.3f}"]
        for (a, b), printed in zip(PAIRS, AGREEMENT[name], strict=True)
    ]
    rows.append(["all five", f"{ALL_AGREE[name]}", f"{found.all:.3f}"])
    return table(["pair", "printed", "here"], rows)
