"""What was done and why, in sentences."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.problems.certificate import gap_text
from mercer.report.importance import Importance
from mercer.report.learning import LearningCurve
from mercer.report.machine import Certified, inner, task_of
from mercer.report.margins import MarginDisplay
from mercer.report.surface import SurfaceDisplay

WHY = {
    "SVC": "The hinge loss costs nothing past the margin, so that the machine rests on its support vectors alone; C "
    "weighs what points fall short of the margin against its width.",
    "NuSVC": "nu bounds the share of margin errors from above and the share of support vectors from below.",
    "SVR": "Errors inside a tube of half-width epsilon cost nothing, so that only points on or outside it carry the "
    "machine.",
    "NuSVR": "The width of the tube is found by the machine, so that at most a share nu of the points lies outside.",
    "OneClassSVM": "The machine draws the smallest region that holds all but a share nu of the points.",
    "LSSVC": "The square loss makes training one linear system, and its leave-one-out error is exact and nearly free.",
    "LSSVR": "The square loss makes training one linear system, and its leave-one-out error is exact and nearly free.",
    "OrdinalSVC": "One function and a threshold between every two neighbouring ranks: an answer that is two ranks off "
    "costs more than one that is one off, and nothing is assumed about the distances between ranks.",
    "ProportionalOdds": "One function and thresholds give the probability of every rank; its logarithm is the loss.",
    "RankSVM": "Points of one query that differ in rank should differ in utility by one, in the right direction; what "
    "makes a whole query good or bad does not count.",
}
WHAT = {
    "binary": "to tell two classes apart",
    "classes": "to tell {k} classes apart",
    "regression": "to predict a number",
    "outliers": "to find the region where the points are",
    "ranks": "to tell {k} ordered ranks apart",
    "order": "to put points in an order",
}
STOPPED = {
    "converged": "The solver met its tolerance.",
    "stationary": "The solver met its tolerance, which proves nothing where the kernel is not positive definite.",
    "iterations": "The solver reached its limit of iterations before its tolerance.",
    "time": "The time limit ended training; the best solution so far is kept.",
    "interrupted": "Training was interrupted; the best solution so far is kept.",
    "stalled": "The solver could not come closer in floating-point arithmetic.",
}
ROUNDING = 1e-15
LONG_NUMBER = re.compile(r"\d+\.\d{6,}(e[+-]?\d+)?")
PARAMETERS = (
    "C", "nu", "epsilon", "loss", "thresholds", "link", "kernel", "bias", "multiclass", "class_weight", "tol",
    "precision",
)  # fmt: skip


def number(value: float) -> str:
    """A number with four digits that count."""
    return f"{value:.4g}"


def story(machine: Any, n: int, d: int | None, tests: int | None, data_name: str, tuned: bool) -> list[str]:
    """What was trained on what, and why this kind of machine."""
    found, task = inner(machine), task_of(machine)
    kind = type(found).__name__
    k = len(found.classes_) if hasattr(found, "classes_") else 0
    size = f"{n} points" + (f" with {d} features" if d is not None else "")
    texts = [
        f"{_article(kind)} {kind} was trained on {size} of {data_name} {WHAT[task].format(k=k)}."
        + (f" {tests} further points were kept for testing." if tests else "")
    ]
    if kind in WHY:
        texts.append(WHY[kind])
    if tuned or getattr(found, "loo_surface_", None):
        how = "exact leave-one-out" if getattr(found, "loo_surface_", None) else "cross-validation"
        texts.append(f"The parameters were chosen by {how}; the values that were tried are shown below.")
    return texts


def _article(word: str) -> str:
    return "An" if word[0] in "AEFHILMNORSX" and (word[0] in "AEIO" or word[:2].isupper()) else "A"


def kernel_text(machine: Any) -> str:
    """The kernel with its parameters, to six digits."""
    found = inner(machine)
    kernel = getattr(found, "kernel_", None) or getattr(found, "_kernel", None) or getattr(found, "kernel", "")
    return kernel if isinstance(kernel, str) else LONG_NUMBER.sub(lambda found: f"{float(found[0]):.6g}", repr(kernel))


def parameters(machine: Any) -> list[tuple[str, str]]:
    """The parameters that make the machine, with the values that were chosen."""
    found = inner(machine)
    rows = [("machine", type(found).__name__)]
    for name, value in found.get_params(deep=False).items():
        if name not in PARAMETERS or value is None:
            continue
        fitted = value if name == "thresholds" else getattr(found, f"{name}_", value)
        value = kernel_text(machine) if name == "kernel" else fitted
        if name == "class_weight":
            value = getattr(found, "class_weight", value)
        rows.append((name, number(float(value)) if isinstance(value, float | np.floating) else str(value)))
    if hasattr(found, "n_support_"):
        rows.append(("support vectors", f"{int(np.sum(found.n_support_))} of {found.shape_fit_[0]} points"))
    return rows


def certificate_rows(found: Certified) -> list[tuple[str, str]]:
    """The certificate as names and values."""
    rows = [
        ("primal objective", f"{found.primal:.9g}"),
        ("dual objective", f"{found.dual:.9g}"),
        ("duality gap", f"{found.gap:.3g}"),
        ("relative gap", gap_text(found.relative)),
        ("stopped", found.stopped),
        ("solver", found.solver),
        ("iterations", f"{found.iterations}"),
    ]
    if found.machines > 1:
        rows.append(("binary machines", f"{found.machines}; the values above are sums over them"))
    return rows


def certificate_text(found: Certified) -> list[str]:
    """What the certificate proves."""
    if np.isnan(found.relative):
        return [
            "There is no certificate: for a kernel that is not positive definite the dual is no lower bound, and "
            "nothing is known of the distance from the optimum.",
            STOPPED.get(found.stopped, ""),
        ]
    distance = f"Its relative distance from the optimum is at most {gap_text(found.relative)}."
    if found.relative < ROUNDING:
        distance = f"Its relative distance from the optimum is {gap_text(found.relative)}: it is optimal to rounding."
    return [
        "The optimum of the training problem lies between the dual and the primal objective, whatever the solver did. "
        + distance,
        STOPPED.get(found.stopped, ""),
    ]


def choice_text(found: SurfaceDisplay) -> list[str]:
    """What was searched, and how far the search went."""
    direction = "larger" if found.larger_is_better else "smaller"
    texts = [f"{len(found.C)} candidates were tried; the {found.criterion} is better when it is {direction}."]
    if found.explained():
        texts.append("Not all were judged to the end; the one chosen is the best of those that were.")
    return texts


def margins_text(display: MarginDisplay) -> list[str]:
    """How to read the margins of this kind of machine."""
    if display.groups is None:
        return ["Every training point carries a coefficient here. Points far from the others deserve a look."]
    none, unbounded, bounded = np.bincount(display.groups, minlength=3)
    return [
        f"Of {len(display.groups)} training points {bounded} are bounded support vectors, {unbounded} unbounded ones, "
        f"and {none} none, without which the machine would be the same.",
        "Many points at the bound mean that C is small, or that the problem is noisy; nearly all points unbounded mean "
        "that the kernel is too narrow and the points were learnt by heart.",
    ]


def spread_rows(values: Any) -> list[tuple[str, str]]:
    """The smallest of some values, the largest, and what a share of them does not exceed."""
    shares = {0.0: "smallest", 0.05: "5 % below", 0.25: "25 % below", 0.5: "median", 0.75: "75 % below",
              0.95: "95 % below", 1.0: "largest"}  # fmt: skip
    found = np.quantile(values, list(shares))
    return [(name, number(value)) for name, value in zip(shares.values(), found)]


def group_rows(display: MarginDisplay, labels: Any) -> list[tuple[str, ...]]:
    """How many points of each class, or of all where there are none, are in which group."""
    assert display.groups is not None
    named = ["all"] * len(display.groups) if labels is None else labels
    names, place = np.unique(np.asarray(named), return_inverse=True)
    counts = np.zeros((len(names), 3), dtype=np.intp)
    np.add.at(counts, (place, display.groups), 1)
    return [(str(name), *map(str, row)) for name, row in zip(names, counts.tolist())]


def importance_text(found: Importance) -> list[str]:
    """On what the importances were measured, and what they do not say."""
    score = f"{found.score_name} {found.score:.3f}"
    texts = [
        f"Measured at {found.how}, where the machine has {score}: the values of one feature are dealt out anew among "
        "the points, and the score falls by its importance. Of two features that say the same, both may look useless."
    ]
    if len(found.names) < found.features:
        texts.append(
            f"Of {found.features} features the {len(found.names)} most correlated with the outputs were permuted."
        )
    return texts


def growth_text(curve: LearningCurve) -> str:
    """Whether the curve still rises at its end."""
    means, spread = curve.test_scores.mean(axis=1), curve.test_scores.std(axis=1)
    gain, noise = means[-1] - means[-2], max(spread[-1], spread[-2])
    end = f"From {curve.sizes[-2]} to {curve.sizes[-1]} training points the held-out {curve.score_name} "
    if gain > noise:
        return f"{end}rose by {gain:.3f}, more than it varies between splits ({noise:.3f}): more points should help."
    if gain > 0.0:
        return (
            f"{end}rose by {gain:.3f}, less than it varies between splits ({noise:.3f}): more points may help a little."
        )
    return f"{end}did not rise ({gain:+.3f}): more points like these will hardly help."


def comparison(
    machine: Any, other: Any, X: Any, y: Any, where: str, correlation: float
) -> tuple[list[str], list[tuple[str, str]]]:
    """The two machines at the same points: words, and counts of where they agree."""
    one, two = type(inner(machine)).__name__, type(inner(other)).__name__
    rows = [("points", f"{len(np.asarray(y)) if y is not None else X.shape[0]} {where} points")]
    rows.append(("correlation of the outputs", f"{correlation:.3f}"))
    if y is not None and task_of(machine) in ("binary", "classes"):
        first, second = (np.asarray(m.predict(X)) == np.asarray(y) for m in (machine, other))
        rows += [
            ("both right", str(int(np.sum(first & second)))),
            (f"only {one} right", str(int(np.sum(first & ~second)))),
            (f"only {two} right", str(int(np.sum(~first & second)))),
            ("both wrong", str(int(np.sum(~first & ~second)))),
        ]
    text = f"Outputs of the {one} of this report against those of {_article(two).lower()} {two}, at the {where} points."
    return [text], rows


def timing_rows(seconds: Any, solved: Certified | None, own: Mapping[str, float]) -> list[tuple[str, str]]:
    """Timings: those given, that of the solver, and those of the parts of the report."""
    rows: list[tuple[str, str]] = []
    if isinstance(seconds, Mapping):
        rows += [(str(name), f"{float(value):.3g} s") for name, value in seconds.items()]
    elif seconds is not None:
        rows.append(("training, as measured by the caller", f"{float(seconds):.3g} s"))
    if solved is not None:
        rows.append(("solver", f"{solved.seconds:.3g} s"))
    return rows + [(f"report: {name}", f"{value:.3g} s") for name, value in own.items()]
