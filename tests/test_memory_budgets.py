"""`memory=` bounds what a fit, a search or a prediction takes, for every machine: the budget and 64 MiB.

Each case runs in one worker process, which measures itself.  Before that the worker has imported mercer, made
the data and run the same case on the first 300 points, so that libraries are loaded and loops compiled; it then returns
freed memory to the system and sets the kernel's mark of the most resident memory back.  What is reported is that mark
at the end of the case less what was resident at its beginning.  All n^2 values would take 196 MiB in float32 and
392 MiB in float64, and most points are support vectors, so that a matrix between those would be noticed too.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BUDGET_MIB = 32
SLACK_MIB = 64

WORKER = r"""
import ctypes, gc, sys, traceback, warnings
from pathlib import Path

import numpy as np
from mercer import *
from mercer.errors import BudgetTooSmall

warnings.simplefilter("ignore")
N, MEMORY = 7168, "32 MiB"
random = np.random.default_rng(0)
X = random.normal(size=(N, 4))
y = np.where(X[:, 0] + 2.0 * random.normal(size=N) > 0, 1, -1)
target = np.sin(X[:, 0]) + random.normal(size=N)
classes = np.digitize(X[:, 0] + random.normal(size=N), [-0.5, 0.5])
labels = (X[:, :3] + random.normal(size=(N, 3)) > 0).astype(int)
everything = dict(X=X, y=y, target=target, classes=classes, labels=labels)


def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def settle():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


for line in sys.stdin:
    program = line.strip()
    state = {}
    try:
        for part in (300, N):
            names = {name: values[:part] for name, values in everything.items()}
            before = settle()

            def start(_=None):  # a case calls this where only what follows counts
                global before
                before = settle()

            exec(program, globals() | names | {"start": start, "memory": MEMORY})
        print("peak", (status("VmHWM") - before) / 1024, flush=True)
    except BudgetTooSmall as error:
        print("refused", (status("VmHWM") - before) / 1024, str(error).replace("\n", " "), flush=True)
    except Exception:
        print("failed", 0, traceback.format_exc().replace("\n", " | "), flush=True)
"""

SHORT = "memory=memory, tol=0.1, max_time=0.6"
GRID = "memory=memory, tol=0.5, C=[0.1, 1.0], folds=2"
FITS = {
    "SVC": f"SVC({SHORT}).fit(X, y)",
    "SVC, warm start": f"m = SVC(warm_start=True, {SHORT}).fit(X, y); m.C = 2.0; m.fit(X, y)",
    "SVC, probability": f"SVC(probability=True, C=0.01, {SHORT}).fit(X, y)",
    "SVC, pairs": f"SVC({SHORT}).fit(X, classes)",
    "SVC, one class against the rest": f"SVC(multiclass='ovr', {SHORT}).fit(X, classes)",
    "SVC, a kernel that is called": f"SVC(kernel=Laplacian(sigma=1.0), {SHORT}).fit(X, y)",
    "SVC, linear": f"SVC(kernel='linear', solver='linear_dual', {SHORT}).fit(X, y)",
    "NuSVC": f"NuSVC({SHORT}).fit(X, y)",
    "SVR": f"SVR({SHORT}).fit(X, target)",
    "NuSVR": f"NuSVR({SHORT}).fit(X, target)",
    "OneClassSVM": f"OneClassSVM({SHORT}).fit(X)",
    "LSSVC": f"LSSVC({SHORT}).fit(X, y)",
    "LSSVC, several classes": f"LSSVC({SHORT}).fit(X, classes)",
    "LSSVR": f"LSSVR({SHORT}).fit(X, target)",
    "LSSVR, C by leave-one-out": f"LSSVR(C='loo', {SHORT}).fit(X, target)",
    "LSSVR, a conditionally definite kernel": f"LSSVR(kernel=Multiquadric(u=1), {SHORT}).fit(X, target)",
    "OutputCode of SVC": f"OutputCode(SVC({SHORT})).fit(X, classes)",
    "OutputCode of LSSVC": f"OutputCode(LSSVC({SHORT})).fit(X, classes)",
    "Multilabel of SVC": f"Multilabel(SVC({SHORT})).fit(X, labels)",
    "Multilabel of LSSVC": f"Multilabel(LSSVC({SHORT})).fit(X, labels)",
    "CrammerSingerSVC": f"CrammerSingerSVC({SHORT}).fit(X, classes)",
    "CrammerSingerSVC, linear": f"CrammerSingerSVC(kernel='linear', {SHORT}).fit(X, classes)",
    "WestonWatkinsSVC": f"WestonWatkinsSVC({SHORT}).fit(X, classes)",
    "LeeLinWahbaSVC": f"LeeLinWahbaSVC({SHORT}).fit(X, classes)",
    "BredensteinerBennettSVC": f"BredensteinerBennettSVC({SHORT}).fit(X, classes)",
    "KernelLogistic": f"KernelLogistic({SHORT}).fit(X, classes)",
    "SVC, Nystrom": f"SVC(approximation=Nystrom(300), {SHORT}).fit(X, y)",
    "SVC, RandomFourier": f"SVC(approximation=RandomFourier(300), {SHORT}).fit(X, y)",
    "SVC, IncompleteCholesky": f"SVC(approximation=IncompleteCholesky(100), {SHORT}).fit(X, y)",
    "SVC, KernelPCA": f"SVC(approximation=KernelPCA(100), {SHORT}).fit(X, y)",
    "SVC, approximation chosen": f"SVC(approximation='auto', {SHORT}).fit(X, y)",
    "SVR, FixedSize": f"SVR(approximation=FixedSize(50), {SHORT}).fit(X, target)",
    "SVR, ReducedBasis": f"SVR(approximation=ReducedBasis(30), {SHORT}).fit(X, target)",
    "LSSVR, Nystrom": f"LSSVR(approximation=Nystrom(300), {SHORT}).fit(X, target)",
    "LSSVR, RandomFourier": f"LSSVR(approximation=RandomFourier(200), {SHORT}).fit(X, target)",
    "LSSVR, approximation chosen": f"LSSVR(approximation='auto', {SHORT}).fit(X, target)",
    "TunedSVC": f"TunedSVC(sigma=[2.0], {GRID}).fit(X, y)",
    "TunedSVC, probability": f"TunedSVC(sigma=[2.0], probability=True, {GRID}).fit(X, y)",
    "TunedSVC, pairs": f"TunedSVC(sigma=[2.0], {GRID}).fit(X, classes)",
    "TunedSVR": f"TunedSVR(sigma=[2.0], {GRID}).fit(X, target)",
    "TunedOrdinalSVC": f"TunedOrdinalSVC(sigma=[2.0], {GRID}).fit(X, classes)",
    "TunedProportionalOdds": f"TunedProportionalOdds(sigma=[2.0], {GRID}).fit(X, classes)",
    "TunedRankSVM": f"TunedRankSVM(sigma=[2.0], {GRID}).fit(X, classes)",
    "TunedRankSVM, linear": f"TunedRankSVM(kernel='linear', {GRID}).fit(X, classes)",
    "tune": "tune(X, y, 'svc', memory=memory, tol=0.5, grid={'C': [0.1, 1.0], 'sigma': [2.0]}, folds=2)",
    "tune, least squares": "tune(X, target, 'lssvr', memory=memory, max_time=0.6)",
}
MANY = "start(); m.{0}(np.concatenate([X, X + 0.1]))"
PREDICTIONS = {
    "SVC": f"m = SVC({SHORT}).fit(X, y); " + MANY.format("predict"),
    "SVC, probabilities of pairs": f"m = SVC(probability=True, C=0.01, {SHORT}).fit(X, classes); "
    + MANY.format("predict_proba"),
    "SVC, a kernel that is called": f"m = SVC(kernel=Laplacian(sigma=1.0), {SHORT}).fit(X, y); "
    + MANY.format("predict"),
    "SVC, a function": "m = SVC(kernel=lambda A, B: A @ B.T, max_iter=9, memory='1 GiB').fit(X, y); "
    + MANY.format("decision_function"),
    "LSSVC": f"m = LSSVC({SHORT}).fit(X, y); " + MANY.format("predict"),
    "LSSVR, RandomFourier": f"m = LSSVR(approximation=RandomFourier(200), {SHORT}).fit(X, target); "
    + MANY.format("predict"),
    "CrammerSingerSVC": f"m = CrammerSingerSVC({SHORT}).fit(X, classes); " + MANY.format("predict"),
    "OutputCode": f"m = OutputCode(SVC({SHORT})).fit(X, classes); " + MANY.format("predict"),
}
REFUSED = {
    "SVC by interior points": f"SVC(solver='interior_point', {SHORT}).fit(X, y)",
    "SVC, a function": f"SVC(kernel=lambda A, B: A @ B.T, {SHORT}).fit(X, y)",
    "LSSVC by Cholesky": f"LSSVC(solver='cholesky', {SHORT}).fit(X, y)",
    "LSSVC by eigenvalues": f"LSSVC(solver='spectral', {SHORT}).fit(X, y)",
    "LSSVC by LDL'": f"LSSVC(solver='saddle', {SHORT}).fit(X, y)",
    "leave-one-out of a fitted machine": f"LSSVR({SHORT}).fit(X, target).loo_residuals_",
    "features that do not fit": f"SVC(approximation=Nystrom(2000), {SHORT}).fit(X, y)",
}

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the high-water mark of memory is set back through Linux's /proc"
)


@pytest.fixture(scope="module")
def measure() -> Iterator[Callable[[str], tuple[str, float, str]]]:
    """Run a line of Python in the worker; returns how it ended, the peak in MiB and the message."""
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )

    def run(program: str) -> tuple[str, float, str]:
        worker.stdin.write(program + "\n")
        ending, peak, *message = worker.stdout.readline().split(" ", 2)
        return ending, float(peak), message[0] if message else ""

    yield run
    worker.stdin.close()
    worker.wait(timeout=60)


@pytest.mark.parametrize("case", [f"fit {name}" for name in FITS] + [f"predict {name}" for name in PREDICTIONS])
def test_a_budget_holds_for_what_stays_resident(measure, case):
    room, name = case.split(" ", 1)
    ending, peak, message = measure((FITS if room == "fit" else PREDICTIONS)[name])
    assert ending == "peak", message
    assert peak <= BUDGET_MIB + SLACK_MIB


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_fit_is_refused_before_it_is_computed(measure, name):
    ending, peak, message = measure(REFUSED[name])
    assert ending == "refused", message
    assert peak <= BUDGET_MIB + SLACK_MIB
    assert "memory" in message or "budget" in message or "may take" in message
