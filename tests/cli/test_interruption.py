"""Ctrl-C keeps the best machine so far, and a killed run goes on from its checkpoint to the same model."""

import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from mercer import data
from mercer.cli.checkpoint import Checkpoint, fingerprint
from mercer.cli.machines import Wish
from mercer.errors import Advice, InvalidInput
from mercer.models import load_model
from mercer.solvers.solution import Record
from mercer.svm import SVC
from mercer.tuned import TunedSVC
from tests.cli.conftest import Finish

HARD = ("--machine", "svc", "--no-tune", "--C", "1e6", "--sigma", "30", "--test-fraction", "0")

EARLY = """
import mercer.cli.inspect
from mercer.cli.app import main

def read(*words, **more):
    raise KeyboardInterrupt

mercer.cli.inspect.read = read
main(["inspect", "a.svm"])
"""


def hard(n: int = 4000) -> data.Dataset:
    """Two classes at random: nearly every point becomes a support vector, and training takes its time."""
    random = np.random.default_rng(0)
    return data.Dataset(random.normal(size=(n, 20)), random.integers(0, 2, n))


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(path: Path, words: str, seconds: float = 120.0) -> None:
    """Wait until a file says what it is to say."""
    end = time.monotonic() + seconds
    while not (path.exists() and words in path.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    assert words in path.read_text()


def test_ctrl_c_writes_the_best_machine_so_far(folder: Path) -> None:
    data.write("hard.npz", hard())
    running = start("fit", "hard.npz", *HARD, "--model", "m.mercer", "--checkpoint", "state", "--json")
    wait_for(folder / "state", "training")
    time.sleep(1.0)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted; the best machine so far is in m.mercer" in err
    facts = json.loads(out)
    assert facts["interrupted"]
    assert facts["certificate"]["stopped"] == "interrupted"
    assert load_model("m.mercer").predict(np.zeros((1, 20))).shape == (1,)
    assert (folder / "state").exists()


def test_ctrl_c_before_there_is_a_machine_writes_nothing(folder: Path) -> None:
    (folder / "a.svm").write_text("1 1:1\n")
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert done.stderr == "mercer: interrupted; nothing was written\n"


def test_the_time_limit_keeps_the_best_machine_so_far(folder: Path, finish: Finish) -> None:
    data.write("hard.npz", hard())
    code, out, err = finish("fit", "hard.npz", *HARD, "--time", "0.3", "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["stopped"] == "time"
    assert "time limit" in err


def test_a_killed_search_resumes_to_the_same_model(heart: Path, finish: Finish) -> None:
    words = ("fit", "train.svm", "--machine", "svc")
    assert finish(*words, "--model", "whole.mercer")[0] == 0
    running = start(*words, "--model", "killed.mercer", "--checkpoint", "state")
    wait_for(heart / "state", "begun")
    running.kill()
    running.communicate()
    code, _, _ = finish(*words, "--model", "resumed.mercer", "--checkpoint", "state", "--resume")
    assert code == 0
    whole, resumed = (load_model(f"{name}.mercer").machine for name in ("whole", "resumed"))
    assert np.array_equal(whole.dual_coef_, resumed.dual_coef_)
    assert not list(heart.glob("state*"))


def test_a_solver_goes_on_from_the_solution_of_its_checkpoint(folder: Path) -> None:
    points = hard(300)
    X, y = points.X, points.y
    path = folder / "state"
    state = Checkpoint(path, "print", resume=False)
    state.done("training", "whole")
    SVC(C=100.0).fit(X, y).solution_.save(folder / "state.solution")
    again = Checkpoint(path, "print", resume=True)
    machine = SVC(C=100.0)
    with again.training(machine, "whole", single=True):
        machine.fit(X, y)
    fresh = SVC(C=100.0).fit(X, y)
    assert machine.n_iter_[0] < 0.2 * fresh.n_iter_[0]
    assert machine.objective_ == pytest.approx(fresh.objective_, rel=1e-4)
    assert machine.warm_start is False


def test_the_parameters_of_a_search_are_kept_before_the_last_machine_is_trained(folder: Path) -> None:
    points = hard(300)
    state = Checkpoint(folder / "state", "print", resume=False)
    machine = TunedSVC(n_C=3, n_sigma=3, folds=3)
    with state.training(machine, "first", single=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", Advice)  # classes at random have their best candidate on the edge
        machine.fit(points.X, points.y)
        state.hook(Record(1, 0.0, 1.0, 0.0, 1.0), lambda: machine.best_estimator_.solution_)
    again = Checkpoint(folder / "state", "print", resume=True)
    assert again.stages["chosen"] == machine.best_params_
    assert again.stages["training"] == "first"


def test_a_checkpoint_of_other_data_or_wishes_is_refused(folder: Path) -> None:
    points = hard(50)
    own = fingerprint(points, Wish())
    assert own == fingerprint(points, Wish(time=3.0))
    assert own != fingerprint(points, Wish(C=2.0))
    assert own != fingerprint(points.take(slice(1, 50)), Wish())
    Checkpoint(folder / "state", own, resume=False).done("chosen", {"C": 1.0})
    assert Checkpoint(folder / "state", own, resume=True).stages["chosen"] == {"C": 1.0}
    with pytest.raises(InvalidInput, match="other data or options"):
        Checkpoint(folder / "state", "another", resume=True)
    (folder / "state").write_text("{")
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        Checkpoint(folder / "state", own, resume=True)
