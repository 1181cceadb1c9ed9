"""What was done and why, in sentences."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.report.machine import Certified, inner, task_of

WHY = {
    "SVC": "The hinge loss costs nothing past the margin, so that the machine rests on its support vectors alone; C is "
    "the price of falling short of the margin.",
    "NuSVC": "nu bounds the share of margin errors from above and the share of support vectors from below.",
    "SVR": "Errors inside a tube of half-width epsilon cost nothing, so that only points on or outside it carry the "
    "machine.",
    "NuSVR": "The width of the tube is found by the machine, so that at most a share nu of the points lies outside.",
    "OneClassSVM": "The machine draws the smallest region that holds all but a share nu of the points.",
    "LSSVC": "The square loss makes training one linear system, and its leave-one-out error is exact and nearly free.",
    "LSSVR": "The square loss makes training one linear system, and its leave-one-out error is exact and nearly free.",
}
WHAT = {
    "binary": "to tell two classes apart",
    "classes": "to tell {k} classes apart",
    "regression": "to predict a number",
    "outliers": "to find the region where the points are",
}
STOPPED = {
    "converged": "The solver met its tolerance.",
    "iterations": "The solver reached its limit of iterations before its tolerance.",
    "time": "The time limit ended training; the best solution so far is kept.",
    "interrupted": "Training was interrupted; the best solution so far is kept.",
    "stalled": "The solver could not come closer in floating-point arithmetic.",
}
PARAMETERS = ("C", "nu", "epsilon", "kernel", "bias", "multiclass", "class_weight", "tol", "precision")


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
    """The kernel with its parameters."""
    found = inner(machine)
    kernel = getattr(found, "kernel_", None) or getattr(found, "_kernel", None) or getattr(found, "kernel", "")
    return kernel if isinstance(kernel, str) else repr(kernel)


def parameters(machine: Any) -> list[tuple[str, str]]:
    """The parameters that make the machine, with the values that were chosen."""
    found = inner(machine)
    rows = [("machine", type(found).__name__)]
    for name, value in found.get_params(deep=False).items():
        if name not in PARAMETERS or value is None:
            continue
        value = kernel_text(machine) if name == "kernel" else getattr(found, f"{name}_", value)
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
        ("relative gap", f"{found.relative:.3g}"),
        ("stopped", found.stopped),
        ("solver", found.solver),
        ("iterations", f"{found.iterations}"),
    ]
    if found.machines > 1:
        rows.append(("binary machines", f"{found.machines}; the values above are sums over them"))
    return rows


def certificate_text(found: Certified) -> list[str]:
    """What the certificate proves."""
    if found.relative > 0.0:
        distance = f"Its relative distance from the optimum is at most {found.relative:.2g}."
    else:
        distance = "It is optimal to rounding."
    return [
        "The optimum of the training problem lies between the dual and the primal objective, whatever the solver did. "
        + distance,
        STOPPED.get(found.stopped, ""),
    ]


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
