"""LIBSVM's own library reads what mercer writes, and mercer reads what LIBSVM writes, to the same answers."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from libsvm import svm, svmutil

from mercer import LSSVC, LSSVR, SVC, SVR, Gaussian, Laplacian, NuSVC, NuSVR, OneClassSVM, Standardise
from mercer.errors import InvalidInput, ModelFileError
from mercer.models import Model, load, read_libsvm, save, write_libsvm

from .machines import points, quietly

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.25},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.02, "coef0": -0.1},
}
MACHINES: dict[str, tuple[type, dict[str, Any]]] = {
    "c_svc": (SVC, {"C": 2.0, "decision_function_shape": "ovo"}),
    "nu_svc": (NuSVC, {"nu": 0.3, "decision_function_shape": "ovo"}),
    "epsilon_svr": (SVR, {"C": 2.0, "epsilon": 0.1}),
    "nu_svr": (NuSVR, {"C": 2.0, "nu": 0.4}),
    "one_class": (OneClassSVM, {"nu": 0.2}),
}
NUMBERS = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}
KERNEL_NUMBERS = {"linear": 0, "polynomial": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}


def by_libsvm(model: Any, X: Any, probability: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Labels or values, and decision values or probabilities, as LIBSVM's library computes them.

    svmutil.svm_predict has room for one decision value of a nu_svc, whatever the number of classes, and the library
    writes past it; hence the call of the library itself.
    """
    k = model.get_nr_class()
    room = (svm.c_double * (k if probability else max(1, k * (k - 1) // 2)))()
    predict = svm.libsvm.svm_predict_probability if probability else svm.libsvm.svm_predict_values
    given = model.param.kernel_type == svm.kernel_names.PRECOMPUTED
    labels, values = [], []
    for row in X.toarray() if sp.issparse(X) else np.asarray(X):
        first = [0.0] if given else []  # the number of the point, which prediction does not use
        nodes, _ = svm.gen_svm_nodearray([*first, *row.tolist()], isKernel=given)
        labels.append(predict(model, nodes, room))
        values.append(list(room))
    return np.array(labels), np.array(values)


def raw_values(machine: Any, X: Any) -> np.ndarray:
    """Decision values of mercer, (n, machines), positive for the first class of a pair as in LIBSVM."""
    return np.asarray(machine._values(X))


def rounding(machine: Any, Z: np.ndarray) -> float:
    """What the last places of the terms c_v k(z, v), added up in another order, can come to."""
    terms = np.abs(machine.kernel_(Z, machine.support_vectors_)) @ np.abs(machine._dual_coef_).T
    return 1e-14 * (1.0 + float(terms.max()))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("classes", [2, 3])
def test_libsvm_reads_our_file_to_the_same_answers(kind: str, kernel: str, classes: int, tmp_path: Path) -> None:
    X, y = points()
    X += 1.5 * (y % classes)[:, None]  # classes apart, or a linear nu-machine has no margin and its values are noise
    y = np.array([7, -2, 4])[y % classes]
    Z, _ = points(60, seed=1)
    machine_type, options = MACHINES[kind]
    machine = quietly(machine_type(**options, **KERNELS[kernel]), X, y)
    file = tmp_path / "our.model"
    write_libsvm(machine, file)
    labels, values = by_libsvm(svmutil.svm_load_model(str(file)), Z)
    assert np.allclose(raw_values(machine, Z), values, rtol=0.0, atol=rounding(machine, Z))
    assert np.allclose(machine.predict(Z), labels, rtol=0.0, atol=rounding(machine, Z))
    again = read_libsvm(file, n_features=4)
    assert type(again) is type(machine)
    assert np.allclose(raw_values(again, Z), raw_values(machine, Z), rtol=0.0, atol=rounding(machine, Z))
    assert np.allclose(again.predict(Z), machine.predict(Z), rtol=0.0, atol=rounding(machine, Z))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("classes", [2, 3])
def test_we_read_the_file_of_libsvm_to_the_same_answers(kind: str, kernel: str, classes: int, tmp_path: Path) -> None:
    X, y = points()
    y = np.array([7, -2, 4])[y % classes]
    Z, _ = points(60, seed=1)
    numbers = f"-s {NUMBERS[kind]} -t {KERNEL_NUMBERS[kernel]} -n 0.3 -c 2 -d 2 -g 0.2 -r 0.5 -q"
    if kernel == "sigmoid":
        numbers = numbers.replace("0.2", "0.02")
    model = svmutil.svm_train(y.tolist(), [{j + 1: v for j, v in enumerate(row)} for row in X.tolist()], numbers)
    file = tmp_path / "their.model"
    svmutil.svm_save_model(str(file), model)
    machine = read_libsvm(file)
    labels, values = by_libsvm(svmutil.svm_load_model(str(file)), Z)
    found = raw_values(machine, Z)
    if kind in ("c_svc", "nu_svc") and classes == 2:
        assert machine.classes_.tolist() == [-2, 7]
        turned = model.get_labels()[0] != -2
        found = -found if turned else found
        assert np.allclose(machine.decision_function(Z), values[:, 0] if turned else -values[:, 0], atol=1e-9)
    assert np.allclose(found, values, rtol=0.0, atol=rounding(machine, Z))
    assert np.allclose(machine.predict(Z), labels, rtol=0.0, atol=rounding(machine, Z))
    assert machine.stopped_ == "unknown"
    assert np.isnan(machine.gap_)
    save(machine, tmp_path / "model.mercer")
    assert np.array_equal(load(tmp_path / "model.mercer").predict(Z), machine.predict(Z))


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_go_both_ways(classes: int, tmp_path: Path) -> None:
    X, y = points(120)
    y = y % classes
    machine = quietly(SVC(probability=True, random_state=0), X, y)
    write_libsvm(machine, tmp_path / "our.model")
    model = svmutil.svm_load_model(str(tmp_path / "our.model"))
    _, theirs = by_libsvm(model, X, probability=True)
    agree = machine.predict(X) == machine.classes_[theirs.argmax(axis=1)]
    # Where the vote and the probabilities differ, mercer moves the probabilities; elsewhere they are the same, up to
    # the tolerance of LIBSVM's iteration for more than two classes.
    assert agree.mean() > 0.9
    assert np.allclose(machine.predict_proba(X)[agree], theirs[agree], atol=1e-7 if classes == 2 else 5e-3)
    rows = [{j + 1: v for j, v in enumerate(row)} for row in X.tolist()]
    own = svmutil.svm_train((5 - 2 * y).tolist(), rows, "-b 1 -g 0.3 -q")
    svmutil.svm_save_model(str(tmp_path / "their.model"), own)
    read = read_libsvm(tmp_path / "their.model")
    _, theirs = by_libsvm(own, X, probability=True)
    theirs = theirs[:, [own.get_labels().index(label) for label in read.classes_]]
    agree = read.predict(X) == read.classes_[theirs.argmax(axis=1)]
    assert np.allclose(read.predict_proba(X)[agree], theirs[agree], atol=1e-7 if classes == 2 else 5e-3)


def test_sparse_points_and_compressed_files(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = sp.random(80, 500, 0.02, format="csr", random_state=random)
    y = np.arange(80) % 2
    machine = quietly(SVC(gamma=0.5), X, y)
    write_libsvm(machine, tmp_path / "m.xz")
    write_libsvm(machine, tmp_path / "m")
    labels, values = by_libsvm(svmutil.svm_load_model(str(tmp_path / "m")), X)
    assert np.array_equal(labels, machine.predict(X))
    read = read_libsvm(tmp_path / "m.xz", n_features=500)
    assert sp.issparse(read.support_vectors_)
    assert np.allclose(read.decision_function(X), -values[:, 0], atol=1e-9)


def test_a_given_matrix(tmp_path: Path) -> None:
    X, y = points()
    Z, _ = points(30, seed=1)
    kernel = Gaussian(1.5)
    machine = quietly(SVC(kernel="precomputed"), kernel(X), y)
    write_libsvm(machine, tmp_path / "m")
    K = kernel(Z, X)
    labels, values = by_libsvm(svmutil.svm_load_model(str(tmp_path / "m")), K)
    assert np.allclose(raw_values(machine, K), values, atol=1e-9)
    read = read_libsvm(tmp_path / "m", n_features=len(X))
    assert np.array_equal(read.predict(K), labels)
    assert np.array_equal(read.support_, machine.support_)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_least_squares_machines_with_one_output(bias: str, tmp_path: Path) -> None:
    X, y = points()
    for machine in (LSSVC(bias=bias), LSSVR(bias=bias)):
        quietly(machine, X, y % 2)
        write_libsvm(machine, tmp_path / "m")
        labels, values = by_libsvm(svmutil.svm_load_model(str(tmp_path / "m")), X)
        assert np.allclose(machine.predict(X), labels, atol=1e-9)
        expected = machine.predict(X) if isinstance(machine, LSSVR) else machine.decision_function(X)
        assert np.allclose(expected, values[:, 0], atol=1e-9)
        assert np.allclose(read_libsvm(tmp_path / "m").predict(X), machine.predict(X), atol=1e-9)


def test_what_libsvm_has_no_place_for_is_refused(tmp_path: Path) -> None:
    X, y = points()
    for machine, complaint in (
        (SVC(kernel=Laplacian(1.0)), "no kernel like Laplacian"),
        (SVC(kernel=Gaussian((1.0, 1.0, 1.0, 2.0))), "no kernel like Gaussian"),
        (SVC(multiclass="ovr"), "multiclass='ovo'"),
        (LSSVC(), "3 outputs"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            write_libsvm(quietly(machine, X, y), tmp_path / "m")
    with pytest.raises(InvalidInput, match="whole numbers"):
        write_libsvm(quietly(SVC(), X, np.array(["a", "b", "c"])[y]), tmp_path / "m")
    with pytest.raises(InvalidInput, match="standardisation"):
        write_libsvm(Model(quietly(SVC(), X, y), Standardise.learn(X)), tmp_path / "m")
    with pytest.raises(InvalidInput, match="int has no form"):
        write_libsvm(5, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:1
-1 2:1
"""

CHANGES = {
    "nothing": ("", "", None),
    "another kind": ("c_svc", "cc_svc", "svm_type 'cc_svc'"),
    "another kernel": ("rbf", "os", "kernel_type 'os'"),
    "a line of its own": ("gamma", "import os\ngamma", "not a line"),
    "a line twice": ("nr_class 2", "nr_class 2\nnr_class 2", "twice"),
    "no gamma": ("gamma 0.5\n", "", "needs the line 'gamma'"),
    "gamma below zero": ("gamma 0.5", "gamma -1", "gamma"),
    "gamma of nothing": ("gamma 0.5", "gamma nan", "not a finite number"),
    "two gammas": ("gamma 0.5", "gamma 0.5 0.6", "2 values"),
    "very many classes": ("nr_class 2", "nr_class 2000000000", "coefficients and pairs"),
    "one class": ("nr_class 2", "nr_class 1", "whole number from 2"),
    "half a class": ("nr_class 2", "nr_class 2.5", "whole number"),
    "very many vectors": ("total_sv 2", "total_sv 2000000000", "cut off"),
    "a vector less": ("-1 2:1\n", "", "1 support vectors where total_sv says 2"),
    "no rho": ("rho 0.25\n", "", "no line 'rho'"),
    "two rhos": ("rho 0.25", "rho 0.25 1", "2 values where 1"),
    "the same label": ("label 1 -1", "label 1 1", "different"),
    "no labels": ("label 1 -1\n", "", "'label' has 0 values"),
    "counts that do not add up": ("nr_sv 1 1", "nr_sv 1 2", "add up"),
    "no vectors": (GOOD[GOOD.index("SV\n") :], "", "no line 'SV'"),
    "index zero": ("1:0.5", "0:0.5", "counted from 1"),
    "indices that fall": ("3:1", "1:1", "do not grow"),
    "a huge index": ("3:1", "99999999999:1", "an index"),
    "an infinite value": ("3:1", "3:inf", "not a finite number"),
    "a value missing": ("3:1", "3:", "pairs index:value"),
    "a text": ("3:1", "3:x", "not a finite number"),
    "an underscore": ("3:1", "3:1_0", "not a finite number"),
    "a coefficient missing": ("-1 2:1", "2:1", "pairs|a coefficient"),
    "bytes": ("3:1", "3:1é", "not a text"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_text_is_one_clear_error(change: str, tmp_path: Path) -> None:
    old, new, complaint = CHANGES[change]
    file = tmp_path / "m"
    file.write_text(GOOD.replace(old, new, 1) if old else GOOD)
    if complaint is None:
        assert read_libsvm(file).predict(np.zeros((1, 3))) in (1, -1)
        return
    with pytest.raises(ModelFileError, match=complaint) as caught:
        read_libsvm(file)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ModelFileError, match=r"not a regular file|no such file"):
            read_libsvm(path)


def test_features_past_the_largest_index_are_counted_on_demand(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(GOOD)
    assert read_libsvm(tmp_path / "m").n_features_in_ == 3
    assert read_libsvm(tmp_path / "m", n_features=9).n_features_in_ == 9
    with pytest.raises(ModelFileError, match="n_features=2"):
        read_libsvm(tmp_path / "m", n_features=2)


@pytest.fixture(autouse=True)
def _no_advice() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
