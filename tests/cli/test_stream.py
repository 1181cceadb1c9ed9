"""`mercer fit --stream`: files and pipes of any length, in fixed memory, and nothing lost when they are cut off."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import OnlineSVC, OnlineSVR
from mercer.cli import exits
from mercer.data import Dataset, write
from mercer.models import load_model

COMMAND = [sys.executable, "-m", "mercer"]


def points(n: int, seed: int = 0) -> Dataset:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 4))
    return Dataset(X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, 1, -1))


def machine_in(place: Path) -> Any:
    return load_model(place).machine


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("stream")
    write(place / "a.csv", points(6000))
    write(place / "a.svm", points(6000))
    write(place / "new.csv", points(500, seed=1))
    random = np.random.default_rng(0)
    X = random.standard_normal((4000, 3))
    write(place / "r.csv", Dataset(X, np.sin(X[:, 0]) + 0.1 * random.standard_normal(4000)))
    return place


@pytest.mark.parametrize("name", ["a.csv", "a.svm"])
def test_a_file_becomes_a_model_that_predicts(files, finish, name):
    model = files / f"{name}.mercer"
    code, shown, errors = finish("fit", files / name, "--stream", "--model", model)
    assert code == 0, errors
    assert "6000 points" in shown
    assert "none: a stream" in shown
    machine = machine_in(model)
    assert isinstance(machine, OnlineSVC)
    assert machine.n_iter_ == 6000
    assert machine.mistakes_ < 0.12
    assert finish("evaluate", model, files / "new.csv")[0] == 0
    assert "OnlineSVC" in finish("inspect", model)[1]


def test_a_pipe_is_learnt_like_the_file(files, finish):
    words = ["fit", "-", "--stream", "--format", "csv", "--model", str(files / "pipe.mercer")]
    with open(files / "a.csv", "rb") as stream:
        ran = subprocess.run([*COMMAND, *words], stdin=stream, capture_output=True, timeout=120)
    assert ran.returncode == 0, ran.stderr.decode()
    finish("fit", files / "a.csv", "--stream", "--model", files / "file.mercer")
    X = points(50, seed=2).X
    np.testing.assert_array_equal(
        machine_in(files / "pipe.mercer").decision_function(X), machine_in(files / "file.mercer").decision_function(X)
    )


def test_a_pipe_must_say_its_format(files, finish):
    code, _, errors = finish("fit", "-", "--stream", "--model", files / "no.mercer")
    assert code == exits.INPUT
    assert "--format svmlight or csv" in errors


def test_measurements_are_learnt_by_regression(files, finish):
    code, _, errors = finish("fit", files / "r.csv", "--stream", "--model", files / "r.mercer", "--json")
    assert code == 0, errors
    found = load_model(files / "r.mercer")
    assert isinstance(found.machine, OnlineSVR)
    assert found.notes["points"] == 4000


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("--C", "3"), "not with --stream"),
        (("--report", "a.html"), "not with --stream"),
        (("--machine", "lssvc"), "svc or svr"),
    ],
)
def test_what_a_stream_cannot_do_is_refused(files, finish, words, remedy):
    code, _, errors = finish("fit", files / "a.csv", "--stream", "--model", files / "no.mercer", *words)
    assert code == exits.INPUT
    assert remedy in errors
    assert not (files / "no.mercer").exists()


def test_a_fault_on_the_way_keeps_what_was_learnt_before(files, finish):
    (files / "bad.csv").write_text((files / "a.csv").read_text() + "1,2\n")
    code, _, errors = finish("fit", files / "bad.csv", "--stream", "--model", files / "bad.mercer")
    assert code == exits.INPUT
    assert "cells where the first line has 5" in errors
    assert "bad.mercer" in errors
    assert machine_in(files / "bad.mercer").n_iter_ == 4096


def test_a_label_that_comes_late_must_be_named(files, finish):
    (files / "late.csv").write_text((files / "a.csv").read_text() + "0,0,0,0,2\n")
    words = ("fit", files / "late.csv", "--stream", "--model", files / "late.mercer")
    assert finish(*words)[0] == exits.INPUT
    code, _, errors = finish(*words, "--classes", "-1,1,2")
    assert code == 0, errors
    assert machine_in(files / "late.mercer").classes_.tolist() == [-1, 1, 2]


# The command, which also leaves the number of points it has learnt in a file.
TELLING = """
import pathlib, sys
from mercer.cli import streaming
from mercer.cli.app import main
learn = streaming.Learning.learn
def told(self, block):
    going = learn(self, block)
    pathlib.Path("part").write_text(str(self.machine.n_iter_))
    pathlib.Path("part").rename("learnt")
    return going
streaming.Learning.learn = told
main(sys.argv[1:])
"""


def test_ctrl_c_keeps_what_was_learnt(files):
    """Fed through a pipe that never ends, and interrupted once enough of it was learnt."""
    block = (files / "a.svm").read_bytes()
    words = ["fit", "-", "--stream", "--format", "svmlight", "--model", "c.mercer", "--overwrite"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", TELLING, *words], cwd=files, env=os.environ, **pipes)
    assert process.stdin is not None
    for _ in range(1 + (3 << 20) // len(block)):  # three blocks of a mebibyte
        process.stdin.write(block)
    process.stdin.flush()
    told, end = files / "learnt", time.monotonic() + 120.0
    while not (told.exists() and int(told.read_text()) > 6000) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == exits.INTERRUPTED, errors.decode()
    assert b"what was learnt is in c.mercer" in errors
    assert machine_in(files / "c.mercer").n_iter_ > 6000


def test_a_long_file_takes_no_more_memory_than_a_short_one(files, tmp_path):
    program = (
        "import sys; from mercer.cli.app import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('peak', open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)\n"
    )
    peaks = []
    block = (files / "a.svm").read_bytes()
    for copies in (8, 80):
        file = tmp_path / f"{copies}.svm"
        file.write_bytes(block * copies)
        words = ["fit", str(file), "--stream", "--budget", "300", "--model", str(tmp_path / f"{copies}.mercer")]
        ran = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120)
        peaks.append(int(ran.stderr.rsplit("peak", 1)[1]))
        assert machine_in(tmp_path / f"{copies}.mercer").n_iter_ == 6000 * copies
    assert peaks[1] - peaks[0] < 16 * 1024  # KiB, where the longer file has 27 MiB more
