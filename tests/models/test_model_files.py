"""A machine that was saved and loaded is the machine that was saved, to the last bit."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open

from mercer import LSSVC, LSSVR, SVC, SVR, Custom, Gaussian, NuSVC, OneClassSVM, Spectrum, Standardise
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.losses import Hinge
from mercer.models import Model, load, load_model, save
from mercer.problems import RegularisedRisk
from mercer.solvers.quadratic import decomposition

from .machines import MACHINES, METHODS, points, quietly


def assert_same(one: Any, other: Any, X: Any) -> None:
    """Every method that answers gives the same bits and the same type."""
    for method in METHODS:
        if hasattr(one, method):
            a, b = getattr(one, method)(X), getattr(other, method)(X)
            assert a.dtype == b.dtype
            assert np.array_equal(a, b), method


FORMS = {"dense": np.asarray, "csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MACHINES)
def test_a_loaded_machine_predicts_the_same_bits(name: str, form: str, tmp_path: Path) -> None:
    X, y = points()
    X[np.abs(X) < 0.4] = 0.0
    Z = FORMS[form](X)
    new = FORMS[form](points(40, seed=1)[0])
    machine = quietly(MACHINES[name](), Z, y)
    save(machine, tmp_path / "model.mercer")
    loaded = load(tmp_path / "model.mercer")
    assert type(loaded) is type(machine)
    assert_same(machine, loaded, new)
    # Apart from the solution, which is kept on demand, and the way a parameter was found, nothing is lost.
    assert set(vars(machine)) - set(vars(loaded)) == {"solution_"}
    for attribute in ("objective_", "dual_objective_", "gap_", "stopped_", "n_features_in_"):
        assert getattr(loaded, attribute) == getattr(machine, attribute)
    for attribute in ("dual_coef_", "intercept_", "n_iter_", "support_", "support_vectors_"):
        if hasattr(machine, attribute):
            a, b = getattr(machine, attribute), getattr(loaded, attribute)
            assert type(a) is type(b)
            assert np.array_equal(*((a.toarray(), b.toarray()) if sp.issparse(a) else (a, b)))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 0, 7]),
        np.array([1, 2, 250], dtype=np.uint8),
        np.array([0.0, 1.0, 5.0]),
        np.array([-1.0, 1.0, 2.0], dtype=np.float32),
        np.array(["Äpfel", "b", "a longer name"]),
        np.array(["one", "two", "three"], dtype=object),
        np.array([False, True]),
    ],
    ids=lambda labels: str(labels.dtype),
)
@pytest.mark.parametrize("machine", [SVC(), LSSVC()], ids=["SVC", "LSSVC"])
def test_labels_of_any_type_come_back(labels: np.ndarray, machine: Any, tmp_path: Path) -> None:
    X, y = points()
    quietly(machine, X, labels[y % len(labels)])
    save(machine, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.classes_.dtype == machine.classes_.dtype
    assert_same(machine, loaded, X)


def test_standardisation_travels_with_the_machine(tmp_path: Path) -> None:
    X, y = points()
    X = 100.0 + 30.0 * X
    for raw in (X, sp.csr_matrix(X)):
        standardise = Standardise.learn(raw)
        machine = quietly(SVC(probability=True, random_state=0), standardise(raw), y)
        save(machine, tmp_path / "m", standardise=standardise, notes={"target": "kind"}, feature_names="abcd")
        loaded = load(tmp_path / "m")
        assert isinstance(loaded, Model)
        assert_same(Model(machine, standardise), loaded, raw)
        assert loaded.notes == {"target": "kind"}
        assert loaded.feature_names == ("a", "b", "c", "d")
        save(loaded, tmp_path / "again")
        assert_same(loaded, load(tmp_path / "again"), raw)


def test_feature_names_travel_with_the_machine(tmp_path: Path) -> None:
    X, y = points()
    frame = pd.DataFrame(X, columns=["width", "height", "größe", "d"])
    machine = quietly(SVC(), frame, y)
    save(machine, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert list(loaded.machine.feature_names_in_) == list(frame.columns) == list(loaded.feature_names or ())
    assert_same(machine, loaded.machine, frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.machine.predict(frame.rename(columns={"d": "e"}))


@pytest.mark.parametrize("machine", [SVC(kernel="precomputed"), LSSVR(kernel="precomputed")], ids=["SVC", "LSSVR"])
def test_a_machine_on_a_given_matrix(machine: Any, tmp_path: Path) -> None:
    X, y = points()
    kernel = Gaussian(1.5)
    quietly(machine, kernel(X), y)
    if isinstance(machine, LSSVR):
        expected = machine.loo_error_
    save(machine, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert_same(machine, loaded, kernel(points(30, seed=2)[0], X))
    if isinstance(machine, LSSVR):
        assert loaded.loo_error_ == expected


def test_a_machine_on_texts(tmp_path: Path) -> None:
    words = ["abab", "abba", "baba", "xyxy", "yxyx", "xxyy"]
    machine = quietly(SVC(kernel=Spectrum(2)), words, ["ab"] * 3 + ["xy"] * 3)
    save(machine, tmp_path / "m")
    assert_same(machine, load(tmp_path / "m"), ["aba", "yyx", "ab", "q"])


def test_leave_one_out_is_the_same_after_loading(tmp_path: Path) -> None:
    X, y = points()
    machine = quietly(LSSVC(C=5.0), X, y, sample_weight=np.linspace(0.5, 2.0, len(y)))
    save(machine, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.loo_predictions_, machine.loo_predictions_)
    pruned = machine.prune(fraction=0.2, slack=0.5)
    save(pruned, tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").support_, pruned.support_)


def test_several_outputs_and_no_support_vectors(tmp_path: Path) -> None:
    X, _ = points()
    outputs = quietly(LSSVR(), X, X[:, :2])
    flat = quietly(SVR(epsilon=100.0), X, X[:, 0])
    for machine in (outputs, flat):
        save(machine, tmp_path / "m")
        assert_same(machine, load(tmp_path / "m"), X)
    assert len(flat.support_) == 0


def test_training_goes_on_from_a_stored_solution(tmp_path: Path) -> None:
    X, y = points()
    machine = quietly(SVC(tol=1e-6), X, (y > 0).astype(int))
    save(machine, tmp_path / "m", solution=True)
    solution = load(tmp_path / "m").solution_
    assert solution.gap == machine.gap_
    assert [line[:5] for line in solution.history] == [line[:5] for line in machine.history_]
    problem = RegularisedRisk(Gram(machine.kernel_, X), np.where(y > 0, -1.0, 1.0), Hinge(), 1.0)
    again = decomposition.solve(problem, tol=1e-5, start=solution.variables)
    assert again.iterations <= 1
    assert np.allclose(again.coefficients, solution.coefficients)


def test_a_model_file_is_a_safetensors_file_with_a_description(tmp_path: Path) -> None:
    X, y = points()
    machine = quietly(NuSVC(nu=0.2), X, y)
    save(machine, tmp_path / "m")
    with safe_open(tmp_path / "m", "np") as file:
        metadata = file.metadata()
        assert np.array_equal(file.get_tensor("points"), machine.support_vectors_)
        assert np.array_equal(file.get_tensor("intercept"), machine.intercept_)
    assert metadata["format"] == "mercer model"
    assert metadata["version"] == "2"
    document = json.loads(metadata["document"])
    assert document["machine"] == "NuSVC"
    assert document["parameters"]["nu"] == 0.2
    assert set(document["about"]) == {"written", "mercer", "python", "numpy"}


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = points()
    machine = quietly(SVC(), X, y)
    save(machine, tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(machine, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize(
    "machine, complaint",
    [
        (SVC(kernel=lambda X, Z: X @ Z.T), "Python function"),
        (SVC(kernel=Custom(lambda x, z: float(x @ z))), "Python function"),
        (LSSVR(basis=lambda X: X[:, :1]), "basis is a Python function"),
    ],
    ids=["function", "Custom", "basis"],
)
def test_python_code_is_refused(machine: Any, complaint: str, tmp_path: Path) -> None:
    X, y = points()
    quietly(machine, X, y)
    with pytest.raises(InvalidInput, match=complaint):
        save(machine, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_what_is_not_a_fitted_machine_is_refused(tmp_path: Path) -> None:
    class Own(SVC):
        pass

    X, y = points()
    with pytest.raises(ValueError, match="not fitted"):
        save(SVC(), tmp_path / "m")
    with pytest.raises(InvalidInput, match="Own cannot be stored"):
        save(quietly(Own(), X, y), tmp_path / "m")
    machine = quietly(SVC(), X, y)
    with pytest.raises(InvalidInput, match="not compressed"):
        save(machine, tmp_path / "m.gz")
    with pytest.raises(InvalidInput, match="standardise is for 2 features"):
        save(machine, tmp_path / "m", standardise=Standardise.learn(X[:, :2]))
    with pytest.raises(InvalidInput, match="notes"):
        save(machine, tmp_path / "m", notes={"a": object()})


@pytest.mark.parametrize("name", MACHINES)
def test_pickle_and_joblib_keep_a_machine(name: str, tmp_path: Path) -> None:
    X, y = points()
    machine = quietly(MACHINES[name](), X, y)
    joblib.dump(machine, tmp_path / "m")
    for copy in (pickle.loads(pickle.dumps(machine)), joblib.load(tmp_path / "m")):
        assert_same(machine, copy, X)


def test_a_loaded_machine_can_be_trained_again_and_saved_again(tmp_path: Path) -> None:
    X, y = points()
    for machine in (OneClassSVM(), LSSVC(), SVC(warm_start=True)):
        quietly(machine, X, y)
        save(machine, tmp_path / "m")
        loaded = load(tmp_path / "m")
        save(loaded, tmp_path / "again")
        assert_same(machine, load(tmp_path / "again"), X)
        assert_same(machine, quietly(loaded, X, y), X)
