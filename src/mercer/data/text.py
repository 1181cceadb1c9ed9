"""From raw documents to points: words, counts, and tf-idf weights of unit length.

A document becomes the counts of its words.  With df_j the number of training documents that hold word j, of n, a count
t_j is weighted and the row scaled to length one:

    x_j = log(1 + t_j) log(n / df_j),        x <- x / ||x||.

Words in fewer than `minimum` training documents are left out.  Vocabulary and document frequencies come from the
training documents alone and are kept, so that new documents are treated alike.
"""

import lzma
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from mercer.data.allowance import reading_limit
from mercer.data.files import open_binary
from mercer.errors import InvalidInput

# Runs of letters, two or more; digits and punctuation separate.
WORD = re.compile(r"[a-z]{2,}")


@dataclass(frozen=True, eq=False)
class Documents:
    """Texts with the label each one is filed under: its folder; `parts` are the folders above, joined by slashes."""

    texts: tuple[str, ...]
    labels: NDArray[np.str_]
    parts: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


def read_documents(
    path: str | Path, *, encoding: str = "latin-1", headers: bool = True, limit: int | str | None = None
) -> Documents:
    """Documents of a folder, or of a tar file (also .gz, .bz2, .xz) that is not unpacked, in the order of their paths.

    Files lie at [part/...]label/name.  headers=False drops everything up to the first empty line of each document.
    limit: most bytes to read, decompressed; by default half of the free memory.
    """
    source = Path(path)
    found = sorted(_folder(source, limit) if source.is_dir() else _archive(source, limit))
    if not found:
        raise InvalidInput(f"{source}: holds no document at label/name")
    texts = [content.decode(encoding) for _, content in found]
    if not headers:
        texts = [without_headers(text) for text in texts]
    places = [Path(name) for name, _ in found]
    return Documents(
        texts=tuple(texts),
        labels=np.array([place.parent.name for place in places]),
        parts=tuple(place.parent.parent.as_posix() for place in places),
        names=tuple(place.name for place in places),
    )


def _folder(source: Path, limit: int | str | None) -> Iterable[tuple[str, bytes]]:
    left = reading_limit(limit)
    for file in source.rglob("*"):
        inside = file.relative_to(source)
        if file.is_file() and len(inside.parts) >= 2:
            left -= file.stat().st_size
            _refuse_beyond(left, source)
            yield inside.as_posix(), file.read_bytes()


def _archive(source: Path, limit: int | str | None) -> Iterable[tuple[str, bytes]]:
    left = reading_limit(limit)
    try:
        # The decompressor of tarfile takes what an .xz file tells it to take; the other asks first.
        unpacked = open_binary(source) if source.suffix.lower() == ".xz" else None
        with tarfile.open(source, "r:*" if unpacked is None else "r|", fileobj=unpacked) as archive:
            for member in archive:
                inside = Path(member.name)
                if not member.isfile() or len(inside.parts) < 2:
                    continue
                left -= member.size
                _refuse_beyond(left, source)
                stream = archive.extractfile(member)
                assert stream is not None
                yield inside.as_posix(), stream.read()
    except FileNotFoundError:
        raise InvalidInput(f"{source}: there is no such file") from None
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise InvalidInput(f"{source}: cannot be read as a tar file ({error})") from None


def _refuse_beyond(left: int, source: Path) -> None:
    if left < 0:
        raise InvalidInput(f"{source}: unfolds to more than may be read; raise limit=")


def without_headers(text: str) -> str:
    """What follows the first empty line, as in a message; the whole text where there is none."""
    found = re.search(r"\r?\n[ \t]*\r?\n", text)
    return text[found.end() :] if found else text


def words(text: str, *, stop: frozenset[str] = frozenset()) -> list[str]:
    """Words of a text in order: lower-case runs of two or more letters a to z, without those of `stop`."""
    found = WORD.findall(text.lower())
    return [word for word in found if word not in stop] if stop else found


def vocabulary(texts: Iterable[str], *, minimum: int = 2, stop: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Words that occur in at least `minimum` of the texts, sorted."""
    frequency: Counter[str] = Counter()
    for text in texts:
        frequency.update(set(words(text, stop=stop)))
    return tuple(sorted(word for word, count in frequency.items() if count >= minimum))


def counts(texts: Sequence[str], known: Sequence[str]) -> Any:
    """Counts (n, d) of the d known words in n texts, CSR."""
    counter = CountVectorizer(vocabulary=known, tokenizer=words, token_pattern=None, lowercase=False, dtype=np.float64)
    return counter.transform(texts)


@dataclass(frozen=True, eq=False)
class TfIdf:
    """Weights of words, learnt from the counts of training documents; called on counts (n, d) it gives points.

    columns (d',): the words kept; weights (d',): log(n / df); logarithm: whether counts enter as log(1 + t);
    unit: whether rows are scaled to length one (a document without known words stays zero).
    """

    columns: NDArray[np.intp]
    weights: NDArray[np.float64]
    logarithm: bool = True
    unit: bool = True

    @classmethod
    def learn(cls, counts: Any, *, minimum: int = 2, logarithm: bool = True, unit: bool = True) -> "TfIdf":
        """Learn from counts (n, d); words in fewer than `minimum` documents, or in all, are dropped."""
        X = sparse.csr_matrix(counts)
        if X.nnz and X.data.min() < 0:
            raise InvalidInput("counts must not be negative.")
        n = X.shape[0]
        frequency = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
        columns = np.flatnonzero((frequency >= max(minimum, 1)) & (frequency < n))
        if not columns.size:
            raise InvalidInput(f"no word occurs in at least minimum={minimum} of {n} documents, but not in all.")
        return cls(columns, np.log(n / frequency[columns]), logarithm, unit)

    def __call__(self, counts: Any) -> Any:
        """Points (n, d') of counts (n, d), CSR."""
        X = sparse.csr_matrix(counts, dtype=np.float64)
        if X.shape[1] <= self.columns[-1]:
            raise InvalidInput(f"counts must have the words of the training documents; there are {X.shape[1]} columns.")
        X = X[:, self.columns]
        if self.logarithm:
            X.data = np.log1p(X.data)
        X.data = X.data * self.weights[X.indices]
        if self.unit:
            lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
            X = sparse.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ X
        points = sparse.csr_matrix(X)
        points.sort_indices()
        return points
