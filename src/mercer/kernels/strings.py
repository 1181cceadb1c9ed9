"""Kernels on strings."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, Points, whole
from mercer.kernels.pairs import Pairs


@dataclass(frozen=True)
class Spectrum(Kernel):
    """Inner product of the counts of all substrings of length p: how often do s and t share p letters in a row?

    Points are a sequence of n strings.  Counting is linear in the length of the strings, the matrix is one sparse
    product.  Strings shorter than p have no such substring and similarity 0 to everything; `Normalised(Spectrum(p))`
    removes the influence of length (Leslie, Eskin and Noble 2002).
    """

    p: int = 3
    _traits = frozenset({"objects"})
    _checks = {"p": partial(whole, least=1)}

    def counts(self, strings: list[str]) -> Points:
        """Counts of the substrings of length p, CSR (n, number of different substrings)."""
        words: dict[str, int] = {}
        starts, columns, values = [0], [], []
        for string in strings:
            found = Counter(string[i : i + self.p] for i in range(len(string) - self.p + 1))
            for word, count in found.items():
                columns.append(words.setdefault(word, len(words)))
                values.append(float(count))
            starts.append(len(columns))
        shape = (len(strings), max(1, len(words)))
        return sp.csr_array(
            (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int64), starts), shape=shape
        )

    def _values(self, pairs: Pairs) -> Matrix:
        left, right = _strings(pairs.X, "X"), [] if pairs.Z is None else _strings(pairs.Z, "Z")
        both = self.counts(left + right)
        return pairs.of(both[: len(left)], both[len(left) :] if right else None).products()


def _strings(X: Any, name: str) -> list[str]:
    """A sequence of strings, also as one column of a matrix."""
    if isinstance(X, (str, bytes)):
        raise InvalidInput(f"{name} is one string; give a sequence of strings, for instance [{name}]")
    strings = np.ravel(X).tolist() if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 else list(X)
    wrong = next((item for item in strings if not isinstance(item, str)), None)
    if not strings or wrong is not None:
        found = "it is empty" if not strings else f"it holds {type(wrong).__name__}"
        raise InvalidInput(f"{name} must be a non-empty sequence of strings, and {found}; decode or convert it")
    return strings
