"""The report: one HTML file that needs nothing else.

`write_report` asks what the machine does on points it has not seen, draws what there is to draw, and fills
`template.html`.  All text from outside is escaped by Jinja2; the page forbids itself scripts and foreign resources.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

import mercer
from mercer import versions
from mercer.errors import InvalidInput
from mercer.report import pictures, words
from mercer.report.convergence import ConvergenceDisplay
from mercer.report.cross import CrossPlotDisplay
from mercer.report.estimates import HeldOut, bootstrap, held_out, wilson
from mercer.report.influence import influential
from mercer.report.learning import measure_learning
from mercer.report.machine import certified, has_bounds, inner, inside, task_of
from mercer.report.margins import MarginDisplay
from mercer.report.pictures import Picture
from mercer.report.surface import SurfaceDisplay

LARGEST_LEAVE_ONE_OUT = 6000


@dataclass
class Table:
    """Rows of texts; without headings, names and values."""

    caption: str
    rows: Sequence[Sequence[str]]
    headings: Sequence[str] = ()


@dataclass
class Section:
    """A part of the page, in the order texts, tables, command, pictures."""

    id: str
    title: str
    texts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    command: str = ""


@dataclass
class Key:
    """One of the numbers at the top."""

    name: str
    value: str
    note: str = ""
    mood: str = ""


@dataclass
class Page:
    """What is known so far, and how long it took to find out."""

    sections: list[Section] = field(default_factory=list)
    key: list[Key] = field(default_factory=list)
    figures: dict[str, Picture] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Take note of the time a part takes."""
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def add(self, section: Section, figures: Mapping[str, Picture | None] | None = None) -> None:
        """Append a section that has something to say."""
        for name, found in (figures or {}).items():
            if found is not None:
                self.figures[name] = found
                section.figures.append(name)
        if section.texts or section.tables or section.figures or section.command:
            self.sections.append(section)


def write_report(
    path: str | os.PathLike[str],
    machine: Any,
    X: Any,
    y: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    *,
    tuned: Any = None,
    title: str | None = None,
    command: str | None = None,
    seconds: float | Mapping[str, float] | None = None,
    data_name: str = "the data",
    feature_names: Sequence[str] | None = None,
    other_machine: Any = None,
    notes: Sequence[str] = (),
    sample_weight: Any = None,
    time_limit: float = 60.0,
    random_state: int = 0,
) -> Path:
    """Write the report of a fitted machine to `path`, one HTML file, and return its path.

    `machine` is fitted; it may also be a pipeline or a search around a machine, or the result of `mercer.tune`.
    X (n, d) and y (n,) are the points and targets it was trained on; y may be left out for a one-class machine.
    X_test, y_test are held-out points; without them leave-one-out or cross-validation estimates the error.  `tuned` is
    the search that chose the parameters, where the machine does not carry it itself.

    `title`, `data_name` and `notes` (sentences on what was done and why) are words for the page, `command` is what to
    type to get the same result, `seconds` the time of the training, or {what: seconds}.  `feature_names` are d names,
    `other_machine` is a second fitted machine, whose outputs are set against those of the first, `sample_weight` (n,)
    the weights of the training, which scale the bounds of the coefficients.  `time_limit` is in seconds, for everything
    that trains again (cross-validation, learning curve).
    """
    if hasattr(machine, "best_machine"):
        machine, tuned = machine.best_machine, machine if tuned is None else tuned
    y = None if y is None else _one_target(y, "y")
    y_test = None if y_test is None else _one_target(y_test, "y_test")
    if y is None and task_of(machine) != "outliers":
        raise InvalidInput("y: the report of a supervised machine needs the training targets")
    page, began = Page(), time.perf_counter()
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    _done(page, machine, X, n, X_test, data_name, tuned, notes)
    _estimate(page, machine, X, y, X_test, y_test, time_limit, random_state)
    _certificate(page, machine, X, y)
    _choice(page, machine, tuned)
    _points(page, machine, X, y, feature_names, sample_weight)
    _other(page, machine, other_machine, X, y, X_test, y_test)
    _growth(page, machine, X, y, time_limit / 3.0, random_state)
    page.seconds["everything"] = time.perf_counter() - began
    _facts(page, machine, seconds, command)
    name = type(inner(machine)).__name__
    text = render(page, title or f"{name} on {data_name}")
    return write_atomically(path, text)


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
    page.add(
        Section("error", "Error estimate", [_how(held)], [Table("Accuracy on held-out points", rows)]),
        pictures.of_classes(held, classes),
    )


def _of_numbers(page: Page, held: HeldOut) -> None:
    found = bootstrap(held.y, held.predicted)
    rows = [(name, f"{i.value:.4g}", f"{i.low:.4g} to {i.high:.4g}") for name, i in found.items()]
    if "R2" in found:
        i = found["R2"]
        page.key.append(Key("R2", f"{i.value:.3f}", f"95 %: {i.low:.3f} to {i.high:.3f}; {held.how}"))
    table = Table("Errors on held-out points", rows, ("measure", "value", "95 % interval (bootstrap)"))
    page.add(Section("error", "Error estimate", [_how(held)], [table]), pictures.of_numbers(held))


def _of_outliers(page: Page, machine: Any, X: Any, X_test: Any, y_test: Any) -> None:
    """Without labels, the share outside; with labels 1 and -1 of test points, the pictures of two classes."""
    outside = np.asarray(machine.predict(X)) < 0
    share = wilson(int(outside.sum()), len(outside))
    rows = [("training points outside", f"{int(outside.sum())} of {len(outside)}, {share.value:.4f}")]
    if hasattr(inner(machine), "nu"):
        rows.append(("bound on that share, nu", words.number(float(inner(machine).nu))))
    page.key.append(Key("outside the region", f"{share.value:.1%}", "of the training points"))
    figures: Mapping[str, Picture] = {}
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
    page.add(Section("error", "Points inside and outside", [], [Table("Shares of points", rows)]), figures)


def _certificate(page: Page, machine: Any, X: Any, y: Any) -> None:
    found = certified(machine)
    if found is None:
        return
    mood = "good" if found.stopped in ("converged", "") else "bad"
    shown = f"{found.relative:.1e}" if found.relative > 1e-15 else "< 1e-15"
    page.key.append(Key("relative gap", shown, "largest possible distance from the optimum", mood))
    with page.timed("convergence"):
        display = ConvergenceDisplay.of(machine, X, y)
    texts = words.certificate_text(found)
    if display is None:
        texts.append("There is no course to show: the solver was direct, or too slow to be traced again.")
    page.add(
        Section("certificate", "The certificate", texts, [Table("Certificate", words.certificate_rows(found))]),
        {"convergence": None if display is None else pictures.convergence(display)},
    )


def _choice(page: Page, machine: Any, tuned: Any) -> None:
    candidates = [inner(machine), tuned, machine]
    found = next(
        (s for s in map(SurfaceDisplay.of, filter(lambda c: c is not None, candidates)) if s is not None), None
    )
    if found is not None and len(found.C) > 1:
        page.add(Section("choice", "Choice of parameters"), {"surface": pictures.surface(found)})


def _points(page: Page, machine: Any, X: Any, y: Any, names: Sequence[str] | None, sample_weight: Any) -> None:
    found, points = inside(machine, X)
    if has_bounds(found):
        count = int(np.sum(found.n_support_))
        page.key.append(Key("support vectors", f"{count}", f"of {found.shape_fit_[0]} training points"))
    with page.timed("margins and influence"):
        display = MarginDisplay.of(machine, X, y, sample_weight=sample_weight)
        section = Section("points", "What the machine rests on")
        n = len(display.margins)
        if display.groups is not None or (hasattr(type(found), "leave_one_out") and n <= LARGEST_LEAVE_ONE_OUT):
            names = names if names is not None else getattr(machine, "feature_names_in_", None)
            table = influential(found, points, y, feature_names=names if points is X else None)
            section.texts.append(f"The most influential points ({table.rule}): the first to check for wrong labels.")
            section.tables.append(Table("Most influential training points", table.rows, table.headings))
        page.add(section, {"margins": pictures.margins(display)})


def _other(page: Page, machine: Any, other: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    if other is None:
        return
    tests = X_test is not None and (y_test is not None or task_of(machine) != "classes")
    where, labels = (X_test, y_test) if tests else (X, y)
    with page.timed("cross plot"):
        display = CrossPlotDisplay.of(machine, other, where, labels)
    text = f"Outputs at the {'test' if tests else 'training'} points."
    page.add(Section("other", "Against another machine", [text]), {"cross": pictures.cross(display)})


def _growth(page: Page, machine: Any, X: Any, y: Any, time_limit: float, random_state: int) -> None:
    if task_of(machine) == "outliers":
        return
    with page.timed("learning curve"):
        curve = measure_learning(machine, X, y, time_limit=time_limit, random_state=random_state)
    if curve is not None:
        page.add(Section("growth", "Would more points help?"), {"learning": pictures.learning(curve)})


def _facts(page: Page, machine: Any, seconds: Any, command: str | None) -> None:
    timings = words.timing_rows(seconds, certified(machine), page.seconds)
    page.add(Section("timings", "Timings", [], [Table("Seconds on this machine", timings)]))
    known = versions.facts()
    rows = [("mercer", mercer.__version__), ("python", known["mercer"]["python"].partition(" ")[0])]
    rows += [(name, known["machine"][name]) for name in ("system", "processor", "threads")]
    rows += list(known["linear algebra"].items()) + list(known["packages"].items())
    rows += [(name, known["optional packages"][name]) for name in ("matplotlib", "jinja2")]
    page.add(Section("versions", "Versions", [], [Table("What this result stands on", rows)]))
    if command:
        text = "This repeats the result, on the same machine with the same number of threads to the last digit."
        page.add(Section("repeat", "To repeat it", [text], command=command))


# The file --------------------------------------------------------------------------------------------------------


def render(page: Page, title: str) -> str:
    """The page as HTML."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string(resources.files(__package__).joinpath("template.html").read_text("utf-8"))
    return template.render(
        title=title,
        version=mercer.__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sections=page.sections,
        key=page.key,
        figures=page.figures,
    )


def write_atomically(path: str | os.PathLike[str], text: str) -> Path:
    """Write beside the target and rename, so that nobody ever sees half a file."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_mask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def _mask() -> int:
    """The permissions that new files are not given."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
