"""Checkpoints of passes over data: what a killed run needs to end with the same model.

A checkpoint is one NumPy archive without pickles, written beside its place and renamed, so that a run killed at any
moment leaves the last complete one.  It holds named arrays, the name of the stage they belong to, and the identity of
the problem: a checkpoint of other data, landmarks or parameters is refused and not silently taken up.
"""

import glob
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import writing
from mercer.errors import InvalidInput, ModelFileError
from mercer.solvers.solution import write_beside

Arrays = Mapping[str, NDArray[Any]]

FORMAT = "mercer pass 1"
EVERY = 30.0
# Writing may take this share of the time: large states are written less often.
SHARE = 0.05


class Checkpoint:
    """One file that a solver saves its state to, at most every `every` seconds; without a path it does nothing."""

    def __init__(
        self, path: str | os.PathLike[str] | None, identity: Mapping[str, Any], every: float | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self.identity = json.dumps(identity, sort_keys=True)
        self.every = EVERY if every is None else every
        self._saved = time.perf_counter()

    def load(self) -> tuple[str, dict[str, NDArray[Any]]] | None:
        """Stage and arrays of an earlier run, or None."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            text = json.loads(str(arrays.pop("text")))
            if text["format"] != FORMAT:
                raise ModelFileError(f"{self.path} is not a checkpoint of this solver")
            identity, stage = text["identity"], str(text["stage"])
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(f"{self.path} is damaged or no checkpoint ({error}): remove it") from error
        if identity != self.identity:
            mine, its = json.loads(self.identity), json.loads(identity)
            other = sorted(name for name in mine if mine[name] != its.get(name))
            raise InvalidInput(
                f"checkpoint {self.path} belongs to another problem ({', '.join(other)} differ): "
                "remove it or name another file"
            )
        return stage, arrays

    def save_when_due(self, stage: str, state: Callable[[], Arrays]) -> None:
        """Write the state when the last writing is long enough ago."""
        if time.perf_counter() - self._saved >= self.every:
            self.save(stage, state)

    def save(self, stage: str, state: Callable[[], Arrays]) -> None:
        """Write the state now."""
        if self.path is None:
            return
        began = time.perf_counter()
        text = json.dumps({"format": FORMAT, "identity": self.identity, "stage": stage})
        with writing.keeping_on():
            write_beside(self.path, dict(state()) | {"text": np.array(text)})
        self._saved = time.perf_counter()
        self.every = max(self.every, (self._saved - began) / SHARE)

    def remove(self) -> None:
        """Take the file away, and what kills left of it half written: the work it was to save is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            for half in self.path.parent.glob(f".{glob.escape(self.path.name)}.*.part"):
                half.unlink(missing_ok=True)


def fingerprint(array: Any) -> str:
    """A short text that tells arrays apart by their content; None gives "none"."""
    if array is None:
        return "none"
    digest = hashlib.sha256()
    parts = (array.data, array.indices, array.indptr) if sp.issparse(array) else (np.asarray(array),)
    for part in parts:
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]
