"""Dual coordinate descent on thin factors, and the interior point method by Woodbury: both against dense solvers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from mercer.errors import InvalidInput
from mercer.gram import Gram, LowRankGram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from mercer.machine.training_set import TrainingSet
from mercer.problems import (
    NuClassification,
    Problem,
    RegularisedRisk,
)
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic import interior_point, linear_dual
from mercer.solvers.quadratic.thin_barrier import ThinBarrierSystem, ThinMatrix
from mercer.svm import SVC

Array = NDArray[np.float64]
KINDS = ["hinge", "squared hinge", "epsilon", "squared epsilon"]


def factor(n: int = 150, p: int = 12, seed: int = 0) -> tuple[Array, Array, Array]:
    """A thin factor with decaying columns, labels and real targets."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, p)) / np.arange(1, p + 1)
    target = Z @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n) + 0.2
    labels = np.where(target > 0.1, 1.0, -1.0)
    labels[:2] = (1.0, -1.0)
    return Z, labels, target


def stated(kind: str, gram: Any, labels: Array, target: Array, C: float, bias: Any, weights: Any = None) -> Problem:
    """A problem of the zoo."""
    if kind == "hinge":
        return RegularisedRisk(gram, labels, Hinge(), C, weights, bias)
    if kind == "squared hinge":
        return RegularisedRisk(gram, labels, SquaredHinge(), C, weights, bias)
    if kind == "epsilon":
        return RegularisedRisk(gram, target, EpsilonInsensitive(0.1), C, weights, bias)
    return RegularisedRisk(gram, target, SquaredEpsilonInsensitive(0.1), C, weights, bias)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_the_dense_interior_point(kind: str, bias: str, C: float) -> None:
    Z, labels, target = factor()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(Z))
    problem = stated(kind, LowRankGram.from_factors(Z), labels, target, C, bias, weights)
    dense = stated(kind, Gram(Precomputed(), Z @ Z.T), labels, target, C, bias, weights)
    reference = interior_point.solve(dense, tol=1e-10)
    found = linear_dual.solve(problem, tol=1e-5)
    assert found.converged
    assert found.primal == pytest.approx(reference.primal, rel=1e-5)
    assert found.primal - found.gap <= reference.primal * (1 + 1e-9) <= found.primal * (1 + 2e-9)
    assert np.abs(Z @ (Z.T @ (found.coefficients - reference.coefficients))).max() < 2e-3
    box, miss = problem.program().violation(np.asarray(found.variables))
    assert box == 0.0
    assert miss <= 1e-9 * (1.0 + np.abs(found.variables).sum())


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 60), st.integers(1, 20), st.floats(0.01, 100.0), st.sampled_from(KINDS), st.integers(0, 500))
def test_the_certificate_holds_on_any_factor(n: int, p: int, C: float, kind: str, seed: int) -> None:
    Z, labels, target = factor(n, p, seed)
    found = linear_dual.solve(stated(kind, LowRankGram.from_factors(Z), labels, target, C, "free"), gap_tol=1e-4)
    dense = stated(kind, Gram(Precomputed(), Z @ Z.T), labels, target, C, "free")
    again = dense.certificate(np.asarray(found.variables))
    assert found.relative_gap <= 1e-4
    assert again.primal == pytest.approx(found.primal, rel=1e-8, abs=1e-10)
    assert again.gap == pytest.approx(found.gap, rel=1e-4, abs=1e-8 * abs(found.primal))


def test_the_tolerance_is_the_violation_of_the_optimality_conditions() -> None:
    Z, labels, target = factor()
    problem = stated("hinge", LowRankGram.from_factors(Z), labels, target, 1.0, "free")
    for tol in (1e-1, 1e-3, 1e-6):
        s = np.asarray(linear_dual.solve(problem, tol=tol).variables)
        program = problem.program()
        g = program.gradient(s)
        assert g[s > program.lower].max() - g[s < program.upper].min() <= tol


def test_float32_factors_are_solved_as_they_are() -> None:
    Z, labels, target = factor()
    single = Z.astype(np.float32)
    found = linear_dual.solve(stated("hinge", LowRankGram.from_factors(single), labels, target, 1.0, "free"), tol=1e-6)
    wide = single.astype(np.float64)
    reference = interior_point.solve(stated("hinge", LowRankGram.from_factors(wide), labels, target, 1.0, "free"))
    assert found.primal == pytest.approx(reference.primal, rel=1e-6)


def test_a_linear_kernel_brings_its_own_factor() -> None:
    Z, labels, target = factor()
    found = linear_dual.solve(RegularisedRisk(Gram(Linear(), Z), labels, Hinge(), 1.0), tol=1e-6)
    reference = linear_dual.solve(stated("hinge", LowRankGram.from_factors(Z), labels, target, 1.0, "free"), tol=1e-6)
    assert found.primal == pytest.approx(reference.primal, rel=1e-9)


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_give_the_optimum_of_the_dense_interior_point(kind: str, bias: str) -> None:
    X = sparse.random_array((120, 300), density=0.05, rng=np.random.default_rng(4), format="csr")
    _, labels, target = factor(120)
    found = linear_dual.solve(stated(kind, Gram(Linear(), X), labels, target, 2.0, bias), tol=1e-6)
    K = np.asarray((X @ X.T).toarray())
    reference = interior_point.solve(stated(kind, Gram(Precomputed(), K), labels, target, 2.0, bias), tol=1e-10)
    assert found.converged
    assert found.primal == pytest.approx(reference.primal, rel=1e-6)
    assert np.abs(K @ (found.coefficients - reference.coefficients)).max() < 1e-3


def test_joint_steps_of_sparse_rows_are_those_of_dense_ones() -> None:
    X = sparse.random_array((200, 20), density=0.4, rng=np.random.default_rng(5), format="csr")
    _, labels, _ = factor(200)
    few = 2 * linear_dual.EVERY
    one, two = (
        linear_dual.solve(RegularisedRisk(Gram(Linear(), points), labels, Hinge()), tol=1e-9, max_iter=few)
        for points in (X, X.toarray())
    )
    np.testing.assert_allclose(one.variables, two.variables, atol=1e-6)


def test_several_classes_of_documents_need_no_kernel_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.random_array((90, 200), density=0.1, rng=np.random.default_rng(6), format="csr")
    y = np.arange(90) % 3
    reference = SVC(kernel="linear", multiclass="ovr", tol=1e-6).fit(X, y)
    monkeypatch.setattr(TrainingSet, "share", lambda *_: pytest.fail("asked for the matrix"))
    found = SVC(kernel="linear", multiclass="ovr", solver="linear_dual", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), reference.decision_function(X), atol=1e-4)


def test_a_warm_start_saves_passes() -> None:
    Z, labels, target = factor(400, 15)
    problem = stated("hinge", LowRankGram.from_factors(Z), labels, target, 10.0, "free")
    cold = linear_dual.solve(problem, tol=1e-4)
    warm = linear_dual.solve(problem, tol=1e-4, start=cold)
    assert warm.iterations < cold.iterations
    assert warm.primal == pytest.approx(cold.primal, rel=1e-6)


def test_the_same_seed_gives_the_same_solution() -> None:
    Z, labels, target = factor()
    problem = stated("hinge", LowRankGram.from_factors(Z), labels, target, 1.0, "free")
    one, two = linear_dual.solve(problem, seed=3), linear_dual.solve(problem, seed=3)
    assert np.array_equal(one.variables, two.variables)


def test_points_of_zero_features_go_where_their_label_says() -> None:
    Z, labels, target = factor()
    Z[5:20] = 0.0
    found = linear_dual.solve(stated("hinge", LowRankGram.from_factors(Z), labels, target, 1.0, "none"), tol=1e-6)
    assert found.converged
    assert np.allclose(found.coefficients[5:20], labels[5:20])


def test_limits_stop_it_with_a_feasible_point() -> None:
    Z, labels, target = factor(300, 20)
    problem = stated("hinge", LowRankGram.from_factors(Z), labels, target, 100.0, "free")
    few = linear_dual.solve(problem, tol=1e-9, max_iter=3)
    assert few.stopped == "iterations"
    assert few.gap > 0
    late = linear_dual.solve(problem, tol=1e-12, monitor=Monitor(time_limit=1e-9))
    assert late.stopped == "time"


def test_what_it_cannot_take_is_refused_with_the_reason() -> None:
    Z, labels, _ = factor()
    dense = RegularisedRisk(Gram(Gaussian(), Z), labels, Hinge())
    assert "approximation" in linear_dual.accepts(dense).reason
    two_sums = NuClassification(LowRankGram.from_factors(Z), labels, 0.3)
    assert "decomposition" in linear_dual.accepts(two_sums).reason
    with pytest.raises(InvalidInput, match="decomposition"):
        linear_dual.solve(two_sums)


# The interior point method on a thin factor ------------------------------------------------------------------------


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("kind", KINDS)
def test_interior_point_on_a_thin_factor_equals_the_dense_one(kind: str, bias: str) -> None:
    Z, labels, target = factor()
    thin = interior_point.solve(stated(kind, LowRankGram.from_factors(Z), labels, target, 10.0, bias), tol=1e-8)
    dense = interior_point.solve(stated(kind, Gram(Precomputed(), Z @ Z.T), labels, target, 10.0, bias), tol=1e-8)
    assert thin.details["factorisation"].startswith(("woodbury", "product form"))
    assert thin.converged
    assert thin.primal == pytest.approx(dense.primal, rel=1e-7)


@pytest.mark.parametrize("two", [False, True])
def test_woodbury_solves_the_barrier_system(two: bool) -> None:
    rng = np.random.default_rng(3)
    F = rng.standard_normal((30, 4))
    point = np.concatenate([np.arange(30), np.arange(30)]) if two else np.arange(30)
    D, R = rng.uniform(1e-3, 1e3, len(point)), rng.standard_normal((len(point), 2))
    system = ThinBarrierSystem(ThinMatrix(F), point)
    system.factor(D)
    M = (F @ F.T)[np.ix_(point, point)] + np.diag(D)
    assert np.allclose(M @ system.solve(R), R, atol=1e-8)


def test_interior_point_does_not_ask_for_the_square_matrix_of_a_thin_one() -> None:
    Z, labels, target = factor(3000, 5)
    problem = stated("hinge", LowRankGram.from_factors(Z), labels, target, 1.0, "free")
    found = interior_point.solve(problem, memory="4 MiB")  # the square one would take 275 MiB
    assert found.relative_gap <= 1e-8


@pytest.mark.parametrize("kind", ["hinge", "epsilon"])
def test_large_c_is_no_trouble_for_the_interior_point_method(kind: str) -> None:
    Z, labels, target = factor(300, 20)
    problem = stated(kind, LowRankGram.from_factors(Z), labels, target, 1e4, "free")
    assert interior_point.solve(problem, tol=1e-7).converged
