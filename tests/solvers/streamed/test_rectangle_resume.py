"""A run killed in the middle goes on from its checkpoint and ends with the same model."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from mercer.errors import InvalidInput, ModelFileError
from mercer.kernels import Gaussian
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Record, Solution
from mercer.solvers.streamed import rectangle
from mercer.solvers.streamed.blocks import ArrayBlocks, BlockSource

KERNEL = Gaussian(sigma=1.5)

COMMON = """
import os, signal, sys, time
import numpy as np
from mercer.kernels import Gaussian
from mercer.solvers.streamed import rectangle
from mercer.solvers.streamed.blocks import ArrayBlocks

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 4))
y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(3000))

kill_at, read = int(sys.argv[3]), 0

class Deadly(ArrayBlocks):
    def blocks(self, start=0):
        global read
        for block in super().blocks(start):
            read += 1
            if read == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.03 if kill_at else 0.0)
            yield block

options = dict(C=20.0, tol=1e-9, bias="free", precision="float32", loss=sys.argv[4])
if sys.argv[5] != "direct":
    options["sample"] = 700
solution = rectangle.solve(
    Deadly(X, y, rows=300), Gaussian(sigma=1.5), X[:50], checkpoint=sys.argv[1], every=0.0, **options
)
solution.save(sys.argv[2])
"""


def command(checkpoint: Path, out: Path, kill_at: int, loss: str, method: str) -> list[str]:
    """A fit in a process of its own that is killed at the `kill_at`-th block it reads; 0: never."""
    return [sys.executable, "-c", textwrap.dedent(COMMON), str(checkpoint), str(out), str(kill_at), loss, method]


@pytest.mark.parametrize(
    ("loss", "method", "kills"),
    [("square", "sample", (35, 17)), ("square", "direct", (14, 9)), ("logistic", "sample", (35, 17))],
)
def test_a_killed_run_resumes_to_the_same_model(tmp_path: Path, loss: str, method: str, kills: tuple[int, int]) -> None:
    checkpoint, out = tmp_path / "state.npz", tmp_path / "model.npz"
    whole = tmp_path / "whole.npz"
    for _ in range(2):  # code compiled in this process and the same code from the cache may round otherwise
        subprocess.run(command(tmp_path / "other.npz", whole, 0, loss, method), check=True, timeout=120)
    for kill_at in kills:
        child = subprocess.run(command(checkpoint, out, kill_at, loss, method), check=False, timeout=120)
        assert child.returncode == -signal.SIGKILL
        assert checkpoint.exists()
        assert not out.exists()
    subprocess.run(command(checkpoint, out, 0, loss, method), check=True, timeout=120)
    expected, resumed = Solution.load(whole), Solution.load(out)
    assert np.array_equal(resumed.coefficients, expected.coefficients)
    assert np.array_equal(np.asarray(resumed.bias), np.asarray(expected.bias))
    assert resumed.primal == expected.primal
    assert not checkpoint.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


class Counting(ArrayBlocks):
    """Rows that count how many blocks were read."""

    read = 0

    def blocks(self, start: int = 0):  # type: ignore[no-untyped-def]
        for block in super().blocks(start):
            self.read += 1
            yield block


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


def fit(source: BlockSource, path: Path, **changes):
    X, _ = problem()
    options = {"C": 20.0, "tol": 1e-9, "sample": 300, "precision": "float64", "checkpoint": path, "every": 0.0}
    return rectangle.solve(source, KERNEL, X[:50], **(options | changes))


def test_an_interrupted_run_keeps_its_work(tmp_path: Path) -> None:
    X, y = problem()
    path = tmp_path / "state.npz"
    whole, first, second = (Counting(X, y, rows=100) for _ in range(3))
    expected = fit(whole, tmp_path / "unused.npz")
    stopped = fit(first, path, monitor=Monitor(callback=lambda record: record.iteration >= 3))
    assert stopped.stopped == "interrupted"
    resumed = fit(second, path)
    assert np.array_equal(resumed.coefficients, expected.coefficients)
    assert second.read < whole.read
    assert first.read + second.read <= whole.read + 12
    assert not path.exists()


def test_several_logistic_outputs_go_on_with_the_one_that_was_interrupted(tmp_path: Path) -> None:
    X, f = problem()
    noise = np.random.default_rng(1).standard_normal((len(f), 3))
    Y = np.sign(np.column_stack([f, X[:, 2] - 0.5 * X[:, 0], X[:, 3] + X[:, 1]]) + noise)
    expected = fit(ArrayBlocks(X, Y, rows=100), tmp_path / "unused.npz", loss="logistic", C=1.0)
    assert expected.stopped == "converged"
    path, heard, seen = tmp_path / "state.npz", [], []

    def stop(record: Record) -> bool:
        seen.append(record.facts["output"])
        return seen.count(1) == 3

    stopped = fit(ArrayBlocks(X, Y, rows=100), path, loss="logistic", C=1.0, monitor=Monitor(callback=stop))
    assert stopped.stopped == "interrupted"
    listening = Monitor(callback=lambda record: heard.append(record.facts["output"]))
    resumed = fit(ArrayBlocks(X, Y, rows=100), path, loss="logistic", C=1.0, monitor=listening)
    assert heard[0] == 1
    assert set(heard) == {1, 2}
    # The first output was finished, the second goes on from the middle of a step, the third begins as it would have.
    assert np.array_equal(resumed.coefficients[:, [0, 2]], expected.coefficients[:, [0, 2]])
    np.testing.assert_allclose(resumed.coefficients[:, 1], expected.coefficients[:, 1], rtol=1e-4, atol=1e-5)
    assert resumed.stopped == "converged"
    assert resumed.primal == pytest.approx(expected.primal, rel=1e-9)


def test_a_checkpoint_of_another_problem_is_refused(tmp_path: Path) -> None:
    X, y = problem()
    path = tmp_path / "state.npz"
    fit(ArrayBlocks(X, y), path, monitor=Monitor(callback=lambda record: record.iteration >= 2))
    with pytest.raises(InvalidInput, match=r"another problem \(C differ\)"):
        fit(ArrayBlocks(X, y), path, C=2.0)
    with pytest.raises(InvalidInput, match="rows differ"):
        fit(ArrayBlocks(X[:-1], y[:-1]), path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match="damaged"):
        fit(ArrayBlocks(X, y), path)


def test_other_rows_behind_a_checkpoint_are_found_out(tmp_path: Path) -> None:
    X, y = problem()
    path = tmp_path / "state.npz"
    fit(ArrayBlocks(X, y, rows=100), path, monitor=Monitor(callback=lambda record: record.iteration >= 2))
    with pytest.raises(InvalidInput, match="other rows, or another order"):
        fit(ArrayBlocks(X[::-1].copy(), y, rows=100), path)
    with pytest.raises(InvalidInput, match="other rows, or another order"):
        fit(ArrayBlocks(X, -y, rows=100), path)
