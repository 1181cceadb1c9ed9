"""What goes in and what comes out: data frames, precomputed matrices, functions, objects, copies, threads."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.errors import Advice, InvalidInput, NotConverged
from mercer.kernels import Gaussian, Spectrum
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
ALL = [SVC(), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM()]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame):
    names = [f"feature {i}" for i in range(X.shape[1])]
    table = frame(dict(zip(names, X.T)))
    machine = SVC().fit(table, y)
    np.testing.assert_array_equal(machine.feature_names_in_, names)
    np.testing.assert_array_equal(machine.predict(table), SVC().fit(X, y).predict(X))


@pytest.mark.parametrize("machine", ALL)
def test_precomputed_function_and_kernel_object_are_one_machine(machine):
    def function(a, b):
        return rbf_kernel(a, b, gamma=0.5 / 3.0**2)

    reference = clone(machine).set_params(kernel=Gaussian(sigma=3.0), tol=1e-8).fit(X, y)
    given = clone(machine).set_params(kernel="precomputed", tol=1e-8).fit(function(X, X), y)
    called = clone(machine).set_params(kernel=function, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(given._values(function(X, X)), reference._values(X), atol=1e-5)
    np.testing.assert_allclose(called._values(X), reference._values(X), atol=1e-5)


def test_strings_through_a_kernel_on_objects():
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("ab" if i % 2 else "bc"), 12)) for i in range(40)]
    labels = np.arange(40) % 2
    machine = SVC(kernel=Spectrum(p=2), C=10.0).fit(words, labels)
    assert machine.score(words, labels) > 0.9
    assert all(isinstance(word, str) for word in machine.support_vectors_)
    np.testing.assert_array_equal(machine.predict(words[:3]), labels[:3])


def test_width_by_the_median_rule():
    machine = SVC(kernel=Gaussian(sigma="median")).fit(X, y)
    assert machine.kernel_.sigma > 1.0
    with pytest.raises(InvalidInput, match="not a rule of this machine"):
        SVC(kernel=Gaussian(sigma="loo")).fit(X, y)


@pytest.mark.parametrize("machine", ALL)
def test_copies_predict_the_same(machine, tmp_path):
    fitted = clone(machine).fit(X, y)
    expected = fitted.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), expected)
    joblib.dump(fitted, tmp_path / "machine.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "machine.joblib").predict(X), expected)


def test_grid_search_and_cross_validation_run_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(pipeline, {"svc__C": [0.1, 1.0], "svc__gamma": [0.01, 0.1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    assert cross_val_score(SVC(kernel="precomputed"), X @ X.T, y, cv=3).mean() > 0.9


def test_sample_weights_are_routed():
    with config_context(enable_metadata_routing=True):
        machine = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(machine, {"C": [1.0]}, cv=3).fit(X, y, sample_weight=np.ones(len(y)))
    assert search.best_score_ > 0.9


def test_linear_machine_has_its_weights():
    for labels in (y == 1, y):
        machine = SVC(kernel="linear", decision_function_shape="ovo").fit(X, labels)
        values = np.squeeze(X @ machine.coef_.T + machine.intercept_)
        np.testing.assert_allclose(machine.decision_function(X), values, atol=1e-9)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC().fit(X, y).coef_


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("machine", [SVC, NuSVC])
def test_most_probable_class_is_the_predicted_one(machine, multiclass):
    parameters = {"nu": 0.2} if machine is NuSVC else {}
    points = np.random.default_rng(0).normal(size=(300, X.shape[1]))
    for labels in (y, y == 1):
        fitted = machine(probability=True, multiclass=multiclass, random_state=0, **parameters).fit(X, labels)
        p = fitted.predict_proba(points)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_array_equal(fitted.classes_[p.argmax(axis=1)], fitted.predict(points))
        np.testing.assert_array_equal(
            fitted.predict(points), machine(multiclass=multiclass, **parameters).fit(X, labels).predict(points)
        )


def test_probabilities_are_calibrated():
    random = np.random.default_rng(1)
    points = random.normal(size=(1200, 2))
    truth = 1 / (1 + np.exp(-2 * points[:, 0]))
    labels = random.random(1200) < truth
    fitted = SVC(kernel="linear", probability=True, random_state=0).fit(points[:400], labels[:400])
    assert np.abs(fitted.predict_proba(points[400:])[:, 1] - truth[400:]).mean() < 0.06


def test_probabilities_do_not_depend_on_other_threads():
    def fit(seed):
        return SVC(probability=True, random_state=seed).fit(X, y).predict_proba(X)

    alone = [fit(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(fit, range(6)))
    for a, b in zip(alone, together):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM()])
def test_warm_start_reaches_the_cold_solution(machine):
    steps = [{"gamma": 0.05}, {"gamma": 0.1}, {"gamma": 0.1, "tol": 1e-6}]
    if hasattr(machine, "C"):
        steps += [{"C": 2.0}, {"C": 0.5}]
    warm = clone(machine).set_params(warm_start=True, tol=1e-6)
    cold = clone(machine).set_params(tol=1e-6)
    for parameters in steps:
        warm.set_params(**parameters).fit(X, y)
        cold.set_params(**parameters).fit(X, y)
        assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-5)
    assert warm.set_params().fit(X, y).n_iter_ is not None
    again = np.sum(warm.n_iter_)
    assert again <= np.sum(cold.n_iter_)


def test_time_limit_keeps_the_best_so_far():
    points = np.random.default_rng(0).normal(size=(3000, 5))
    labels = np.random.default_rng(1).integers(0, 2, 3000)
    with pytest.warns(NotConverged, match=r"time limit was reached \(max_time=1e-06\)"):
        machine = SVC(C=100.0, max_time=1e-6).fit(points, labels)
    assert machine.stopped_ == "time"
    assert machine.fit_status_ == 1
    assert machine.gap_ > 0
    assert machine.predict(points).shape == (3000,)


def test_unscaled_features_small_and_large_widths_get_advice():
    with pytest.warns(Advice, match="very different scales"):
        SVC().fit(X * np.logspace(0, 5, X.shape[1]), y)
    with pytest.warns(Advice, match="too small"):
        SVC(kernel=Gaussian(sigma=1e-3)).fit(X, y == 1)
    with pytest.warns(Advice, match="C is probably too small"):
        SVC(C=1e-6).fit(X[:140], np.arange(140) % 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("load", [load_wine, load_iris])
def test_sane_data_get_none(load):
    points, labels = load(return_X_y=True)
    points = StandardScaler().fit_transform(points)
    for machine in (SVC(), SVC(C=100.0), SVR(), OneClassSVM(nu=0.1)):
        machine.fit(points, labels)


def test_number_of_threads_changes_nothing():
    one = SVC(n_jobs=1).fit(X, y)
    two = SVC(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


class Recorder:
    """A callback that notes its tasks and may ask to stop."""

    def __init__(self, stop):
        self.stop, self.begun, self.ended = stop, [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.done = True

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended.append((context.task_name, fitted_estimator))
        return self.stop


def test_callbacks_follow_the_fit():
    recorder = Recorder(stop=False)
    SVC().set_callbacks(recorder).fit(X, y)
    assert recorder.begun[0] == "fit"
    assert recorder.done
    name, fitted = recorder.ended[-1]
    assert name == "fit"
    assert fitted.predict(X).shape == y.shape


def test_a_callback_can_end_the_training():
    points = np.random.default_rng(0).normal(size=(2500, 5))
    labels = np.random.default_rng(1).integers(0, 2, 2500)
    recorder = Recorder(stop=True)
    with pytest.warns(NotConverged, match="Training was interrupted"):
        machine = SVC(C=1e4, gamma=1.0).set_callbacks(recorder).fit(points, labels)
    assert machine.stopped_ == "interrupted"
    assert "iteration" in recorder.begun
