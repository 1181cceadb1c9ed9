"""TunedSVC, TunedSVR and tune: the estimators around the search."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as libsvm
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit

import mercer
from mercer import TunedLogistic, TunedSVC, TunedSVR, data, tune
from mercer.errors import Advice, InvalidInput
from mercer.kernels import Gaussian, Linear
from mercer.selection.folds import assign
from mercer.solvers.monitor import Monitor

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")


@pytest.fixture(scope="module")
def heart() -> tuple[np.ndarray, np.ndarray]:
    found = data.sample("heart-statlog")
    return data.Standardise.learn(found.X)(found.X), found.y


def test_the_choice_is_that_of_grid_search(heart) -> None:
    X, y = heart
    C, sigma = [0.1, 1.0, 10.0], [1.0, 3.0, 9.0]
    fold = assign(len(y), 4, np.unique(y, return_inverse=True)[1], 0)
    ours = TunedSVC(C=C, sigma=sigma, folds=fold, tol=1e-4).fit(X, y)
    theirs = GridSearchCV(
        libsvm.SVC(tol=1e-4), {"C": C, "gamma": 0.5 / np.square(sigma)}, cv=PredefinedSplit(fold)
    ).fit(X, y)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=0.004)
    assert ours.cv_results_["mean_test_score"].shape == (9,)
    order = np.lexsort((ours.cv_results_["param_sigma"], ours.cv_results_["param_C"]))
    gamma = np.array([p["gamma"] for p in theirs.cv_results_["params"]])
    costs = np.array([p["C"] for p in theirs.cv_results_["params"]])
    their_order = np.lexsort((-gamma, costs))
    means = theirs.cv_results_["mean_test_score"][their_order]
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"][order], means, atol=0.008)
    rank = ours.cv_results_["rank_test_score"]
    assert rank[ours.best_index_] == 1
    assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]


def test_the_final_machine_is_an_svc_with_the_chosen_parameters(heart) -> None:
    X, y = heart
    tuned = TunedSVC(n_C=4, n_sigma=3, folds=3, probability=True).fit(X, y)
    machine = mercer.SVC(C=tuned.best_params_["C"], kernel=Gaussian(tuned.best_params_["sigma"])).fit(X, y)
    np.testing.assert_allclose(tuned.decision_function(X), machine.decision_function(X), atol=1e-6)
    assert tuned.predict_proba(X).shape == (len(y), 2)
    assert not hasattr(TunedSVC().fit(X[:40], y[:40]), "predict_proba")


def test_sparse_points_give_the_same_machine(heart) -> None:
    X, y = heart
    dense, compressed = (TunedSVC(n_C=3, n_sigma=3, folds=3).fit(P, y) for P in (X, sparse.csr_array(X)))
    assert dense.best_params_ == pytest.approx(compressed.best_params_)


def test_class_weights_reach_the_search(heart) -> None:
    X, y = heart
    few = np.r_[np.flatnonzero(y == y.min()), np.flatnonzero(y == y.max())[:15]]
    options = {"C": [0.05], "sigma": [3.0], "folds": 3, "scoring": "balanced_accuracy"}
    plain = TunedSVC(**options).fit(X[few], y[few])
    balanced = TunedSVC(class_weight="balanced", **options).fit(X[few], y[few])
    assert balanced.best_score_ > plain.best_score_ + 0.1


def test_the_edge_of_the_grid_is_reported(heart) -> None:
    with pytest.warns(Advice, match="edge of the grid"):
        TunedSVC(C=[1e-6, 1e-5, 1e-4], sigma=[3.0], folds=3).fit(*heart)


def test_fixed_kernels_have_only_their_price_chosen(heart) -> None:
    linear = TunedSVC(kernel=Linear(), n_C=4, folds=3).fit(*heart)
    assert set(linear.best_params_) == {"C"}
    fixed = TunedSVC(kernel=Gaussian(sigma=3.0), n_C=4, folds=3).fit(*heart)
    assert set(fixed.best_params_) == {"C"}
    free = TunedSVC(kernel=Gaussian(sigma="median"), n_C=3, n_sigma=3, folds=3).fit(*heart)
    assert set(free.best_params_) == {"C", "sigma"}


def test_regression_chooses_its_tube() -> None:
    found = data.sample("yacht")
    X = data.Standardise.learn(found.X)(found.X)
    tuned = TunedSVR(epsilon=[0.05, 5.0], n_C=4, n_sigma=4, folds=3).fit(X, found.y)
    assert tuned.best_params_["epsilon"] == 0.05
    assert tuned.best_score_ > 0.9
    assert tuned.score(X, found.y) > tuned.best_score_


@pytest.mark.parametrize("machine", ["svc", "lssvc", "auto"])
def test_tune_classifies(machine: str, heart) -> None:
    X, y = heart
    found = tune(X[::2], y[::2], machine, folds=3, grid=(4, 4))
    assert found.machine == ("lssvc" if machine == "auto" else machine)
    assert found.best_machine.score(X[1::2], y[1::2]) > 0.78
    assert found.best_params["C"] > 0
    assert found.result.surface()[2].size


@pytest.mark.parametrize("machine", ["svr", "lssvr", "auto"])
def test_tune_regresses(machine: str) -> None:
    found = data.sample("yacht")
    X = data.Standardise.learn(found.X)(found.X)
    tuned = tune(X[::2], found.y[::2], machine, folds=3, grid={"C": [10.0, 1000.0], "gamma": [0.05, 0.5]})
    assert tuned.machine == ("lssvr" if machine == "auto" else machine)
    assert tuned.best_machine.score(X[1::2], found.y[1::2]) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "tree"}, "machine"),
        ({"grid": {"D": [1]}}, "grid"),
        ({"grid": 3}, "grid"),
        ({"mode": "luck"}, "mode"),
    ],
)
def test_tune_refuses_what_it_does_not_know(options, message, heart) -> None:
    with pytest.raises(ValueError, match=message):
        tune(*heart, **options)


def test_a_monitor_may_stop_tune(heart) -> None:
    with pytest.warns(UserWarning, match="candidates"):
        found = tune(*heart, "svc", monitor=Monitor(callback=lambda record: record.iteration >= 6), folds=3)
    assert found.result.stopped == "interrupted"
    assert found.best_machine.score(*heart) > 0.5


def test_max_time_keeps_the_best_so_far(heart) -> None:
    with pytest.warns(UserWarning, match="time limit"):
        assert TunedSVC(max_time=1e-6).fit(*heart).stopped_ == "time"


def test_a_finished_checkpoint_is_read_and_a_foreign_one_refused(tmp_path: Path, heart) -> None:
    X, y = heart
    path = tmp_path / "search.json"
    options = {"n_C": 3, "n_sigma": 3, "folds": 3, "checkpoint": path}
    first = TunedSVC(**options).fit(X, y)
    again = TunedSVC(**options).fit(X, y)
    assert again.search_.resumed == 9
    assert np.array_equal(first.search_.scores, again.search_.scores)
    with pytest.raises(InvalidInput, match="another search"):
        TunedSVC(**options).fit(X[:100], y[:100])
    path.write_text(path.read_text()[:50])
    with pytest.raises(InvalidInput, match="not the file of a search"):
        TunedSVC(**options).fit(X, y)


SCRIPT = """
import sys, time, json
import numpy as np
import mercer
from mercer.selection import cross_validation, search
search.search.__kwdefaults__["every"] = 0.0  # write every finished fold
slow = sys.argv[2] == "slow"
inner = cross_validation.one_fold
def one_fold(*arguments):
    if slow:
        time.sleep(0.3)
    return inner(*arguments)
cross_validation.one_fold = one_fold
found = mercer.data.sample("heart-statlog")
X = mercer.Standardise.learn(found.X)(found.X)
tuned = mercer.TunedSVC(n_C=4, n_sigma=6, folds=4, checkpoint=sys.argv[1]).fit(X, found.y)
print(json.dumps([tuned.search_.resumed, tuned.best_params_, tuned.decision_function(X).tolist(),
                  np.nan_to_num(tuned.search_.scores).tolist()]))
"""


def test_a_killed_search_resumes_to_the_same_model(tmp_path: Path) -> None:
    path, script = tmp_path / "search.json", tmp_path / "run.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-W", "ignore", str(script)]
    environment = {**os.environ, "MERCER_NUM_THREADS": "2"}
    killed = subprocess.Popen([*command, str(path), "slow"], env=environment, stdout=subprocess.PIPE)
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and killed.poll() is None:
        if path.exists() and len(json.loads(path.read_text())["entries"]) >= 4:
            break
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    done = len(json.loads(path.read_text())["entries"])
    assert 4 <= done < 24
    answers = []
    for where in (path, tmp_path / "fresh.json"):
        run = subprocess.run(
            [*command, str(where), "fast"], env=environment, capture_output=True, text=True, check=True
        )
        answers.append(json.loads(run.stdout))
    assert answers[0][0] == done
    assert answers[1][0] == 0
    assert answers[0][1:] == answers[1][1:]


def test_probabilities_are_offered_before_the_fit_as_after_it(heart) -> None:
    X, y = heart
    assert not hasattr(TunedSVC(), "predict_proba")
    machine = TunedSVC(probability=True, C=[1.0], sigma=[3.0], folds=2)
    assert hasattr(machine, "predict_proba")
    assert hasattr(machine, "predict_log_proba")
    with pytest.raises(NotFittedError):
        machine.predict_proba(X)
    p = machine.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(p, machine.best_estimator_.predict_proba(X))
    np.testing.assert_array_equal(np.log(p), machine.predict_log_proba(X))
    with pytest.raises(ValueError, match="is expecting"):
        machine.predict_proba(X[:, :2])


@pytest.mark.parametrize("points", [2, 30])
@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "accuracy"])
def test_a_class_of_one_point_does_not_end_a_search_by_probabilities(points, scoring) -> None:
    """Outside one fold there is one class alone: it is predicted with certainty."""
    X = np.random.default_rng(0).normal(size=(points, 2))
    y = np.where(np.arange(points) == 1, "rare", "often")
    machine = TunedLogistic(C=[1.0], sigma=[1.0], scoring=scoring).fit(X, y)
    assert set(machine.classes_) == {"rare", "often"}
    assert np.isfinite(machine.predict_proba(X)).all()
