"""The low-rank systems of the literature: each against dense algebra, and against one another."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.least_squares import LSSVR
from mercer.lowrank import choose
from mercer.lowrank.least_squares_forms import FORMS, nystrom, predict, rectangle, rsvm, subset

Array = NDArray[np.float64]
KERNEL = Gaussian(sigma=1.2)
EQUIVALENT = ["rectangle", "reduced_basis", "nystrom", "eigen", "incomplete_cholesky", "fixed_size"]


def data(n: int = 80, d: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    """Points, targets of two outputs, new points."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], np.sign(X[:, 2] + 0.3 * X[:, 0])])
    return X, Y, rng.standard_normal((40, d))


X, Y, NEW = data()
INDEX = np.random.default_rng(1).choice(len(X), 12, replace=False)


def projected_kernel(S: Array, rows: Array, columns: Array) -> Array:
    """k(rows, S) B^-1 k(S, columns)."""
    return np.asarray(KERNEL(rows, S) @ np.linalg.solve(KERNEL(S), KERNEL(S, columns)))


def dense_solution(K: Array, Y: Array, C: float, bias: str) -> tuple[Array, Array]:
    """c (n, k) and b (k,) of (K + I/C) c + b = Y, with 1'c = 0 where the bias is free."""
    n = len(Y)
    if bias == "none":
        return np.linalg.solve(K + np.eye(n) / C, Y), np.zeros(Y.shape[1])
    M = np.block([[K + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    both = np.linalg.solve(M, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return both[:n], both[n]


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("form", EQUIVALENT)
def test_equivalence_theorem(form: str, bias: str) -> None:
    """Same bias, same outputs, and the landmarks' coefficients are B^-1 A'c (Hamers 2004, chapter 5)."""
    S = X[INDEX]
    c, b = dense_solution(projected_kernel(S, X, X), Y, 10.0, bias)
    found = FORMS[form](KERNEL, X, Y, INDEX, C=10.0, bias=bias)
    assert np.allclose(found.bias, b, atol=1e-9)
    assert np.allclose(found.coefficients, np.linalg.solve(KERNEL(S), KERNEL(S, X) @ c), atol=1e-7)
    assert np.allclose(predict(found, KERNEL, X, INDEX, NEW), projected_kernel(S, NEW, X) @ c + b, atol=1e-8)
    assert found.gap <= 1e-9 * abs(found.primal)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 25), st.floats(0.01, 100.0), st.integers(0, 1000))
def test_the_forms_agree_whatever_the_landmarks(m: int, C: float, seed: int) -> None:
    index = np.random.default_rng(seed).choice(len(X), m, replace=False)
    answers = [predict(FORMS[form](KERNEL, X, Y, index, C=C), KERNEL, X, index, NEW) for form in EQUIVALENT]
    for answer in answers[1:]:
        assert np.abs(answer - answers[0]).max() <= 1e-6


@pytest.mark.parametrize("form", [*EQUIVALENT, "subset"])
def test_all_points_as_landmarks_recover_the_exact_machine(form: str) -> None:
    exact = LSSVR(C=10.0, kernel=KERNEL).fit(X, Y)
    found = FORMS[form](KERNEL, X, Y, np.arange(len(X)), C=10.0)
    assert np.abs(predict(found, KERNEL, X, np.arange(len(X)), NEW) - exact.predict(NEW)).max() < 1e-8


def test_full_evaluation_is_the_expansion_on_all_points_and_another_machine() -> None:
    c, b = dense_solution(projected_kernel(X[INDEX], X, X), Y, 10.0, "free")
    full = nystrom(KERNEL, X, Y, INDEX, C=10.0, evaluation="full")
    assert full.coefficients.shape == (len(X), 2)
    assert np.allclose(full.coefficients, c, atol=1e-8)
    outputs = predict(full, KERNEL, X, INDEX, NEW)
    assert np.allclose(outputs, KERNEL(NEW, X) @ c + b, atol=1e-8)
    projected = predict(nystrom(KERNEL, X, Y, INDEX, C=10.0), KERNEL, X, INDEX, NEW)
    assert np.abs(outputs - projected).max() > 0.1  # solved with one kernel, evaluated with another


def test_rectangle_has_gradient_zero() -> None:
    found = rectangle(KERNEL, X, Y, INDEX, C=5.0)
    A, B = KERNEL(X, X[INDEX]), KERNEL(X[INDEX])
    error = Y - A @ found.coefficients - found.bias
    assert np.abs(B @ found.coefficients - 5.0 * A.T @ error).max() < 1e-8
    assert np.abs(error.sum(axis=0)).max() < 1e-8


def test_rsvm_ridge_has_gradient_zero_and_differs_from_the_kernel_ridge() -> None:
    found = rsvm(KERNEL, X, Y, INDEX, C=5.0)
    A = KERNEL(X, X[INDEX])
    error = Y - A @ found.coefficients - found.bias
    assert np.abs(found.coefficients - 5.0 * A.T @ error).max() < 1e-9
    assert found.gap <= 1e-10 * found.primal
    assert np.abs(found.coefficients - rectangle(KERNEL, X, Y, INDEX, C=5.0).coefficients).max() > 1e-3


def test_rsvm_is_the_kernel_ridge_where_landmarks_are_far_apart() -> None:
    far = 50.0 * np.eye(3)  # B is the identity
    one, other = (form(KERNEL, X, Y, far, C=5.0).coefficients for form in (rsvm, rectangle))
    assert np.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("rescale", [False, True])
def test_subset_trains_on_the_landmarks_alone(rescale: bool) -> None:
    found = subset(KERNEL, X, Y, INDEX, C=2.0, rescale=rescale)
    alone = LSSVR(C=2.0 * len(X) / len(INDEX) if rescale else 2.0, kernel=KERNEL).fit(X[INDEX], Y[INDEX])
    assert np.allclose(predict(found, KERNEL, X, INDEX, NEW), alone.predict(NEW), atol=1e-9)
    with pytest.raises(InvalidInput, match="points of X"):
        subset(KERNEL, X, Y, np.zeros((2, 3)))


@pytest.mark.parametrize("solver", ["minres", "symmlq"])
@pytest.mark.parametrize("form", ["rectangle", "nystrom", "rsvm"])
def test_krylov_solvers_find_the_same_machine(form: str, solver: str) -> None:
    direct = predict(FORMS[form](KERNEL, X, Y, INDEX), KERNEL, X, INDEX, NEW)
    found = predict(FORMS[form](KERNEL, X, Y, INDEX, solver=solver), KERNEL, X, INDEX, NEW)
    assert np.allclose(found, direct, atol=1e-6)


def test_jitter_goes_to_the_unjittered_machine() -> None:
    clean = predict(rectangle(KERNEL, X, Y, INDEX), KERNEL, X, INDEX, NEW)
    distances = [
        np.abs(predict(rectangle(KERNEL, X, Y, INDEX, jitter=jitter), KERNEL, X, INDEX, NEW) - clean).max()
        for jitter in (1e-2, 1e-4, 1e-6, 1e-8)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-6 < distances[0]


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, gamma=1.0, offset=1.0)])
@pytest.mark.parametrize("form", EQUIVALENT)
def test_more_landmarks_than_the_rank_of_the_kernel_recover_the_exact_machine(form: str, kernel: Any) -> None:
    exact = LSSVR(C=0.5, kernel=kernel).fit(X, Y)
    found = FORMS[form](kernel, X, Y, np.arange(40), C=0.5)
    assert np.allclose(predict(found, kernel, X, np.arange(40), NEW), exact.predict(NEW), atol=1e-6)


@pytest.mark.parametrize("form", EQUIVALENT)
def test_duplicate_landmarks_change_nothing(form: str) -> None:
    twice = np.concatenate([INDEX, INDEX])
    one = predict(FORMS[form](KERNEL, X, Y, INDEX), KERNEL, X, INDEX, NEW)
    two = predict(FORMS[form](KERNEL, X, Y, twice), KERNEL, X, twice, NEW)
    assert np.allclose(one, two, atol=1e-6)


def test_truncated_eigenvalues_move_towards_the_whole_machine() -> None:
    whole = predict(FORMS["eigen"](KERNEL, X, Y, INDEX), KERNEL, X, INDEX, NEW)
    far = [
        np.linalg.norm(predict(FORMS["eigen"](KERNEL, X, Y, INDEX, rank=rank), KERNEL, X, INDEX, NEW) - whole)
        for rank in (2, 8, 12)
    ]
    assert far[0] > far[1] > far[2]
    assert far[2] < 1e-10


def test_landmarks_of_a_selector_and_free_points_are_taken() -> None:
    chosen = choose(KERNEL, X, 10, method="uniform", seed=0)
    assert chosen.index is not None
    by_object, by_index = (rectangle(KERNEL, X, Y, landmarks) for landmarks in (chosen, chosen.index))
    assert np.allclose(by_object.coefficients, by_index.coefficients)
    assert rectangle(KERNEL, X, Y[:, 0], NEW[:5]).coefficients.shape == (5, 1)


@pytest.mark.parametrize("wrong", [{"C": 0.0}, {"C": np.inf}, {"bias": "penalised"}, {"solver": "lu"}])
def test_senseless_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        rectangle(KERNEL, X, Y, INDEX, **wrong)
    with pytest.raises(InvalidInput):
        nystrom(KERNEL, X, Y, INDEX, evaluation="exact")  # type: ignore[arg-type]
