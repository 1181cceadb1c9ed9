"""The report of ranks and orders: what it says is what the metrics say, and its pictures are there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import OrdinalSVC, ProportionalOdds, RankSVM
from mercer.ordinal.by_query import by_query
from mercer.ordinal.metrics import kendall_tau, mean_average_precision, ndcg, rank_error, scaled_pair_loss
from mercer.report import write_report
from mercer.report.orders import plot_boundaries, plot_rank_errors
from mercer.tuned import TunedRankSVM

GRADES = np.array(["1 poor", "2 fair", "3 good"])
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((150, 2))
QUERY = np.arange(150) // 10
RANK = np.digitize(X[:, 0] + 0.3 * RANDOM.standard_normal(150), [-0.5, 0.5])
TRAIN = QUERY < 10


def read(path: Path) -> str:
    return " ".join(path.read_text().split())


@pytest.mark.parametrize("tests", [False, True])
@pytest.mark.parametrize(
    "machine", [OrdinalSVC(loss="squared_hinge"), ProportionalOdds()], ids=lambda m: type(m).__name__
)
def test_the_report_of_ranks(machine: Any, tests: bool, tmp_path: Path) -> None:
    whole = make_pipeline(StandardScaler(), machine).fit(X[TRAIN], GRADES[RANK[TRAIN]])
    held = (X[~TRAIN], GRADES[RANK[~TRAIN]]) if tests else (None, None)
    text = read(write_report(tmp_path / "r.html", whole, X[TRAIN], GRADES[RANK[TRAIN]], *held, time_limit=300.0))
    for title in ("Rank confusion", "Utility and boundaries", "Error by rank", "Convergence", "Learning curve"):
        assert title in text
    assert ("Calibration" in text) == (tests and hasattr(machine, "predict_proba"))
    assert "Margins of" not in text
    if tests:
        assert f"{rank_error(held[1], whole.predict(held[0]), GRADES):.4f}" in text


@pytest.mark.parametrize("groups", [None, QUERY])
@pytest.mark.parametrize("tests", [False, True])
def test_the_report_of_an_order(groups: Any, tests: bool, tmp_path: Path) -> None:
    inside, outside = (None, None) if groups is None else (groups[TRAIN], groups[~TRAIN])
    machine = RankSVM(C=0.1).fit(X[TRAIN], RANK[TRAIN], groups=inside)
    held = (X[~TRAIN], RANK[~TRAIN]) if tests else (None, None)
    place = write_report(
        tmp_path / "r.html", machine, X[TRAIN], RANK[TRAIN], *held, groups=inside, groups_test=outside, time_limit=300.0
    )
    text = read(place)
    assert "Utility by relevance" in text
    assert ("NDCG by query" in text) == ("Wrong pairs by query" in text) == (groups is not None)
    if tests:
        f = machine.predict(held[0])
        assert f"{1.0 - scaled_pair_loss(held[1], f, groups=outside):.4f}" in text
        assert f"{ndcg(held[1], f, k=10, groups=outside):.4f}" in text


def test_a_search_shows_what_it_tried(tmp_path: Path) -> None:
    tuned = TunedRankSVM(C=[0.01, 0.1, 1.0], sigma=[1.0, 2.0], folds=2).fit(X, RANK, groups=QUERY)
    assert "Choice of C and sigma" in read(write_report(tmp_path / "r.html", tuned, X, RANK, groups=QUERY))


def test_measures_by_query_are_those_of_the_metrics() -> None:
    f = X[:, 0] + 0.5 * X[:, 1]
    found = by_query(RANK, f, QUERY, k=3)
    means = found.means()
    assert means["pairs in order"] == pytest.approx(1.0 - scaled_pair_loss(RANK, f, groups=QUERY))
    assert means["ndcg@3"] == pytest.approx(ndcg(RANK, f, k=3, groups=QUERY))
    assert means["map"] == pytest.approx(mean_average_precision(RANK, f, groups=QUERY))
    assert found.tau[4] == pytest.approx(kendall_tau(RANK[QUERY == 4], f[QUERY == 4]))
    for name, (low, high) in found.intervals().items():
        assert low <= means[name] <= high
    assert by_query(RANK - 1.5, f, QUERY).ndcg is None  # no relevances
    assert by_query(RANK, f).intervals() == {}


def test_thresholds_and_shares_are_drawn_where_they_are() -> None:
    ax = plot_boundaries(GRADES[RANK], X[:, 0], [-0.5, 0.5], GRADES)
    assert [line.get_xdata()[0] for line in ax.lines] == [-0.5, 0.5]
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(150)
    ax = plot_rank_errors([0, 0, 1, 2], [0, 1, 1, 0], GRADES)
    np.testing.assert_allclose(
        [bar.get_width() for bar in ax.patches], [0, 0, 1, 0, 0, 0, 0.5, 1, 0, 0.5, 0, 0, 0, 0, 0]
    )
