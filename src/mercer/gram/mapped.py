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
from mercer.gram import cost, stored
from mercer.gram.entries import Entries
from mercer.gram.memory import show
from mercer.gram.operator import GramOperator
from mercer.gram.points import Index, length, pieces


class MappedGram(GramOperator):
    """K (n, m) in the file `path`; without a path, in a temporary file that goes with the operator."""

    storage = "mapped"

    def __init__(self, entries: Entries, plan: cost.Plan, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(entries, plan)
        entries.limit(plan)
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
                self.entries.fill(rows, slice(0, m), strip)
                matrix[rows] = strip
            matrix.flush()
            del matrix
            os.replace(unfinished, self.path)
        except BaseException:
            _remove(unfinished)
            raise
        self.entries.release()
        return open_memmap(self.path, mode="r")

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        stored.gather(self.matrix, rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix, rows, columns, V, out, self.symmetric)

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix.T, slice(0, self.shape[1]), slice(0, self.shape[0]), V, out, False)


def _remove(name: str) -> None:
    """Delete a file that may be gone already."""
    Path(name).unlink(missing_ok=True)
