"""How well chunks were found: precision, recall and F1 over whole chunks, as the shared tasks of CoNLL count them.

Labels are "O" outside any chunk, "B-X" at the beginning of a chunk of type X and "I-X" inside one.  A chunk also
begins at an "I-X" that follows "O" or another type, so that every sequence of labels has chunks (Tjong Kim Sang and
Buchholz 2000). A chunk is right where both its ends and its type are.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mercer.errors import InvalidInput


class ChunkScores(NamedTuple):
    """Shares of the chunks found that are right and of the right chunks that were found, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def chunks(labels: Iterable[str]) -> list[tuple[int, int, str]]:
    """First position, position after the last, and type of every chunk."""
    found: list[tuple[int, int, str]] = []
    start, kind, position = 0, "", -1
    for position, label in enumerate(labels):
        mark, _, name = str(label).partition("-")
        if mark not in ("B", "I", "O") or (mark == "O") != (name == ""):
            raise InvalidInput(f"{label!r} is no label of a chunk; give O, or B- or I- and a type")
        if kind and (mark != "I" or name != kind):
            found.append((start, position, kind))
            kind = ""
        if mark != "O" and not kind:
            start, kind = position, name
    if kind:
        found.append((start, position + 1, kind))
    return found


def chunk_scores(Y: Sequence[Sequence[str]], Z: Sequence[Sequence[str]]) -> ChunkScores:
    """Scores of predicted labels Z where Y is right, one sequence of labels for each sentence."""
    right = there = stated = 0
    for i, (y, z) in enumerate(zip(Y, Z, strict=True)):
        if len(y) != len(z):
            raise InvalidInput(f"sequence {i} has {len(y)} labels in Y and {len(z)} in Z")
        truth, answer = set(chunks(y)), set(chunks(z))
        right, there, stated = right + len(truth & answer), there + len(truth), stated + len(answer)
    precision, recall = (right / total if total else 0.0 for total in (stated, there))
    return ChunkScores(precision, recall, 2.0 * precision * recall / (precision + recall) if right else 0.0)
