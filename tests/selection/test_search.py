"""The search gives the scores of a plain loop of fits, whatever work it shares."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn import svm as libsvm

from mercer import SVC, data
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Linear, Matern
from mercer.selection.cross_validation import Classes, Settings, one_fold
from mercer.selection.folds import Layout, assign
from mercer.selection.grid import Grid
from mercer.selection.scoring import accuracy
from mercer.selection.search import Data, search
from mercer.selection.streamed_path import streamed_fold
from mercer.solvers.monitor import Monitor

GRID = Grid((0.1, 1.0, 10.0, 200.0), (0.7, 2.0, 6.0))


@pytest.fixture(scope="module")
def heart() -> tuple[np.ndarray, np.ndarray]:
    found = data.sample("heart-statlog")
    return data.Standardise.learn(found.X)(found.X), found.y


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    found = data.sample("iris")
    return data.Standardise.learn(found.X)(found.X), found.y


def given(X: np.ndarray, y: np.ndarray) -> Data:
    classes, codes = np.unique(y, return_inverse=True)
    return Data(X, codes.astype(np.intp), None, len(classes), np.ones(len(y)))


def plain_loop(X, y, fold, result, machine) -> Iterator[tuple[float, float, float]]:
    """Score of the search, score of separate fits, and the share of held-out points too close to call."""
    for candidate, scores in zip(result.candidates, result.scores):
        for f in range(fold.max() + 1):
            fitted = machine(candidate).fit(X[fold != f], y[fold != f])
            values = fitted.decision_function(X[fold == f])
            close = np.abs(values).reshape(len(values), -1).min(axis=1) < 5e-3
            yield scores[f], float(np.mean(fitted.predict(X[fold == f]) == y[fold == f])), float(np.mean(close))


def test_equal_scores_share_the_better_rank_as_in_scikit_learn(iris) -> None:
    X, y = iris
    result = search(given(X, y), Gaussian(1.0), GRID, folds=4, early=False)
    table = result.table()
    assert len(set(table["mean_test_score"])) < len(result.candidates)
    np.testing.assert_array_equal(table["rank_test_score"], rankdata(-table["mean_test_score"], method="min"))


@pytest.mark.parametrize("library", ["mercer", "scikit-learn"])
@pytest.mark.parametrize("name", ["heart", "iris"])
def test_scores_equal_a_plain_loop_of_fits(name: str, library: str, request: pytest.FixtureRequest) -> None:
    X, y = request.getfixturevalue(name)
    fold = assign(len(y), 4, given(X, y).codes, 0)
    result = search(given(X, y), Gaussian(1.0), GRID, folds=fold, early=False, tol=1e-4)
    assert set(result.status) == {"done"}

    def machine(candidate: dict[str, float]) -> object:
        gamma = 0.5 / candidate["sigma"] ** 2
        kind = SVC if library == "mercer" else libsvm.SVC
        return kind(C=candidate["C"], gamma=gamma, tol=1e-4, decision_function_shape="ovo")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs, close in plain_loop(X, y, fold, result, machine):
            assert abs(ours - theirs) <= close + 1e-9


def test_regression_scores_equal_a_plain_loop_of_fits() -> None:
    found = data.sample("yacht")
    X, y = data.Standardise.learn(found.X)(found.X), found.y / found.y.std()
    fold = assign(len(y), 3, None, 0)
    grid = Grid((0.1, 10.0), (1.0, 3.0), (0.05, 0.2))
    whole = Data(X, None, y, 0, np.ones(len(y)))
    result = search(whole, Gaussian(1.0), grid, folds=fold, early=False, tol=1e-5)
    for candidate, scores in zip(result.candidates, result.scores):
        for f in range(3):
            machine = libsvm.SVR(
                C=candidate["C"], gamma=0.5 / candidate["sigma"] ** 2, epsilon=candidate["epsilon"], tol=1e-5
            )
            assert scores[f] == pytest.approx(
                machine.fit(X[fold != f], y[fold != f]).score(X[fold == f], y[fold == f]), abs=2e-4
            )


@pytest.mark.parametrize(("name", "memory"), [("heart", "580 KiB"), ("iris", "300 KiB")])
def test_distances_stored_or_streamed_give_the_same_scores(
    name: str, memory: str, request: pytest.FixtureRequest
) -> None:
    X, y = request.getfixturevalue(name)
    stored = search(given(X, y), Gaussian(1.0), GRID, folds=3, early=False, tol=1e-5)
    streamed = search(given(X, y), Gaussian(1.0), GRID, folds=3, early=False, tol=1e-5, memory=memory)
    np.testing.assert_allclose(stored.scores, streamed.scores, atol=1.01 / 50)
    assert np.abs(stored.mean - streamed.mean).mean() < 2e-3


@pytest.mark.parametrize("kernel", [Matern(sigma=1.0, nu=1.5), Gaussian(1.0)])
def test_other_kernels_of_the_distance_are_searched_alike(kernel, heart) -> None:
    X, y = heart
    fold = assign(len(y), 3, given(X, y).codes, 0)
    result = search(given(X, y), kernel, Grid((1.0,), (1.5, 4.0)), folds=fold)
    for candidate, scores in zip(result.candidates, result.scores):
        machine = SVC(C=1.0, kernel=kernel.with_parameters(sigma=candidate["sigma"])).fit(X[fold != 0], y[fold != 0])
        assert scores[0] == pytest.approx(machine.score(X[fold == 0], y[fold == 0]), abs=0.012)


def test_a_kernel_without_width_has_one_row(heart) -> None:
    result = search(given(*heart), Linear(), Grid((0.01, 0.1, 1.0)), folds=3)
    assert [set(c) for c in result.candidates] == [{"C"}] * 3
    assert result.surface()[2].shape == (1, 3)


def test_a_class_absent_from_a_fold_is_no_error() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(43, 2)) + np.repeat([0, 4, 8], [20, 20, 3])[:, None]
    y = np.repeat([0, 1, 2], [20, 20, 3])
    result = search(given(X, y), Gaussian(1.0), GRID, folds=5)
    assert np.isfinite(result.scores).all()
    fold = np.where(y == 2, 0, np.arange(43) % 2 + 1)  # a whole class is held out: it cannot be found
    result = search(given(X, y), Gaussian(1.0), GRID, folds=fold)
    assert (result.scores[:, 0] == 0.0).all()


def test_tiny_data_are_searched() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    assert search(given(X, y), Gaussian(1.0), GRID, folds=5).scores.shape == (12, 4)


def test_ties_go_to_the_smaller_price_and_the_larger_width() -> None:
    X = np.r_[np.random.default_rng(0).normal(size=(30, 1)) - 50, np.random.default_rng(1).normal(size=(30, 1)) + 50]
    result = search(
        given(X, np.repeat([0, 1], 30)), Gaussian(1.0), Grid((1.0, 10.0, 100.0), (5.0, 20.0, 30.0)), folds=3
    )
    assert result.best == {"C": 1.0, "sigma": 30.0}
    assert result.edges() == ["C = 1 (smallest)", "sigma = 30 (largest)"]


def test_stopping_early_leaves_the_best_alone() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    y = np.where((X[:, 0] > 0) ^ (random.random(600) < 0.2), 1, 0)
    grid = Grid(tuple(np.geomspace(0.01, 300.0, 8)), (0.3, 1.0))
    early = search(given(X, y), Gaussian(1.0), grid, folds=3)
    whole = search(given(X, y), Gaussian(1.0), grid, folds=3, early=False)
    assert "stopped early" in early.status
    assert early.best == whole.best
    done = np.isfinite(early.mean)
    assert np.array_equal(early.mean[done], whole.mean[done])


@pytest.mark.parametrize("name", ["german-numeric", "satimage"])
def test_halving_finds_a_candidate_within_one_standard_error_of_the_best(name: str) -> None:
    found = data.sample(name, "train") if name == "satimage" else data.sample(name)
    keep = np.arange(0, len(found.y), 2 if name == "satimage" else 1)
    X = data.Standardise.learn(found.X)(found.X)[keep]
    whole = given(X, found.y[keep])
    grid = Grid(tuple(np.geomspace(0.1, 300.0, 6)), tuple(np.geomspace(1.0, 15.0, 5)))
    all_of_them = search(whole, Gaussian(1.0), grid, folds=3)
    halved = search(whole, Gaussian(1.0), grid, folds=3, mode="halving")
    assert "dropped" in halved.status
    best = all_of_them.candidates.index(halved.best)
    assert all_of_them.mean[best] >= all_of_them.best_score - all_of_them.standard_error


def test_the_same_seed_gives_the_same_table(heart) -> None:
    one, two = (search(given(*heart), Gaussian(1.0), GRID, mode="random", seed=5) for _ in range(2))
    assert one.candidates == two.candidates
    assert np.array_equal(one.scores, two.scores)


def test_a_time_limit_keeps_what_is_finished(heart) -> None:
    seen = []

    def stop(record) -> bool:
        seen.append(record)
        return len(seen) >= 5

    result = search(given(*heart), Gaussian(1.0), GRID, folds=3, monitor=Monitor(callback=stop))
    assert result.stopped == "interrupted"
    assert "not reached" in result.status
    assert result.best_index < len(result.candidates)
    nothing = search(given(*heart), Gaussian(1.0), GRID, folds=3, monitor=Monitor(time_limit=1e-9))
    assert nothing.stopped == "time"
    assert nothing.evaluated == 0
    assert nothing.best in nothing.candidates


def test_folds_without_a_stored_matrix_have_the_same_scores(heart) -> None:
    X, y = heart
    whole = given(X, y)
    assert whole.codes is not None
    layout = Layout.of(assign(len(y), 3, whole.codes, 0), whole.codes, 0)
    kind = Classes(layout.codes, 2, np.ones(len(y)))
    settings = Settings(np.array([0.1, 1.0, 10.0]), 1e-5, accuracy, False, lambda: True)
    ordered = X[layout.order]
    K = Gaussian(2.0)(ordered).astype(np.float32)
    for fold in range(3):
        stored = one_fold(K, layout, fold, kind, settings)
        streamed = streamed_fold(ordered, Gaussian(2.0), layout, fold, kind, settings, 1 << 26)
        np.testing.assert_allclose(streamed.scores, stored.scores, atol=0.012)
        np.testing.assert_allclose(streamed.support, stored.support, atol=2)


def test_scoring_by_name_and_by_function(heart) -> None:
    by_name = search(given(*heart), Gaussian(1.0), GRID, folds=3, scoring="balanced_accuracy")
    own = search(
        given(*heart),
        Gaussian(1.0),
        GRID,
        folds=3,
        scoring=lambda y, p: 0.5 * (np.mean(p[y == 0] == 0) + np.mean(p[y == 1] == 1)),
    )
    np.testing.assert_allclose(by_name.scores, own.scores)
    with pytest.raises(InvalidInput, match="scoring"):
        search(given(*heart), Gaussian(1.0), GRID, scoring="r2")


def test_another_search_is_told_apart_by_points_labels_and_weights(heart, tmp_path: Path) -> None:
    whole = given(*heart)
    path = tmp_path / "search"
    search(whole, Gaussian(1.0), GRID, folds=3, checkpoint=path)
    others = [
        replace(whole, codes=1 - whole.codes),
        replace(whole, X=-whole.X),
        replace(whole, weights=2.0 * whole.weights),
    ]
    for other in others:
        assert other.identity() != whole.identity()
        with pytest.raises(InvalidInput, match="another search"):
            search(other, Gaussian(1.0), GRID, folds=3, checkpoint=path)
    targets = Data(whole.X, None, whole.X[:, 0].copy(), 0, whole.weights)
    assert targets.identity() != replace(targets, y=-targets.y).identity()
    assert search(whole, Gaussian(1.0), GRID, folds=3, checkpoint=path).resumed > 0
    with pytest.raises(InvalidInput, match="another search"):
        search(whole, Gaussian(1.0), GRID, folds=3, checkpoint=path, seed=1)


def test_halving_names_every_candidate_by_the_C_that_was_asked_for() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 2))
    y = np.sign(X[:, 0] + 0.5 * random.normal(size=1000))
    grid = Grid(C=(0.1, 1.0, 10.0), sigma=(0.5, 2.0), epsilon=())
    found = search(given(X, y), Gaussian(1.0), grid, folds=2, mode="halving")
    assert "dropped" in found.status
    named = sorted((candidate["sigma"], round(candidate["C"], 9)) for candidate in found.candidates)
    assert named == sorted((sigma, C) for sigma in grid.sigma for C in grid.C)


def test_the_seed_draws_the_folds(heart) -> None:
    X, y = heart
    scores = [search(given(X, y), Gaussian(1.0), GRID, folds=3, seed=seed).scores for seed in (0, 0, 1)]
    assert np.array_equal(scores[0], scores[1], equal_nan=True)
    assert not np.array_equal(scores[0], scores[2], equal_nan=True)
    codes = given(X, y).codes
    folds = [assign(len(y), 3, codes, seed) for seed in (0, 1)]
    assert not np.array_equal(*folds)
    layouts = [Layout.of(folds[0], codes, seed) for seed in (0, 1)]
    assert not np.array_equal(layouts[0].order, layouts[1].order)
    assert not np.array_equal(assign(len(y), 3, None, 0), assign(len(y), 3, None, 1))
