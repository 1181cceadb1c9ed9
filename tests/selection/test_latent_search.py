"""The search for ranks and orders: scores and choices of a plain loop of fits, in any memory, by whole queries."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score, log_loss

from mercer import Gaussian, Linear, OrdinalSVC, ProportionalOdds, RankSVM
from mercer.errors import InvalidInput
from mercer.ordinal.metrics import mean_average_precision, ndcg, rank_error, scaled_pair_loss
from mercer.selection.folds import assign
from mercer.selection.latent_path import disorder
from mercer.tuned import TunedOrdinalSVC, TunedProportionalOdds, TunedRankSVM, tune

COSTS, WIDTHS = [0.1, 1.0, 10.0], [0.7, 2.0]
N = 90
FOLD = np.random.default_rng(1).permutation(np.arange(N) % 3)
QUERIES = np.random.default_rng(2).permutation(np.arange(N) % 10)
OF_QUERIES = QUERIES % 3
NAMES = np.array(["1 poor", "2 fair", "3 good", "4 best"])


def points() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((N, 2))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * random.standard_normal(N), [-0.5, 0.3, 1.0])


X, RANKS = points()


def searched(kind, y, scoring=None, groups=None, **options):
    given = {"C": COSTS, "sigma": WIDTHS, "tol": 1e-5, "early_stop": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = kind(scoring=scoring, **given)
        return machine.fit(X, y) if groups is None else machine.fit(X, y, groups=groups)


def retrained(make, y, fold, score, groups=None) -> dict[tuple[float, float], float]:
    found = {}
    for C in COSTS:
        for sigma in WIDTHS:
            scores = []
            for f in np.unique(fold):
                inside, outside = fold != f, fold == f
                machine = make(C, Gaussian(sigma))
                within = {} if groups is None else {"groups": groups[inside]}
                scores.append(score(machine.fit(X[inside], y[inside], **within), outside))
            found[C, sigma] = float(np.mean(scores))
    return found


def agree(machine, expected, tolerance) -> None:
    for candidate, mean in zip(machine.search_.candidates, machine.search_.mean):
        assert mean == pytest.approx(expected[candidate["C"], candidate["sigma"]], abs=tolerance)
    best = expected[machine.best_params_["C"], machine.best_params_["sigma"]]
    assert best >= max(expected.values()) - tolerance


ORDINAL = {
    None: lambda machine, at: -rank_error(NAMES[RANKS[at]], machine.predict(X[at]), NAMES),
    "accuracy": lambda machine, at: accuracy_score(NAMES[RANKS[at]], machine.predict(X[at])),
    "pairs_in_order": lambda machine, at: 1.0 - scaled_pair_loss(RANKS[at], machine.utility(X[at])),
}


@pytest.mark.parametrize(
    ("thresholds", "loss", "scoring"),
    [
        ("implicit", "squared_hinge", None),
        ("implicit", "hinge", "accuracy"),
        ("explicit", "squared_hinge", "accuracy"),
        ("pairs", "squared_hinge", "pairs_in_order"),
        ("pairs", "squared_hinge", None),
    ],
)
def test_every_score_of_ordinal_regression_is_that_of_retraining(thresholds, loss, scoring):
    machine = searched(TunedOrdinalSVC, NAMES[RANKS], scoring, folds=FOLD, thresholds=thresholds, loss=loss, tol=1e-4)
    expected = retrained(
        lambda C, kernel: OrdinalSVC(C, kernel=kernel, thresholds=thresholds, loss=loss, tol=1e-4), NAMES[RANKS], FOLD,
        ORDINAL[scoring],
    )  # fmt: skip
    agree(machine, expected, 1.01 / 30)  # one of the thirty points of a fold may lie on a threshold


@pytest.mark.parametrize("memory", [None, 1 << 20])
def test_every_log_loss_of_cumulative_models_is_that_of_retraining(memory):
    machine = searched(TunedProportionalOdds, RANKS, folds=FOLD, memory=memory)
    expected = retrained(
        lambda C, kernel: ProportionalOdds(C, kernel=kernel, tol=1e-8), RANKS, FOLD,
        lambda machine, at: -log_loss(RANKS[at], machine.predict_proba(X[at]), labels=np.arange(4)),
    )  # fmt: skip
    agree(machine, expected, 2e-3)
    assert (machine.best_params_["C"], machine.best_params_["sigma"]) == max(expected, key=lambda at: expected[at])


ORDERS = {
    None: lambda f, at, groups: 1.0 - scaled_pair_loss(RANKS[at], f, groups=groups[at]),
    "ndcg@3": lambda f, at, groups: ndcg(RANKS[at], f, k=3, groups=groups[at]),
    "map": lambda f, at, groups: mean_average_precision(RANKS[at], f, groups=groups[at]),
    ndcg: lambda f, at, groups: ndcg(RANKS[at], f, groups=groups[at]),
}


@pytest.mark.parametrize("scoring", list(ORDERS))
def test_every_score_of_a_ranking_is_that_of_retraining(scoring):
    machine = searched(TunedRankSVM, RANKS, scoring, groups=QUERIES, folds=OF_QUERIES)
    expected = retrained(
        lambda C, kernel: RankSVM(C, kernel=kernel, tol=1e-6), RANKS, OF_QUERIES,
        lambda machine, at: ORDERS[scoring](machine.predict(X[at]), at, QUERIES), QUERIES,
    )  # fmt: skip
    agree(machine, expected, 0.006)  # two values of a query may be closer than the tolerance


@pytest.mark.parametrize("points_as", [np.asarray, sparse.csr_array])
def test_a_linear_kernel_is_searched_by_the_points_alone(points_as):
    shared = {"kernel": Linear(), "C": COSTS, "sigma": None, "folds": OF_QUERIES, "tol": 1e-8, "early_stop": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = TunedRankSVM(**shared).fit(points_as(X), RANKS, groups=QUERIES)
    for candidate, scores in zip(found.search_.candidates, found.search_.scores):
        for f in range(3):
            outside = f == OF_QUERIES
            own = RankSVM(candidate["C"], kernel=Linear(), tol=1e-8)
            own.fit(X[~outside], RANKS[~outside], groups=QUERIES[~outside])
            assert scores[f] == pytest.approx(own.score(X[outside], RANKS[outside], groups=QUERIES[outside]), abs=1e-9)


def test_weights_count_in_the_search_as_copies_do():
    weights = np.where(np.arange(N) % 4 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(N), np.flatnonzero(weights == 2.0)])
    shared = {"C": COSTS, "sigma": WIDTHS, "tol": 1e-7, "early_stop": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = TunedProportionalOdds(folds=FOLD, **shared).fit(X, RANKS, sample_weight=weights)
        copied = TunedProportionalOdds(folds=FOLD[twice], **shared).fit(X[twice], RANKS[twice])
        first = TunedRankSVM(folds=OF_QUERIES, **shared).fit(X, RANKS, weights, QUERIES)
        second = TunedRankSVM(folds=OF_QUERIES[twice], **shared).fit(X[twice], RANKS[twice], groups=QUERIES[twice])
    np.testing.assert_allclose(weighted.search_.scores, copied.search_.scores, atol=1e-4)
    np.testing.assert_allclose(first.search_.scores, second.search_.scores, atol=0.01)


def test_points_of_weight_zero_are_not_there():
    weights = (np.arange(N) >= 9).astype(float)
    kept = weights > 0
    shared = {"C": COSTS, "sigma": [1.0], "tol": 1e-6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = TunedRankSVM(folds=OF_QUERIES, **shared).fit(X, RANKS, weights, QUERIES)
        second = TunedRankSVM(folds=OF_QUERIES[kept], **shared).fit(X[kept], RANKS[kept], groups=QUERIES[kept])
    np.testing.assert_array_equal(first.search_.scores, second.search_.scores)


def test_folds_part_no_query_and_are_of_like_size():
    groups = np.random.default_rng(3).integers(0, 40, 500)
    fold = assign(500, 5, None, 0, groups)
    assert all(len(np.unique(fold[groups == g])) == 1 for g in np.unique(groups))
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()
    assert len(np.unique(assign(6, 5, None, 0, np.arange(6) // 2))) == 3  # no more folds than groups
    with pytest.raises(InvalidInput, match="part a group"):
        assign(4, [0, 1, 0, 1], None, 0, np.array([0, 0, 1, 1]))
    with pytest.raises(InvalidInput, match="at least two"):
        assign(4, 2, None, 0, np.zeros(4, dtype=np.intp))


def test_wrong_orders_are_counted_on_pairs_that_share_no_point():
    truth = np.array([0, 1, 1, 0, 2, 2, 1])
    values = np.array([1.0, 0.0, 3.0, 2.0, 1.0, 0.0, 5.0])
    groups = np.array([0, 0, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(disorder(truth, values, groups), [1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(disorder(truth, values, None), [1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(disorder(truth, -values, None), [0, 0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize("mode", ["random", "halving"])
def test_other_ways_through_the_candidates(mode):
    random = np.random.default_rng(4)
    many = random.standard_normal((1000, 2))
    relevance = np.digitize(many[:, 0], [-1.0, 0.0, 1.0])
    groups = np.arange(1000) // 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune(many, relevance, "rank", groups=groups, mode=mode, grid=(3, 2), folds=3)
    assert found.best_score > 0.95
    points = set(found.result.points.tolist())
    assert points == ({1000} if mode == "random" else {333, 1000})


def test_a_rank_that_a_training_part_lacks():
    y = RANKS.copy()
    y[:5] = 4
    fold = np.where(np.arange(N) < 5, 0, 1 + np.arange(N) % 2)
    for kind in (TunedOrdinalSVC, TunedProportionalOdds):
        found = searched(kind, y, folds=fold, tol=1e-3)
        assert np.isfinite(found.search_.mean).all()
    with pytest.raises(InvalidInput, match=r"outside a fold teach nothing.*fewer folds"):
        searched(TunedRankSVM, (QUERIES < 5).astype(float) + 0.0, groups=QUERIES, folds=OF_QUERIES)


def test_tune_knows_ranks_and_orders():
    grid = {"C": COSTS, "sigma": WIDTHS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(tune(X, RANKS, "ordinal", grid=grid, folds=3).best_machine, OrdinalSVC)
        assert isinstance(tune(X, RANKS, "odds", grid=grid, folds=3).best_machine, ProportionalOdds)
        found = tune(X, RANKS, "rank", grid=grid, folds=3, groups=QUERIES, scoring="ndcg@5")
    assert isinstance(found.best_machine, RankSVM)
    assert 0.0 < found.best_score <= 1.0
    with pytest.raises(InvalidInput, match='machine="rank"'):
        tune(X, RANKS, "ordinal", groups=QUERIES)
    with pytest.raises(InvalidInput, match="ndcg@10 or a function"):
        tune(X, RANKS, "rank", scoring="accuracy")


def test_values_of_C_do_not_depend_on_the_number_of_pairs():
    short = TunedRankSVM(n_C=3, n_sigma=1, folds=2).fit(X, RANKS, groups=QUERIES)
    whole = TunedRankSVM(n_C=3, n_sigma=1, folds=2).fit(X, RANKS)
    pairs = [sum(a != b for g in np.unique(q) for i, a in enumerate(RANKS[q == g]) for b in RANKS[q == g][:i])
             for q in (QUERIES, np.zeros(N))]  # fmt: skip
    np.testing.assert_allclose(np.array(short.grid_.C) * pairs[0], np.array(whole.grid_.C) * pairs[1])
