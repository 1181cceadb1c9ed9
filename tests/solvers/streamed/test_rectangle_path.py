"""A path of C from one eigenproblem: its models are those of single fits, its leave-one-out that of retraining."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.solvers.streamed import rectangle
from mercer.solvers.streamed.blocks import ArrayBlocks
from mercer.solvers.streamed.rectangle_path import solve_path

KERNEL = Gaussian(sigma=1.5)
COSTS = np.array([0.1, 1.0, 10.0, 100.0])
BIASES = ["free", "none", "penalised"]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((160, 3))


@pytest.fixture(scope="module")
def Y(X: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.stack([np.sin(2 * X[:, 0]), X[:, 1] + 2.0], axis=1) + 0.3 * rng.standard_normal((len(X), 2))


@pytest.mark.parametrize("bias", BIASES)
def test_every_model_of_the_path_is_the_single_fit(X: np.ndarray, Y: np.ndarray, bias) -> None:
    S, v = X[:30], np.random.default_rng(2).random(len(X))
    path = solve_path(X, KERNEL, S, COSTS, y=Y, weights=v, bias=bias)
    for c, C in enumerate(COSTS):
        single = rectangle.solve(X, KERNEL, S, y=Y, C=C, weights=v, bias=bias, tol=1e-13)
        assert np.allclose(
            KERNEL(X, S) @ path.coefficients[c] + path.bias[c], KERNEL(X, S) @ single.coefficients + single.bias,
            atol=1e-8,
        )  # fmt: skip
        assert np.allclose(path.bias[c], single.bias, atol=1e-8)


@pytest.mark.parametrize("bias", BIASES)
def test_leave_one_out_equals_retraining(X: np.ndarray, Y: np.ndarray, bias) -> None:
    rows, targets = X[:40], Y[:40]
    S = np.vstack([rows[:10], X[100:105]])
    v = np.random.default_rng(3).random(40) + 0.5
    path = solve_path(rows, KERNEL, S, COSTS, y=targets, weights=v, bias=bias, leave_one_out=True)
    for c, C in enumerate(COSTS):
        values = np.empty_like(targets)
        for i in range(40):
            rest = np.delete(np.arange(40), i)
            model = rectangle.solve(rows[rest], KERNEL, S, y=targets[rest], C=C, weights=v[rest], bias=bias, tol=1e-14)
            values[i] = (KERNEL(rows[i : i + 1], S) @ model.coefficients + model.bias)[0]
        squares = np.average((values - targets) ** 2, axis=0, weights=v)
        wrong = np.average(values.argmax(axis=1) != targets.argmax(axis=1), weights=v)
        assert path.leave_one_out is not None
        assert np.allclose(path.leave_one_out.squared[c], squares, rtol=1e-7)
        assert path.leave_one_out.wrong[c] == pytest.approx(wrong)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_hold_out_errors_are_those_of_the_models(X: np.ndarray, Y: np.ndarray, precision) -> None:
    S = X[:30]
    train, test = slice(0, 120), slice(120, 160)
    path = solve_path(
        ArrayBlocks(X[train], Y[train, 0], rows=50),
        KERNEL,
        S,
        COSTS,
        holdout=(X[test], Y[test, 0]),
        precision=precision,
    )
    assert path.holdout is not None
    for c in range(len(COSTS)):
        values = KERNEL(X[test], S) @ path.coefficients[c] + path.bias[c]
        assert path.holdout.squared[c, 0] == pytest.approx(np.mean((values[:, 0] - Y[test, 0]) ** 2), rel=1e-3)
        assert path.holdout.wrong[c] == pytest.approx(np.mean((values[:, 0] > 0) != (Y[test, 0] > 0)), abs=0.03)
    assert path.best == np.argmin(path.holdout.squared[:, 0])


def test_effective_parameters_grow_with_C_up_to_the_rank(X: np.ndarray, Y: np.ndarray) -> None:
    S, A, B = X[:30], KERNEL(X, X[:30]), KERNEL(X[:30], X[:30])
    path = solve_path(X, KERNEL, S, COSTS, y=Y, bias="none")
    hats = [np.trace(A @ np.linalg.solve(A.T @ A + B / C, A.T)) for C in COSTS]
    assert np.allclose(path.freedom, hats, rtol=1e-6)
    assert (np.diff(path.freedom) > 0).all()
    assert solve_path(X, KERNEL, S, [1e9], y=Y).freedom[0] <= 31 + 1e-6


def test_bad_paths_are_refused(X: np.ndarray, Y: np.ndarray) -> None:
    for costs in ([], [1.0, -1.0], [np.inf]):
        with pytest.raises(InvalidInput, match="costs must be"):
            solve_path(X, KERNEL, X[:10], costs, y=Y)
    with pytest.raises(InvalidInput, match="bias must be"):
        solve_path(X, KERNEL, X[:10], COSTS, y=Y, bias="odd")
    with pytest.raises(InvalidInput, match="nothing judges"):
        _ = solve_path(X, KERNEL, X[:10], COSTS, y=Y).best
