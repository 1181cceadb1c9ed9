"""What onnxruntime computes from an exported machine is what the machine computes."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp

from mercer import (
    LSSVC,
    LSSVR,
    SVC,
    SVR,
    ChiSquare,
    Constant,
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    NuSVC,
    OneClassSVM,
    Polynomial,
    RationalQuadratic,
    Restricted,
    Standardise,
)
from mercer.data import sample
from mercer.errors import InvalidInput, MissingDependency
from mercer.models import Model, write_onnx

from .machines import MACHINES, points, quietly

METHODS = {
    "prediction": "predict",
    "label": "predict",
    "decision": "decision_function",
    "probabilities": "predict_proba",
}


def by_onnx(path: Path, X: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X})))


def assert_equal(machine: Any, path: Path, X: np.ndarray, given: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Labels are the same and numbers agree to 1e-5 (in fact to the rounding of double precision)."""
    found = by_onnx(path, X if given is None else given)
    for name, values in found.items():
        expected = getattr(machine, METHODS[name])(X)
        assert values.shape == expected.shape
        if expected.dtype.kind == "f":
            scale = max(1.0, float(np.abs(expected).max()))
            assert np.abs(values - expected).max() <= 1e-5 * scale, name
        else:
            assert np.array_equal(values, expected), name
    return found


NOT_EXPORTED = {"LinearProgrammingSVC", "LinearProgrammingSVR"}


@pytest.mark.parametrize("name", sorted(NOT_EXPORTED))
def test_a_machine_that_is_not_exported_says_which_are(name: str, tmp_path: Path) -> None:
    machine = quietly(MACHINES[name](), *points())
    with pytest.raises(InvalidInput, match=f"{name} cannot be exported; give one of SVC, NuSVC"):
        write_onnx(machine, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in NOT_EXPORTED])
def test_every_machine(name: str, tmp_path: Path) -> None:
    X, y = points()
    Z, _ = points(200, seed=1)
    machine = quietly(MACHINES[name](), X, y)
    write_onnx(machine, tmp_path / "m.onnx")
    found = assert_equal(machine, tmp_path / "m.onnx", Z)
    assert ("probabilities" in found) == (hasattr(machine, "predict_proba"))


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3, offset=0.5, gamma=0.2),
        Gaussian((0.5, 1.0, 2.0, 3.0)),
        Exponential(1.3),
        Laplacian(2.0),
        Matern(nu=1.5, sigma=1.2),
        Matern(nu=2.5, sigma=(1.0, 2.0, 1.0, 2.0)),
        RationalQuadratic(sigma=1.1, alpha=0.7),
        2.0 * Gaussian(1.5) + Linear() * Matern(nu=2.5),
        Restricted(Gaussian(1.0), (2, 0)) + Constant(0.3),
        (Linear() + Constant(1.0)) ** 3,
    ],
    ids=repr,
)
def test_every_kernel(kernel: Any, tmp_path: Path) -> None:
    X, y = points()
    machine = quietly(LSSVR(C=0.5, kernel=kernel), X, np.sin(X[:, 0]) + y)
    write_onnx(machine, tmp_path / "m.onnx")
    found = assert_equal(machine, tmp_path / "m.onnx", points(50, seed=2)[0])
    assert np.allclose(found["prediction"], machine.predict(points(50, seed=2)[0]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_probabilities_and_shapes_of_the_decision(k: int, multiclass: str, tmp_path: Path) -> None:
    random = np.random.default_rng(k)
    X = random.normal(size=(40 * k, 5))
    y = np.arange(len(X)) % k
    X[:, 0] += y  # the classes overlap, so that votes and probabilities often disagree
    machine = quietly(SVC(probability=True, random_state=0, multiclass=multiclass), X, y)
    for shape, ties in (("ovr", False), ("ovo", False), ("ovr", True)):
        machine.set_params(decision_function_shape=shape, break_ties=ties)
        write_onnx(machine, tmp_path / "m.onnx")
        found = assert_equal(machine, tmp_path / "m.onnx", X)
        assert np.allclose(found["probabilities"], machine.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize(
    "labels",
    [np.array(["ä", "b", "long"]), np.array(["x", "y", "z"], dtype=object), np.array([1.0, 2.0, 7.0]), [False, True]],
    ids=["texts", "objects", "numbers", "truth values"],
)
@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.3), LSSVC()], ids=["SVC", "NuSVC", "LSSVC"])
def test_labels_of_any_type(machine: Any, labels: Any, tmp_path: Path) -> None:
    X, y = points()
    labels = np.asarray(labels)
    quietly(machine, X, labels[y % len(labels)])
    write_onnx(machine, tmp_path / "m.onnx")
    assert_equal(machine, tmp_path / "m.onnx", X)


@pytest.mark.parametrize(("shape", "break_ties"), [("ovo", False), ("ovr", False), ("ovr", True)])
def test_ties_of_values_and_of_votes_are_decided_alike(shape: str, break_ties: bool, tmp_path: Path) -> None:
    """Classes at the corners of a square: in its middle and on its axes pairs are exactly at zero, and votes even."""
    X = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    machine = SVC(kernel="linear", C=1.0, decision_function_shape=shape, break_ties=break_ties)
    machine.fit(X, ["a", "b", "c", "d"])
    grid = np.array([[a, b] for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)])
    pairs = SVC(kernel="linear", C=1.0, decision_function_shape="ovo").fit(X, [0, 1, 2, 3]).decision_function(grid)
    assert (pairs == 0.0).sum() >= 6
    place = tmp_path / "a.onnx"
    write_onnx(machine, place)
    found = assert_equal(machine, place, grid)
    assert {"label", "decision"} <= set(found)


def test_real_data_with_standardisation(tmp_path: Path) -> None:
    data = sample("satimage", "train")
    X = (data.X.toarray() if sp.issparse(data.X) else data.X)[:600]
    standardise = Standardise.learn(X)
    model = Model(quietly(SVC(C=10.0, probability=True, random_state=0), standardise(X), data.y[:600]), standardise)
    write_onnx(model, tmp_path / "m.onnx")
    assert_equal(model, tmp_path / "m.onnx", X)
    write_onnx(model, tmp_path / "m.onnx", dtype="float32")
    assert_equal(model, tmp_path / "m.onnx", X, X.astype(np.float32))


def test_sparse_support_vectors_several_outputs_and_none(tmp_path: Path) -> None:
    X, y = points()
    X[np.abs(X) < 0.6] = 0.0
    for machine in (
        quietly(OneClassSVM(nu=0.3), sp.csr_matrix(X)),
        quietly(LSSVR(), sp.csr_array(X), np.column_stack([y, X[:, 0]])),
        quietly(LSSVR(), X, y[:, None].astype(float)),
        quietly(SVR(epsilon=50.0), X, y),
    ):
        write_onnx(machine, tmp_path / "m.onnx")
        assert_equal(machine, tmp_path / "m.onnx", X)


def test_close_points_far_from_the_origin(tmp_path: Path) -> None:
    X, y = points()
    far = 1e5 + 1e-3 * X
    machine = quietly(SVC(gamma=1e6), far, y)
    write_onnx(machine, tmp_path / "m.onnx")
    assert_equal(machine, tmp_path / "m.onnx", far)


def test_what_has_no_form_is_refused(tmp_path: Path) -> None:
    X, y = points()
    for machine, points_given, complaint in (
        (SVC(kernel=ChiSquare(1.0)), np.abs(X), "no form in ONNX"),
        (SVC(kernel="precomputed"), Gaussian(1.0)(X), "rows of features"),
        (SVC(kernel=lambda X, Z: X @ Z.T), X, "rows of features"),
        (LSSVR(basis=lambda X: X[:, :1]), X, "no basis"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            write_onnx(quietly(machine, points_given, y), tmp_path / "m.onnx")
    with pytest.raises(InvalidInput, match="dtype"):
        write_onnx(quietly(SVC(), X, y), tmp_path / "m.onnx", dtype="int8")
    with pytest.raises(InvalidInput, match="int cannot be exported"):
        write_onnx(3, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependency, match=r"mercer\[onnx\]"):
        write_onnx(quietly(SVC(), X, y), tmp_path / "m.onnx")
