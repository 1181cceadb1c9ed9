"""Query numbers from a column of a table: whole numbers as they are written, or any texts, which get numbers.

Numbers are read from their text and never pass through float64, so that ids above 2^53 stay apart.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.data.columns import Texts
from mercer.errors import InvalidInput

LARGEST = (1 << 63) - 1


def query_numbers(column: Texts, name: str, source: str) -> NDArray[np.int64]:
    """The query (n,) of every point, from the column `name`; none may be missing."""
    if (column.codes < 0).any():
        row = int(np.flatnonzero(column.codes < 0)[0]) + 1
        raise InvalidInput(
            f"{source}: point {row} has no query in the column {name!r}; fill it in, or remove the point"
        )
    whole = _whole(column.texts)
    if whole is None:  # any texts: their places in alphabetical order
        return np.unique(np.array(column.texts), return_inverse=True)[1].astype(np.int64)[column.codes]
    return np.array(whole, dtype=np.int64)[column.codes]


def _whole(texts: Sequence[str]) -> list[int] | None:
    """The numbers that the texts are, None where one is no whole number of 64 bits; 7 and 7.0 are the same."""
    found = []
    for text in texts:
        digits, _, fraction = text.partition(".")
        if fraction.strip("0") or not digits.lstrip("-").isdecimal() or abs(int(digits)) > LARGEST:
            return None
        found.append(int(digits))
    return found
