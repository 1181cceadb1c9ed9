"""Sample weights in TunedSVC and TunedSVR: a weight of two is two points, in training and in the scores."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, TunedSVC, TunedSVR, tune
from mercer.errors import InvalidInput
from mercer.selection import scoring

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
SCORES = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * RNG.normal(size=90)
LABELS = np.array(["low", "middle", "high"])[np.digitize(SCORES, [-0.5, 0.7])]
TWO = np.where(SCORES > 0, "up", "down")
WEIGHTS = RNG.integers(0, 4, size=90)
FOLD = np.arange(90) % 3
GRID = {"C": [0.3, 3.0, 30.0], "sigma": [0.5, 2.0], "tol": 1e-5, "early_stop": False}
COPIES = np.repeat(np.arange(90), WEIGHTS)
pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")

CASES = [
    (TunedSVC, TWO, None, {}),
    (TunedSVC, LABELS, None, {}),
    (TunedSVC, LABELS, "balanced_accuracy", {"class_weight": "balanced"}),
    (TunedSVC, TWO, accuracy_score, {}),
    (TunedSVR, SCORES, None, {"epsilon": [0.1, 0.5]}),
    (TunedSVR, SCORES, "neg_mean_squared_error", {"epsilon": 0.2}),
    (TunedSVR, SCORES, "neg_mean_absolute_error", {"epsilon": 0.2}),
]


@pytest.mark.parametrize(("machine", "y", "scoring", "options"), CASES)
def test_weights_are_copies(machine, y, scoring, options) -> None:
    weighted = machine(folds=FOLD, scoring=scoring, **GRID, **options).fit(X, y, sample_weight=WEIGHTS)
    copied = machine(folds=FOLD[COPIES], scoring=scoring, **GRID, **options).fit(X[COPIES], y[COPIES])
    ours, theirs = (found.cv_results_["mean_test_score"] for found in (weighted, copied))
    np.testing.assert_allclose(ours, theirs, atol=1e-3 if machine is TunedSVR else 1e-12)
    assert weighted.best_params_ == copied.best_params_
    answers = [getattr(found, "decision_function", found.predict)(X) for found in (weighted, copied)]
    np.testing.assert_allclose(*answers, atol=1e-3)


def test_weights_change_the_choice_and_zero_leaves_a_point_out() -> None:
    kept = np.flatnonzero(WEIGHTS)
    weights = (WEIGHTS > 0).astype(float)
    weighted = TunedSVC(folds=FOLD, **GRID).fit(X, LABELS, sample_weight=weights)
    left = TunedSVC(folds=FOLD[kept], **GRID).fit(X[kept], LABELS[kept])
    np.testing.assert_array_equal(weighted.cv_results_["mean_test_score"], left.cv_results_["mean_test_score"])
    plain = TunedSVC(folds=FOLD, **GRID).fit(X, LABELS)
    assert not np.array_equal(plain.cv_results_["mean_test_score"], left.cv_results_["mean_test_score"])


def test_the_final_machine_has_the_weights() -> None:
    found = TunedSVC(**GRID).fit(X, TWO, sample_weight=WEIGHTS)
    alone = SVC(C=found.best_params_["C"], kernel=found.kernel_, tol=1e-5).fit(X, TWO, sample_weight=WEIGHTS)
    np.testing.assert_allclose(found.decision_function(X), alone.decision_function(X), atol=1e-12)
    other = TunedSVR(epsilon=0.1, **GRID).fit(X, SCORES, sample_weight=WEIGHTS)
    alone = SVR(C=other.best_params_["C"], epsilon=0.1, kernel=other.kernel_, tol=1e-5)
    np.testing.assert_allclose(other.predict(X), alone.fit(X, SCORES, sample_weight=WEIGHTS).predict(X), atol=1e-12)


def test_weights_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"sample_weight\[0\] = -1 is negative"):
        TunedSVC(**GRID).fit(X, TWO, sample_weight=np.where(np.arange(90) == 0, -1.0, 1.0))
    with pytest.raises(InvalidInput, match="all samples have zero"):
        TunedSVR(**GRID).fit(X, SCORES, sample_weight=np.zeros(90))


@pytest.mark.parametrize("machine", ["svc", "lssvc", "svr", "lssvr"])
def test_tune_takes_weights(machine) -> None:
    y = LABELS if machine.endswith("c") else SCORES
    grid = {"C": [1.0, 10.0], "sigma": [1.0]} if machine.startswith("sv") else {"C": [1.0, 10.0]}
    weighted = tune(X, y, machine, kernel="rbf", grid=grid, sample_weight=WEIGHTS, folds=3).best_machine
    again, plain = clone(weighted).fit(X, y, sample_weight=WEIGHTS), clone(weighted).fit(X, y)
    np.testing.assert_array_equal(weighted.predict(X), again.predict(X))
    assert not np.array_equal(weighted.predict(X), plain.predict(X))


@pytest.mark.parametrize("name", [*scoring.CLASSIFICATION, *scoring.REGRESSION])
def test_weighted_scores_are_those_of_copies(name) -> None:
    score = {**scoring.CLASSIFICATION, **scoring.REGRESSION}[name]
    y = np.digitize(SCORES, [-0.5, 0.7]).astype(float)
    predicted = np.round(y + 0.6 * RNG.normal(size=90))
    weighted = score(y, predicted, WEIGHTS.astype(float))
    assert weighted == pytest.approx(score(y[COPIES], predicted[COPIES]), rel=1e-12)
    assert weighted != pytest.approx(score(y, predicted), rel=1e-6)


# Metadata routing -----------------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(("machine", "y"), [(TunedSVC, TWO), (TunedSVR, SCORES)])
def test_weights_are_routed_through_pipelines_and_searches(machine, y) -> None:
    weights = WEIGHTS + 1.0
    tuned = machine(folds=3, **GRID).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    requests = tuned.get_metadata_routing()
    assert requests.fit.requests == requests.score.requests == {"sample_weight": True}
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), tuned)
    by_route = steps.fit(X, y, sample_weight=weights).predict(X)
    Z = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(by_route, machine(folds=3, **GRID).fit(Z, y, sample_weight=weights).predict(Z))

    found = GridSearchCV(steps, {f"{machine.__name__.lower()}__tol": [1e-3]}, cv=2).fit(X, y, sample_weight=weights)
    expected = []
    for inside, outside in check_cv(2, y, classifier=machine is TunedSVC).split(X, y):
        scale = StandardScaler().fit(X[inside])
        alone = machine(folds=3, **GRID).set_params(tol=1e-3)
        alone.fit(scale.transform(X[inside]), y[inside], sample_weight=weights[inside])
        expected.append(alone.score(scale.transform(X[outside]), y[outside], sample_weight=weights[outside]))
    assert found.best_score_ == pytest.approx(np.mean(expected), rel=1e-12)


@pytest.mark.usefixtures("routing")
def test_weights_that_were_not_asked_for_are_an_error() -> None:
    with pytest.raises(ValueError, match="sample_weight"):
        make_pipeline(TunedSVC(**GRID)).fit(X, TWO, sample_weight=WEIGHTS)
