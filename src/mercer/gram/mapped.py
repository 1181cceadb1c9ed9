"""The whole matrix K in a file mapped to memory: computed once, read through the system's page cache.

The file is in NumPy's .npy format.  It is written beside its final name and renamed when it is complete, so that no
half-written matrix is ever found under that name.  `Gram(Precomputed(), numpy.load(path, mmap_mode="r"))` opens it
again.
"""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall
from mercer.gram import cost
from mercer.gram.dense import HeldGram
from mercer.gram.engine import Engine
from mercer.gram.points import length, pieces
from mercer.resources import show


class MappedGram(HeldGram):
    """K (n, m) in the file `path`; without a path, in a temporary file that goes with the operator."""

    storage = "mapped"

    def __init__(self, engine: Engine, plan: cost.Plan, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(engine, plan)
        engine.limit(plan)
        if path is None:
            handle, name = tempfile.mkstemp(prefix="mercer-gram-", suffix=".npy")
            os.close(handle)
            self.path = Path(name)
            self._finalizer = weakref.finalize(self, _remove, name)
        else:
            self.path = Path(path)
        self.matrix = self._create()

    def _create(self) -> NDArray[Any]:
        """Compute K strip by strip into a file beside the final one, then rename it."""
        n, m = self.shape
        needed = n * m * self.dtype.itemsize
        folder = self.path.absolute().parent
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise BudgetTooSmall(
                f"storage='mapped' needs {show(needed)} on disk and {folder} has {show(free)} free; free some, give a "
                "path on another disk (or TMPDIR), or take storage='streamed'"
            )
        handle, unfinished = tempfile.mkstemp(prefix=self.path.name, suffix=".unfinished", dir=folder)
        os.close(handle)
        try:
            matrix = open_memmap(unfinished, mode="w+", dtype=self.dtype, shape=(n, m))
            for rows in pieces(slice(0, n), max(1, cost.COPIED_VALUES // m)):
                strip = np.empty((length(rows), m), dtype=self.dtype)
                self.engine.fill(rows, slice(0, m), strip)
                matrix[rows] = strip
            matrix.flush()
            del matrix
            os.replace(unfinished, self.path)
        except BaseException:
            _remove(unfinished)
            raise
        self.engine.release()
        return open_memmap(self.path, mode="r")


def _remove(name: str) -> None:
    """Delete a file that may be gone already."""
    Path(name).unlink(missing_ok=True)
