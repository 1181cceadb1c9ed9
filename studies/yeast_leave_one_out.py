"""Leave-one-out of five multiclass schemes on yeast, the choice of parameters inside: Rifkin 2002, Tables 4.2 and 4.7.

Run:  MERCER_DATA=folder python studies/yeast_leave_one_out.py --work folder    (three quarters of an hour on one core)
      python studies/yeast_leave_one_out.py --smoke                              (synthetic data, seconds)

Each part leaves its predictions in the work folder, so that a run that was stopped goes on where it was.

The printed errors are leave-one-out errors at the parameters of least leave-one-out error: the points that count had a
part in the choice.  Here each point is predicted by machines whose sigma and C the other n - 1 points chose:

* least squares by leave-one-out among those n - 1, exactly, from `mercer.selection.leave_two_out`;
* support vector machines by five folds of those n - 1, by warm-started retraining without each support vector.

Beside them stand the support vector machines of all five schemes at the printed parameters, without any choice.
"""

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays, Work, table
from schemes import (
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
from warm_retraining import Machine

from mercer import threads
from mercer.kernels import Gaussian
from mercer.multiclass.agreement import Comparison, compare, rate_interval
from mercer.multiclass.least_squares_bank import class_sets
from mercer.selection.leave_one_out import leave_one_out
from mercer.selection.leave_two_out import Criterion, LeaveTwoOut, NestedLeaveOneOut, leave_two_out, nested

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Parameters = tuple[float, float]
Grid = tuple[tuple[float, ...], tuple[float, ...]]  # values of sigma and of C
FOLDS = 5
COLUMNS = 32  # machines whose retraining makes one part


@dataclass(frozen=True)
class Grids:
    """Doublings of sigma (the smoothest first) and of C (the smallest first): among equals the first wins."""

    least_squares: Grid
    support_vectors: Grid


WHOLE = Grids(
    ((1.0, 0.5, 0.25, 0.125, 0.0625), (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)),
    ((0.5, 0.25, 0.125, 0.0625), (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)),
)
SMOKE = Grids(((1.0, 0.5), (0.5, 4.0)), ((1.0, 0.5), (0.5, 4.0)))


# Least squares ------------------------------------------------------------------------------------------------------


def nested_least_squares(scheme: str, X: Array, y: Index, grid: Grid) -> Arrays:
    """Nested leave-one-out of a scheme under the square loss, machines without bias, chosen by their error."""
    M = code_of(scheme, int(y.max()) + 1).astype(np.float64)
    if M.all():
        # Without zeros the least total loss sum_a (1 - M_ra f_a)^2 is the largest sum_a M_ra f_a, a machine itself.
        found = nested(whole_codes(X, M[y] @ M.T, grid), "error")
    else:
        order = np.concatenate(list(class_sets(M).values()))
        found = nested(subsystem_codes(X, y, M, grid), square_decoder(M[:, order], y))
    return outcome(found, found.losses > 0, float(found.plain[found.best]))


def nested_by_residual(X: Array, y: Index, grid: Grid) -> Arrays:
    """One-versus-all again, sigma and C chosen by the squared residual, which changes smoothly with them."""
    Y = code_of("OVA", int(y.max()) + 1)[y].astype(np.float64)
    found = nested(whole_codes(X, Y, grid), "loo")
    sigma, C = np.array(found.candidates)[found.best]
    plain = leave_one_out(Gaussian(sigma=float(sigma))(X), Y, 1.0 / C).error_rate()
    return outcome(found, np.argmax(found.predictions, axis=1) != y, plain)


def outcome(found: NestedLeaveOneOut, wrong: NDArray[np.bool_], plain: float) -> Arrays:
    """What the report needs: `wrong` (n,), parameters chosen (n, 2), those of all points, and their plain error."""
    candidates = np.array(found.candidates)
    return {
        "wrong": wrong,
        "parameters": candidates[found.choice],
        "best": candidates[found.best],
        "plain": np.array(plain),
    }


def whole_codes(X: Array, targets: Array, grid: Grid) -> Iterator[tuple[Parameters, list[LeaveTwoOut]]]:
    """Candidates whose machines use all points."""
    for sigma in grid[0]:
        K = Gaussian(sigma=sigma)(X)
        for C in grid[1]:
            yield (sigma, C), [leave_two_out(K, targets, 1.0 / C)]


def subsystem_codes(X: Array, y: Index, M: Array, grid: Grid) -> Iterator[tuple[Parameters, list[LeaveTwoOut]]]:
    """Candidates of a code with zeros: a system for each set of classes, the other points being of weight zero."""
    for sigma in grid[0]:
        K = Gaussian(sigma=sigma)(X)
        for C in grid[1]:
            yield (
                (sigma, C),
                [
                    leave_two_out(K, M[y][:, columns], 1.0 / C, weights=np.isin(y, classes).astype(np.float64))
                    for classes, columns in class_sets(M).items()
                ],
            )


def square_decoder(M: Array, y: Index) -> Criterion:
    """Whether the class of least total square loss is wrong; a zero of the code charges every output alike."""

    def wrong(outputs: Array) -> Array:
        charges = (outputs**2) @ (M**2).T - 2.0 * (outputs @ M.T)
        return np.asarray(np.argmin(charges, axis=-1) != y, dtype=np.float64)

    return wrong


# Support vector machines --------------------------------------------------------------------------------------------


def kernel_matrix(X: Array, sigma: float) -> NDArray[np.float32]:
    return np.asarray(Gaussian(sigma=sigma)(X), dtype=np.float32)


def left_out(K: NDArray[Any], codes: Array, C: float) -> Arrays:
    """Outputs (n, columns) at each point of machines trained without it, and how many had to be trained again."""

    def column(t: Array) -> tuple[Array, int]:
        machine = Machine(K, t, C)
        outputs = machine.outputs.copy()
        for i in machine.support:
            outputs[i] = machine.without(int(i))[i]
        return outputs, len(machine.support)

    found = threads.run(column, [(np.ascontiguousarray(t),) for t in codes.T])
    return {
        "outputs": np.column_stack([outputs for outputs, _ in found]),
        "retrained": np.array([count for _, count in found]),
    }


def left_out_scheme(work: Work, scheme: str, X: Array, y: Index, parameters: Parameters) -> Arrays:
    """Exact leave-one-out predictions of a scheme at given parameters, a part for some machines each."""
    codes = code_of(scheme, int(y.max()) + 1)[y].astype(np.float64)
    sigma, C = parameters
    K = kernel_matrix(X, sigma)
    pieces = [
        work.part(f"{scheme}_{sigma:g}_{C:g}_{at}", lambda at=at: left_out(K, codes[:, at : at + COLUMNS], C))
        for at in range(0, codes.shape[1], COLUMNS)
    ]
    outputs = np.concatenate([piece["outputs"] for piece in pieces], axis=1)
    retrained = np.concatenate([piece["retrained"] for piece in pieces])
    return {"predicted": labels_of(scheme, outputs, int(y.max()) + 1), "retrained": retrained}


def inner_errors(scheme: str, X: Array, y: Index, parameters: Parameters, fold: Index) -> Array:
    """Errors (n,) of cross-validation on the other n - 1 points, for each point left out; the folds stay the same."""
    classes, n = int(y.max()) + 1, len(y)
    codes = code_of(scheme, classes)[y].astype(np.float64)
    K = kernel_matrix(X, parameters[0])
    errors = np.zeros(n)
    for number in np.unique(fold):
        held = np.flatnonzero(fold == number)

        def column(t: Array, held: Index = held) -> Array:
            machine = Machine(K, t, parameters[1])
            outputs = np.tile(machine.outputs[held], (n, 1))
            for i in machine.support:
                outputs[i] = machine.without(int(i))[held]
            return outputs

        trained = np.where((fold == number)[:, None], 0.0, codes)
        outputs = np.stack(threads.run(column, [(np.ascontiguousarray(t),) for t in trained.T]), axis=-1)
        predicted = labels_of(scheme, outputs.reshape(-1, codes.shape[1]), classes).reshape(n, len(held))
        wrong = predicted != y[held]
        wrong[held, np.arange(len(held))] = False
        errors += wrong.sum(axis=1)
    return errors


def nested_support_vectors(work: Work, scheme: str, X: Array, y: Index, grid: Grid) -> Arrays:
    """Each point predicted by machines of the parameters that five folds of the other points chose."""
    fold = folds(y, FOLDS, SEED + 1)
    candidates = [(sigma, C) for sigma in grid[0] for C in grid[1]]
    errors = np.array(
        [
            work.part(
                f"inner_{scheme}_{pair[0]:g}_{pair[1]:g}",
                lambda pair=pair: {"errors": inner_errors(scheme, X, y, pair, fold)},
            )["errors"]
            for pair in candidates
        ]
    )
    choice = np.argmin(errors, axis=0)  # the first of equals
    left = {
        number: left_out_scheme(work, scheme, X, y, candidates[number])["predicted"] for number in range(len(errors))
    }
    plain = np.array([np.mean(left[number] != y) for number in range(len(errors))])
    predicted = np.array([left[number][i] for i, number in enumerate(choice)])
    return {
        "wrong": predicted != y,
        "parameters": np.array(candidates)[choice],
        "best": np.array(candidates)[np.argmin(plain)],
        "plain": np.min(plain),
    }


# Report -------------------------------------------------------------------------------------------------------------


def paired(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Comparison:
    """The paired comparison of two schemes from where each of them errs."""
    return compare(np.zeros(len(first), dtype=int), first.astype(int), second.astype(int))


def nested_table(rows: dict[str, tuple[float, Arrays, Arrays | None]]) -> str:
    """Nested leave-one-out: by name the printed error, the outcome, and the outcome it is compared with."""
    lines = []
    for name, (printed, found, other) in rows.items():
        wrong = int(found["wrong"].sum())
        pairs, counts = np.unique(found["parameters"], axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        lines.append(
            [
                name,
                f"{printed}",
                "{:.2f} at {:g}, {:g}".format(100 * float(found["plain"]), *found["best"]),
                percent(float(found["wrong"].mean())),
                between(*rate_interval(wrong, len(found["wrong"]))),
                f"{100 * optimism(found):+.2f}",
                difference(paired(found["wrong"], other["wrong"])) if other is not None else "",
                "; ".join(f"{pairs[at][0]:g}, {pairs[at][1]:g} ({counts[at]})" for at in order),
            ]
        )
    head = ["machines", "printed", "plain leave-one-out at its best sigma, C", "nested leave-one-out", "95 % interval"]
    head += [
        "optimism",
        "against OVA, least squares: difference, interval, p",
        "sigma, C (points they were chosen for)",
    ]
    return table(head, lines)


def optimism(found: Arrays) -> float:
    """The nested error minus the least plain one."""
    return float(found["wrong"].mean()) - float(found["plain"])


def printed_table(y: Index, parts: dict[str, Arrays]) -> str:
    """Support vector machines at the printed parameters."""
    lines = []
    for scheme, found in parts.items():
        wrong = int(np.sum(found["predicted"] != y))
        machines = len(found["retrained"])
        lines.append(
            [
                scheme,
                f"{PRINTED['yeast'][scheme]}",
                percent(wrong / len(y)),
                between(*rate_interval(wrong, len(y))),
                difference(compare(y, found["predicted"], parts["OVA"]["predicted"])) if scheme != "OVA" else "",
                "{:g}, {:g}".format(*PARAMETERS["yeast"][scheme]),
                f"{int(found['retrained'].sum()):,} of {machines * len(y):,}",
            ]
        )
    head = ["scheme", "printed", "here", "95 % interval", "against OVA: difference, interval, p", "sigma, C"]
    return table([*head, "machines trained again"], lines)


HEAD = """# Leave-one-out on yeast

Rifkin 2002, the yeast columns of Tables 4.2, 4.4, 4.5 and 4.7, measured again by `studies/yeast_leave_one_out.py`:
{n:,} points, {classes} classes, Gaussian kernel.  Errors in percent.  One code matrix for each scheme (random codes:
best of 10,000 draws, seed 0), loss-based decoding with the loss of the machines.  Intervals are Clopper-Pearson;
differences have a paired bootstrap interval and McNemar's exact p.

"""

NESTED = """## The choice inside: nested leave-one-out

The printed errors look like those of the parameters with the least such error, so that every point had a part in
choosing the machine that it judges.  Here point i is predicted by a machine trained on the other n - 1 points, and its
sigma and C were chosen on those n - 1 points alone.

* Least squares (no bias, square loss): by the error of exact leave-one-out among the n - 1, for which leaving out two
  points needs no training, over sigma {ls_sigma} and C {ls_C}.
* Support vector machines (free bias): by the error of five folds of the n - 1, each machine trained again without
  point i wherever i is a support vector, over sigma {svm_sigma} and C {svm_C}.

Among equals the larger sigma and then the smaller C win.  Optimism is the nested error minus the least plain one.

"""


def closing(
    y: Index, rows: dict[str, tuple[float, Arrays, Arrays | None]], left: dict[str, Arrays], grids: Grids
) -> str:
    """What the numbers say, computed from them."""
    ova = {name: float(found["wrong"].mean()) for name, (_, found, _) in rows.items() if name.startswith("OVA")}
    under = sum(error <= 0.40 for error in ova.values())
    shown = ", ".join(f"{percent(error)} ({name[5:]})" for name, error in ova.items())
    paid = [optimism(found) for _, found, _ in rows.values()]
    half = float(np.mean([np.diff(rate_interval(int(f["wrong"].sum()), len(y)))[0] / 2 for _, f, _ in rows.values()]))
    tests = [paired(found["wrong"], other["wrong"]).p for _, found, other in rows.values() if other is not None]
    fixed = [compare(y, f["predicted"], left["OVA"]["predicted"]).p for s, f in left.items() if s != "OVA"]
    off = [100 * float(np.mean(f["predicted"] != y)) - PRINTED["yeast"][s] for s, f in left.items()]
    worst = list(left)[int(np.argmax(np.abs(off)))]
    edge = [
        name
        for name, (_, found, _) in rows.items()
        if at_edge(found, grids.support_vectors if "support" in name else grids.least_squares)
    ]
    same = int(np.sum(rows["COMP, least squares"][1]["wrong"] != rows["OVA, least squares"][1]["wrong"]))
    twice = int(np.sum(left["OVA"]["retrained"].astype(np.int64) ** 2)) // 2
    cases = len(grids.support_vectors[0]) * len(grids.support_vectors[1])
    sentences = [
        f"OVA with its choice inside: {shown}, beside the printed {PRINTED['yeast']['OVA']} without; {under} of "
        f"{len(ova)} are at or under 40 %.",
        f"Nested errors minus the least plain ones: {100 * min(paid):+.2f} to {100 * max(paid):+.2f}; the 95 % "
        f"intervals reach {100 * half:.1f} to either side.",
        f"Best plain candidates on the edge of their grid: {'; '.join(edge) or 'none'}.",
        f"Nested, {verdict(tests)}.  At the printed parameters, {verdict(fixed)}.",
        f"At the printed parameters the errors here are {min(off):+.2f} to {max(off):+.2f} off print; {worst} is the "
        "farthest.",
        f"Under least squares COMP and OVA, which a theorem makes equal, err differently on {same} points.",
        "Choosing for support vector machines by leave-one-out, not by folds, among the n - 1 points would take some "
        f"{twice:,} trainings for each of the {cases} candidates of OVA; that was not done.",
    ]
    lines = [textwrap.fill(sentence, 118, initial_indent="* ", subsequent_indent="  ") for sentence in sentences]
    return "## What the numbers say\n\n" + "\n".join(lines) + "\n"


def at_edge(found: Arrays, grid: Grid) -> bool:
    """Whether sigma or C of the best plain candidate is the first or last of its values."""
    return any(value in (values[0], values[-1]) for value, values in zip(found["best"], grid, strict=True))


def verdict(p: Sequence[float]) -> str:
    """How many of some paired tests call a difference."""
    return f"{sum(value < 0.05 for value in p)} of {len(p)} differences have p under 0.05, the least being {min(p):.2g}"


def listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def report(y: Index, found: dict[str, Any], grids: Grids) -> str:
    """The whole text."""
    base, printed = found["least_squares"]["OVA"], PRINTED["yeast"]
    rows: dict[str, tuple[float, Arrays, Arrays | None]] = {"OVA, least squares": (printed["OVA"], base, None)}
    rows["OVA, least squares, chosen by squared residual"] = (printed["OVA"], found["by_residual"], base)
    rows["OVA, support vector machines"] = (printed["OVA"], found["support_vectors"], base)
    for scheme in list(SCHEMES)[1:]:
        rows[f"{scheme}, least squares"] = (printed[scheme], found["least_squares"][scheme], base)
    texts = {
        "ls_sigma": listed(grids.least_squares[0]),
        "ls_C": listed(grids.least_squares[1]),
        "svm_sigma": listed(grids.support_vectors[0]),
        "svm_C": listed(grids.support_vectors[1]),
    }
    return (
        HEAD.format(n=len(y), classes=int(y.max()) + 1)
        + NESTED.format(**texts)
        + nested_table(rows)
        + "\n\n## Support vector machines at the printed parameters (Table 4.2)\n\n"
        "Exact: each machine is trained again without each of its support vectors; without any other point it stays\n"
        "the same.\n\n"
        + printed_table(y, found["left"])
        + "\n\n## Share of identical predictions (Table 4.7)\n\nFrom the same predictions.\n\n"
        + agreement_table("yeast", found["left"])
        + "\n\n"
        + closing(y, rows, found["left"], grids)
    )


def run(work: Work, X: Array, y: Index, grids: Grids) -> dict[str, Any]:
    """All parts."""
    return {
        "least_squares": {
            scheme: work.part(
                f"least_squares_{scheme}",
                lambda scheme=scheme: nested_least_squares(scheme, X, y, grids.least_squares),
            )
            for scheme in SCHEMES
        },
        "by_residual": work.part("by_residual", lambda: nested_by_residual(X, y, grids.least_squares)),
        "left": {scheme: left_out_scheme(work, scheme, X, y, PARAMETERS["yeast"][scheme]) for scheme in SCHEMES},
        "support_vectors": nested_support_vectors(work, "OVA", X, y, grids.support_vectors),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic data, a few seconds")
    parser.add_argument("--work", type=Path, help="folder of finished parts; a fresh one by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "yeast_leave_one_out.md")
    options = parser.parse_args(arguments)
    (X, y), grids = (synthetic(40, 4, 2), SMOKE) if options.smoke else (yeast(), WHOLE)
    with tempfile.TemporaryDirectory() as temporary:
        found = run(Work(options.work or Path(temporary)), X, y, grids)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report(y, found, grids))
    return 0


if __name__ == "__main__":
    sys.exit(main())
