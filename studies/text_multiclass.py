"""Text by linear machines: Rifkin 2002, Tables 3.1 and 3.2 and the 20 newsgroups row of Table 4.5.

Run:  MERCER_DATA=folder python studies/text_multiclass.py --work folder     (half an hour on two cores)
      python studies/text_multiclass.py --smoke                               (synthetic documents, seconds)

One-versus-all, BCH-63 and other codes on ten random splits, by least squares and by support vector machines; what they
are is in `text_machines.py`, the tables and what follows from them in `text_report.py`.  Each part leaves its
predictions in the work folder.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from parts import Arrays, Work
from text_machines import (
    Corpus,
    best_ridge,
    combined,
    decode,
    indicators,
    news,
    pairs,
    points,
    sector,
    split,
    support_vector_outputs,
    synthetic,
    weights,
)
from text_report import BySize, Results, report

from mercer.data.text import TfIdf
from mercer.losses import Hinge
from mercer.multiclass.codes import make_code

Compute = Callable[[Corpus, int, int], Arrays]  # of a corpus, a size and the seed of a split


def one_size(corpus: Corpus, size: int, seed: int, choose: bool = True, everywhere: bool = False) -> Arrays:
    """OVA and BCH-63 predictions of one split and size, lambda l = 1 and, with `choose`, chosen.

    everywhere : words and their weights come from all documents, those of the test part too, without their labels.
    """
    parts = split(corpus, seed)
    train, test = parts.train(size), parts.test
    X, new = points(corpus, train, test, everywhere)
    y, k = corpus.y[train], corpus.classes
    ridges = {"fixed": 1.0}
    if choose:
        ridges["chosen"] = best_ridge(X, y, k, seed)
    targets = np.column_stack([indicators(y, k), np.ones(len(y), dtype=np.float32)])
    M = make_code("bch", k)
    found: Arrays = {"truth": corpus.y[test], "train": np.array(len(y))}
    for name, value in ridges.items():
        outputs = new @ weights(X, targets, value)
        found[f"ridge_{name}"] = np.array(value)
        found[f"OVA_{name}"] = np.argmax(outputs[:, :k], axis=1)
        found[f"BCH_{name}"] = decode(M, combined(outputs[:, :k], outputs[:, k:], M))
    return found


def weighed_everywhere(corpus: Corpus, size: int, seed: int) -> Arrays:
    """`one_size` at lambda l = 1 with the weights of words from all documents."""
    return one_size(corpus, size, seed, choose=False, everywhere=True)


def by_svm(corpus: Corpus, size: int, seed: int) -> Arrays:
    """OVA and BCH-63 predictions of linear support vector machines."""
    parts = split(corpus, seed)
    train, test = parts.train(size), parts.test
    X, new = points(corpus, train, test)
    found: Arrays = {"truth": corpus.y[test]}
    for name, code in (("OVA", "ova"), ("BCH", "bch")):
        M = make_code(code, corpus.classes)
        found[name] = decode(M, support_vector_outputs(X, M[corpus.y[train]], new), Hinge())
    return found


def all_schemes(corpus: Corpus, seed: int) -> Arrays:
    """The schemes of Table 4.5 at the largest size."""
    parts = split(corpus, seed)
    train, test = parts.train(max(corpus.sizes)), parts.test
    X, new = points(corpus, train, test)
    y, k = corpus.y[train], corpus.classes
    targets = np.column_stack([indicators(y, k), np.ones(len(y), dtype=np.float32)])
    outputs = new @ weights(X, targets, 1.0)
    dense, sparse_code, ava = (make_code(name, k, 0) for name in ("dense", "sparse", "ava"))
    return {
        "truth": corpus.y[test],
        "OVA": np.argmax(outputs[:, :k], axis=1),
        "DEN": decode(dense, combined(outputs[:, :k], outputs[:, k:], dense)),
        "AVA": decode(ava, pairs(X, y, new, ava, 0.5)),
        "SPA": decode(sparse_code, new @ weights(X, sparse_code[y].astype(np.float32), 0.5)),
    }


def weightings(corpus: Corpus, seed: int) -> Arrays:
    """OVA errors at the largest size under other weights of words, lambda l = 1."""
    parts = split(corpus, seed)
    train, test = parts.train(max(corpus.sizes)), parts.test
    y, k = corpus.y[train], corpus.classes
    found: Arrays = {"truth": corpus.y[test]}
    for name, logarithm, idf in (("log tf, idf", True, True), ("tf, idf", False, True), ("log tf", True, False),
                                 ("tf", False, False)):  # fmt: skip
        learnt = TfIdf.learn(corpus.counts[train], logarithm=logarithm)
        if not idf:
            learnt = TfIdf(learnt.columns, np.ones_like(learnt.weights), logarithm)
        X, new = (learnt(corpus.counts[part]).astype(np.float32) for part in (train, test))
        found[name] = np.argmax(new @ weights(X, indicators(y, k), 1.0), axis=1)
    return found


# All together -------------------------------------------------------------------------------------------------------


def by_size(work: Work, name: str, corpus: Corpus, compute: Compute, splits: int, largest: int) -> BySize:
    """A part for every size and split; `largest` of them at the largest size."""
    return {
        size: [
            work.part(f"{name}_{size}_{seed}", lambda size=size, seed=seed: compute(corpus, size, seed))
            for seed in range(largest if size == max(corpus.sizes) else splits)
        ]
        for size in corpus.sizes
    }


def measure(work: Work, corpora: dict[str, Corpus], splits: int, svm: tuple[int, int]) -> Results:
    """All parts of the study; `svm`: splits with support vector machines, and those at the largest sizes."""
    bodies, plain, whole = corpora["news"], corpora["sector"], corpora["headers"]
    largest = max(bodies.sizes)
    both = {"news": bodies, "sector": plain}
    return Results(
        least={name: by_size(work, name, corpus, one_size, splits, splits) for name, corpus in both.items()},
        machines={name: by_size(work, f"{name}_svm", corpus, by_svm, *svm) for name, corpus in both.items()},
        everywhere=by_size(work, "sector_everywhere", plain, weighed_everywhere, splits, splits),
        schemes=[work.part(f"schemes_{seed}", lambda seed=seed: all_schemes(bodies, seed)) for seed in range(splits)],
        headers=[
            work.part(f"headers_{seed}", lambda seed=seed: one_size(whole, largest, seed, choose=False))
            for seed in range(splits)
        ],
        weightings=work.part("weightings", lambda: weightings(bodies, 0)),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic documents, a few seconds")
    parser.add_argument("--splits", type=int, default=10, help="random splits")
    parser.add_argument("--svm-splits", type=int, default=10, help="splits with support vector machines")
    parser.add_argument("--svm-largest", type=int, default=10, help="the same at the largest sizes")
    parser.add_argument("--work", type=Path, help="folder of finished parts; a fresh one by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "text_multiclass.md")
    options = parser.parse_args(arguments)
    if options.smoke:
        small = synthetic((100, 30), 0.8)
        corpora, splits = {"news": small, "headers": small, "sector": synthetic((10, 3), 0.5)}, 2
        options.svm_splits, options.svm_largest = 2, 1
    else:
        folder = os.environ.get("MERCER_DATA")
        if not folder:
            parser.error("set MERCER_DATA to the folder of the data sets, or pass --smoke")
        corpora = {"news": news(Path(folder), False), "headers": news(Path(folder), True), "sector": sector()}
        splits = options.splits
    with tempfile.TemporaryDirectory() as temporary:
        svm = (min(splits, options.svm_splits), min(splits, options.svm_largest))
        results = measure(Work(options.work or Path(temporary)), corpora, splits, svm)
    text = report(results, splits)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
