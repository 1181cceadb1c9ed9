"""Five multiclass schemes on satimage and yeast: Rifkin 2002, Tables 4.1 to 4.7 and Figures 4-1 to 4-3, again.

Run:  MERCER_DATA=folder python studies/multiclass_small.py --work folder     (half an hour on two cores)
      python studies/multiclass_small.py --smoke                               (synthetic data, seconds)

Each part leaves its predictions in the work folder, so that a run that was stopped goes on where it was.

As printed: the data, values of satimage divided by 100, Gaussian kernel, support vector machines, loss-based decoding,
the search for sigma first and then C by doubling and halving from 1 until a local minimum.  Different, because the
thesis seems to have tuned on the test set: the error that is minimised is that of cross-validation inside the training
part.  Added: exact paired tests, intervals, a kernel that fits badly.  Leave-one-out on yeast has a study of its own,
yeast_leave_one_out.py.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays, Work, table
from scheme_findings import findings, sides
from schemes import (
    ALLWEIN,
    PARAMETERS,
    PRINTED,
    SCHEMES,
    SEED,
    agreement_table,
    between,
    code_of,
    difference,
    folds,
    labels_of,
    percent,
    synthetic,
    yeast,
)

from mercer import data
from mercer.multiclass import make_code
from mercer.multiclass.agreement import compare, rate_interval, reverse_distribution
from mercer.multiclass.output_code import OutputCode
from mercer.svm import SVC

Array = NDArray[np.float64]

# Machines -----------------------------------------------------------------------------------------------------------


def held_out(scheme: str, X: Array, y: NDArray[np.intp], sigma: float, C: float, fold: NDArray[np.intp]) -> Array:
    """Outputs (n, machines) at every point of machines trained on the other folds; y are class numbers."""
    classes = int(y.max()) + 1
    outputs = np.zeros((len(y), code_of(scheme, classes).shape[1]))
    for number in np.unique(fold):
        inside = fold != number
        # Rows of classes that the fold lacks are cut from the code, and columns that lose a sign say nothing.
        outputs[~inside] = trained_outputs(scheme, X[inside], y[inside], X[~inside], classes, sigma, C)
    return outputs


def trained_outputs(
    scheme: str, X: Array, y: NDArray[np.intp], new: Array, classes: int, sigma: float, C: float
) -> Array:
    """Outputs (m, machines) at new points; a machine without points of both signs gives zero."""
    M = code_of(scheme, classes)
    present = np.unique(y)
    kept = M[present]
    usable = (kept == 1).any(axis=0) & (kept == -1).any(axis=0)
    outputs = np.zeros((len(new), M.shape[1]))
    model = OutputCode(SVC(C=C, kernel="rbf", gamma=1.0 / (2.0 * sigma**2)), kept[:, usable]).fit(X, y)
    outputs[:, usable] = model.outputs(new)
    return outputs


def search(error: Callable[[float, float], float], start: tuple[float, float] = (1.0, 1.0)) -> tuple[float, float]:
    """Sigma first, then C: doubled or halved while that lowers the error strictly."""
    known: dict[tuple[float, float], float] = {}

    def value(sigma: float, C: float) -> float:
        if (sigma, C) not in known:
            known[sigma, C] = error(sigma, C)
        return known[sigma, C]

    best = start
    for axis in (0, 1):
        for factor in (0.5, 2.0):
            while True:
                moved = (best[0] * factor, best[1]) if axis == 0 else (best[0], best[1] * factor)
                if not value(*moved) < value(*best):
                    break
                best = moved
    return best


def chosen(
    scheme: str, X: Array, y: NDArray[np.intp], start: tuple[float, float], count: int = 5
) -> tuple[float, float]:
    """Parameters of least cross-validated error on the given points."""
    classes, fold = int(y.max()) + 1, folds(y, count, SEED + 1)

    def error(sigma: float, C: float) -> float:
        return float(np.mean(labels_of(scheme, held_out(scheme, X, y, sigma, C, fold), classes) != y))

    return search(error, start)


# Parts: each returns arrays by name ---------------------------------------------------------------------------------

Data = tuple[Array, NDArray[np.intp], Array, NDArray[np.intp]]


def split_scheme(scheme: str, points: Data, start: tuple[float, float], printed: tuple[float, float]) -> Arrays:
    """A scheme on a fixed split, with parameters by cross-validation and with the printed ones."""
    X, y, X_new, _ = points
    classes = int(y.max()) + 1
    sigma, C = chosen(scheme, X, y, start)
    outputs = trained_outputs(scheme, X, y, X_new, classes, sigma, C)
    as_printed = trained_outputs(scheme, X, y, X_new, classes, *printed)
    return {
        "parameters": np.array([sigma, C]),
        "outputs": outputs,
        "predicted": labels_of(scheme, outputs, classes),
        "as_printed": labels_of(scheme, as_printed, classes),
    }


def one_fold(
    scheme: str, X: Array, y: NDArray[np.intp], inside: NDArray[np.bool_], start: tuple[float, float], choose: bool
) -> Arrays:
    """Outputs at the points outside, and the parameters chosen by the points inside."""
    pair = chosen(scheme, X[inside], y[inside], start) if choose else start
    outputs = trained_outputs(scheme, X[inside], y[inside], X[~inside], int(y.max()) + 1, *pair)
    return {"outputs": outputs, "parameters": np.array(pair)}


def fold_scheme(
    work: "Work",
    scheme: str,
    X: Array,
    y: NDArray[np.intp],
    start: tuple[float, float],
    printed: tuple[float, float],
    given: Any,
) -> Arrays:
    """A scheme by ten folds, parameters chosen again inside every nine; `given` (10, 2) spares the choice."""
    classes, fold = int(y.max()) + 1, folds(y, 10, SEED)
    outputs = np.zeros((len(y), code_of(scheme, classes).shape[1]))
    parameters = np.zeros((10, 2))
    for number in range(10):
        inside = fold != number
        near = start if given is None else tuple(given[number])
        found = work.part(
            f"yeast_{scheme}_{number}",
            lambda inside=inside, near=near: one_fold(scheme, X, y, inside, near, given is None),
        )
        outputs[~inside], parameters[number] = found["outputs"], found["parameters"]
        start = tuple(found["parameters"])
    as_printed = held_out(scheme, X, y, *printed, fold)
    return {
        "parameters": parameters,
        "outputs": outputs,
        "predicted": labels_of(scheme, outputs, classes),
        "as_printed": labels_of(scheme, as_printed, classes),
    }


def other_draws(points: Data, seeds: int) -> Arrays:
    """Errors of the two random codes at the printed parameters, by the seed of the code."""
    X, y, X_new, y_new = points
    found: Arrays = {}
    for scheme in ("DEN", "SPA"):
        sigma, C = PARAMETERS["satimage"][scheme]
        base = SVC(C=C, kernel="rbf", gamma=1.0 / (2.0 * sigma**2))
        codes = (make_code(SCHEMES[scheme], int(y.max()) + 1, seed) for seed in range(seeds))
        fits = (OutputCode(base, code).fit(X, y) for code in codes)
        found[scheme] = np.array([np.mean(model.predict(X_new) != y_new) for model in fits])
    return found


def badly_fitting(points: Data, degree: int = 4) -> Arrays:
    """All schemes with the polynomial kernel of the earlier study, C = 1, on the raw values."""
    X, y, X_new, _ = points
    classes = int(y.max()) + 1
    found: Arrays = {}
    for scheme in SCHEMES:
        base = SVC(C=1.0, kernel="poly", degree=degree, gamma=1.0, coef0=1.0, max_iter=200_000)
        model = OutputCode(base, code_of(scheme, classes), "loss").fit(X, y)
        outputs = model.outputs(X_new)
        found[scheme] = labels_of(scheme, outputs, classes)
        found[f"{scheme}_outputs"] = outputs
    return found


def steps(points: Data, limits: Sequence[int], degree: int = 4) -> Arrays:
    """One-versus-all with the same kernel: error, and relative gaps of its machines, by the limit of steps."""
    X, y, X_new, y_new = points
    found: Arrays = {"limits": np.array(limits)}
    for limit in limits:
        base = SVC(C=1.0, kernel="poly", degree=degree, gamma=1.0, coef0=1.0, max_iter=limit)
        model = OutputCode(base, "ova", "loss").fit(X, y)
        found[f"error_{limit}"] = np.array(np.mean(model.predict(X_new) != y_new))
        bank: Any = model.bank_
        solutions = bank.machine.solution_
        found[f"gaps_{limit}"] = np.array([solution.relative_gap for solution in solutions])
        found[f"converged_{limit}"] = np.array([solution.converged for solution in solutions])
    return found


# Report -------------------------------------------------------------------------------------------------------------


def error_table(name: str, y: NDArray[np.intp], parts: dict[str, Arrays]) -> str:
    """Errors beside the printed ones, with the interval and the paired test against one-versus-all."""
    rows = []
    for scheme, found in parts.items():
        wrong = int(np.sum(found["predicted"] != y))
        low, high = rate_interval(wrong, len(y))
        test = compare(y, found["predicted"], parts["OVA"]["predicted"])
        pairs = np.atleast_2d(found["parameters"])
        shown = "; ".join(sorted({f"{sigma:g}, {C:g}" for sigma, C in pairs}))
        rows.append(
            [
                scheme,
                f"{ALLWEIN[name][scheme]}",
                f"{PRINTED[name][scheme]}",
                percent(float(np.mean(found["as_printed"] != y))),
                percent(wrong / len(y)),
                between(low, high),
                difference(test) if scheme != "OVA" else "",
                "{:g}, {:g}".format(*PARAMETERS[name][scheme]),
                shown,
            ]
        )
    head = ["scheme", "Allwein et al.", "Rifkin", "here, printed parameters", "here, parameters by cross-validation"]
    head += ["95 % interval", "against OVA: difference, interval, p", "printed sigma, C", "chosen sigma, C"]
    return table(head, rows)


def sides_table(shares: dict[str, Array]) -> str:
    at = (0.5, 0.7, 0.9, 1.0)
    rows = [
        [scheme, str(len(e)), *(f"{value:.2f}" for value in reverse_distribution(e, at)), f"{np.nanmean(e):.2f}"]
        for scheme, e in shares.items()
    ]
    return table(["code", "OVA errors", *(f"e >= {t}" for t in at), "mean e"], rows)


def panels(title: str, curves: dict[str, tuple[Array, Array]], low: float = 0.0, high: float = 1.0) -> str:
    """A row of small line plots, as SVG."""
    size, gap = 150, 34
    width = len(curves) * (size + gap) + gap
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{size + 70}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/><text x="{gap}" y="16">{title}</text>'
    ]
    for at, (name, (x, y)) in enumerate(curves.items()):
        left, top = gap + at * (size + gap), 30
        span_x = float(x.max() - x.min())
        places = " ".join(
            f"{left + size * (a - x.min()) / span_x:.1f},{top + size * (high - b) / (high - low):.1f}"
            for a, b in zip(x, y, strict=True)
            if low <= b <= high
        )
        parts.append(
            f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" stroke="#999"/>'
            f'<polyline points="{places}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>'
            f'<text x="{left + size / 2}" y="{top + size + 28}" text-anchor="middle">{name}</text>'
            f'<text x="{left}" y="{top + size + 13}">{x.min():g}</text>'
            f'<text x="{left + size}" y="{top + size + 13}" text-anchor="end">{x.max():g}</text>'
            f'<text x="{left - 4}" y="{top + 9}" text-anchor="end">{high:g}</text>'
            f'<text x="{left - 4}" y="{top + size}" text-anchor="end">{low:g}</text>'
        )
    return "".join(parts) + "</svg>\n"


def minimiser(p: Array, q: float) -> Array:
    """Output of least expected loss |y - f|^q where class +1 has probability p: Figure 4-1 has q = 3, a = 1/2."""
    a = 1.0 / (q - 1.0)
    return np.asarray((p**a - (1 - p) ** a) / (p**a + (1 - p) ** a))


def figures(folder: Path, shares: dict[str, dict[str, Array]]) -> None:
    """Figures 4-1 to 4-3."""
    p = np.linspace(0.001, 0.999, 200)
    printed = minimiser(p, 3.0)
    curves = {"q = 3, as printed": (p, printed), "q = 2, the square loss": (p, minimiser(p, 2.0))}
    (folder / "multiclass_small_4_1.svg").write_text(panels("Output of least expected loss against p", curves, -1.0))
    for number, (name, found) in enumerate(shares.items(), start=2):
        at = np.linspace(0.0, 1.0, 101)
        drawn = {scheme: (at, reverse_distribution(e, at)) for scheme, e in found.items()}
        title = f"{name}: share of OVA errors with at least this share of separating machines wrong"
        (folder / f"multiclass_small_4_{number}.svg").write_text(panels(title, drawn))


HEAD = """# Five multiclass schemes on satimage and yeast

Rifkin 2002, Tables 4.1 to 4.7 and Figures 4-1 to 4-3, measured again by `studies/multiclass_small.py`.  Gaussian
support vector machines with free bias, one code matrix for each scheme in all runs (random codes: best of 10,000
draws, seed 0), loss-based decoding with the hinge.  Errors in percent.  "Printed parameters" are those of Tables 4.3
and 4.4, which look tuned on the very points the error is counted on; "by cross-validation" never looks at them: sigma
first, then C, doubled or halved to a local minimum of the error of five folds *inside the training part*.  The search
starts at sigma = C = 1 for OVA and AVA, and at the choice of OVA for the others.  Intervals are Clopper-Pearson;
differences have a paired bootstrap interval and McNemar's exact p.

"""


def satimage_text(y: NDArray[np.intp], found: dict[str, Any]) -> str:
    parts, taken, rows = found["satimage"], found["steps"], bad_rows(y, found["bad"])
    draws = [
        [scheme, f"{PRINTED['satimage'][scheme]}", *(percent(float(f(errors))) for f in (np.min, np.median, np.max))]
        for scheme, errors in found["draws"].items()
    ]
    limited = [
        [
            f"{limit:,}",
            f"{int(np.sum(taken[f'converged_{limit}']))} of {len(taken[f'converged_{limit}'])}",
            f"{np.max(taken[f'gaps_{limit}']):.2g}",
            percent(float(taken[f"error_{limit}"])),
        ]
        for limit in taken["limits"]
    ]
    return (
        "## satimage (Tables 4.1, 4.3, 4.5): 4,435 training and 2,000 test points\n\n"
        + error_table("satimage", y, parts)
        + "\n\nThe random codes by their draw, ten seeds at the printed parameters (seed 0 is the code above):\n\n"
        + table(["scheme", "printed", "least", "median", "largest"], draws)
        + "\n\n### Table 4.6: share of identical predictions\n\n"
        + agreement_table("satimage", parts)
        + "\n\n### Figure 4-2: where OVA errs, what do the machines of another code say?\n\n"
        "e is the share of the machines separating the true from the chosen class that side with the chosen one\n"
        "(machines with a zero for either class are not counted).  The columns give the share of OVA errors with e at\n"
        "least so large.  The source quotes, for DEN, e >= 0.7 on 80 % of the errors.\n\n"
        + sides_table(sides(y, parts))
        + "\n\n![Figure 4-2](multiclass_small_4_2.svg)\n\n"
        + "### The same with a kernel that fits badly\n\n"
        "The machines of Allwein et al. had a polynomial kernel of degree 4.  With (1 + <x, z>)^4 on the values over\n"
        "100 and C = 1, at most 200,000 steps a machine:\n\n"
        + table(["scheme", "Allwein et al.", "here", "against OVA: difference, interval, p", "mean e"], rows)
        + "\n\nHow much of that is the kernel, and how much are machines that were stopped short of their optimum?\n"
        "OVA alone, by the limit of steps:\n\n"
        + table(["steps at most", "machines converged", "largest relative gap", "OVA error"], limited)
        + "\n\n"
    )


def bad_rows(y: NDArray[np.intp], bad: Arrays) -> list[list[str]]:
    parts = {scheme: {"predicted": bad[scheme], "outputs": bad[f"{scheme}_outputs"]} for scheme in SCHEMES}
    shares = sides(y, parts)
    rows = []
    for scheme in SCHEMES:
        test = compare(y, bad[scheme], bad["OVA"])
        mean = f"{np.nanmean(shares[scheme]):.2f}" if scheme in shares else ""
        rows.append(
            [
                scheme,
                f"{ALLWEIN['satimage'][scheme]}",
                percent(test.first),
                difference(test) if scheme != "OVA" else "",
                mean,
            ]
        )
    return rows


def yeast_text(y: NDArray[np.intp], parts: dict[str, Arrays]) -> str:
    return (
        "## yeast (Tables 4.2, 4.4, 4.5): 1,484 points\n\n"
        "Ten folds, the same for all schemes.  Parameters are chosen again by five folds inside each nine tenths\n"
        "(nested), so that the error counts the choice too; COMP takes the choice of OVA, as in the thesis.  The\n"
        "printed errors are leave-one-out, those of Allwein et al. of ten folds.  Leave-one-out, with and without\n"
        "nested choice, is in [yeast_leave_one_out](yeast_leave_one_out.md).\n\n"
        + error_table("yeast", y, parts)
        + "\n\n### Table 4.7: share of identical predictions (ten folds)\n\n"
        + agreement_table("yeast", parts)
        + "\n\n### Figure 4-3: where OVA errs, what do the machines of another code say?\n\n"
        + sides_table(sides(y, parts))
        + "\n\n![Figure 4-3](multiclass_small_4_3.svg)\n\n"
    )


FIGURE_1 = """## Figure 4-1: the output of least expected loss

The thesis plots (sqrt p - sqrt(1 - p))/(sqrt p + sqrt(1 - p)) for the square loss; that is the minimiser for the cube
of the residual.  For the square it is the straight line 2p - 1.  Both rise strictly, so the conclusion
(one-versus-all with the square loss decides as Bayes' rule does, in the limit) stands.

![Figure 4-1](multiclass_small_4_1.svg)

"""


# Data and main ------------------------------------------------------------------------------------------------------


def satimage() -> Data:
    """Training and test points, values over 100, classes numbered from 0."""
    train, test = data.sample("satimage", "train"), data.sample("satimage", "test")
    labels = np.unique(np.asarray(train.y))
    return (
        train.X / 100.0,
        np.searchsorted(labels, np.asarray(train.y)),
        test.X / 100.0,
        np.searchsorted(labels, np.asarray(test.y)),
    )


def run(work: Work, points: Data, whole: tuple[Array, NDArray[np.intp]]) -> dict[str, Any]:
    """All parts, in an order in which one may lean on another."""
    found: dict[str, Any] = {"satimage": {}, "yeast": {}}
    X, y = whole
    for scheme in SCHEMES:
        first = scheme in ("OVA", "AVA")
        near = (1.0, 1.0) if first else tuple(found["satimage"]["OVA"]["parameters"])
        found["satimage"][scheme] = work.part(
            f"satimage_{scheme}",
            lambda scheme=scheme, near=near: split_scheme(scheme, points, near, PARAMETERS["satimage"][scheme]),
        )
    for scheme in SCHEMES:
        given = found["yeast"]["OVA"]["parameters"] if scheme == "COMP" else None
        near = (0.25, 1.0) if scheme in ("OVA", "AVA") else tuple(found["yeast"]["OVA"]["parameters"][0])
        found["yeast"][scheme] = work.part(
            f"yeast_{scheme}",
            lambda scheme=scheme, near=near, given=given: fold_scheme(
                work, scheme, X, y, near, PARAMETERS["yeast"][scheme], given
            ),
        )
    found["draws"] = work.part("satimage_draws", lambda: other_draws(points, 10))
    found["bad"] = work.part("satimage_polynomial", lambda: badly_fitting(points))
    found["steps"] = work.part("satimage_steps", lambda: steps(points, (200_000, 2_000_000)))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic data, a few seconds")
    parser.add_argument("--work", type=Path, help="folder of finished parts; a fresh one by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "multiclass_small.md")
    options = parser.parse_args(arguments)
    if options.smoke:
        points = (*synthetic(60, 4, 0), *synthetic(40, 4, 1))
        whole = synthetic(40, 4, 2)
    else:
        points, whole = satimage(), yeast()
    with tempfile.TemporaryDirectory() as temporary:
        found = run(Work(options.work or Path(temporary)), points, whole)
    y_new, y = points[3], whole[1]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figures(options.out.parent, {"satimage": sides(y_new, found["satimage"]), "yeast": sides(y, found["yeast"])})
    text = HEAD + satimage_text(y_new, found)
    text += yeast_text(y, found["yeast"]) + FIGURE_1
    options.out.write_text(text + findings(y_new, y, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
