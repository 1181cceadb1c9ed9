"""Machines with one problem for all classes: time, objective, gap and test error beside one-vs-rest and one-vs-one.

Kernel tasks: Gaussian kernel with gamma = "scale", C = 10 and no bias for the single machines unless said, relative gap
1e-3 (Lee, Lin and Wahba's machine is stopped before that on letter); features standardised on the training part (usps:
as they come).  "mercer" is Crammer and Singer's machine.  The losses differ, so that objectives are not comparable with
one another and equal C is not equal regularisation.

Linear tasks: Crammer and Singer's machine against LIBLINEAR's solver 4 at C = 1, without bias.  Both are stopped near
the same objective, which is shown; LIBLINEAR's at its default tolerance (0.1) and at a tenth of it.
"""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import harness
from benchmarks.svm import Split, bundled, dense, standardised, widened
from mercer import SVC
from mercer.data import benchmark
from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.multiclass.single_problem import CrammerSingerSVC, KernelLogistic, LeeLinWahbaSVC, WestonWatkinsSVC
from mercer.problems.multiclass import CrammerSinger

C = 10.0
LONGEST = 150.0  # seconds after which the slowest machine is stopped; its gap says how far it came


def load(name: str, *, scaled: bool, sparse: bool = False) -> Any:
    """A set that comes as training and test file."""

    def read(smoke: bool) -> Split:
        if smoke:
            part = bundled(False)
            return Split(sp.csr_matrix(part.X), part.y, sp.csr_matrix(part.Z), part.t) if sparse else part
        train, test = benchmark(name, "train"), benchmark(name, "test")
        d = max(train.X.shape[1], test.X.shape[1])
        X, Z = widened(train.X, d), widened(test.X, d)
        if not sparse:
            X, Z = standardised(X, Z) if scaled else (dense(X), dense(Z))
        return Split(X, train.y, Z, test.y)

    return read


def fitted(machine: Any, data: Split) -> harness.Figures:
    """Train, time, and describe."""
    started = time.perf_counter()
    machine.fit(data.X, data.y)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "test error": float(np.mean(machine.predict(data.Z) != data.t)),
        "objective": float(getattr(machine, "objective_", np.nan)),
        "relative gap": float(getattr(machine, "gap_", np.nan) / getattr(machine, "objective_", np.nan)),
        "support vectors": len(machine.support_),
    }


def peer(data: Split) -> harness.Figures:
    """scikit-learn's one-vs-one machine."""
    from sklearn.svm import SVC as Theirs

    return fitted(Theirs(C=C, cache_size=1024), data)


KERNEL_MEASURES: dict[str, harness.Measure] = {
    "mercer": lambda data: fitted(CrammerSingerSVC(C=C), data),
    "mercer (Weston-Watkins)": lambda data: fitted(WestonWatkinsSVC(C, bias="none"), data),
    "mercer (Weston-Watkins, free bias)": lambda data: fitted(WestonWatkinsSVC(C=C), data),
    "mercer (Lee-Lin-Wahba)": lambda data: fitted(LeeLinWahbaSVC(C, bias="none", max_time=LONGEST), data),
    "mercer (logistic)": lambda data: fitted(KernelLogistic(C, tol=1e-3), data),
    "mercer (one-vs-rest)": lambda data: fitted(SVC(C=C, multiclass="ovr"), data),
    "mercer (one-vs-one)": lambda data: fitted(SVC(C=C), data),
    "scikit-learn": peer,
}


def linear_figures(W: np.ndarray, data: Split, labels: np.ndarray, seconds: float) -> harness.Figures:
    """Objective and test error of weight vectors (k, d) for the classes `labels` (k,)."""
    y = np.searchsorted(labels, data.y)
    problem = CrammerSinger(Gram(Linear(), data.X, storage="streamed"), y, 1.0)
    objective = 0.5 * float(np.sum(W * W)) + float(problem.losses(np.asarray(data.X @ W.T)).sum())
    predicted = labels[np.asarray(data.Z @ W.T).argmax(axis=1)]
    return {"seconds": seconds, "test error": float(np.mean(predicted != data.t)), "objective": objective}


def ours(tol: float) -> harness.Measure:
    """Crammer-Singer to a relative gap of `tol`."""

    def measure(data: Split) -> harness.Figures:
        started = time.perf_counter()
        machine = CrammerSingerSVC(1.0, kernel="linear", tol=tol).fit(data.X, data.y)
        seconds = time.perf_counter() - started
        figures = linear_figures(machine.coef_, data, machine.classes_, seconds)
        return {**figures, "relative gap": machine.gap_ / machine.objective_}

    return measure


def theirs(tolerance: float) -> harness.Measure:
    """LIBLINEAR's solver 4; reading the data into its form is not counted."""

    def measure(data: Split) -> harness.Figures:
        from liblinear.liblinear import parameter, problem
        from liblinear.liblinearutil import train

        X = sp.csr_matrix(data.X)
        stated = problem(list(map(float, data.y)), X)
        options = parameter(f"-s 4 -c 1 -e {tolerance} -q")
        started = time.perf_counter()
        model = train(stated, options)
        seconds = time.perf_counter() - started
        k, d = model.nr_class, model.nr_feature
        W = np.zeros((k, X.shape[1]))
        order = np.argsort(model.get_labels())
        W[:, :d] = np.ctypeslib.as_array(model.w, shape=(d * k,)).reshape(d, k).T[order]
        return linear_figures(W, data, np.unique(data.y), seconds)

    return measure


def linear(name: str, tol: float, tolerance: float, *, sparse: bool, note: str) -> harness.Task:
    """One linear comparison."""
    measures = {"mercer": ours(tol), "liblinear": theirs(tolerance)}
    title = f"{name}, linear, LIBLINEAR's tolerance {tolerance:g}"
    return harness.Task(title, load(name, scaled=False, sparse=sparse), measures, needs_data=True, note=note)


TASKS = [
    *(
        harness.Task(
            name,
            load(name, scaled=scaled),
            {key: measure for key, measure in KERNEL_MEASURES.items() if key not in without},
            needs_data=True,
            note=note,
        )
        for name, scaled, without, note in (
            ("usps", False, (), "7,291 x 256, 10 classes"),
            ("satimage", True, (), "4,435 x 36, 6 classes"),
            ("letter", True, ("mercer (logistic)",), "16,000 x 16, 26 classes; logistic regression takes minutes"),
        )
    ),
    linear("usps", 3e-2, 0.1, sparse=False, note="7,291 x 256, dense; mercer to a relative gap of 0.03"),
    linear("usps", 1e-3, 0.01, sparse=False, note="mercer to a relative gap of 0.001"),
    linear("sector-scale", 1e-2, 0.1, sparse=True, note="6,412 x 55,197, CSR, 105 classes; mercer to a gap of 0.01"),
    linear("sector-scale", 2e-4, 0.01, sparse=True, note="mercer to a relative gap of 0.0002"),
]

if __name__ == "__main__":
    harness.main("multiclass_machines", TASKS)
