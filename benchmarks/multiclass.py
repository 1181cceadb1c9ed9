"""Multiclass schemes: what a code costs beside one-versus-all, and what sharing saves.

Rows named after a code are `OutputCode` with that code; "mercer" is one-versus-all, to which the others are compared.
Least squares: codes without zeros (complete, dense, bch) come from the factorisation of one-versus-all; pairs and
sparse codes solve systems of their own on the same kernel matrix, factorised or by iterations for all columns at once.
The search of a random code is part of its time.  Support vector machines share one kernel matrix and run side by side.
Two tasks count kernel values, shared and with machines trained one by one; the last is the command
that compares all schemes.
"""

import json
import subprocess
import sys
import time
from importlib import resources
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.svm import Split, bundled, standardised
from mercer import LSSVC, SVC, Gaussian
from mercer.data import sample
from mercer.multiclass import OutputCode, make_code
from mercer.multiclass.banks import CloneBank

LOADED = 1200  # points of a first fit that is not timed; its random code is another
CODES = ("ova", "ava", "complete", "dense", "sparse", "bch")


def bundled_parts(name: str) -> Any:
    """A bundled set with its customary split, standardised."""

    def load(smoke: bool) -> Split:
        if smoke:
            return bundled(False)
        train, test = sample(name, "train"), sample(name, "test")
        X, Z = standardised(train.X, test.X)
        return Split(X, np.asarray(train.y), Z, np.asarray(test.y))

    return load


def coded(kind: Any, code: str, sigma: float) -> Any:
    """Fit one code and score it."""

    def work(part: Split) -> dict[str, Any]:
        base = kind(C=10.0, kernel=Gaussian(sigma))
        OutputCode(base, code, random_state=1).fit(part.X[:LOADED], part.y[:LOADED])  # loads compiled code
        machine = OutputCode(base, code, random_state=0)
        started = time.perf_counter()
        machine.fit(part.X, part.y)
        between = time.perf_counter()
        error = float(np.mean(machine.predict(part.Z) != part.t))
        return {
            "seconds": between - started,
            "predict s": time.perf_counter() - between,
            "machines": machine.code_.shape[1],
            "error": error,
        }

    return work


def schemes(title: str, name: str, kind: Any, sigma: float, codes: tuple[str, ...] = CODES) -> harness.Task:
    """All codes of one kind of machine on one set."""
    measure = {"mercer" if code == "ova" else code: coded(kind, code, sigma) for code in codes}
    return harness.Task(
        title, bundled_parts(name), measure, note=f"C = 10, sigma = {sigma:g}; mercer is one-versus-all"
    )


def counted(code: str, shared: bool, sigma: float) -> Any:
    """Kernel values computed in training one code, as multiples of n^2."""

    def work(part: Split) -> dict[str, Any]:
        asked: list[int] = []

        def kernel(A: Any, B: Any) -> Any:
            asked.append(len(A) * len(B))
            return Gaussian(sigma)(A, B)

        classes, labels = np.unique(part.y, return_inverse=True)
        base, matrix = SVC(C=10.0, kernel=kernel), make_code(code, len(classes), 0)
        started = time.perf_counter()
        if shared:
            OutputCode(base, matrix).fit(part.X, part.y)
        else:
            CloneBank.train(base, matrix, part.X, labels, None, 1)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "kernel values / n^2": sum(asked) / len(part.y) ** 2}

    return work


def command(file: Any) -> dict[str, Any]:
    """`mercer compare` over all schemes and single machines, C and sigma chosen in every fold."""
    words = [sys.executable, "-m", "mercer.cli", "compare", str(file), "--machine", "schemes", "--json"]
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "machines": len(json.loads(done.stdout)["machines"])}


def bundled_file(smoke: bool) -> Any:
    return resources.files("mercer.data") / "samples" / ("iris.svm.xz" if smoke else "satimage.train.svm.xz")


TASKS = [
    schemes("satimage, least squares", "satimage", LSSVC, 2.0),
    schemes("satimage, support vector machines", "satimage", SVC, 2.0),
    schemes("optdigits, least squares", "optdigits", LSSVC, 6.0),
    schemes("optdigits, support vector machines", "optdigits", SVC, 6.0, ("ova", "ava", "dense", "sparse", "bch")),
    *(
        harness.Task(
            f"satimage, kernel values, {code}",
            bundled_parts("satimage"),
            {"mercer": counted(code, True, 2.0), "one by one": counted(code, False, 2.0)},
            note="support vector machines; the kernel is a plain function that counts",
        )
        for code in ("ova", "ava")
    ),
    harness.Task(
        "satimage, mercer compare",
        bundled_file,
        {"mercer": command},
        warm_up=False,
        note="the command with --machine schemes: all codes of both kinds and the single machines, five folds",
    ),
]

if __name__ == "__main__":
    harness.main("multiclass", TASKS)
