"""How the pictures look: one colour for a class, free legends, round numbers, candidates explained, no empty places."""

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from mercer.errors import InvalidInput
from mercer.report import (
    CrossPlotDisplay,
    MarginDisplay,
    SurfaceDisplay,
    calibrated,
    ink,
    pictures,
    plot_calibration,
    plot_precision_recall,
    plot_roc,
    write_report,
)
from mercer.report.classification import MOST, colours, worst
from mercer.report.page import Section, Table
from mercer.selection.result import SearchResult
from mercer.svm import SVC
from mercer.tuned import TunedSVC
from tests.report.conftest import standardised


def line_colours(ax: Any, names: list[str]) -> dict[str, str]:
    """Colours of the lines whose labels begin with a name."""
    found = {}
    for line in ax.lines:
        name = str(line.get_label()).split(" (")[0]
        if name in names:
            found[name] = to_hex(line.get_color())
    return found


@pytest.mark.parametrize("k", [3, 12])
def test_a_class_has_one_colour_in_all_pictures(k: int) -> None:
    random = np.random.default_rng(0)
    classes = np.array([f"c{j:02}" for j in range(k)])
    code = np.repeat(np.arange(k), 20)
    y = classes[code]
    values = random.normal(size=(20 * k, k)) + np.linspace(0.3, 3.0, k) * (code[:, None] == np.arange(k))
    shown = worst(y, values, classes) if k > MOST else None
    p = calibrated(y, values, classes)
    expected = colours(classes, shown)
    assert len(expected) == min(k, MOST) == len(set(expected.values()))
    for ax in (
        plot_roc(y, values, classes, shown=shown),
        plot_precision_recall(y, values, classes, shown=shown),
        plot_calibration(y, p, classes, shown=shown),
    ):
        assert line_colours(ax, classes.tolist()) == expected


def test_the_two_classes_keep_their_colours_where_one_of_them_has_no_points(svc: SVC, lssvc: Any, heart: Any) -> None:
    X, y = heart
    first, second = (colours(svc.classes_)[label] for label in svc.classes_.tolist())
    assert line_colours(plot_roc(y, svc.decision_function(X), svc.classes_), ["1"]) == {"1": second}
    for label, expected in ((svc.classes_[0], first), (svc.classes_[1], second)):
        own = y == label
        ax = CrossPlotDisplay.from_estimator(svc, lssvc, X[own], y[own]).ax_
        drawn = [c for c in ax.collections if len(c.get_offsets())]
        assert [to_hex(c.get_facecolor()[0]) for c in drawn] == [expected]


# Legends and numbers ---------------------------------------------------------------------------------------------


def figures_of(machine: Any, X: Any, y: Any, *others: Any, **options: Any) -> dict[str, Any]:
    """The Matplotlib figures behind the pictures of a report, by name."""
    found: dict[str, Any] = {}
    original = ink.svg

    def keeping(figure: Any, name: str, label: str) -> str:
        found[name] = figure
        return original(figure, name, label)

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(ink, "svg", keeping)
        write_report(Path(folder) / "report.html", machine, X, y, *others, time_limit=30.0, **options)
    return found


@pytest.fixture(scope="module")
def halved() -> TunedSVC:
    """A search that dropped candidates: halving begins at 500 points."""
    return TunedSVC(mode="halving", n_C=5, n_sigma=3, folds=3).fit(*standardised("german-numeric"))


@pytest.fixture(scope="module")
def drawn(machines: Any, lssvc: Any, heart: Any) -> dict[str, Any]:
    """Figures of many reports, by report and name."""
    X, y = heart
    named = np.where(y == 1, "a class with a rather long name", "another class with a rather long name")
    found = {
        "binary": figures_of(*machines["binary"], other_machine=lssvc),
        "pairs": figures_of(*machines["pairs"]),
        "regression": figures_of(*machines["regression"]),
        "least squares, regression": figures_of(*machines["least squares, regression"]),
        "one class": figures_of(*machines["one class"]),
        "long names": figures_of(SVC().fit(X, named), X, named, feature_names=["a long name of a feature"] * 13),
    }
    every = {f"{report}, {name}": figure for report, pictures in found.items() for name, figure in pictures.items()}
    with ink.canvas():  # the style in which they were drawn
        for figure in every.values():
            figure.draw_without_rendering()
    return every


def test_colours_of_classes_are_used_for_nothing_else(drawn: dict[str, Any]) -> None:
    """In greys and in the shades of a surface: whatever is drawn of a regression machine is no class."""
    for figure in [figure for name, figure in drawn.items() if "regression" in name]:
        used = {to_hex(patch.get_facecolor()) for ax in figure.axes for patch in ax.patches}
        used |= {to_hex(line.get_color()) for ax in figure.axes for line in ax.lines}
        assert not used & set(ink.SERIES)


def test_no_legend_lies_over_the_axes_or_leaves_the_picture(drawn: dict[str, Any]) -> None:
    legends = 0
    for name, figure in drawn.items():
        for ax in figure.axes:
            legend = ax.get_legend()
            if legend is None:
                continue
            legends += 1
            box = legend.get_window_extent()
            assert box.y0 >= ax.get_window_extent().y1 - 1.0, name
            assert box.x0 >= -1.0, name
            assert box.x1 <= figure.bbox.x1 + 1.0, name
            assert box.y1 <= figure.bbox.y1 + 1.0, name
    assert legends >= 15


def is_round(value: float, multiples: tuple[float, ...]) -> bool:
    size = abs(value)
    return size == 0.0 or any(abs(size / 10.0 ** np.floor(np.log10(size) + 1e-9) - m) < 1e-6 for m in multiples)


def test_axes_have_round_numbers_and_enough_of_them(drawn: dict[str, Any]) -> None:
    for name, figure in drawn.items():
        for ax in figure.axes:
            for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
                if name.endswith("confusion") or (name.endswith("importance") and axis is ax.yaxis):
                    continue  # names, not numbers
                ticks = np.array([tick for tick in axis.get_majorticklocs() if low <= tick <= high])
                if not axis.get_visible() or (ax.get_label() == "<colorbar>" and axis is ax.xaxis):
                    continue
                assert len(ticks) >= 2, f"{name}: {ticks}"
                if axis.get_scale() == "log":
                    assert all(is_round(tick, tuple(range(1, 10))) for tick in ticks), f"{name}: {ticks}"
                else:
                    steps = np.diff(ticks)
                    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
                    assert is_round(steps[0], (1.0, 2.0, 2.5, 5.0)), f"{name}: {ticks}"


def test_counts_have_whole_numbers() -> None:
    ax = MarginDisplay(np.array([0.5, 1.0, 1.5]), np.array([2, 1, 0])).plot().ax_
    assert all(tick == int(tick) for tick in ax.get_yticks())


# Candidates ------------------------------------------------------------------------------------------------------


def searched() -> SearchResult:
    """Nine candidates; the one with the largest score was dropped after a round on fewer points."""
    candidates = tuple({"C": C, "sigma": s} for s in (1.0, 2.0, 4.0) for C in (0.1, 1.0, 10.0))
    mean = np.array([0.7, 0.8, np.nan, 0.75, 0.85, 0.84, 0.6, 0.95, np.nan])
    status = ("done", "done", "stopped early", "done", "done", "done", "dropped", "dropped", "not reached")
    points = np.where(np.array(status) == "dropped", 50, 200)
    nothing = np.zeros(9)
    return SearchResult(candidates, np.column_stack([mean, mean]), nothing, nothing, points, status, "time", 1.0)


def test_the_candidate_marked_is_the_one_chosen_not_one_judged_on_fewer_points() -> None:
    result = searched()
    shown = SurfaceDisplay.of(result)
    assert shown is not None
    assert (shown.C[shown.best_], shown.width[shown.best_]) == (1.0, 2.0) == (result.best["C"], result.best["sigma"])
    without = SurfaceDisplay(shown.C, shown.values, shown.width, status=shown.status.tolist())
    assert without.best_ == shown.best_
    assert "chosen: C = 1, sigma = 2" in legend_texts(shown.plot().ax_)


def legend_texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_candidates_not_judged_to_the_end_are_marked_and_explained() -> None:
    shown = SurfaceDisplay.of(searched())
    assert shown is not None
    texts = legend_texts(shown.plot().ax_)
    assert texts[1:] == [
        "dropped after a round on fewer points (2)",
        "not tried: larger C had become worse (1)",
        "not reached in the time there was (1)",
    ]
    marked = {line.get_label(): line.get_xydata().tolist() for line in shown.ax_.lines}
    assert marked[texts[1]] == [[0.1, 4.0], [1.0, 4.0]]
    assert marked[texts[2]] == [[10.0, 1.0]]
    caption = pictures.surface(shown).caption
    assert "2 of 9 candidates: dropped after a round on fewer points." in caption
    assert "1 of 9 candidates: not tried: larger C had become worse." in caption


def test_a_curve_over_C_marks_what_was_not_judged_too() -> None:
    status = ["done", "done", "dropped", "failed"]
    shown = SurfaceDisplay([0.1, 1.0, 10.0, 100.0], [0.5, 0.7, 0.9, np.nan], status=status)
    assert shown.best_ == 1
    assert legend_texts(shown.plot().ax_)[1:] == ["dropped after a round on fewer points (1)", "without a score (1)"]


def test_the_report_of_a_search_by_halving_marks_the_candidate_of_its_machine(halved: TunedSVC) -> None:
    tuned = halved
    shown = SurfaceDisplay.of(tuned)
    assert shown is not None
    assert "dropped" in shown.status
    assert shown.C[shown.best_] == tuned.best_estimator_.C
    assert shown.width[shown.best_] == tuned.best_params_["sigma"]


def test_a_surface_without_any_score_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no finite value"):
        SurfaceDisplay([1.0], [np.nan])


# Places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "tables", "wide", "figures"), [*product((0, 1), range(4), (0, 1), range(5))])
def test_no_part_of_a_section_stands_alone_in_a_row(words: int, tables: int, wide: int, figures: int) -> None:
    """With words every row of two columns is full; without them only the last can be half empty."""
    every = [Table("t", []) for _ in range(tables)] + [Table("w", [], wide=True) for _ in range(wide)]
    section = Section("id", "title", ["words"] * words, every, ["f"] * figures)
    parts = [("row" if section.texts_fill_a_row else "half")] * words + ["half"] * len(section.narrow_tables)
    rest = ["half"] * figures, ["row"] * len(section.wide_tables)
    parts += [*rest[0], *rest[1]] if section.figures_first else [*rest[1], *rest[0]]
    alone, open_row = 0, False
    for part in parts:
        if part == "row":
            alone, open_row = alone + open_row, False
        else:
            open_row = not open_row
    assert alone + open_row <= (0 if words else 1)
