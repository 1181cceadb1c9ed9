"""What the tests of the command share: a way to call it, and bundled data written out as files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mercer import data
from mercer.cli.app import main

Finish = Callable[..., tuple[int, str, str]]


@pytest.fixture
def finish(capsys: pytest.CaptureFixture[str]) -> Finish:
    """Exit code, output and errors of one call of the command."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        return int(end.value.code or 0), output.out, output.err

    return call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def heart(folder: Path) -> Path:
    """A folder with train.svm and test.svm: 200 and 70 points of two classes."""
    return write_parts(folder, "heart-statlog", 200, "svm")


@pytest.fixture
def yacht(folder: Path) -> Path:
    """A folder with train.csv and test.csv: 150 and 158 points with a measured target."""
    return write_parts(folder, "yacht", 150, "csv")


def write_parts(folder: Path, name: str, cut: int, ending: str) -> Path:
    """Write a bundled set in two parts, shuffled."""
    whole = data.sample(name)
    order = np.random.default_rng(0).permutation(whole.n)
    data.write(folder / f"train.{ending}", whole.take(order[:cut]))
    data.write(folder / f"test.{ending}", whole.take(order[cut:]))
    return folder
