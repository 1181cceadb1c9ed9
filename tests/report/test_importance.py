"""Permutation importance against what algebra says of linear machines, and its bounds in time and size."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.inspection import permutation_importance

from mercer.data import Dataset
from mercer.errors import InvalidInput
from mercer.least_squares import LSSVC, LSSVR
from mercer.report import measure_importance, plot_importance
from mercer.report.importance import MOST_FEATURES, feature_groups
from mercer.svm import SVC, OneClassSVM

NAMES = ["weak", "strong", "none"]


@pytest.fixture(scope="module")
def linear() -> tuple[Any, Any, Any, Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(260, 3)) * [1.0, 2.0, 3.0]
    y = 0.5 * X[:, 0] + 1.5 * X[:, 1] + 0.3 * random.normal(size=260)
    return LSSVR(kernel="linear", C=1.0).fit(X[:120], y[:120]), X[:120], y[:120], X[120:], y[120:]


def test_the_importance_of_a_linear_machine_is_its_formula(linear: Any) -> None:
    machine, X, y, Z, t = linear
    found = measure_importance(machine, X, y, Z, t, names=NAMES, repeats=200)
    assert found is not None
    w = (machine.predict(np.eye(3)) - machine.predict(np.zeros((1, 3)))).ravel()
    error, centred = t - machine.predict(Z), Z - Z.mean(axis=0)
    exact = 2.0 * (w**2 * centred.var(axis=0) + w * (error @ centred) / len(t)) / t.var()
    noise = found.losses.std(axis=1, ddof=1) / np.sqrt(200)
    assert found.names[:2] == ("strong", "weak")
    for name, mean, within in zip(found.names, found.losses.mean(axis=1), noise):
        assert abs(mean - exact[NAMES.index(name)]) <= 4.0 * within + 1e-12
    assert found.score == pytest.approx(machine.score(Z, t))


def test_the_importance_of_a_classifier_is_that_of_scikit_learn(heart: Any, svc: SVC) -> None:
    X, y = heart
    ours = measure_importance(svc, X, y, X, y, repeats=60, names=[str(j) for j in range(13)], time_limit=60.0)
    theirs = permutation_importance(svc, X, y, n_repeats=60, random_state=1)
    assert ours is not None
    for name, losses in zip(ours.names, ours.losses):
        mean, spread = theirs.importances_mean[int(name)], theirs.importances_std[int(name)]
        assert abs(losses.mean() - mean) <= 5.0 * np.hypot(losses.std(), spread) / np.sqrt(60) + 1e-12


def test_a_feature_without_use_or_variation_has_none() -> None:
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=200), np.full(200, 7.0)])
    y = np.where(X[:, 0] > 0, 1, -1)
    found = measure_importance(SVC(kernel="linear").fit(X[:100], y[:100]), X[:100], y[:100], X[100:], y[100:])
    assert found is not None
    assert found.names == ("feature 0", "feature 1")
    np.testing.assert_array_equal(found.losses[1], 0.0)
    assert found.losses[0].min() > 0.2


def test_without_test_points_a_machine_that_did_not_see_the_points_is_judged(linear: Any) -> None:
    machine, X, y, _, _ = linear
    found = measure_importance(machine, X, y)
    assert found is not None
    assert found.how.startswith("30 points held out")
    # 1-nearest-neighbour-like machines know their own points by heart; on those the score would be 1.
    random = np.random.default_rng(0)
    Z, labels = random.normal(size=(200, 2)), random.integers(0, 2, 200)
    learnt = SVC(C=1e3, gamma=1e3).fit(Z, labels)
    assert learnt.score(Z, labels) == 1.0
    honest = measure_importance(learnt, Z, labels)
    assert honest is not None
    assert honest.score < 0.75


def test_columns_that_code_one_feature_are_permuted_together() -> None:
    random = np.random.default_rng(0)
    colour, size = random.integers(0, 3, 300), random.normal(size=300)
    X = np.column_stack([size, np.eye(3)[colour]])
    y = np.where(colour == 0, 1, -1)
    source = Dataset(X, y, columns=("size", "colour"), categories={"colour": ("blue", "green", "red")})
    groups = feature_groups(source)
    assert groups == {"size": [0], "colour": [1, 2, 3]}
    seen: list[Any] = []

    class Watching(LSSVC):
        def predict(self, X: Any) -> Any:
            seen.append(np.array(X))
            return super().predict(X)

    machine = Watching(C=1.0, kernel="linear").fit(X[:200], y[:200])
    found = measure_importance(machine, X[:200], y[:200], X[200:], y[200:], groups=groups)
    assert found is not None
    assert found.names == ("colour", "size")
    assert all((points[:, 1:].sum(axis=1) == 1.0).all() for points in seen)
    assert feature_groups(Dataset(X)) is None


def test_sparse_points_have_the_importances_of_dense_ones(heart: Any) -> None:
    X, y = heart
    D = np.where(np.abs(X) > 0.8, X, 0.0)
    S = sparse.csr_matrix(D)
    dense, thin = (
        measure_importance(SVC(kernel="linear").fit(P[:180], y[:180]), P[:180], y[:180], P[180:], y[180:])
        for P in (D, S)
    )
    assert dense is not None
    assert thin is not None
    assert dense.names == thin.names
    np.testing.assert_allclose(dense.losses, thin.losses, atol=1e-12)


def test_of_many_features_those_that_matter_are_tried_and_the_rest_are_counted() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(240, 3 * MOST_FEATURES))
    y = 4.0 * X[:, 17] - 3.0 * X[:, 250] + 0.1 * random.normal(size=240)
    machine = LSSVR(kernel="linear", C=1.0).fit(X[:160], y[:160])
    found = measure_importance(machine, X[:160], y[:160], X[160:], y[160:])
    assert found is not None
    assert (len(found.names), found.features) == (MOST_FEATURES, 3 * MOST_FEATURES)
    assert set(found.names[:2]) == {"feature 17", "feature 250"}


def test_little_time_few_points_and_no_features_give_none(linear: Any, heart: Any) -> None:
    machine, X, y, Z, t = linear
    assert measure_importance(machine, X, y, Z, t, time_limit=0.0) is None
    assert measure_importance(machine, X[:12], y[:12]) is None
    assert measure_importance(OneClassSVM().fit(X), X, None) is None
    K = heart[0] @ heart[0].T
    assert measure_importance(SVC(kernel="precomputed").fit(K, heart[1]), K, heart[1]) is None
    with pytest.raises(InvalidInput, match="no features to permute"):
        plot_importance(machine, X[:12], y[:12])


def test_the_picture_draws_the_means(linear: Any) -> None:
    machine, X, y, Z, t = linear
    found = measure_importance(machine, X, y, Z, t, names=NAMES)
    ax = plot_importance(machine, X, y, Z, t, names=NAMES)
    assert found is not None
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], found.losses.mean(axis=1))
    assert [text.get_text() for text in ax.get_yticklabels()] == list(found.names)
