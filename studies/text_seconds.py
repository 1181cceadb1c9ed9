"""Processor seconds of training on text: Rifkin 2002, Table 3.3.

Run:  MERCER_DATA=folder python studies/text_seconds.py --work folder        (five minutes on an idle machine)
      python studies/text_seconds.py --smoke                                  (synthetic documents, seconds)

One-versus-all and BCH-63 at the largest training size of 20 newsgroups and sector, first split of
`text_multiclass.py`, by three kinds of machine:

- SVM, kernel: `OutputCode(SVC(kernel="linear"))`, decomposition on one kernel matrix that all machines share;
- SVM, linear: dual coordinate descent on the sparse documents, every machine on its own;
- RLSC: conjugate gradients on the sparse documents, all machines in each pass.

Reading documents and weighing words are not counted, nor is prediction, but for the products with the test documents
in the second.  Each part leaves its seconds in the work folder.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays, Work, table
from text_machines import (
    Corpus,
    combined,
    decode,
    news,
    points,
    sector,
    split,
    support_vector_outputs,
    synthetic,
    weights,
)

from mercer import threads
from mercer.losses import Hinge
from mercer.multiclass.codes import make_code
from mercer.multiclass.output_code import OutputCode
from mercer.svm import SVC

# Seconds for all ten splits: by SVM, by RLSC.
PRINTED = {
    ("news", "OVA"): (10_045, 1_309),
    ("news", "BCH"): (104_027, 3_913),
    ("sector", "OVA"): (1_706, 3_655),
    ("sector", "BCH"): (4_620, 2_857),
}
TITLES = {"news": "20 newsgroups", "sector": "sector"}
CODES = {"OVA": "ova", "BCH": "bch"}
KINDS = ("SVM, kernel", "SVM, linear", "RLSC")
WARM = 6  # documents a class on which everything is compiled before the clock starts

Cells = dict[tuple[str, str, str], Arrays]  # corpus, code and kind: seconds and error


def by_kernel(X: Any, y: NDArray[Any], new: Any, M: NDArray[np.int8]) -> tuple[float, Any]:
    """Seconds, and predictions of support vector machines on a shared kernel matrix."""
    X, new = X.astype(np.float64), new.astype(np.float64)
    began = time.process_time()
    model = OutputCode(SVC(C=1.0, kernel="linear"), M).fit(X, y)
    return time.process_time() - began, decode(M, model.outputs(new), Hinge())


def by_coordinates(X: Any, y: NDArray[Any], new: Any, M: NDArray[np.int8]) -> tuple[float, Any]:
    """Seconds, and predictions of support vector machines by dual coordinate descent."""
    began = time.process_time()
    outputs = support_vector_outputs(X, M[y], new)
    return time.process_time() - began, decode(M, outputs, Hinge())


def by_least_squares(X: Any, y: NDArray[Any], new: Any, M: NDArray[np.int8]) -> tuple[float, Any]:
    """Seconds, and predictions of least-squares machines, one solution for each column of the code."""
    began = time.process_time()
    w = weights(X, M[y].astype(np.float32), 1.0)
    return time.process_time() - began, decode(M, new @ w)


def from_one_versus_all(X: Any, y: NDArray[Any], new: Any, M: NDArray[np.int8]) -> tuple[float, Any]:
    """The same where the code comes from the k machines of one-versus-all and one of the target 1."""
    ova = make_code("ova", len(M))
    began = time.process_time()
    w = weights(X, np.column_stack([ova[y], np.ones(len(y))]).astype(np.float32), 1.0)
    w = combined(w[:, :-1], w[:, -1:], M)
    return time.process_time() - began, decode(M, new @ w)


Machine = Callable[[Any, Any, Any, Any], tuple[float, Any]]
MACHINES: dict[str, Machine] = dict(zip(KINDS, (by_kernel, by_coordinates, by_least_squares)))
SHARED = "RLSC from OVA"


def measure(work: Work, corpora: dict[str, Corpus]) -> Cells:
    """All parts; those that take longest come last."""
    cells: Cells = {}
    for kind in (SHARED, *reversed(KINDS)):
        for name, corpus in corpora.items():
            for code in CODES if kind != SHARED else ("BCH",):
                part = f"{name}_{code}_{kind}".replace(", ", "_").replace(" ", "_")
                machine = MACHINES.get(kind, from_one_versus_all)
                cells[name, code, kind] = work.part(
                    part, lambda corpus=corpus, code=code, machine=machine: timed(corpus, CODES[code], machine)
                )
    return cells


def timed(corpus: Corpus, code: str, machine: Machine) -> Arrays:
    """Seconds and error on the first split, at the largest size; compiled beforehand on a few documents."""
    parts, M = split(corpus, 0), make_code(code, corpus.classes)
    for size in (WARM, max(corpus.sizes)):
        train = parts.train(size)
        X, new = points(corpus, train, parts.test)
        seconds, predicted = machine(X, corpus.y[train], new, M)
    error = np.mean(predicted != corpus.y[parts.test])
    return {"seconds": np.array(seconds), "error": np.array(error), "load": np.array(os.getloadavg()[0])}


# Report -------------------------------------------------------------------------------------------------------------

HEAD = """# Seconds of training on text

Rifkin 2002, Table 3.3, measured again by `studies/text_seconds.py`: linear machines at the largest training size, first
split, {threads} thread{plural}, processor seconds (load of the machine {low:.1f} to {high:.1f}; 1 is this study alone).
SVM by decomposition on one shared kernel matrix (`OutputCode(SVC(kernel="linear"))`) and by dual coordinate descent on
the sparse documents; RLSC by conjugate gradients on the sparse documents, all machines in each pass, lambda l = 1.

Printed seconds are those of other machines and of all ten splits (200, 630, 1,050 and 630 classifiers), ours of one
split: seconds cannot be compared across, ratios can.

"""


def seconds(cells: Cells, name: str, code: str, kind: str) -> float:
    """Seconds of a cell."""
    return float(cells[name, code, kind]["seconds"])


def seconds_table(cells: Cells) -> str:
    """Seconds and ratios, printed and here."""
    rows = []
    for (name, code), (svm, rlsc) in PRINTED.items():
        kernel, linear, least = (seconds(cells, name, code, kind) for kind in KINDS)
        errors = ", ".join(f"{float(cells[name, code, kind]['error']):.4f}" for kind in KINDS)
        row = [f"{TITLES[name]} {code}", f"{svm:,} / {rlsc:,}", f"{svm / rlsc:.2f}"]
        row += [
            f"{kernel:.2f}",
            f"{linear:.2f}",
            f"{least:.2f}",
            f"{kernel / least:.2f}",
            f"{linear / least:.2f}",
            errors,
        ]
        rows.append(row)
    head = ["", "printed SVM / RLSC", "ratio", *KINDS, "kernel SVM / RLSC", "linear SVM / RLSC", "errors here"]
    return table(head, rows)


def sharing_table(cells: Cells) -> str:
    """BCH-63 over OVA: what sixty-three machines cost beside k."""
    rows = []
    for name in TITLES:
        printed = [bch / ova for bch, ova in zip(PRINTED[name, "BCH"], PRINTED[name, "OVA"])]
        here = [seconds(cells, name, "BCH", kind) / seconds(cells, name, "OVA", kind) for kind in KINDS]
        shared = seconds(cells, name, "BCH", SHARED)
        row = [TITLES[name], *(f"{value:.2f}" for value in (*printed, *here))]
        rows.append([*row, f"{shared / seconds(cells, name, 'OVA', 'RLSC'):.2f} ({shared:.2f} s)"])
    head = ["BCH-63 / OVA", "printed SVM", "printed RLSC", *(f"{kind}, here" for kind in KINDS)]
    return table([*head, "BCH-63 from the OVA solutions, here"], rows)


def conclusions(cells: Cells) -> str:
    """What the tables say."""
    lines = []
    for (name, code), (svm, rlsc) in PRINTED.items():
        least = seconds(cells, name, code, "RLSC")
        here = [seconds(cells, name, code, kind) / least for kind in KINDS[:2]]
        same = [(svm > rlsc) == (ratio > 1.0) for ratio in here]
        verdict = (
            "both" if all(same) else "the kernel SVM only" if same[0] else "the linear SVM only" if same[1] else "no"
        )
        lines.append(
            f"{TITLES[name]} {code}: RLSC is {'faster' if svm > rlsc else 'slower'} than SVM in print "
            f"(SVM / RLSC {svm / rlsc:.2f}); the same order here: {verdict} ({here[0]:.2f} kernel, "
            f"{here[1]:.2f} linear)."
        )
    return "## What reproduces\n\n" + "\n".join(f"* {line}" for line in lines) + "\n"


def report(cells: Cells) -> str:
    """Both tables and what they say."""
    count = threads.count()
    loads = [float(cell["load"]) for cell in cells.values()]
    head = HEAD.format(threads=count, plural="" if count == 1 else "s", low=min(loads), high=max(loads))
    return f"{head}{seconds_table(cells)}\n\n{sharing_table(cells)}\n\n{conclusions(cells)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic documents, a few seconds")
    parser.add_argument("--work", type=Path, help="folder of finished parts; a fresh one by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "text_seconds.md")
    options = parser.parse_args(arguments)
    if options.smoke:
        corpora = {"news": synthetic((30,), 0.8), "sector": synthetic((10,), 0.5)}
    else:
        folder = os.environ.get("MERCER_DATA")
        if not folder:
            parser.error("set MERCER_DATA to the folder of the data sets, or pass --smoke")
        corpora = {"news": news(Path(folder), False), "sector": sector()}
    with tempfile.TemporaryDirectory() as temporary:
        text = report(measure(Work(options.work or Path(temporary)), corpora))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
