"""The report: one HTML file that needs nothing else.

`write_report` asks what the machine does on points it has not seen, draws what there is to draw, and fills
the page; a section that has nothing to show is left out.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from mercer import versions
from mercer.data import Dataset
from mercer.errors import InvalidInput
from mercer.problems.certificate import gap_text
from mercer.report import classification, ink, ordered, pictures, words
from mercer.report.convergence import ConvergenceDisplay
from mercer.report.cross import CrossPlotDisplay
from mercer.report.estimates import HeldOut, bootstrap, held_out, held_out_order, per_class, wilson
from mercer.report.importance import SHOWN, feature_groups, measure_importance
from mercer.report.influence import influential
from mercer.report.learning import measure_learning
from mercer.report.machine import certified, has_bounds, inner, inside, task_of
from mercer.report.margins import MarginDisplay
from mercer.report.page import Key, Page, Section, Table, render, write_atomically
from mercer.report.pictures import Picture
from mercer.report.surface import SurfaceDisplay

LARGEST_LEAVE_ONE_OUT = 6000
MOST_CLASSES_BESIDE = 8  # classes whose table stands beside another one
CANDIDATES = 8  # shown of a search


def write_report(
    path: str | os.PathLike[str],
    machine: Any,
    X: Any,
    y: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    *,
    groups: Any = None,
    groups_test: Any = None,
    tuned: Any = None,
    title: str | None = None,
    command: str | None = None,
    seconds: float | Mapping[str, float] | None = None,
    data_name: str = "the data",
    feature_names: Sequence[str] | None = None,
    other_machine: Any = None,
    source: Dataset | None = None,
    notes: Sequence[str] = (),
    sample_weight: Any = None,
    time_limit: float = 60.0,
    random_state: int = 0,
) -> Path:
    """Write the report of a fitted machine to `path`, one HTML file, and return its path.

    `machine` is fitted; it may also be a pipeline or a search around a machine, or the result of `mercer.tune`.
    X (n, d) and y (n,) are the points and targets it was trained on; y may be left out for a one-class machine.
    X_test, y_test are held-out points; without them leave-one-out or cross-validation estimates the error.  `groups`
    and `groups_test` are the queries of both, for a machine that learns an order.  `tuned` is the search that chose the
    parameters, where the machine does not carry it itself.

    `title`, `data_name` and `notes` (sentences on what was done and why) are words for the page, `command` is what to
    type to get the same result, `seconds` the time of the training, or {what: seconds}.  `feature_names` are d names,
    `other_machine` is a second fitted machine, whose outputs are set against those of the first, `sample_weight` (n,)
    the weights of the training, which scale the bounds of the coefficients.  `source` is the data set of n points from
    which X was made, as `mercer.data.read` gives it: points are then told by their line or row in its file, and with
    the values they have there, not the scaled ones of X.  `time_limit` is in seconds, for everything that trains or
    predicts again (cross-validation, permutations, learning curve).
    """
    if hasattr(machine, "best_machine"):
        machine, tuned = machine.best_machine, machine if tuned is None else tuned
    y = None if y is None else _one_target(y, "y")
    y_test = None if y_test is None else _one_target(y_test, "y_test")
    if y is None and task_of(machine) != "outliers":
        raise InvalidInput("y: the report of a supervised machine needs the training targets")
    page, began = Page(), time.perf_counter()
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if source is not None and source.n != n:
        raise InvalidInput(f"source has {source.n} points where X has {n}: give the data set that X was made from")
    names = feature_names if feature_names is not None else _names(machine, X, source)
    _done(page, machine, X, n, X_test, data_name, tuned, notes)
    if task_of(machine) == "order":
        with page.timed("error estimate"):
            held = held_out_order(machine, X, y, groups, X_test, y_test, random_state=random_state)
        ordered.of_order(page, held, groups if X_test is None else groups_test)
    else:
        _estimate(page, machine, X, y, X_test, y_test, time_limit, random_state)
    _certificate(page, machine, X, y)
    _choice(page, machine, tuned)
    _points(page, machine, X, y, names, sample_weight, source, data_name)
    _features(page, machine, X, y, X_test, y_test, names, source, time_limit / 3.0, random_state)
    _other(page, machine, other_machine, X, y, X_test, y_test)
    _growth(page, machine, X, y, time_limit / 3.0, random_state)
    page.seconds["everything"] = time.perf_counter() - began
    _facts(page, machine, seconds, command)
    name = type(inner(machine)).__name__
    text = render(page, title or f"{name} on {data_name}")
    return write_atomically(path, text)


def _names(machine: Any, X: Any, source: Dataset | None) -> Sequence[str] | None:
    """Names of the features, by the data set, the table X, or the machine; without any, numbers as the file counts."""
    if source is not None and source.feature_names is not None:
        return source.feature_names
    found = getattr(X, "columns", None)
    found = getattr(machine, "feature_names_in_", None) if found is None else found
    if found is None and source is not None and source.origin is not None and len(getattr(X, "shape", ())) == 2:
        return [f"feature {j + source.origin.first_feature}" for j in range(X.shape[1])]
    return None if found is None else [str(name) for name in found]


def _one_target(y: Any, name: str) -> Any:
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    if y.ndim != 1:
        raise InvalidInput(f"{name} has the shape {y.shape}: a report is about one target; write one for each column")
    return y


# The parts -------------------------------------------------------------------------------------------------------


def _done(
    page: Page, machine: Any, X: Any, n: int, X_test: Any, data_name: str, tuned: Any, notes: Sequence[str]
) -> None:
    kind = getattr(inner(machine), "_kind", "features")
    d = int(X.shape[1]) if kind == "features" and len(getattr(X, "shape", ())) == 2 else None
    tests = None if X_test is None else int(X_test.shape[0] if hasattr(X_test, "shape") else len(X_test))
    texts = words.story(machine, n, d, tests, data_name, tuned is not None or hasattr(machine, "cv_results_"))
    if getattr(tuned, "reason", None):
        texts.append(f"Why this machine: {tuned.reason}.")
    table = Table("The machine and its parameters", words.parameters(machine))
    page.add(Section("done", "What was done, and why", [*texts, *notes], [table]))


def _estimate(
    page: Page, machine: Any, X: Any, y: Any, X_test: Any, y_test: Any, time_limit: float, random_state: int
) -> None:
    if task_of(machine) == "outliers":
        _of_outliers(page, machine, X, X_test, y_test)
        return
    with page.timed("error estimate"):
        held = held_out(machine, X, y, X_test, y_test, time_limit=time_limit, random_state=random_state)
    with page.timed("pictures of held-out outputs"):
        if task_of(machine) == "regression":
            _of_numbers(page, held)
        elif task_of(machine) == "ranks":
            tests = X_test is not None and y_test is not None
            shown = (X_test, y_test, "the test points") if tests else (X, y, "the training points")
            ordered.of_ranks(page, held, machine, *shown)
        else:
            _of_classes(page, held, machine.classes_)


def _how(held: HeldOut) -> str:
    text = f"Everything here comes from {held.how}: no point was judged by a machine that had seen it."
    if "test" not in held.how:
        text += " Parameters that were chosen on the same points make such an estimate a little hopeful."
    return text


def _of_classes(page: Page, held: HeldOut, classes: Any) -> None:
    right = int(np.sum(held.predicted == held.y))
    share = wilson(right, len(held.y))
    largest = np.unique(held.y, return_counts=True)[1].max() / len(held.y)
    rows = [
        ("accuracy", f"{share.value:.4f}"),
        ("95 % interval (Wilson)", f"{share.low:.4f} to {share.high:.4f}"),
        ("errors", f"{len(held.y) - right} of {len(held.y)}"),
        ("always saying the largest class", f"{largest:.4f}"),
    ]
    page.key.append(Key("accuracy", f"{share.value:.1%}", f"95 %: {share.low:.1%} to {share.high:.1%}; {held.how}"))
    shown = _shown(held, classes)
    tables = [Table("Accuracy on held-out points", rows), _each_class(held, classes, shown)]
    page.add(Section("error", "Error estimate", [_how(held)], tables), *pictures.of_classes(held, classes, shown))


def _shown(held: HeldOut, classes: Any) -> Any:
    """The classes that have curves and colours, the same in all pictures; None for all."""
    if len(classes) <= classification.MOST:
        return None
    return classification.worst(held.y, held.outputs, classes)


def _each_class(held: HeldOut, classes: Any, shown: Any) -> Table:
    """Precision and recall of every class, with its colour in the pictures."""

    def share(value: float, otherwise: str) -> str:
        return f"{value:.3f}" if np.isfinite(value) else otherwise

    found = per_class(held.y, held.predicted, classes)
    colours = classification.colours(classes, shown)
    rows = []
    for c in found:
        shares = share(c.precision, "never predicted"), share(c.recall, "no points"), share(c.f1, "")
        rows.append((str(c.label), *shares, str(c.points)))
    return Table(
        "Each class: the share that is right where it is predicted, and the share of its points that is found",
        rows,
        ("class", "precision", "recall", "f1", "points"),
        [ink.VARIABLES.get(colours.get(c.label, ""), "") for c in found],
        wide=len(found) > MOST_CLASSES_BESIDE,
    )


def _of_numbers(page: Page, held: HeldOut) -> None:
    found = bootstrap(held.y, held.predicted)
    rows = [(name, f"{i.value:.4g}", f"{i.low:.4g} to {i.high:.4g}") for name, i in found.items()]
    if "R2" in found:
        i = found["R2"]
        page.key.append(Key("R2", f"{i.value:.3f}", f"95 %: {i.low:.3f} to {i.high:.3f}; {held.how}"))
    table = Table("Errors on held-out points", rows, ("measure", "value", "95 % interval (bootstrap)"))
    page.add(Section("error", "Error estimate", [_how(held)], [table]), *pictures.of_numbers(held))


def _of_outliers(page: Page, machine: Any, X: Any, X_test: Any, y_test: Any) -> None:
    """Without labels, the share outside; with labels 1 and -1 of test points, the pictures of two classes."""
    outside = np.asarray(machine.predict(X)) < 0
    share = wilson(int(outside.sum()), len(outside))
    rows = [("training points outside", f"{int(outside.sum())} of {len(outside)}, {share.value:.4f}")]
    if hasattr(inner(machine), "nu"):
        rows.append(("bound on that share, nu", words.number(float(inner(machine).nu))))
    page.key.append(Key("outside the region", f"{share.value:.1%}", "of the training points"))
    figures: list[Picture] = []
    if X_test is not None:
        said = np.asarray(machine.predict(X_test))
        new = wilson(int(np.sum(said < 0)), len(said))
        rows.append(("test points outside", f"{new.value:.4f} (95 %: {new.low:.4f} to {new.high:.4f})"))
        if y_test is not None and set(np.unique(y_test)) <= {-1, 1}:
            values = np.asarray(machine.decision_function(X_test), dtype=np.float64)
            held = HeldOut(np.asarray(y_test), said, values, f"{len(said)} test points")
            right = wilson(int(np.sum(said == held.y)), len(said))
            rows.append(("test points judged rightly", f"{right.value:.4f} ({right.low:.4f} to {right.high:.4f})"))
            figures = pictures.of_classes(held, np.array([-1, 1]))
    text = "A one-class machine has no errors to count, but the share of points it leaves outside is bounded by nu."
    page.add(Section("error", "Points inside and outside", [text], [Table("Shares of points", rows)]), *figures)


def _certificate(page: Page, machine: Any, X: Any, y: Any) -> None:
    found = certified(machine)
    if found is None:
        return
    mood = "good" if found.stopped in ("converged", "") and not np.isnan(found.relative) else "bad"
    note = "largest possible distance from the optimum"
    page.key.append(Key("relative gap", gap_text(found.relative), note, mood))
    with page.timed("convergence"):
        display = None if np.isnan(found.relative) else ConvergenceDisplay.of(machine, X, y)
    texts = [text for text in words.certificate_text(found) if text]
    section = Section("certificate", "The certificate", texts, [Table("Certificate", words.certificate_rows(found))])
    page.add(section, *([] if display is None else [pictures.convergence(display)]))


def _choice(page: Page, machine: Any, tuned: Any) -> None:
    candidates = [inner(machine), tuned, machine]
    found = next((s for c in candidates if c is not None and (s := SurfaceDisplay.of(c)) is not None), None)
    if found is None or len(found.C) < 2:
        return
    order = np.argsort(-found.values if found.larger_is_better else found.values, kind="stable")
    order = order[(found.status[order] == "done") & np.isfinite(found.values[order]) & (order != found.best_)]
    rows: dict[tuple[str, ...], None] = {}  # a descent may come to the same place again
    for place in [found.best_, *order]:
        width = [] if found.width is None else [words.number(found.width[place])]
        rows[words.number(found.C[place]), *width, words.number(found.values[place])] = None
    headings = ["C", *([] if found.width is None else [found.width_name]), found.criterion]
    caption = "The candidate chosen, and the best of the others that were judged on all points"
    section = Section(
        "choice", "Choice of parameters", words.choice_text(found), [Table(caption, [*rows][:CANDIDATES], headings)]
    )
    page.add(section, pictures.surface(found))


def _points(
    page: Page, machine: Any, X: Any, y: Any, names: Sequence[str] | None, sample_weight: Any,
    source: Dataset | None, data_name: str,
) -> None:  # fmt: skip
    if task_of(machine) in ("ranks", "order"):  # no margins of single points, and every one may carry the function
        return
    found, points = inside(machine, X)
    if has_bounds(found):
        count = int(np.sum(found.n_support_))
        page.key.append(Key("support vectors", f"{count}", f"of {found.shape_fit_[0]} training points"))
    with page.timed("margins and influence"):
        display = MarginDisplay.of(machine, X, y, sample_weight=sample_weight)
        section = Section("points", "What the machine rests on", words.margins_text(display))
        classes = task_of(machine) in ("binary", "classes")
        if display.groups is None:
            caption = f"Training points, {display.name}"
            section.tables.append(Table(caption, words.spread_rows(display.margins)))
        else:
            headings = ("class" if classes else "points", "no support vector", "unbounded", "bounded")
            rows = words.group_rows(display, y if classes else None)
            section.tables.append(Table("Training points by what they are to the machine", rows, headings))
        n = len(display.margins)
        if display.groups is not None or (hasattr(type(found), "leave_one_out") and n <= LARGEST_LEAVE_ONE_OUT):
            table = influential(
                found, points, y, feature_names=names, values=X if source is None else source.X,
                origin=None if source is None else source.origin,
            )  # fmt: skip
            caption = (
                f"Points to check first for wrong labels and slips, of {data_name}: the most influential training "
                f"points ({table.rule}); {table.counted}. Unusual features in their own units, with their distance "
                "from the mean in standard deviations."
            )
            section.tables.append(Table(caption, table.rows, table.headings, wide=True))
        page.add(section, pictures.margins(display))


def _other(page: Page, machine: Any, other: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    if other is None:
        return
    tests = X_test is not None and (y_test is not None or task_of(machine) != "classes")
    where, labels = (X_test, y_test) if tests else (X, y)
    with page.timed("cross plot"):
        display = CrossPlotDisplay.of(machine, other, where, labels)
    texts, rows = words.comparison(machine, other, where, labels, "test" if tests else "training", display.correlation)
    section = Section("other", "Against another machine", texts, [Table("The two machines", rows)])
    page.add(section, pictures.cross(display))


def _features(
    page: Page, machine: Any, X: Any, y: Any, X_test: Any, y_test: Any, names: Sequence[str] | None,
    source: Dataset | None, time_limit: float, random_state: int,
) -> None:  # fmt: skip
    groups = None if source is None else feature_groups(source)
    with page.timed("permutation importance"):
        found = measure_importance(
            machine, X, y, X_test, y_test, names=names, groups=groups, time_limit=time_limit, random_state=random_state
        )
    if found is None:
        return
    means, spread = found.losses.mean(axis=1), found.losses.std(axis=1)
    rows = [(name, f"{m:z.4f}", f"{s:.4f}") for name, m, s in zip(found.names[:SHOWN], means, spread)]
    table = Table(
        f"Loss of {found.score_name} when a feature is permuted, over {found.losses.shape[1]} permutations",
        rows,
        ("feature", "mean", "standard deviation"),
    )
    section = Section("features", "Which features matter", words.importance_text(found), [table])
    page.add(section, pictures.importance(found))


def _growth(page: Page, machine: Any, X: Any, y: Any, time_limit: float, random_state: int) -> None:
    if task_of(machine) in ("outliers", "order"):
        return
    with page.timed("learning curve"):
        curve = measure_learning(machine, X, y, time_limit=time_limit, random_state=random_state)
    if curve is None:
        return
    means = (curve.train_scores.mean(axis=1), curve.test_scores.mean(axis=1), curve.test_scores.std(axis=1))
    rows = [(f"{size}", *(f"{value:.3f}" for value in values)) for size, *values in zip(curve.sizes, *means)]
    headings = ("training points", f"{curve.score_name} on them", "on held-out points", "standard deviation")
    table = Table(f"Mean {curve.score_name} over {curve.test_scores.shape[1]} random splits", rows, headings)
    section = Section("growth", "Would more points help?", [words.growth_text(curve)], [table])
    page.add(section, pictures.learning(curve))


def _facts(page: Page, machine: Any, seconds: Any, command: str | None) -> None:
    timings = words.timing_rows(seconds, certified(machine), page.seconds)
    page.add(Section("timings", "Timings", [], [Table("Seconds on this machine", timings)], half=True))
    known = versions.facts()
    rows = [("mercer", mercer.__version__), ("python", known["mercer"]["python"].partition(" ")[0])]
    rows += [(name, known["machine"][name]) for name in ("system", "processor", "threads")]
    rows += list(known["linear algebra"].items()) + list(known["packages"].items())
    rows += [(name, known["optional packages"][name]) for name in ("matplotlib", "jinja2")]
    page.add(Section("versions", "Versions", [], [Table("What this result stands on", rows)], half=True))
    if command:
        text = "This repeats the result, on the same machine with the same number of threads to the last digit."
        page.add(Section("repeat", "To repeat it", [text], command=command))
