"""Bundled samples, so that tests, documentation and the demonstration need no network, and the benchmark sets.

The samples are small real sets of the UCI repository; `samples/README.md` names each one's origin and licence.
Benchmark sets are larger files in the folder named by the environment variable MERCER_DATA.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from mercer.data.dataset import Dataset
from mercer.data.reading import read
from mercer.errors import InvalidInput

FOLDER = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Sample:
    """What is known of a bundled set."""

    title: str
    task: str
    features: int
    parts: tuple[str, ...] = ()


SAMPLES = {
    "heart-statlog": Sample("Statlog (Heart)", "classification", 13),
    "iris": Sample("Iris", "classification", 4),
    "breast-cancer-wisconsin": Sample("Breast Cancer Wisconsin (Original)", "classification", 9),
    "german-numeric": Sample("Statlog (German Credit Data), numeric", "classification", 24),
    "satimage": Sample("Statlog (Landsat Satellite)", "classification", 36, ("train", "test")),
    "optdigits": Sample("Optical Recognition of Handwritten Digits", "classification", 64, ("train", "test")),
    "concrete": Sample("Concrete Compressive Strength", "regression", 8),
    "yacht": Sample("Yacht Hydrodynamics", "regression", 6),
}


def sample(name: str, part: str | None = None, *, missing: str = "drop") -> Dataset:
    """A bundled set; `part` is "train" or "test" where it has a customary split, else all points, train first."""
    if name not in SAMPLES:
        raise InvalidInput(f"there is no bundled set {name!r}; there are {', '.join(SAMPLES)}")
    about = SAMPLES[name]
    if part is not None and part not in about.parts:
        raise InvalidInput(f"part={part!r}: the set {name} has {' and '.join(about.parts) or 'no parts'}")
    files = [f"{name}.{p}.svm.xz" for p in ((part,) if part else about.parts)] or [f"{name}.svm.xz"]
    pieces = [
        read(FOLDER / file, features=about.features, zero_based=False, sparse=False, missing=missing) for file in files
    ]
    whole = pieces[0] if len(pieces) == 1 else _joined(pieces)
    return replace(whole, source=name if part is None else f"{name}.{part}")


def _joined(pieces: list[Dataset]) -> Dataset:
    """The points of several parts, one after the other."""
    stack = sparse.vstack if any(piece.is_sparse for piece in pieces) else np.vstack
    return replace(
        pieces[0],
        X=stack([p.X for p in pieces]),
        y=np.concatenate([p.y for p in pieces if p.y is not None]),
        origin=None,
    )


def benchmark(
    name: str,
    part: str | None = None,
    *,
    features: int | None = None,
    missing: str = "refuse",
    sparse: bool | None = None,
) -> Dataset:
    """A benchmark set, read from `<MERCER_DATA>/<name>[.<part>].svm.xz`."""
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        raise InvalidInput(
            "MERCER_DATA is not set: it must name the folder that holds the benchmark sets (svmlight text, xz)"
        )
    path = Path(folder) / f"{name}{'.' + part if part else ''}.svm.xz"
    if not path.is_file():
        raise InvalidInput(f"{path.name} is not in the folder MERCER_DATA names ({folder})")
    return read(path, features=features, zero_based=False, missing=missing, sparse=sparse)
