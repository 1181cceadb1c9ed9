"""Ctrl-C keeps the best machine so far, and a killed run goes on from its checkpoint to the same model."""

import json
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mercer import data
from mercer.cli.checkpoint import Checkpoint, fingerprint
from mercer.cli.machines import Wish
from mercer.errors import Advice, InvalidInput
from mercer.models import load_model
from mercer.selection import cross_validation
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


# Saves what a search has finished at once, and gives the one who is to kill it time to see it.
EAGER = """
import time
import mercer.selection.search as search
from mercer.cli.app import main

class Eager(search.SearchRecord):
    def __init__(self, identity, path, every):
        super().__init__(identity, path, 0.0)
    def put(self, key, outcome):
        super().put(key, outcome)
        time.sleep(0.3)

search.SearchRecord = Eager
main()
"""

# The training numbered by the first word does not come back for minutes, and signals do not reach it.
STUCK = """
import hashlib
import sys
import threading
from mercer.cli import interruption, job, machines
from mercer.cli.app import main

interruption.PATIENCE, interruption.GRACE_FOR_A_MACHINE = 0.3, 0.3
train, calls, number = machines.train, [0], int(sys.argv.pop(1))

def stuck(machine, X, y):
    calls[0] += 1
    if calls[0] == number:
        # Said when the call below has begun: before, Python would still see the signal.
        threading.Timer(1.0, lambda: print("stuck", file=sys.stderr, flush=True)).start()
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2_000_000_000)
    return train(machine, X, y)

machines.train = stuck
main()
"""

# One call of LAPACK that takes ten minutes.
SLOW_LAPACK = """
import sys
import time
from mercer.cli.app import main
from mercer import dense

def slow(*arguments, **options):
    print("decomposing", file=sys.stderr, flush=True)
    time.sleep(600.0)

dense.diagonalise = slow
main()
"""


def hard(n: int = 4000) -> data.Dataset:
    """Two classes at random: nearly every point becomes a support vector, and training takes its time."""
    random = np.random.default_rng(0)
    return data.Dataset(random.normal(size=(n, 20)), random.integers(0, 2, n))


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def start_eager(*words: str) -> subprocess.Popen[str]:
    """The command with a search that saves every fold it finishes, and takes its time."""
    return subprocess.Popen(
        [sys.executable, "-c", EAGER, *words, "--checkpoint", "state"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_entries(running: subprocess.Popen[str], saved: Path, count: int, seconds: float = 120.0) -> None:
    """Wait until a search has saved so many folds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and running.poll() is None:
        if saved.exists() and len(json.loads(saved.read_text())["entries"]) >= count:
            return
        time.sleep(0.02)
    running.kill()
    raise AssertionError(f"the search has ended before: {running.communicate()}")


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


def test_ctrl_c_in_a_search_trains_the_best_so_far_and_ends_with_130(heart: Path) -> None:
    words = ("fit", "train.svm", "--machine", "svc", "--C", "1", "--model", "m.mercer", "--json")
    running = start_eager(*words)
    wait_for_entries(running, heart / "state.search", 1)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "interrupted; the best machine so far is in m.mercer" in err
    facts = json.loads(out)
    assert facts["interrupted"]
    assert facts["held out"]["points"] == 40
    assert facts.get("cross-validation", {"evaluated": 0})["evaluated"] < 10
    assert load_model("m.mercer").predict(np.zeros((1, 13))).shape == (1,)


def read_until(stream: Any, words: str) -> str:
    """What a process says up to the line with these words."""
    said = ""
    for line in stream:
        said += line
        if words in line:
            return said
    raise AssertionError(f"{words!r} was never said: {said}")


def test_ctrl_c_in_least_squares_ends_with_130_and_does_not_wait_for_lapack(folder: Path) -> None:
    data.write("hard.npz", hard(200))
    words = ("fit", "hard.npz", "--machine", "lssvc", "--sigma", "3", "--model", "m.mercer")
    running = subprocess.Popen([sys.executable, "-c", SLOW_LAPACK, *words], stderr=subprocess.PIPE, text=True)
    try:
        read_until(running.stderr, "decomposing")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)  # what it was doing would have taken ten minutes
    finally:
        running.kill()
    assert running.returncode == 130, said
    assert "interrupted; nothing was written" in said
    assert not (folder / "m.mercer").exists()


@pytest.mark.parametrize(
    ("training", "stage"), [(1, "training lssvc on 160 points"), (2, "training lssvc on all 200 points")]
)
def test_a_stuck_fit_says_what_it_does_and_ends_at_the_second_ctrl_c(heart: Path, training: int, stage: str) -> None:
    words = [str(training), "fit", "train.svm", "--no-tune", "--model", "m.mercer"]
    running = subprocess.Popen([sys.executable, "-c", STUCK, *words], stderr=subprocess.PIPE, text=True)
    try:
        read_until(running.stderr, "stuck")
        running.send_signal(signal.SIGINT)
        told = read_until(running.stderr, "still")
        assert f"interrupted; still {stage}: " in told
        assert "Ctrl-C again ends at once" in told
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    if training == 1:
        assert "interrupted; nothing was written" in err
        assert not (heart / "m.mercer").exists()
    else:
        assert "interrupted; the best machine so far is in m.mercer" in err
        kept = load_model("m.mercer")
        assert kept.notes["interrupted"]
        assert kept.predict(np.zeros((1, 13))).shape == (1,)


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


def kill_in_the_middle(folder: Path, *words: str) -> int:
    """Run a search that saves every fold it finishes, kill it between its first and its last; how many it has saved."""
    running, saved = start_eager(*words), folder / "state.search"
    wait_for_entries(running, saved, 3)
    running.kill()
    running.communicate()
    return len(json.loads(saved.read_text())["entries"])


def test_a_killed_search_resumes_to_the_same_model_without_the_work_it_has_saved(
    heart: Path, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("fit", "train.svm", "--machine", "svc", "--C", "1", "--test-fraction", "0")
    trained: list[int] = []
    one_fold = cross_validation.one_fold

    def counted(K: Any, layout: Any, fold: int, *more: Any) -> Any:
        trained.append(fold)
        return one_fold(K, layout, fold, *more)

    monkeypatch.setattr(cross_validation, "one_fold", counted)
    assert finish(*words, "--model", "whole.mercer")[0] == 0
    whole = len(trained)
    saved = kill_in_the_middle(heart, *words, "--model", "killed.mercer")
    assert 3 <= saved < whole
    assert not (heart / "killed.mercer").exists()
    trained.clear()
    code, out, err = finish(*words, "--model", "resumed.mercer", "--checkpoint", "state", "--resume", "--json")
    assert code == 0, err
    assert json.loads(out)["cross-validation"]["resumed"] == saved
    assert len(trained) == whole - saved
    machines = [load_model(f"{name}.mercer").machine for name in ("whole", "resumed")]
    assert np.array_equal(machines[0].dual_coef_, machines[1].dual_coef_)
    assert not list(heart.glob("*state*"))


def test_a_killed_tuning_resumes_to_the_same_table(heart: Path, finish: Finish) -> None:
    words = ("tune", "train.svm", "--machine", "svc", "--C", "1", "--json")
    whole = json.loads(finish(*words)[1])
    saved = kill_in_the_middle(heart, *words)
    for other in (("--seed", "1"), ("--no-scale",), ("--mode", "halving"), ("--missing", "impute")):
        code, _, err = finish(*words, *other, "--checkpoint", "state", "--resume")
        assert code == 3, other
        assert "other data or options" in err
    resumed = json.loads(finish(*words, "--checkpoint", "state", "--resume")[1])
    assert resumed["resumed"] == saved
    assert resumed["candidates"] == whole["candidates"]
    assert resumed["parameters"] == whole["parameters"]
    assert not list(heart.glob("*state*"))


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
    assert own != fingerprint(replace(points, y=1 - points.y), Wish())
    assert own != fingerprint(replace(points, X=-points.X), Wish())
    assert own != fingerprint(replace(points, X=csr_matrix(points.X)), Wish())
    texts = replace(points, y=np.where(points.y == 1, "yes", "no"))
    assert fingerprint(texts, Wish()) != fingerprint(replace(texts, y=texts.y[::-1].copy()), Wish())
    for change in ({"machine": "svc"}, {"kernel": "linear"}, {"seed": 1}, {"folds": 4}, {"probability": True}):
        assert own != fingerprint(points, Wish(**change)), change
    assert own != fingerprint(points, Wish(), scale=False)
    Checkpoint(folder / "state", own, resume=False).done("chosen", {"C": 1.0})
    assert Checkpoint(folder / "state", own, resume=True).stages["chosen"] == {"C": 1.0}
    with pytest.raises(InvalidInput, match="other data or options"):
        Checkpoint(folder / "state", "another", resume=True)
    (folder / "state").write_text("{")
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        Checkpoint(folder / "state", own, resume=True)
