"""Machines on sparse rows far wider than they are full: the dense machine, in memory that follows the entries."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import LSSVC, LSSVR, SVC, SVR, NuSVC, OneClassSVM, OutputCode, TunedSVC, WestonWatkinsSVC
from mercer.gram import SquaredDistances
from mercer.kernels import Linear
from mercer.lowrank import Nystrom
from mercer.selection.similarities import similarities

WIDE = 2**20


def documents(n, seed=0, d=WIDE, entries=12, words=300):
    """Rows of unit length on `words` columns spread over d, with labels that a linear machine can learn."""
    rng = np.random.default_rng(seed)
    columns = np.sort(np.random.default_rng(1).choice(d, words, replace=False))
    chosen = columns[(words * rng.random((n, entries)) ** 2).astype(int)]
    X = sp.csr_array((np.ones(chosen.size), chosen.ravel(), np.arange(0, chosen.size + 1, entries)), shape=(n, d))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(np.bincount(np.repeat(np.arange(n), np.diff(X.indptr)), X.data**2)), np.diff(X.indptr))
    f = np.asarray(X[:, columns].todense()) @ np.random.default_rng(2).normal(size=words)
    return X, f, columns


def narrow(X, columns):
    """The same points as a dense array on the columns in use."""
    return np.asarray(X[:, columns].todense())


MACHINES = {
    "linear": SVC(kernel="linear", tol=1e-8),
    "gaussian": SVC(kernel="rbf", gamma=0.7, tol=1e-8),
    "polynomial": SVC(kernel="poly", gamma=0.5, coef0=1.0, degree=2, tol=1e-8),
    "laplacian": SVC(kernel="laplacian", gamma=0.1, tol=1e-8),
    "cosine": SVC(kernel="cosine", tol=1e-8),
    "nu": NuSVC(kernel="linear", nu=0.4, tol=1e-8),
    "least squares": LSSVC(kernel="linear", tol=1e-14),
    "least squares, gaussian": LSSVC(kernel="rbf", gamma=0.7),
    "all classes at once": WestonWatkinsSVC(kernel="linear", tol=1e-8),
    "code": OutputCode(SVC(kernel="linear", tol=1e-8)),
    "landmarks": SVC(kernel="rbf", gamma=0.7, approximation=Nystrom(40), random_state=0, tol=1e-8),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("classes", [2, 3])
def test_wide_rows_train_the_machine_of_the_columns_in_use(name, classes):
    X, f, columns = documents(150)
    new, _, _ = documents(40, seed=7)
    y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    machine = MACHINES[name]
    wide = machine.fit(X, y).decision_function(new)
    dense = machine.fit(narrow(X, columns), y).decision_function(narrow(new, columns))
    np.testing.assert_allclose(wide, dense, atol=2e-5)


@pytest.mark.parametrize("machine", [SVR(kernel="linear", tol=1e-8), LSSVR(kernel="linear", tol=1e-14)], ids=repr)
def test_wide_rows_train_the_same_regression(machine):
    X, f, columns = documents(150)
    wide = machine.fit(X, f).predict(X)
    np.testing.assert_allclose(wide, machine.fit(narrow(X, columns), f).predict(narrow(X, columns)), atol=1e-5)
    machine.fit(X, f)
    weights = machine.coef_.toarray() if sp.issparse(machine.coef_) else machine.coef_
    np.testing.assert_allclose(X @ weights.ravel() + machine.intercept_, wide, atol=1e-9)


def test_one_class_machines_take_wide_rows():
    X, _, columns = documents(150)
    machine = OneClassSVM(gamma=0.7, nu=0.2, tol=1e-8)
    wide = machine.fit(X).decision_function(X)
    dense = machine.fit(narrow(X, columns)).decision_function(narrow(X, columns))
    np.testing.assert_allclose(wide, dense, atol=1e-6)


def test_tuning_finds_the_same_on_wide_rows():
    X, f, columns = documents(200)
    y = f > 0
    wide = TunedSVC(random_state=0).fit(X, y)
    dense = TunedSVC(random_state=0).fit(narrow(X, columns), y)
    assert wide.best_score_ == pytest.approx(dense.best_score_, abs=0.011)


def test_distances_of_wide_rows_are_stored_once_for_all_widths():
    X, _, columns = documents(300)
    kept = similarities(X, SVC(gamma=1.0).fit(X[:50], np.arange(50) % 2).kernel_, widths=5, memory="8 MiB")
    assert isinstance(kept, SquaredDistances)
    A = narrow(X, columns)
    squares = ((A[:, None] - A[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(kept.values, squares, atol=1e-6)


def test_a_linear_machine_predicts_dense_and_sparse_rows_alike():
    X, f, _ = documents(150, d=3000)
    machine = SVC(kernel=Linear()).fit(X, f > 0)
    np.testing.assert_allclose(machine.decision_function(X.toarray()), machine.decision_function(X), atol=1e-12)


PROGRAM = """
import json, resource, sys, warnings
import numpy as np, scipy.sparse as sp
from mercer import LSSVC, SVC, TunedSVC
from mercer.lowrank import Nystrom

warnings.simplefilter("ignore")
n, d, entries = 1500, 2**20, 60
rng = np.random.default_rng(0)
words = (d * rng.random((n, entries)) ** 6).astype(np.int64)
X = sp.csr_array((np.full(words.size, 0.129), words.ravel(), np.arange(0, words.size + 1, entries)), shape=(n, d))
X.sum_duplicates()
y = X @ rng.normal(size=d) > 0
machine = eval(sys.argv[1])
machine.fit(X[:200], y[:200]).predict(X[:200])
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
machine.fit(X, y).predict(X)
print(json.dumps((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 1024))
"""


@pytest.mark.parametrize(
    "machine",
    [
        'SVC(kernel="linear", C=0.1)',
        "SVC(gamma=0.5, C=0.1)",
        "LSSVC(kernel='linear')",
        "SVC(gamma=0.5, approximation=Nystrom(100))",
        "TunedSVC(max_time=3)",
    ],
)
def test_hashed_documents_take_memory_for_their_entries(machine):
    done = subprocess.run([sys.executable, "-c", PROGRAM, machine], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) < 150  # MiB above the data; the points as dense rows would take 12 GiB
