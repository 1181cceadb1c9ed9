"""What a search has finished, kept in memory and, when asked for, in a file that survives the process.

An entry is one fold of one row of candidates.  The file is JSON, written beside and renamed, with the first entry that
is finished `every` seconds after the last time.  Numbers are read back to the last digit, so that a resumed search ends
with the same table as an unbroken one.  A file of another search (other data, grid, folds, tolerance) is refused.
"""

import json
import os
import threading
import time
from pathlib import Path

import numpy as np

from mercer import writing
from mercer.errors import InvalidInput
from mercer.selection.cross_validation import Outcome

FORMAT = "mercer search 1"
EVERY = 5.0


class SearchRecord:
    """Finished entries by key; safe to use from several threads."""

    def __init__(self, identity: str, path: str | os.PathLike[str] | None = None, every: float = EVERY) -> None:
        self.identity, self.every = identity, every
        self.path = None if path is None else Path(path)
        self.entries: dict[str, Outcome] = {}
        self.resumed = 0
        self._lock = threading.Lock()
        self._saved = time.perf_counter()
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def get(self, key: str) -> Outcome | None:
        """The entry, None when it has not been finished."""
        return self.entries.get(key)

    def put(self, key: str, outcome: Outcome) -> None:
        """Take note of a finished entry and save when that is due."""
        with self._lock:
            self.entries[key] = outcome
            if self.path is not None and time.perf_counter() - self._saved >= self.every:
                self._save(self.path)

    def close(self) -> None:
        """Save what has not been saved."""
        with self._lock:
            if self.path is not None:
                self._save(self.path)

    def _save(self, path: Path) -> None:
        rows = {
            key: {"scores": o.scores.tolist(), "support": o.support.tolist(), "seconds": o.seconds}
            for key, o in self.entries.items()
        }
        self._saved = time.perf_counter()
        with writing.keeping_on(), writing.replacing(path) as stream:
            stream.write(json.dumps({"format": FORMAT, "identity": self.identity, "entries": rows}).encode())

    def _load(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            kind, identity, rows = content["format"], content["identity"], content["entries"]
            found = {
                str(key): Outcome(
                    np.asarray(row["scores"], dtype=np.float64),
                    np.asarray(row["support"], dtype=np.float64),
                    float(row["seconds"]),
                    True,
                )
                for key, row in rows.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"checkpoint={str(path)!r} is not the file of a search") from error
        if kind != FORMAT or identity != self.identity:
            raise InvalidInput(
                f"checkpoint={str(path)!r} belongs to another search (other data, grid, folds or settings): delete it, "
                "or name another file"
            )
        self.entries = found
        self.resumed = len(found)
