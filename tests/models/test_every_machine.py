"""Machines made of machines, and machines for all classes, come back from a file to the last bit, or not at all."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import mercer
from mercer import LSSVC, SVC, Gaussian, Multilabel, OutputCode, Spectrum, Standardise, TunedSVC
from mercer.errors import InvalidInput, ModelFileError
from mercer.models import REGISTRY, Model, load, read_libsvm, save, write_libsvm

from .compound_machines import COMPOUND, GRID, LABELS, both
from .machines import MACHINES, points, quietly
from .parts import Parts
from .test_fuzz import places
from .test_model_files import FORMS, assert_same

OUTCOMES = ("predict_log_proba", "outputs")


def compare(one: Any, other: Any, X: Any) -> None:
    assert type(other) is type(one)
    assert_same(one, other, X)
    for method in OUTCOMES:
        if hasattr(one, method):
            assert np.array_equal(getattr(one, method)(X), getattr(other, method)(X))


def fitted(name: str, form: str = "dense") -> Any:
    make, targets = COMPOUND[name]
    X, _ = points()
    X[np.abs(X) < 0.4] = 0.0
    return quietly(make(), FORMS[form](X), targets(90))


@pytest.mark.parametrize("form", ["dense", "csr_matrix"])
@pytest.mark.parametrize("name", COMPOUND)
def test_a_loaded_machine_predicts_the_same_bits(name: str, form: str, tmp_path: Path) -> None:
    machine, new = fitted(name, form), FORMS[form](points(40, seed=1)[0])
    save(machine, tmp_path / "m")
    loaded = load(tmp_path / "m")
    compare(machine, loaded, new)
    assert set(vars(machine)) - set(vars(loaded)) <= {"solution_"}
    assert set(vars(loaded)) <= set(vars(machine))
    assert str(loaded.get_params()) == str(machine.get_params()) or "code=[[" in repr(machine)
    for attribute in ("objective_", "gap_", "stopped_", "solver_", "n_features_in_", "best_params_", "best_score_"):
        if hasattr(machine, attribute):
            assert getattr(loaded, attribute) == getattr(machine, attribute)
    for attribute in ("classes_", "n_support_", "support_", "intercept_", "code_"):
        if hasattr(machine, attribute):
            a, b = getattr(machine, attribute), getattr(loaded, attribute)
            assert np.array_equal(a, b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
    save(loaded, tmp_path / "again")
    compare(machine, load(tmp_path / "again"), new)
    compare(machine, pickle.loads(pickle.dumps(machine)), new)


# Their certificates are nan, which equals nothing; tests/svm/test_separators.py and tests/online hold their files.
WITHOUT_CERTIFICATE = {"BayesPointMachine", "KernelPerceptron", "OnlineNovelty", "OnlineSVC", "OnlineSVR"}
# Their inputs are no matrix; tests/models/test_structured_files.py holds their files.
STRUCTURED = {"StructuredPerceptron", "StructuredSVM"}


def test_every_public_machine_has_a_model_file() -> None:
    estimators = {name for name in mercer.__all__ if hasattr(getattr(mercer, name), "predict")}
    assert estimators == set(REGISTRY)
    tested = {name.split()[0] for name in (*COMPOUND, *MACHINES)}
    assert tested | WITHOUT_CERTIFICATE | STRUCTURED == estimators


@pytest.mark.parametrize("kind", ["OutputCode", "TunedSVC", "KernelLogistic"])
@pytest.mark.parametrize("names", [np.array([False, True]), np.array([3, 7]), np.array(["ja", "nein"], dtype=object)])
def test_labels_of_any_type_come_back(kind: str, names: np.ndarray, tmp_path: Path) -> None:
    X, y = points()
    machine = quietly(COMPOUND[kind][0](), X, names[(y > 0).astype(int)])
    save(machine, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.classes_.dtype == machine.classes_.dtype
    compare(machine, loaded, X)


@pytest.mark.parametrize("name", ["OutputCode", "Multilabel of least squares", "TunedSVC", "WestonWatkinsSVC"])
def test_standardisation_and_names_travel(name: str, tmp_path: Path) -> None:
    X, _ = points()
    standardise = Standardise.learn(100.0 + 30.0 * X)
    make, targets = COMPOUND[name]
    frame = pd.DataFrame(standardise(100.0 + 30.0 * X), columns=["a", "b", "größe", "d"])
    machine = quietly(make(), frame, targets(90))
    save(machine, tmp_path / "m", standardise=standardise)
    loaded = load(tmp_path / "m")
    assert isinstance(loaded, Model)
    assert list(loaded.feature_names or ()) == list(loaded.machine.feature_names_in_) == list(frame.columns)
    compare(machine, loaded.machine, frame)


@pytest.mark.parametrize(
    "machine",
    [
        OutputCode(SVC(kernel="precomputed"), "ova", "hamming"),
        OutputCode(SVC(kernel="precomputed", class_weight="balanced"), "ava", "loss"),
        OutputCode(LSSVC(kernel="precomputed"), "ava", "loss"),
        mercer.KernelLogistic(kernel="precomputed"),
        Multilabel(SVC(kernel="precomputed")),
    ],
    ids=["coded", "clones", "systems", "KernelLogistic", "Multilabel"],
)
def test_machines_on_a_given_matrix(machine: Any, tmp_path: Path) -> None:
    X, y = points()
    kernel, weights = Gaussian(1.5), np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
    targets = both() if isinstance(machine, Multilabel) else LABELS[y]
    quietly(machine, kernel(X), targets, sample_weight=None if isinstance(machine, Multilabel) else weights)
    save(machine, tmp_path / "m")
    compare(machine, load(tmp_path / "m"), kernel(points(30, seed=2)[0], X))


def test_coded_machines_on_texts(tmp_path: Path) -> None:
    words = ["abab", "abba", "baba", "xyxy", "yxyx", "xxyy", "qrqr", "rqrq"]
    machine = quietly(OutputCode(SVC(kernel=Spectrum(2)), "ova"), words, [0, 0, 0, 1, 1, 1, 2, 2])
    save(machine, tmp_path / "m")
    compare(machine, load(tmp_path / "m"), ["aba", "yyx", "qr", "q"])


def test_the_search_of_a_tuned_machine_comes_back(tmp_path: Path) -> None:
    machine = fitted("TunedSVC")
    machine.checkpoint = tmp_path / "search"
    save(machine, tmp_path / "m", solution=True)
    loaded = load(tmp_path / "m")
    assert loaded.search_.candidates == machine.search_.candidates
    assert loaded.search_.facts == machine.search_.facts
    assert loaded.grid_ == machine.grid_
    assert loaded.kernel_ == machine.kernel_
    assert loaded.checkpoint is None
    assert pd.DataFrame(loaded.cv_results_).equals(pd.DataFrame(machine.cv_results_))
    assert loaded.best_estimator_.gap_ == machine.best_estimator_.gap_
    assert len(loaded.best_estimator_.solution_) == 3


def test_systems_of_a_code_still_leave_points_out(tmp_path: Path) -> None:
    machine = fitted("OutputCode of systems")
    save(machine, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.bank_.leave_one_out(), machine.bank_.leave_one_out())
    assert (loaded.audit_, loaded.loss_) == (machine.audit_, machine.loss_)


def test_what_holds_python_code_is_refused(tmp_path: Path) -> None:
    X, y = points()

    def score(truth: Any, guess: Any) -> float:
        return float(np.mean(truth == guess))

    for machine, complaint in {
        OutputCode(LogisticRegression()): "LogisticRegression cannot be stored.*pickle",
        OutputCode(SVC(kernel=lambda A, B: A @ B.T)): "no Python code",
        TunedSVC(**GRID, scoring=score): "scoring is a Python function.*best_estimator_",
    }.items():
        quietly(machine, X, y)
        with pytest.raises(InvalidInput, match=complaint):
            save(machine, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# Damage ------------------------------------------------------------------------------------------------------------

KINDS = (
    "CrammerSingerSVC on weight vectors",
    "OutputCode of systems",
    "OutputCode of clones",
    "Multilabel",
    "Multilabel of classes",
    "TunedSVC",
)


@pytest.mark.parametrize("name", [*KINDS, "OutputCode with probabilities", "KernelLogistic on features"])
def test_every_part_of_a_file_is_needed(name: str, tmp_path: Path) -> None:
    """Without any one fact, at any depth, and without any one tensor, a file is refused; it is never misread."""
    save(fitted(name), tmp_path / "m")
    whole = Parts(tmp_path / "m")
    free = {"parameters", "notes", "about"}  # parameters have defaults, notes may be anything
    for place in places(whole.document):
        if (free & set(place) and place[0] != "search") or isinstance(place[-1], int):
            continue
        parts = Parts(tmp_path / "m")
        holder: Any = parts.document
        for key in place[:-1]:
            holder = holder[key]
        if set(holder) in ({"name", "arguments"}, {"float"}, {"map"}) or "arguments" in place or "facts" in place:
            continue
        if place[-1] == "column order":
            continue
        del holder[place[-1]]
        with pytest.raises(ModelFileError):
            load(parts.write(tmp_path / "other"))
    for tensor in whole.header:
        parts = Parts(tmp_path / "m")
        parts.header[f"extra {tensor}"] = parts.header.pop(tensor)
        with pytest.raises(ModelFileError):
            load(parts.write(tmp_path / "other"))


DAMAGE: dict[str, tuple[str, Any, str]] = {
    "another base": ("OutputCode of clones", {"parameters": {"base": None, "code": "ava"}}, "'machine' is"),
    "a base of another's code": (
        "OutputCode of clones",
        {"parameters": {"base": {"estimator": {"machine": "os", "parameters": {}}}}},
        "'machine' is",
    ),
    "a decoder that was never learnt": ("OutputCode", {"parameters": {"decoder": "stacking"}}, "combiner.* is missing"),
    "a bank of another base": ("OutputCode", {"bank": "LinearBank"}, "no machines of the kind LinearBank"),
    "a bank that is not known": ("OutputCode", {"bank": "os.system"}, "'bank' is"),
    "fewer columns": ("OutputCode of clones", {"columns": [None]}, "its columns are not 3"),
    "a column that answers anything": ("OutputCode of clones", {"columns": [None, None, 5.0]}, "its columns are not 3"),
    "other features": ("Multilabel", {"n_features_in_": 3}, "takes other points"),
    "no shared machine": ("Multilabel", {"shared": False}, "'columns' is missing"),
    "classes in the place of columns": ("Multilabel", {"multilabel": False}, "columns are not those of 2 classes"),
    "columns in the place of classes": ("Multilabel of classes", {"multilabel": True}, "not the numbers of columns"),
    "a file to write to": ("TunedSVC", {"parameters": {"checkpoint": "/etc/passwd"}}, "names a file"),
    "a tuned machine without its search": ("TunedSVC", {"search": {}}, "'parameters' is missing"),
    "a tuned machine of another kind": ("TunedSVC", {"machine": "TunedSVR"}, "unexpected keyword argument"),
}


@pytest.mark.parametrize("change", DAMAGE)
def test_a_hostile_description_is_refused(change: str, tmp_path: Path) -> None:
    name, edit, complaint = DAMAGE[change]
    save(fitted(name), tmp_path / "m")
    parts = Parts(tmp_path / "m")
    parts.document |= edit
    with pytest.raises(ModelFileError, match=complaint) as caught:
        load(parts.write(tmp_path / "m"))
    assert "\n" not in str(caught.value)


def test_a_code_of_other_numbers_is_refused(tmp_path: Path) -> None:
    save(fitted("OutputCode of systems"), tmp_path / "m")
    for tensor, dtype, value in (("code", "i1", 7), ("labels", "<i8", 3), ("coefficients", "<f8", np.nan)):
        parts = Parts(tmp_path / "m")
        parts.tensor(tensor, dtype)[0] = value
        with pytest.raises(ModelFileError, match=r"code|positions|finite"):
            load(parts.write(tmp_path / "other"))


def test_sparse_points_keep_their_kind(tmp_path: Path) -> None:
    machine = fitted("OutputCode of systems", "csr_array")
    save(machine, tmp_path / "m")
    assert isinstance(load(tmp_path / "m").bank_._X, sp.csr_array)


# Other formats ----------------------------------------------------------------------------------------------------


def test_the_machine_of_a_search_is_exported(tmp_path: Path) -> None:
    machine = fitted("TunedSVR")
    write_libsvm(machine, tmp_path / "m.libsvm")
    X = points(20, seed=3)[0]
    again = read_libsvm(tmp_path / "m.libsvm", n_features=X.shape[1])
    assert np.allclose(again.predict(X), machine.predict(X))
