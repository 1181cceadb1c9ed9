"""Every picture draws the numbers it should: the data of the axes are compared, not pixels."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import auc, confusion_matrix, roc_auc_score, roc_curve
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.errors import InvalidInput
from mercer.report import (
    ConvergenceDisplay,
    CrossPlotDisplay,
    MarginDisplay,
    SurfaceDisplay,
    calibrated,
    held_out,
    influential,
    measure_learning,
    plot_calibration,
    plot_confusion,
    plot_convergence,
    plot_cross,
    plot_learning_curve,
    plot_margins,
    plot_precision_recall,
    plot_predictions,
    plot_residuals,
    plot_roc,
    plot_surface,
)
from mercer.report.machine import groups, inner
from mercer.svm import SVC

CLASSIFIERS = ["binary", "pairs", "one against the rest", "nu"]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_margins_keep_the_optimality_conditions_of_their_groups(name: str, machines: Any) -> None:
    machine, X, y = machines[name]
    shown = MarginDisplay.from_estimator(machine, X, y)
    assert shown.groups is not None
    tolerance = 1e-3
    assert (shown.margins[shown.groups == 0] >= 1.0 - tolerance).all()
    if name != "nu" and len(machine.classes_) == 2:
        np.testing.assert_allclose(shown.margins[shown.groups == 1], 1.0, atol=tolerance)
    assert (shown.margins[shown.groups == 2] <= 1.0 + tolerance).all()
    assert set(np.flatnonzero(shown.groups)) == set(machine.support_)
    assert (shown.groups[shown.margins < 0.0] == 2).all()


@pytest.mark.parametrize("name", ["binary", "least squares", "pairs", "regression", "one class"])
def test_margin_bars_count_every_point_once(name: str, machines: Any) -> None:
    machine, X, y = machines[name]
    shown = MarginDisplay.from_estimator(machine, X, y)
    bars = sum(patch.get_height() for container in shown.ax_.containers for patch in container.patches)
    assert bars == len(X) == sum(int(counts.sum()) for counts in shown.counts_.values())


def test_bounded_support_vectors_follow_class_and_sample_weights(heart: Any) -> None:
    X, y = heart
    weights = np.where(np.arange(len(y)) % 2, 0.5, 2.0)
    machine = SVC(C=0.3, class_weight={-1: 1.0, 1: 3.0}, tol=1e-6).fit(X, y, sample_weight=weights)
    box = 0.3 * weights * np.where(y == 1, 3.0, 1.0)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    expected = np.where(alpha >= box * (1 - 1e-6), 2, np.where(alpha > 0, 1, 0))
    np.testing.assert_array_equal(groups(machine, y, len(y), weights), expected)


def test_regression_margins_are_residuals_with_the_tube(machines: Any) -> None:
    machine, X, y = machines["regression"]
    shown = MarginDisplay.from_estimator(machine, X, y)
    np.testing.assert_allclose(shown.margins, y - machine.predict(X))
    assert shown.edges == (-0.5, 0.5)
    assert (np.abs(shown.margins[shown.groups == 0]) <= 0.5 + 1e-3).all()
    assert (np.abs(shown.margins[shown.groups == 2]) >= 0.5 - 1e-3).all()


def test_margins_of_a_supervised_machine_need_targets(svc: SVC, heart: Any) -> None:
    with pytest.raises(InvalidInput, match="targets"):
        plot_margins(svc, heart[0])


def test_cross_plot_puts_one_output_against_the_other(svc: SVC, lssvc: Any, heart: Any) -> None:
    X, y = heart
    shown = CrossPlotDisplay.from_estimator(svc, lssvc, X, y)
    drawn = np.vstack([collection.get_offsets() for collection in shown.ax_.collections])
    expected = np.column_stack([svc.decision_function(X), lssvc.decision_function(X)])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    assert shown.correlation == pytest.approx(np.corrcoef(expected.T)[0, 1])
    assert plot_cross(svc, lssvc, X, y).get_xlabel() == "output of SVC"


def test_cross_plot_refuses_machines_for_different_things(machines: Any) -> None:
    svc, X, _ = machines["binary"]
    with pytest.raises(InvalidInput, match="different"):
        CrossPlotDisplay.from_estimator(svc, machines["one class"][0], X)


def test_traced_convergence_ends_at_the_gap_of_the_fit(svc: SVC, heart: Any) -> None:
    shown = ConvergenceDisplay.from_estimator(svc, *heart)
    assert (np.diff(shown.iterations) >= 0).all()
    assert shown.iterations[-1] == np.sum(svc.n_iter_)
    assert shown.primal[-1] == pytest.approx(svc.objective_)
    assert shown.relative_gap_[-1] < 1e-2 * shown.relative_gap_[0]
    line = plot_convergence(svc, *heart).lines[0]
    np.testing.assert_allclose(line.get_ydata(), shown.relative_gap_)


def test_convergence_shows_the_history_of_a_long_fit() -> None:
    records = [SimpleNamespace(iteration=i, primal=2.0 + 1.0 / i, dual=2.0 - 1.0 / i) for i in range(1, 9)]
    machine = SimpleNamespace(solution_=SimpleNamespace(history=records, seconds=2.0))
    shown = ConvergenceDisplay.from_estimator(machine)
    np.testing.assert_allclose(shown.relative_gap_, [2.0 / i / (2.0 + 1.0 / i) for i in range(1, 9)])


def test_a_direct_solver_has_no_convergence(lssvc: Any, heart: Any) -> None:
    assert ConvergenceDisplay.of(lssvc, *heart) is None
    with pytest.raises(InvalidInput, match="history"):
        plot_convergence(lssvc)


def test_surface_of_a_path_is_the_path(lssvc: Any) -> None:
    shown = SurfaceDisplay.from_estimator(lssvc)
    assert shown.width is None
    assert shown.C[shown.best_] == pytest.approx(lssvc.C_)
    np.testing.assert_allclose(np.sort(shown.ax_.lines[0].get_ydata()), np.sort([p.value for p in lssvc.loo_surface_]))


def test_surface_of_a_grid_search_is_its_table(heart: Any) -> None:
    X, y = heart
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.01, 0.1]}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3).fit(X, y)
    shown = SurfaceDisplay.of(search)
    assert shown is not None
    C, width, values = shown.grid()
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        row, column = np.searchsorted(width, parameters["svc__gamma"]), np.searchsorted(C, parameters["svc__C"])
        assert values[row, column] == score
    assert shown.values[shown.best_] == search.best_score_
    assert type(inner(search)) is SVC
    mesh = plot_surface(search).collections[0]
    np.testing.assert_allclose(np.asarray(mesh.get_array()).ravel(), values.ravel())


def test_surface_takes_a_search_by_its_table_and_the_best_over_what_is_not_shown() -> None:
    parameters = [{"C": C, "sigma": s, "epsilon": e} for C in (1.0, 2.0) for s in (1.0, 3.0) for e in (0.1, 0.2)]
    scores = np.arange(8.0)
    source = SimpleNamespace(table=lambda: {"params": parameters, "mean_test_score": scores})
    shown = SurfaceDisplay.from_estimator(source)
    np.testing.assert_array_equal(shown.grid()[2], [[1.0, 5.0], [3.0, 7.0]])


def test_nothing_searched_is_no_surface(svc: SVC) -> None:
    assert SurfaceDisplay.of(svc) is None
    with pytest.raises(InvalidInput, match="nothing was searched"):
        plot_surface(svc)


def test_roc_curves_are_those_of_each_class_against_the_rest(machines: Any) -> None:
    machine, X, y = machines["pairs"]
    held = held_out(machine, X, y)
    lines = plot_roc(held.y, held.outputs, machine.classes_).lines
    for j, label in enumerate(machine.classes_):
        x, t = lines[j].get_xdata(), lines[j].get_ydata()
        assert auc(x, t) == pytest.approx(roc_auc_score(y == label, held.outputs[:, j]))
    assert len(plot_precision_recall(held.y, held.outputs, machine.classes_).lines) == 3


def test_binary_roc_is_that_of_the_second_class(svc: SVC, heart: Any) -> None:
    X, y = heart
    values = svc.decision_function(X)
    line = plot_roc(y, values, svc.classes_).lines[0]
    fpr, tpr, _ = roc_curve(y, values, pos_label=svc.classes_[1])
    np.testing.assert_allclose(line.get_xdata(), fpr)
    np.testing.assert_allclose(line.get_ydata(), tpr)


def test_only_the_worst_of_many_classes_are_drawn() -> None:
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 20)
    values = random.normal(size=(240, 12)) + 2.0 * (y[:, None] == np.arange(12)) * (np.arange(12) >= 8)
    names = [line.get_label() for line in plot_roc(y, values, np.arange(12)).lines]
    assert [name.split()[0] for name in names] == [str(j) for j in range(8)] + ["chance"]


def test_confusion_cells_hold_the_counts(machines: Any) -> None:
    machine, X, y = machines["pairs"]
    predicted = machine.predict(X)
    written = [int(text.get_text()) for text in plot_confusion(y, predicted, machine.classes_).texts]
    np.testing.assert_array_equal(np.reshape(written, (3, 3)), confusion_matrix(y, predicted))


def test_calibrated_probabilities_are_calibrated(heart: Any) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=4000)
    y = (random.random(4000) < 1.0 / (1.0 + np.exp(-2.0 * values))).astype(int)
    p = calibrated(y, values, [0, 1])
    line = plot_calibration(y, p, [0, 1]).lines[0]
    np.testing.assert_allclose(line.get_xdata(), line.get_ydata(), atol=0.06)


@pytest.mark.parametrize("k", [2, 3])
def test_the_calibration_of_a_point_does_not_know_its_label(k: int) -> None:
    """Its probabilities stay the same whatever its own label is: the sigmoid was fitted to other points."""
    random = np.random.default_rng(0)
    y, classes = random.integers(0, k, 40), np.arange(k)
    values = random.normal(size=(40, k)) + 1.5 * (y[:, None] == classes)
    outputs = values[:, 1] - values[:, 0] if k == 2 else values
    p = calibrated(y, outputs, classes)
    others = np.zeros(40)
    for i in range(40):
        flipped = y.copy()
        flipped[i] = (y[i] + 1) % k
        again = calibrated(flipped, outputs, classes)
        np.testing.assert_array_equal(again[i], p[i])
        others += np.abs(again - p).reshape(40, -1).max(axis=1)
    assert (others > 0.0).all()  # the labels of the others do count


def test_calibrated_probabilities_of_classes_sum_to_one(machines: Any) -> None:
    machine, X, y = machines["pairs"]
    p = calibrated(y, machine.decision_function(X), machine.classes_)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_regression_pictures_show_targets_and_residuals(machines: Any) -> None:
    machine, X, y = machines["regression"]
    f = machine.predict(X)
    shown = plot_predictions(y, f).collections[0].get_offsets()
    np.testing.assert_allclose(np.sort(shown[:, 0]), np.sort(f))
    shown = plot_residuals(y, f).collections[0].get_offsets()
    np.testing.assert_allclose(np.sort(shown[:, 1]), np.sort(y - f))


def test_learning_curve_grows_and_keeps_its_time(svc: SVC, heart: Any) -> None:
    curve = measure_learning(svc, *heart)
    assert curve is not None
    assert curve.complete
    assert (np.diff(curve.sizes) > 0).all()
    assert curve.test_scores.mean(axis=1)[-1] > 0.7
    ax = plot_learning_curve(svc, *heart)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), curve.test_scores.mean(axis=1))
    assert measure_learning(svc, *heart, time_limit=0.0) is None


def test_influential_points_have_the_largest_coefficients(svc: SVC, heart: Any) -> None:
    X, y = heart
    table = influential(svc, X, y, count=5)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    np.testing.assert_allclose(np.sort(alpha[table.index]), np.sort(alpha)[-5:], rtol=1e-5)
    margins = (y * svc.decision_function(X))[table.index]
    assert (np.diff(margins) >= 0).all()


def test_influential_points_of_least_squares_have_the_largest_leave_one_out_residuals(lssvc: Any, heart: Any) -> None:
    table = influential(lssvc, *heart, count=4)
    np.testing.assert_array_equal(table.index, np.argsort(-np.abs(lssvc.loo_residuals_))[:4])


def test_unusual_features_are_named() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    X[7] = [-1.0, 9.0, 0.0]
    y = np.where(X[:, 0] > 0, 1, -1)
    y[7] = 1
    machine = SVC(C=1.0, kernel="linear").fit(X, y)
    found = influential(machine, X, y, count=60, feature_names=["a", "b", "c"])
    rows = {int(row[0]): row[-1] for row in found.rows}
    assert rows[7].startswith("b = 9")
    assert all(text.count(" sd)") == 3 for text in rows.values())
