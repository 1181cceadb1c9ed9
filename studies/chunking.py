"""Chunks of CoNLL-2000 by linear chains: structured support vector machine and averaged perceptron.

Run:  MERCER_DATA=folder python studies/chunking.py          (minutes on two cores)
      python studies/chunking.py --smoke                      (made-up sentences, seconds)

The shared task of CoNLL-2000 (Tjong Kim Sang and Buchholz 2000): words with their parts of speech, 8,936 sentences to
train on and 2,012 to test; the score is F1 over whole chunks.  Features of a position are the words and parts of
speech in a window of two to each side, pairs of neighbouring words, pairs and triples of neighbouring parts of
speech, endings and the shape of the word; those that occur once in training are left out.  C is chosen on the last
tenth of the training sentences by the F1 there.
"""

import argparse
import lzma
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from parts import table

from mercer.errors import NotConverged
from mercer.structured import Chain, StructuredPerceptron, StructuredSVM
from mercer.structured.metrics import chunk_scores

LEAST = 2  # times a feature must occur in training
GRID = (0.1, 0.5)
TOL = 0.02  # relative duality gap
LIMIT = 80.0  # seconds for each machine
PASSES = 15  # of the perceptron
PRINTED = (
    ("Kudo and Matsumoto 2001, eight kernel SVMs that vote", "93.91"),
    ("Sha and Pereira 2003, conditional random field", "94.38"),
)


class Sentence(NamedTuple):
    """Words, parts of speech and chunk labels of one sentence, equally many."""

    words: list[str]
    parts: list[str]
    labels: list[str]


def sentences(path: Path) -> list[Sentence]:
    """The sentences of a file of "word part label" lines, with empty lines between them."""
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        blocks = stream.read().strip().split("\n\n")
    rows = [[line.split() for line in block.split("\n")] for block in blocks]
    return [Sentence(*(list(column) for column in zip(*lines))) for lines in rows]


def made_up(n: int, seed: int) -> list[Sentence]:
    """Sentences of a small grammar: noun phrases and verbs."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        tokens: list[tuple[str, str, str]] = []
        for _ in range(random.integers(1, 4)):
            tokens += [("the", "DT", "B-NP"), (f"noun{random.integers(9)}", "NN", "I-NP")]
            tokens += [(f"verb{random.integers(9)}s", "VBZ", "B-VP"), (".", ".", "O")]
        found.append(Sentence(*(list(column) for column in zip(*tokens))))
    return found


def features(sentence: Sentence) -> list[list[str]]:
    """The names of the features of every position."""
    around = ["", "", *(word.lower() for word in sentence.words), "", ""]
    parts = ["", "", *sentence.parts, "", ""]
    found = []
    for at, word in enumerate(sentence.words, start=2):
        own = [f"w{d}={around[at + d]}" for d in range(-2, 3)]
        own += [f"p{d}={parts[at + d]}" for d in range(-2, 3)]
        own += [f"ww{d}={around[at + d]} {around[at + d + 1]}" for d in (-1, 0)]
        own += [f"pp{d}={parts[at + d]} {parts[at + d + 1]}" for d in range(-2, 2)]
        own += [f"ppp{d}={parts[at + d]} {parts[at + d + 1]} {parts[at + d + 2]}" for d in range(-2, 1)]
        own += [
            f"wp={around[at]} {parts[at]}",
            f"wp-={around[at]} {parts[at - 1]}",
            f"wp+={around[at]} {parts[at + 1]}",
        ]
        own += [f"end{k}={word[-k:]}" for k in (2, 3) if len(word) > k]
        own += [f"shape={word[:1].isupper()} {any(sign.isdigit() for sign in word)} {'-' in word}", "always"]
        found.append(own)
    return found


class Encoder:
    """Columns of the features that occur often enough in training."""

    def __init__(self, training: Sequence[Sentence]) -> None:
        counts = Counter(name for sentence in training for row in features(sentence) for name in row)
        kept = [name for name, count in counts.items() if count >= LEAST]
        self.columns = {name: column for column, name in enumerate(kept)}

    def __call__(self, given: Iterable[Sentence]) -> list[Any]:
        """One matrix of 0 and 1 (T, d) for each sentence."""
        return [self._matrix(features(sentence)) for sentence in given]

    def _matrix(self, rows: list[list[str]]) -> Any:
        known = [[self.columns[name] for name in row if name in self.columns] for row in rows]
        starts = np.cumsum([0, *map(len, known)])
        columns = np.array([column for row in known for column in row], dtype=np.int32)
        return sp.csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(rows), len(self.columns)))


class Row(NamedTuple):
    """A machine with its scores on test sentences."""

    machine: str
    f1: float
    precision: float
    recall: float
    labels: float
    seconds: float
    work: str


def measured(name: str, machine: Any, training: tuple[Any, Any], test: tuple[Any, Any]) -> Row:
    """Train, predict and score."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        machine.fit(*training)
    seconds = time.perf_counter() - began
    found = machine.predict(test[0])
    scores = chunk_scores(test[1], found)
    right = float(np.mean(np.concatenate(found) == np.concatenate([np.asarray(y) for y in test[1]])))
    gap = "" if np.isnan(machine.gap_) else f", relative gap {machine.gap_ / machine.objective_:.2g}"
    work = f"{machine.n_iter_} passes{gap}, {machine.stopped_}"
    print(f"{name}: F1 {100 * scores.f1:.2f}, {seconds:.1f} s, {work}", flush=True)
    return Row(name, scores.f1, scores.precision, scores.recall, right, seconds, work)


def run(training: list[Sentence], test: list[Sentence], grid: Sequence[float], limit: float | None) -> str:
    """All machines, as a report."""
    encoder = Encoder(training)
    X, Y = encoder(training), [sentence.labels for sentence in training]
    held, cut = (encoder(test), [sentence.labels for sentence in test]), len(X) - len(X) // 10
    part, rest = (X[:cut], Y[:cut]), (X[cut:], Y[cut:])
    choices = [measured(f"C = {C:g}", StructuredSVM(Chain(), C, tol=TOL, max_time=limit), part, rest) for C in grid]
    C = grid[int(np.argmax([row.f1 for row in choices]))]
    svm = StructuredSVM(Chain(), C, tol=TOL, random_state=0, max_time=limit)
    rows = [
        measured(f"StructuredSVM, Frank-Wolfe, C = {C:g}", svm, (X, Y), held),
        measured("StructuredPerceptron", StructuredPerceptron(Chain(), max_iter=PASSES, random_state=0), (X, Y), held),
    ]
    labels = len({label for y in Y for label in y})
    head = f"{len(X)} sentences to train on, {len(test)} to test; {X[0].shape[1]} features, {labels} labels."
    return "\n\n".join((head, "On the last tenth of the training sentences:", shown(choices), "Test:", shown(rows)))


def shown(rows: Sequence[Row]) -> str:
    """A table of machines."""
    lines = [
        [row.machine, *(f"{100 * value:.2f}" for value in row[1:5]), f"{row.seconds:.0f}", row.work] for row in rows
    ]
    return table(["machine", "F1", "precision", "recall", "labels right, %", "seconds", "training"], lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="made-up sentences, a few seconds")
    parser.add_argument("--grid", type=float, nargs="+", default=list(GRID), help="values of C to choose from")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each machine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "chunking.md")
    options = parser.parse_args(arguments)
    if options.smoke:
        report = run(made_up(40, 0), made_up(10, 1), (0.1, 1.0), None)
    elif os.environ.get("MERCER_DATA"):
        folder = Path(os.environ["MERCER_DATA"])
        training, test = (sentences(folder / f"conll2000.{part}.txt.xz") for part in ("train", "test"))
        report = run(training, test, options.grid, options.limit)
    else:
        parser.error("set MERCER_DATA to the folder of the data sets, or pass --smoke")
    peers = table(["as printed", "F1"], [list(row) for row in PRINTED])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(f"# Chunks of CoNLL-2000\n\n{report}\n\nPrinted elsewhere:\n\n{peers}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
