"""The rectangle solver against dense algebra: every bias, weights, outputs, precision, source, and bad landmarks."""

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.kernels import Gaussian, Laplacian, Linear, Sigmoid
from mercer.solvers.monitor import Monitor
from mercer.solvers.streamed import rectangle
from mercer.solvers.streamed.blocks import ArrayBlocks, IteratorBlocks, one_against_rest
from mercer.solvers.streamed.landmark_preconditioner import choose_sample

KERNEL = Gaussian(sigma=1.5)
BIASES = ["free", "none", "penalised"]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((700, 4))


@pytest.fixture(scope="module")
def Y(X: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(1).standard_normal((len(X), 2))
    return np.stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2 + 3.0], axis=1) + 0.1 * noise


def dense(kernel, X, Y, S, C, bias, weights=None):
    """Values at X, bias and objective of the rectangle problem by one dense least-squares solve."""
    A, B = kernel(X, S), kernel(S, S)
    v = np.ones(len(X)) if weights is None else weights
    values, vectors = np.linalg.eigh(B)
    keep = values > 1e-12 * values[-1]
    T = vectors[:, keep] / np.sqrt(values[keep])
    Z = A @ T
    r = Z.shape[1]
    ones = np.ones((len(X), 1)) if bias != "none" else np.zeros((len(X), 0))
    F = np.hstack([Z, ones])
    penalty = np.full(F.shape[1], 1 / C)
    if bias == "free":
        penalty[r:] = 0
    root = np.sqrt(v)[:, None]
    tall = np.vstack([root * F, np.diag(np.sqrt(penalty))])
    u = np.linalg.lstsq(tall, np.vstack([root * Y, np.zeros((F.shape[1], Y.shape[1]))]), rcond=None)[0]
    f = F @ u
    objective = 0.5 * np.sum(u[:r] ** 2) + 0.5 * C * np.sum(v[:, None] * (Y - f) ** 2)
    if bias == "penalised":
        objective += 0.5 * np.sum(u[r:] ** 2)
    return f, u[r:], objective


def outputs(kernel, X, S, solution):
    return kernel(X, S) @ solution.coefficients + solution.bias


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_give_the_dense_solution(X: np.ndarray, Y: np.ndarray, bias, weighted: bool) -> None:
    S, C = X[:60], 3.0
    weights = np.random.default_rng(2).random(len(X)) if weighted else None
    solution = rectangle.solve(X, KERNEL, S, y=Y, C=C, bias=bias, weights=weights, tol=1e-12)
    f, b, objective = dense(KERNEL, X, Y, S, C, bias, weights)
    assert solution.details["method"] == "direct"
    assert solution.converged
    assert np.abs(outputs(KERNEL, X, S, solution) - f).max() < 1e-8
    assert np.allclose(solution.bias, b if len(b) else 0.0, atol=1e-8)
    assert solution.primal == pytest.approx(objective, rel=1e-10)
    assert solution.dual <= solution.primal


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_sampled_preconditioner_reaches_the_same_solution(X: np.ndarray, Y: np.ndarray, bias, precision) -> None:
    S, C = X[:60], 3.0
    solution = rectangle.solve(X, KERNEL, S, y=Y, C=C, bias=bias, tol=1e-9, sample=250, precision=precision)
    f, _, objective = dense(KERNEL, X, Y, S, C, bias)
    assert solution.details["method"] == "sample"
    assert solution.iterations > 1
    assert solution.relative_gap <= 1e-9
    # C/2 sum (f - f*)^2 <= P - P* <= gap; kernel values in float32 are another problem by their rounding.
    rounding = 1e-4 if precision == "float32" else 1e-8
    distance = np.linalg.norm(outputs(KERNEL, X, S, solution) - f)
    assert distance <= np.sqrt(2 * solution.gap / C) + rounding * np.sqrt(f.size)
    assert solution.primal == pytest.approx(objective, rel=2e-6 if precision == "float32" else 1e-8)


def test_the_seed_draws_the_sample_of_the_preconditioner(X: np.ndarray, Y: np.ndarray) -> None:
    def first_step(seed: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rectangle.solve(X, KERNEL, X[:60], y=Y, C=3.0, sample=150, tol=1e-12, iterations=1, seed=seed)
        assert found.details["method"] == "sample"
        return np.asarray(found.coefficients)

    np.testing.assert_array_equal(first_step(1), first_step(1))
    assert not np.allclose(first_step(1), first_step(2), rtol=1e-9, atol=0)


def test_the_gap_bounds_the_distance_to_the_optimum(X: np.ndarray, Y: np.ndarray) -> None:
    S, C = X[:80], 20.0
    _, _, best = dense(KERNEL, X, Y, S, C, "free")
    seen = Monitor()
    rectangle.solve(X, KERNEL, S, y=Y, C=C, tol=1e-8, sample=200, monitor=seen, precision="float64")
    steps = [record for record in seen.history if np.isfinite(record.primal)]
    assert len(steps) > 4
    for record in steps:
        assert record.dual <= best * (1 + 1e-9)
        assert record.primal >= best * (1 - 1e-9)


def test_all_points_as_landmarks_recover_the_exact_machine(X: np.ndarray, Y: np.ndarray) -> None:
    part, targets, C = X[:150], Y[:150], 2.0
    solution = rectangle.solve(part, KERNEL, part, y=targets, C=C, bias="none", tol=1e-13)
    exact = np.linalg.solve(KERNEL(part, part) + np.eye(150) / C, targets)
    assert np.abs(outputs(KERNEL, X, part, solution) - KERNEL(X, part) @ exact).max() < 1e-8


def test_more_landmarks_than_rows_are_no_trouble(X: np.ndarray, Y: np.ndarray) -> None:
    rows, S = X[:50], X[:120]
    solution = rectangle.solve(rows, KERNEL, S, y=Y[:50], C=2.0, tol=1e-12)
    f, _, _ = dense(KERNEL, rows, Y[:50], S, 2.0, "free")
    assert np.abs(outputs(KERNEL, rows, S, solution) - f).max() < 1e-7


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_duplicate_and_dependent_landmarks_drop_out(X: np.ndarray, Y: np.ndarray, precision) -> None:
    once = X[:40]
    twice = np.vstack([once, once[:25], once[3:4] + 1e-10])
    a = rectangle.solve(X, KERNEL, once, y=Y, C=2.0, tol=1e-10, precision=precision)
    b = rectangle.solve(X, KERNEL, twice, y=Y, C=2.0, tol=1e-10, precision=precision)
    assert b.details["dropped"] == 26
    assert np.count_nonzero(b.coefficients.any(axis=1)) == 40
    assert np.abs(outputs(KERNEL, X, once, a) - outputs(KERNEL, X, twice, b)).max() < 1e-4
    linear = rectangle.solve(X, Linear(), X[:30], y=Y, C=2.0, tol=1e-10)
    assert linear.details["rank"] == X.shape[1]
    f, _, _ = dense(Linear(), X, Y, X[:30], 2.0, "free")
    assert np.abs(outputs(Linear(), X, X[:30], linear) - f).max() < 1e-7


def test_sparse_rows_and_kernels_without_tiles_give_the_dense_solution(X: np.ndarray, Y: np.ndarray) -> None:
    S = X[:50]
    wide = np.hstack([X, np.zeros((len(X), 40))])
    rows = sp.csr_matrix(wide)
    f, _, _ = dense(KERNEL, X, Y, S, 3.0, "free")
    solution = rectangle.solve(rows, KERNEL, rows[:50], y=Y, C=3.0, tol=1e-11, sample=300)
    assert np.abs(KERNEL(wide, wide[:50]) @ solution.coefficients + solution.bias - f).max() < 1e-5
    laplacian = Laplacian(sigma=2.0)
    f, _, _ = dense(laplacian, X, Y, S, 3.0, "free")
    solution = rectangle.solve(X, laplacian, S, y=Y, C=3.0, tol=1e-11, sample=300)
    assert np.abs(outputs(laplacian, X, S, solution) - f).max() < 1e-5


def test_one_output_equals_the_same_column_among_many(X: np.ndarray, Y: np.ndarray) -> None:
    S = X[:50]
    both = rectangle.solve(X, KERNEL, S, y=Y, C=3.0, tol=1e-12, sample=300)
    for c in range(2):
        one = rectangle.solve(X, KERNEL, S, y=Y[:, c], C=3.0, tol=1e-12, sample=300)
        assert np.allclose(outputs(KERNEL, X, S, one)[:, 0], outputs(KERNEL, X, S, both)[:, c], atol=1e-5)


def test_blocks_do_not_change_the_model(X: np.ndarray, Y: np.ndarray) -> None:
    S = X[:50]
    whole = rectangle.solve(X, KERNEL, S, y=Y, C=3.0, tol=1e-10, sample=300)

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(X), 93):
            yield X[start : start + 93], Y[start : start + 93]

    streamed = rectangle.solve(IteratorBlocks(pieces), KERNEL, S, C=3.0, tol=1e-10, sample=300)
    assert np.allclose(whole.coefficients, streamed.coefficients, rtol=1e-6, atol=1e-8)
    again = rectangle.solve(IteratorBlocks(pieces), KERNEL, S, C=3.0, tol=1e-10, sample=300)
    assert np.array_equal(streamed.coefficients, again.coefficients)


def test_a_warm_start_needs_fewer_passes(X: np.ndarray, Y: np.ndarray) -> None:
    S = X[:60]
    options = {"y": Y, "tol": 1e-8, "sample": 250, "precision": "float64"}
    cold = rectangle.solve(X, KERNEL, S, C=3.0, **options)
    warm = rectangle.solve(X, KERNEL, S, C=3.0, start=cold, **options)
    assert warm.details["passes"] < cold.details["passes"]
    assert warm.primal == pytest.approx(cold.primal, rel=1e-8)
    with pytest.raises(InvalidInput, match="start must be finite coefficients"):
        rectangle.solve(X, KERNEL, S, C=3.0, start=np.zeros((3, 2)), **options)


def test_a_stopped_run_gives_the_best_so_far(X: np.ndarray, Y: np.ndarray) -> None:
    S = X[:60]
    stop_after = Monitor(callback=lambda record: record.iteration >= 2)
    solution = rectangle.solve(X, KERNEL, S, y=Y, C=30.0, tol=1e-12, sample=150, monitor=stop_after)
    _, _, best = dense(KERNEL, X, Y, S, 30.0, "free")
    assert solution.stopped == "interrupted"
    assert solution.iterations == 2
    assert best <= solution.primal < 1.5 * best
    assert rectangle.solve(X, KERNEL, S, y=Y, C=30.0, tol=1e-12, sample=150, iterations=3).stopped == "iterations"


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("sample", [None, 250])
def test_logistic_loss_reaches_the_minimum_a_general_method_finds(X: np.ndarray, Y: np.ndarray, bias, sample) -> None:
    S, C = X[:40], 5.0
    y = np.where(Y[:, 0] > 0.3, 1.0, -1.0)
    v = np.random.default_rng(3).random(len(X)) + 0.1
    L = np.linalg.cholesky(KERNEL(S, S) + 1e-13 * np.eye(40))
    Z = np.linalg.solve(L, KERNEL(X, S).T).T

    def objective(u):
        w, b = u[:40], u[40] * (bias != "none")
        z = y * (Z @ w + b)
        g = -C * v * y / (1 + np.exp(z))
        own = b if bias == "penalised" else 0.0
        value = 0.5 * w @ w + 0.5 * own * own + C * np.sum(v * np.logaddexp(0, -z))
        return value, np.append(w + Z.T @ g, (g.sum() + own) * (bias != "none"))

    options = {"maxiter": 5000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9}
    best = minimize(objective, np.zeros(41), jac=True, method="L-BFGS-B", options=options).fun
    solution = rectangle.solve(
        X, KERNEL, S, y=y, C=C, loss="logistic", bias=bias, weights=v, tol=1e-7, sample=sample, precision="float64"
    )
    assert solution.converged
    assert solution.primal == pytest.approx(best, rel=1e-7)
    assert solution.dual <= best * (1 + 1e-9)
    assert solution.relative_gap <= 1e-7


def test_logistic_loss_takes_classes_one_against_the_rest(X: np.ndarray, Y: np.ndarray) -> None:
    labels = np.digitize(Y[:, 0], [-0.3, 0.4])
    source = one_against_rest(ArrayBlocks(X, labels), [0, 1, 2])
    options = {"C": 5.0, "loss": "logistic", "tol": 1e-4, "sample": 300}
    solution = rectangle.solve(source, KERNEL, X[:60], **options)
    assert solution.relative_gap <= 1e-4
    for c in range(3):
        single = rectangle.solve(X, KERNEL, X[:60], y=np.where(labels == c, 1.0, -1.0), **options)
        assert np.allclose(single.coefficients[:, 0], solution.coefficients[:, c], rtol=1e-6, atol=1e-8)
    with pytest.raises(InvalidInput, match="labels -1 and"):
        rectangle.solve(X, KERNEL, X[:60], y=labels, loss="logistic")


def test_the_sample_is_chosen_by_cost_and_the_choice_is_told() -> None:
    assert choose_sample(5_000, 1000, 20, 1, 1e-3, 10**9).method == "direct"
    large = choose_sample(500_000, 2000, 54, 1, 1e-3, 10**9)
    assert large.method == "sample"
    assert 8 * 2000 < large.rows < 500_000 / 4
    assert str(large.rows) in large.reason
    assert choose_sample(500_000, 2000, 54, 1, 1e-12, 10**9).rows > large.rows
    assert choose_sample(500_000, 2000, 54, 1, 1e-3, 10_000).rows in (8000, 10_000, 500_000)


def test_bad_input_is_named(X: np.ndarray, Y: np.ndarray) -> None:
    S = X[:20]
    for options, message in [
        ({"C": 0.0}, "C must be positive"),
        ({"C": np.inf}, "C must be positive and finite"),
        ({"bias": "some"}, "bias must be"),
        ({"loss": "hinge"}, "loss must be"),
        ({"precision": "half"}, "precision must be"),
        ({"weights": -np.ones(len(X))}, "weights must be"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            rectangle.solve(X, KERNEL, S, y=Y, **options)
    with pytest.raises(InvalidInput, match="landmarks have 3 features"):
        rectangle.solve(X, KERNEL, S[:, :3], y=Y)
    with pytest.raises(InvalidInput, match="not positive definite"):
        rectangle.solve(X, Sigmoid(), S, y=Y)
    with pytest.raises(BudgetTooSmall, match="20 landmarks need"):
        rectangle.solve(X, KERNEL, S, y=Y, memory="2 KiB")
    with pytest.raises(InvalidInput, match="NaN"):
        rectangle.solve(X, KERNEL, np.where(S > 1, np.nan, S), y=Y)


def test_data_larger_than_the_budget_train_in_fixed_memory(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import resource, sys
        import numpy as np
        from mercer.kernels import Gaussian
        from mercer.solvers.streamed import rectangle
        from mercer.solvers.streamed.blocks import ArrayBlocks

        folder, rows, d = sys.argv[1], 400_000, 50
        X = np.memmap(folder + "/X.bin", dtype=np.float64, mode="w+", shape=(rows, d))
        rng = np.random.default_rng(0)
        for start in range(0, rows, 20_000):
            X[start : start + 20_000] = rng.standard_normal((20_000, d))
            X._mmap.madvise(4)
        X.flush()
        X = np.memmap(folder + "/X.bin", dtype=np.float64, mode="r", shape=(rows, d))
        y = np.array(np.sin(X[:, 0]))
        X._mmap.madvise(4)
        small = np.array(X[:2000])
        options = dict(C=1.0, tol=1e-1, precision="float32", sample=4000)
        rectangle.solve(small, Gaussian(sigma=7.0), small[:40], y=y[:2000], **options)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        source = ArrayBlocks(X, y, rows=16_384)
        solution = rectangle.solve(source, Gaussian(sigma=7.0), small[:40], memory="64 MiB", **options)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print((after - before) / 1024, X.nbytes / 2**20, solution.details["rows"])
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    grown, size, rows = (float(value) for value in done.stdout.split())
    assert rows == 400_000
    assert size > 150
    assert grown < 64
