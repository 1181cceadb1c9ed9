"""Machines with `approximation=`: the exact machine on K~, small, with its certificate and its leave-one-out."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import svm
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

from mercer.errors import BudgetTooSmall, InvalidInput, NotPositiveDefinite
from mercer.kernels import Gaussian, Laplacian, Matern, Polynomial, Sigmoid, ThinPlate
from mercer.least_squares import LSSVC, LSSVR
from mercer.lowrank.approximations import (
    IncompleteCholesky,
    KernelPCA,
    Nystrom,
    OrthogonalFourier,
    RandomFourier,
    ReducedBasis,
)
from mercer.models import load, save
from mercer.solvers.streamed.whitening import whiten
from mercer.svm import SVC, SVR

Array = NDArray[np.float64]
KERNEL = Gaussian(sigma=1.5)


def points(n: int = 120, d: int = 4, seed: int = 0) -> tuple[Array, Array, Array]:
    """Points, real targets and labels of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y, np.where(y > np.median(y), 1.0, -1.0)


X, Y, LABELS = points()
NEW = points(seed=1)[0]


def dense_machine(K: Array, y: Array, C: float, bias: str = "free") -> tuple[Array, float]:
    """Coefficients and bias of the least-squares machine by one dense solve."""
    n = len(y)
    H = K + np.eye(n) / C + (1.0 if bias == "penalised" else 0.0)
    if bias != "free":
        c = np.linalg.solve(H, y)
        return c, float(c.sum()) if bias == "penalised" else 0.0
    M = np.block([[H, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    both = np.linalg.solve(M, np.append(y, 0.0))
    return both[:n], float(both[n])


def nystrom_matrix(S: Array, rows: Array, columns: Array) -> Array:
    """A B^-1 A' by a dense pseudo-inverse."""
    return KERNEL(rows, S) @ np.linalg.pinv(KERNEL(S), hermitian=True) @ KERNEL(S, columns)


# Least squares -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_a_landmark_machine_is_the_exact_machine_on_its_low_rank_kernel(bias: str) -> None:
    machine = LSSVR(C=10.0, kernel=KERNEL, bias=bias, approximation=Nystrom(15, seed=3)).fit(X, Y)
    S = machine.support_vectors_
    assert np.array_equal(S, X[machine.support_])
    c, b = dense_machine(nystrom_matrix(S, X, X), Y, 10.0, bias)
    assert np.allclose(machine.predict(NEW), nystrom_matrix(S, NEW, X) @ c + b, atol=1e-9)
    assert np.allclose(machine.dual_coef_, np.linalg.solve(KERNEL(S), KERNEL(S, X) @ c), rtol=1e-6, atol=1e-6)
    assert machine.intercept_ == pytest.approx(b, abs=1e-9)
    assert machine.dual_coef_.shape == (15,)
    assert 0 <= machine.gap_ <= 1e-12 * machine.objective_


@pytest.mark.parametrize("m", [120, 500])
@pytest.mark.parametrize("kind", [Nystrom, ReducedBasis, KernelPCA])
def test_all_points_as_landmarks_recover_the_exact_machine(m: int, kind: Any) -> None:
    exact = LSSVR(C=10.0, kernel=KERNEL).fit(X, Y)
    machine = LSSVR(C=10.0, kernel=KERNEL, approximation=kind(m)).fit(X, Y)
    assert np.abs(machine.predict(NEW) - exact.predict(NEW)).max() < 1e-8
    if kind is not KernelPCA:  # whose features are centred: the same fit, another norm
        assert machine.objective_ == pytest.approx(exact.objective_, rel=1e-10)


def test_classes_share_one_factorisation_and_agree_with_one_machine_each() -> None:
    classes = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    both = LSSVC(C=5.0, kernel=KERNEL, approximation=Nystrom(20)).fit(X, classes)
    assert both.dual_coef_.shape == (20, 3)
    for k in range(3):
        alone = LSSVC(C=5.0, kernel=KERNEL, approximation=Nystrom(20)).fit(X, classes == k)
        assert np.allclose(both.decision_function(NEW)[:, k], alone.decision_function(NEW), atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_leave_one_out_on_landmarks_equals_retraining(bias: str, weighted: bool) -> None:
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X)) if weighted else None
    S = X[::10]
    options: dict[str, Any] = {"C": 3.0, "kernel": KERNEL, "bias": bias, "approximation": Nystrom(12, landmarks=S)}
    machine = LSSVR(**options).fit(X, Y, weights)
    for i in (0, 5, 77):
        rest = np.delete(np.arange(len(X)), i)
        without = LSSVR(**options).fit(X[rest], Y[rest], None if weights is None else weights[rest])
        assert machine.loo_predictions_[i] == pytest.approx(without.predict(X[i : i + 1])[0], abs=1e-8)


def test_c_chosen_by_leave_one_out_is_the_best_on_the_low_rank_kernel() -> None:
    values = [0.01, 0.1, 1.0, 10.0, 100.0]
    chosen = LSSVR(C=values, kernel=KERNEL, approximation=Nystrom(12)).fit(X, Y)
    errors = [LSSVR(C=C, kernel=KERNEL, approximation=Nystrom(12)).fit(X, Y).loo_error_ for C in values]
    assert values[int(np.argmin(errors))] == chosen.C_
    assert chosen.path_ is not None
    assert np.allclose(chosen.path_.loo, errors, rtol=1e-8)
    assert chosen.loo_error_ == pytest.approx(min(errors), rel=1e-8)


def test_width_chosen_by_leave_one_out_goes_with_landmarks() -> None:
    machine = LSSVC(C="loo", kernel=Gaussian(sigma="loo"), approximation=Nystrom(40)).fit(X, LABELS)
    assert isinstance(machine.kernel_, Gaussian)
    assert machine.kernel_.placeholders == {}
    assert machine.loo_error_ < 0.2
    median = LSSVC(kernel=Gaussian(sigma="median"), approximation=Nystrom(40)).fit(X, LABELS)
    assert median.kernel_.placeholders == {}


def test_error_bound_holds_on_the_low_rank_kernel() -> None:
    machine = LSSVC(C=2.0, kernel=KERNEL, bias="none", approximation=Nystrom(30)).fit(X, LABELS)
    assert machine.loo_error_ <= machine.loo_error_bound() <= 1.0


@pytest.mark.parametrize("solver", ["cholesky", "conjugate_gradient", "minres", "woodbury"])
def test_every_solver_takes_the_low_rank_kernel(solver: str) -> None:
    reference = LSSVC(kernel=KERNEL, approximation=Nystrom(20)).fit(X, LABELS)
    machine = LSSVC(kernel=KERNEL, approximation=Nystrom(20), solver=solver, tol=1e-13).fit(X, LABELS)
    assert np.allclose(machine.decision_function(NEW), reference.decision_function(NEW), atol=1e-5)


def test_basis_functions_stay_outside_the_penalty() -> None:
    def line(Z: Array) -> Array:
        return Z[:, :1]

    exact = LSSVR(kernel=KERNEL, basis=line).fit(X, Y)
    machine = LSSVR(kernel=KERNEL, basis=line, approximation=Nystrom(len(X))).fit(X, Y)
    assert np.allclose(machine.basis_coef_, exact.basis_coef_, atol=1e-8)
    assert np.allclose(machine.predict(NEW), exact.predict(NEW), atol=1e-8)


# Support vector machines ---------------------------------------------------------------------------------------------

SOLVERS = ["linear_dual", "interior_point", "decomposition"]
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_all_points_as_landmarks_recover_the_exact_svc(solver: str, C: float) -> None:
    exact = SVC(C=C, kernel=KERNEL, solver="interior_point").fit(X, LABELS)
    machine = SVC(C=C, kernel=KERNEL, tol=1e-9, approximation=Nystrom(200), solver=solver).fit(X, LABELS)
    assert np.abs(machine.decision_function(NEW) - exact.decision_function(NEW)).max() < 1e-5
    assert machine.objective_ == pytest.approx(exact.objective_, rel=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_points_as_landmarks_recover_the_exact_svr(solver: str) -> None:
    exact = SVR(C=3.0, kernel=KERNEL, solver="interior_point").fit(X, Y)
    machine = SVR(C=3.0, kernel=KERNEL, tol=1e-9, approximation=Nystrom(200), solver=solver).fit(X, Y)
    assert np.abs(machine.predict(NEW) - exact.predict(NEW)).max() < 1e-5
    assert machine.objective_ == pytest.approx(exact.objective_, rel=1e-8)


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("solver", ["linear_dual", "interior_point"])
def test_a_landmark_svc_is_the_exact_svc_on_its_low_rank_kernel(solver: str, bias: str) -> None:
    machine = SVC(C=2.0, kernel=KERNEL, bias=bias, tol=1e-8, approximation=Nystrom(15), solver=solver).fit(X, LABELS)
    S = machine.support_vectors_
    K = nystrom_matrix(S, X, X)
    exact = SVC(C=2.0, kernel="precomputed", bias=bias, solver="interior_point").fit(K, LABELS)
    assert np.allclose(machine.decision_function(NEW), exact.decision_function(nystrom_matrix(S, NEW, X)), atol=1e-5)
    assert machine.dual_coef_.shape == (1, 15)
    assert np.array_equal(machine.support_vectors_, X[machine.support_])
    assert 0 <= machine.gap_ <= 1e-6 * machine.objective_
    outputs = KERNEL(NEW, S) @ machine.dual_coef_[0] + machine.intercept_
    assert np.allclose(outputs, machine.decision_function(NEW), atol=1e-9)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes_on_shared_landmarks(multiclass: str) -> None:
    machine = SVC(C=2.0, kernel=KERNEL, tol=1e-7, multiclass=multiclass, approximation=Nystrom(200)).fit(X, THREE)
    exact = SVC(C=2.0, kernel=KERNEL, tol=1e-7, multiclass=multiclass).fit(X, THREE)
    assert np.array_equal(machine.predict(NEW), exact.predict(NEW))
    for shape in ("ovo", "ovr"):
        one, two = (m.set_params(decision_function_shape=shape).decision_function(NEW) for m in (machine, exact))
        assert np.abs(one - two).max() < 1e-3
    assert machine.dual_coef_.shape[0] == 3


def test_class_and_sample_weights_count() -> None:
    weights = np.where(np.arange(len(X)) % 3 == 0, 0.0, 2.0)
    options: dict[str, Any] = {"kernel": KERNEL, "tol": 1e-8, "class_weight": {-1.0: 3.0}}
    machine = SVC(approximation=Nystrom(500), **options).fit(X, LABELS, weights)
    exact = SVC(**options).fit(X, LABELS, weights)
    assert np.abs(machine.decision_function(NEW) - exact.decision_function(NEW)).max() < 1e-4
    assert (machine.support_ % 3 != 0).all()


def principal_components(S: Array, rows: Array, rank: int) -> Array:
    """Kernel principal components of the landmarks S at rows, by dense algebra: features of K centred on S."""
    m = len(S)
    J = np.eye(m) - 1.0 / m
    values, vectors = np.linalg.eigh(J @ KERNEL(S) @ J)
    U = vectors[:, -rank:] / np.sqrt(values[-rank:])
    return np.asarray((KERNEL(rows, S) - KERNEL(S).mean(axis=0)) @ J @ U)


@pytest.mark.parametrize("machine", ["two classes", "pairs", "one against the rest", "regression"])
def test_a_support_vector_machine_on_principal_components_keeps_their_constant(machine: str) -> None:
    own, new = principal_components(X[:60], X, 8), principal_components(X[:60], NEW, 8)
    approximation = KernelPCA(60, landmarks=X[:60], rank=8)
    options: dict[str, Any] = {"C": 2.0, "tol": 1e-8}
    if machine == "regression":
        ours = SVR(kernel=KERNEL, approximation=approximation, **options).fit(X, Y).predict(NEW)
        theirs = svm.SVR(kernel="linear", **options).fit(own, Y).predict(new)
    else:
        shape = {"decision_function_shape": "ovo"} if machine == "pairs" else {}
        rest = {"multiclass": "ovr"} if machine == "one against the rest" else {}
        labels = LABELS if machine == "two classes" else THREE
        ours = SVC(kernel=KERNEL, approximation=approximation, **options, **shape, **rest).fit(X, labels)
        ours = ours.decision_function(NEW)
        reference: Any = svm.SVC(kernel="linear", **options, **shape)
        if rest:
            reference = OneVsRestClassifier(reference)
        theirs = reference.fit(own, labels).decision_function(new)
    assert np.abs(ours - theirs).max() < 1e-4


@pytest.mark.parametrize("m", [600, 1100])
def test_more_landmarks_than_one_group_of_the_factorisation_holds(m: int) -> None:
    rng = np.random.default_rng(m)
    many, new = rng.uniform(-4, 4, (m, 3)), rng.uniform(-4, 4, (50, 3))
    y = np.sin(many).sum(axis=1)
    kernel = Gaussian(sigma=0.5)
    found = whiten(kernel, many, 1e-12)
    assert len(found.kept) == m
    K = kernel(many[found.kept])
    assert np.abs(found.L @ found.L.T - K).max() < 1e-10
    W = rng.standard_normal((m, 2))
    assert np.abs(found.L.T @ found.backward(W) - W).max() < 1e-8
    machine = LSSVR(C=5.0, kernel=kernel, approximation=Nystrom(m, landmarks=many)).fit(many, y)
    c, b = dense_machine(kernel(many), y, 5.0)
    assert np.abs(machine.predict(new) - kernel(new, many) @ c - b).max() < 1e-8


def test_probabilities_come_with_landmarks() -> None:
    machine = SVC(kernel=KERNEL, probability=True, random_state=0, approximation=Nystrom(40)).fit(X, THREE)
    p = machine.predict_proba(NEW)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(NEW))


@pytest.mark.parametrize("approximation", [RandomFourier(300), OrthogonalFourier(300), KernelPCA(40), Nystrom(9)])
@pytest.mark.parametrize("targets", [LABELS, THREE])
def test_svm_model_files_keep_predictions(approximation: Any, targets: Array, tmp_path: Path) -> None:
    machine = SVC(kernel=KERNEL, approximation=approximation).fit(X, targets)
    save(machine, tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.decision_function(NEW), machine.decision_function(NEW))
    assert again.approximation_ == approximation
    twin = pickle.loads(pickle.dumps(machine))
    assert np.array_equal(twin.predict(NEW), machine.predict(NEW))
    again.set_params(approximation=None).fit(X, targets)
    assert again.approximation_ is None


def test_the_random_state_of_a_machine_chooses_landmarks_without_a_seed() -> None:
    supports = [
        SVC(kernel=KERNEL, random_state=state, approximation=Nystrom(10)).fit(X, LABELS).support_
        for state in (0, 0, 1, None)
    ]
    assert np.array_equal(supports[0], supports[1])
    assert np.array_equal(supports[0], supports[3])
    assert not np.array_equal(supports[0], supports[2])


def test_auto_svc_says_why() -> None:
    machine = SVC(kernel=KERNEL, approximation="auto").fit(X, LABELS)
    assert machine.approximation_ is None
    assert "120 points" in machine.approximation_reason_
    many, _, labels = points(3000)
    machine = SVC(kernel=KERNEL, approximation="auto", memory="8 MiB").fit(many, labels)
    assert isinstance(machine.approximation_, Nystrom)
    assert machine.score(many, labels) > 0.85


def test_sparse_points_go_with_a_landmark_svc() -> None:
    dense = SVR(kernel=KERNEL, approximation=Nystrom(30)).fit(X, Y)
    sparse = SVR(kernel=KERNEL, approximation=Nystrom(30)).fit(sp.csr_array(X), Y)
    assert np.allclose(dense.predict(NEW), sparse.predict(sp.csr_array(NEW)), atol=1e-10)


@pytest.mark.parametrize(
    "estimator",
    [
        LSSVC(approximation=Nystrom(200)),
        LSSVR(approximation=Nystrom(200)),
        SVC(tol=1e-10, approximation=Nystrom(200)),  # weights are compared to nine digits
        SVR(tol=1e-10, approximation=Nystrom(200)),
        SVC(tol=1e-10, approximation="auto"),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.approximation!r:.12}",
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_machines_with_landmarks(estimator: Any) -> None:
    check_estimator(estimator, on_skip=None)


# Points that are read in blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Nystrom, ReducedBasis])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_points_whose_features_do_not_fit_are_read_in_blocks(kind: Any, bias: str, tmp_path: Path) -> None:
    many, _, labels = points(4000)
    classes = np.where(many[:, 0] > 1.0, 2.0, labels)
    np.save(tmp_path / "points.npy", many)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    options: dict[str, Any] = {"C": 1.0, "kernel": KERNEL, "bias": bias, "approximation": kind(100)}
    held = LSSVC(**options).fit(many, classes)
    streamed = LSSVC(memory="3 MB", **options).fit(mapped, classes)
    assert "do not fit" in streamed.solver_ or "rectangle" in streamed.solver_
    assert np.array_equal(streamed.support_, held.support_)
    assert np.abs(streamed.decision_function(NEW) - held.decision_function(NEW)).max() < 0.02
    assert streamed.objective_ == pytest.approx(held.objective_, rel=1e-4)
    assert 0 <= streamed.gap_ <= 1e-3 * streamed.objective_
    save(streamed, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(NEW), streamed.predict(NEW))


def test_what_cannot_be_read_in_blocks_says_so() -> None:
    many, targets, _ = points(4000)
    for wrong in ({"C": "loo"}, {"basis": lambda Z: Z[:, :1]}, {"approximation": RandomFourier(100)}):
        options: dict[str, Any] = {"kernel": KERNEL, "approximation": Nystrom(100), "memory": "3 MB", **wrong}
        with pytest.raises(BudgetTooSmall, match="fewer"):
            LSSVR(**options).fit(many, targets)
    streamed = LSSVR(kernel=KERNEL, approximation=Nystrom(100), memory="3 MB").fit(many, targets)
    with pytest.raises(BudgetTooSmall, match="raise memory"):
        _ = streamed.loo_error_


# Landmarks that are hard ---------------------------------------------------------------------------------------------


def test_duplicate_landmarks_change_nothing() -> None:
    S = X[:10]
    twice = np.vstack([S, S, S[:3]])
    one = LSSVR(kernel=KERNEL, approximation=Nystrom(10, landmarks=S)).fit(X, Y)
    two = LSSVR(kernel=KERNEL, approximation=Nystrom(23, landmarks=twice)).fit(X, Y)
    assert np.allclose(one.predict(NEW), two.predict(NEW), atol=1e-8)
    assert len(two.support_vectors_) <= 20


def test_duplicate_points_are_no_trouble() -> None:
    repeated, targets = np.repeat(X[:30], 4, axis=0), np.repeat(Y[:30], 4)
    exact = LSSVR(kernel=KERNEL).fit(repeated, targets)
    machine = LSSVR(kernel=KERNEL, approximation=Nystrom(120)).fit(repeated, targets)
    assert np.allclose(machine.predict(NEW), exact.predict(NEW), atol=1e-8)
    assert len(machine.support_vectors_) == 30


def test_rank_deficient_landmarks_of_a_polynomial_kernel() -> None:
    kernel = Polynomial(degree=2, gamma=1.0, offset=1.0)  # rank 15 in four features
    exact = LSSVR(C=0.1, kernel=kernel).fit(X, Y)
    machine = LSSVR(C=0.1, kernel=kernel, approximation=Nystrom(60)).fit(X, Y)
    assert len(machine.support_vectors_) == 15
    assert np.allclose(machine.predict(NEW), exact.predict(NEW), atol=1e-8)


def test_one_landmark_is_enough_for_a_machine() -> None:
    machine = LSSVR(kernel=KERNEL, approximation=Nystrom(1)).fit(X, Y)
    assert machine.dual_coef_.shape == (1,)
    c, b = dense_machine(nystrom_matrix(machine.support_vectors_, X, X), Y, 1.0)
    assert np.allclose(machine.predict(X), nystrom_matrix(machine.support_vectors_, X, X) @ c + b, atol=1e-9)


def test_points_of_weight_zero_are_never_landmarks() -> None:
    weights = np.where(np.arange(len(X)) % 2 == 0, 1.0, 0.0)
    machine = LSSVR(kernel=KERNEL, approximation=Nystrom(100)).fit(X, Y, weights)
    half = LSSVR(kernel=KERNEL, approximation=Nystrom(100)).fit(X[::2], Y[::2])
    assert (machine.support_ % 2 == 0).all()
    assert np.allclose(machine.predict(NEW), half.predict(NEW), atol=1e-8)


@pytest.mark.filterwarnings("ignore:the features are on very different scales")
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
def test_sparse_points_give_the_machine_of_dense_ones(form: Any) -> None:
    rng = np.random.default_rng(5)
    wide = rng.standard_normal((400, 3000)) * (rng.random((400, 3000)) < 0.01)
    y = wide[:, :50].sum(axis=1)
    dense = LSSVR(kernel=KERNEL, approximation=Nystrom(30)).fit(wide, y)
    sparse = LSSVR(kernel=KERNEL, approximation=Nystrom(30)).fit(form(wide), y)
    assert sp.issparse(sparse.support_vectors_)
    assert np.allclose(sparse.predict(form(wide)), dense.predict(wide), atol=1e-9)
    assert np.allclose(sparse.loo_residuals_, dense.loo_residuals_, atol=1e-8)


def test_float32_points_give_nearly_the_machine_of_float64_ones() -> None:
    single = LSSVR(kernel=KERNEL, approximation=Nystrom(30)).fit(X.astype(np.float32), Y)
    double = LSSVR(kernel=KERNEL, approximation=Nystrom(30)).fit(X, Y)
    assert np.allclose(single.predict(NEW.astype(np.float32)), double.predict(NEW), atol=1e-4)


# Other maps ----------------------------------------------------------------------------------------------------------


def test_incomplete_cholesky_of_small_tolerance_recovers_the_exact_machine() -> None:
    exact = LSSVR(kernel=KERNEL).fit(X, Y)
    machine = LSSVR(kernel=KERNEL, approximation=IncompleteCholesky(120, tol=1e-14)).fit(X, Y)
    assert np.allclose(machine.predict(NEW), exact.predict(NEW), atol=1e-8)
    coarse = LSSVR(kernel=KERNEL, approximation=IncompleteCholesky(120, tol=0.3)).fit(X, Y)
    assert len(coarse.support_vectors_) < 120


def test_rsvm_ridge_is_ridge_regression_on_kernel_values() -> None:
    machine = LSSVR(C=4.0, kernel=KERNEL, approximation=ReducedBasis(20, ridge="identity")).fit(X, Y)
    A = KERNEL(X, machine.support_vectors_)
    left = np.block([[np.eye(20) / 4.0 + A.T @ A, A.sum(axis=0)[:, None]], [A.sum(axis=0)[None], np.array([[120.0]])]])
    both = np.linalg.solve(left, np.append(A.T @ Y, Y.sum()))
    assert np.allclose(machine.dual_coef_, both[:20], atol=1e-9)
    assert machine.intercept_ == pytest.approx(both[20], abs=1e-9)


@pytest.mark.parametrize("kind", [RandomFourier, OrthogonalFourier])
def test_random_features_come_close_to_the_exact_machine(kind: Any) -> None:
    exact = LSSVR(kernel=KERNEL).fit(X, Y)
    machine = LSSVR(kernel=KERNEL, approximation=kind(4000)).fit(X, Y)
    assert machine.support_vectors_.shape == (0, X.shape[1])  # as for every machine without landmarks
    assert machine.dual_coef_.shape == (4000,)
    assert np.abs(machine.predict(NEW) - exact.predict(NEW)).max() < 0.1
    with pytest.raises(AttributeError):
        _ = machine.coef_


# Saying what happens -------------------------------------------------------------------------------------------------


def test_auto_is_exact_for_small_data_and_says_why() -> None:
    machine = LSSVR(kernel=KERNEL, approximation="auto").fit(X, Y)
    assert machine.approximation_ is None
    assert "120 points" in machine.approximation_reason_
    assert np.allclose(machine.predict(NEW), LSSVR(kernel=KERNEL).fit(X, Y).predict(NEW))


def test_auto_takes_landmarks_where_the_matrix_does_not_fit_and_says_why() -> None:
    many, targets, _ = points(1500)
    machine = LSSVR(kernel=KERNEL, approximation="auto", memory="16 MiB").fit(many, targets)
    assert isinstance(machine.approximation_, Nystrom)
    assert "does not fit" in machine.approximation_reason_
    assert machine.score(many, targets) > 0.9


@pytest.mark.parametrize(
    ("kernel", "approximation", "error"),
    [
        (Sigmoid(), Nystrom(10), NotPositiveDefinite),
        (ThinPlate(), Nystrom(10), NotPositiveDefinite),
        ("precomputed", Nystrom(10), InvalidInput),
        (lambda A, B: A @ B.T, Nystrom(10), InvalidInput),
        (Polynomial(degree=2), RandomFourier(10), InvalidInput),
        (Laplacian(), OrthogonalFourier(10), InvalidInput),
        (KERNEL, Nystrom(3, landmarks=np.ones((3, 2))), InvalidInput),
        (KERNEL, 10, ValueError),
        (KERNEL, "nystrom", ValueError),
    ],
)
def test_what_has_no_feature_map_is_refused(kernel: Any, approximation: Any, error: type[Exception]) -> None:
    data = KERNEL(X) if kernel == "precomputed" else X
    with pytest.raises(error):
        LSSVR(kernel=kernel, approximation=approximation).fit(data, Y)


def test_pruning_a_landmark_machine_is_refused() -> None:
    with pytest.raises(InvalidInput, match="fewer landmarks"):
        LSSVR(kernel=KERNEL, approximation=Nystrom(10)).fit(X, Y).prune()


# The machine as an object --------------------------------------------------------------------------------------------

MAPS = [Nystrom(15), Nystrom(4, landmarks=X[:4]), ReducedBasis(9, ridge="identity"), RandomFourier(16), KernelPCA(12)]


@pytest.mark.parametrize("approximation", MAPS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_model_files_keep_predictions_to_the_last_digit(approximation: Any, form: Any, tmp_path: Path) -> None:
    machine = LSSVR(kernel=Matern(1.0, 2.5), approximation=approximation).fit(form(X), np.column_stack([Y, LABELS]))
    read = machine.leave_one_out().gcv if isinstance(approximation, RandomFourier) else None
    save(machine, tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict(NEW), machine.predict(NEW))
    assert again.approximation_ == approximation
    assert again.get_params()["approximation"] == approximation
    assert np.array_equal(again.support_, machine.support_)
    if read is None:
        with pytest.raises(InvalidInput, match="did not travel"):
            _ = again.gcv_
    else:
        assert again.gcv_ == read


def test_copies_and_pickles_predict_the_same_and_leave_the_training_points_behind() -> None:
    machine = LSSVC(kernel=KERNEL, approximation=Nystrom(15)).fit(X, LABELS)
    again = pickle.loads(pickle.dumps(machine))
    assert np.array_equal(again.predict(NEW), machine.predict(NEW))
    with pytest.raises(InvalidInput, match="did not travel"):
        _ = again.loo_error_
    twin = clone(machine).fit(X, LABELS)
    assert np.array_equal(twin.dual_coef_, machine.dual_coef_)


def test_a_machine_fitted_again_without_approximation_forgets_it() -> None:
    machine = LSSVC(kernel=KERNEL, approximation=Nystrom(15)).fit(X, LABELS)
    machine.set_params(approximation=None).fit(X, LABELS)
    assert machine.approximation_ is None
    assert machine.feature_map_ is None
    assert np.array_equal(machine.support_vectors_, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert machine.loo_error_ < 0.3
