"""Every benchmark runs on tiny data, without the benchmark sets and from the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "harness", "peers"))


@pytest.mark.parametrize("name", FILES)
def test_benchmark_runs_in_small(name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "MERCER_DATA"}
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--smoke"],
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER.parent,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
