"""What the studies share: a folder of finished parts, so that a long study can be taken up again, and tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]  # names to arrays


class Work:
    """A folder of finished parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def part(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of a part, computed unless they are there."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            print(name, flush=True)
            found = compute()
            temporary = self.folder / f"{name}.tmp.npz"
            np.savez_compressed(temporary, **found)
            temporary.rename(path)
        with np.load(path) as stored:
            return dict(stored)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
