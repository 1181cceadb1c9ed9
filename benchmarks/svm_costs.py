"""Support vector machines where users tune them: C from 1 to 1,000, dense and CSR rows, two classes, many, regression.

Gaussian kernel with gamma = "scale", tol = 1e-3, 1 GiB of cache, features as in `benchmarks.svm`.  A row is compared
with the *faster* of scikit-learn and scikit-learn-intelex: intelex runs first, and scikit-learn is stopped once it has
taken longer (`>` in the table).  Every library fits 4,000 of the points first, uncounted.

    python -m benchmarks.svm_costs [--repeats 3] [--data a9a usps] [--costs 1 100] [--peers scikit-learn] [--limit 120]
                                   [--out FILE] [--smoke]
"""

import argparse
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import harness, peers, svm
from mercer.data import benchmark

COSTS = (1.0, 10.0, 100.0, 1000.0)
PEERS = ("scikit-learn-intelex", "scikit-learn")
WARM_AND_LOAD = 25.0  # seconds for reading data and the uncounted fit of a measuring process
LONG = 60.0  # seconds after which a row is not measured once more


def reuters(smoke: bool) -> svm.Split:
    """Reuters, earn against the rest: 8,315 words, CSR."""
    if smoke:
        return svm.a9a_sparse(True)
    train, test = benchmark("reuters-lasvm", "train"), benchmark("reuters-lasvm", "test")
    d = max(train.X.shape[1], test.X.shape[1])
    return svm.Split(svm.widened(train.X, d), train.y, svm.widened(test.X, d), test.y)


DATA: dict[str, tuple[Any, str]] = {
    "a9a": (svm.a9a_sparse, "SVC"),
    "ijcnn1": (svm.two_parts("ijcnn1"), "SVC"),
    "covtype": (svm.covtype(20_000), "SVC"),
    "letter": (svm.two_parts("letter"), "SVC"),
    "usps": (svm.two_parts("usps"), "SVC"),
    "mnist": (svm.two_parts("mnist", 12_000), "SVC"),
    "reuters": (reuters, "SVC"),
    "california": (svm.regression("california"), "SVR"),
    "kin8nm": (svm.regression("kin8nm"), "SVR"),
    "bank32nh": (svm.regression("bank32nh"), "SVR"),
}


def trained(library: str, machine: str, C: float) -> Any:
    """Fit and score with one library at one C."""

    def work(part: svm.Split) -> dict[str, Any]:
        given: dict[str, Any] = {"gamma": "scale", "C": C, "tol": 1e-3, "cache_size": svm.CACHE}
        peers.estimator(library, machine, **given | {"C": 1.0}).fit(part.X[: svm.WARM_UP], part.y[: svm.WARM_UP])
        return peers.fitted(library, machine, part.X, part.y, part.Z, part.t, **given)

    return work


TASKS = [
    harness.Task(
        f"{name}, C = {C:g}",
        load,
        {library: trained(library, machine, C) for library in (harness.OURS, *PEERS)},
        needs_data=True,
        warm_up=False,
    )
    for name, (load, machine) in DATA.items()
    for C in COSTS
]


def measured(task: harness.Task, repeats: int, limit: float, smoke: bool, rivals: list[str]) -> dict[str, Any]:
    """Median seconds of mercer and of the peers; a peer slower than the other, or than the limit, is stopped there."""
    module = None if smoke else "benchmarks.svm_costs"
    times: dict[str, list[float]] = {library: [] for library in task.measure}
    row: dict[str, Any] = {"task": task.name}
    known = [name for name in rivals if peers.why_not(name) is None]
    began = time.perf_counter()
    for _ in range(repeats):
        if time.perf_counter() - began > LONG:
            break
        fastest = limit
        for library in (harness.OURS, *known):
            if row.get(library) == "stopped":
                continue
            allowed = limit if library == harness.OURS else fastest
            answer = harness.measure_apart(task, library, smoke, allowed + WARM_AND_LOAD, module)
            if "error" in answer or (library != harness.OURS and answer["seconds"] > allowed):
                row[library] = "stopped"
                continue
            times[library].append(answer["seconds"])
            row[f"{library} score"] = answer["figures"].get("accuracy", answer["figures"].get("R2"))
            if library != harness.OURS:
                fastest = min(fastest, answer["seconds"])
    for library, found in times.items():
        if found:
            row[library] = statistics.median(found)
    return row | {"runs": len(times[harness.OURS])}


def table(rows: list[dict[str, Any]], limit: float) -> str:
    """The measurements, and the geometric mean of the ratios."""
    lines = ["| data, C | runs | mercer, s | intelex, s | scikit-learn, s | faster peer / mercer | scores |"]
    lines.append("|---" * 7 + "|")
    ratios = []
    for row in rows:
        ours, others = row.get(harness.OURS), [row.get(name) for name in PEERS]
        numbers = [one for one in others if isinstance(one, float)]
        best = min(numbers, default=limit)
        ratio = best / ours if isinstance(ours, float) else float("nan")
        ratios.append(ratio)
        shown = [f"{one:.3g}" if isinstance(one, float) else f"> {best:.3g}" if one else "" for one in (ours, *others)]
        scores = [row.get(f"{name} score") for name in (harness.OURS, *PEERS)]
        said = " / ".join(f"{one:.4f}" for one in scores[:2] if isinstance(one, float))
        mark = "" if numbers else "> "
        lines.append(f"| {row['task']} | {row['runs']} | {' | '.join(shown)} | {mark}{ratio:.2f} | {said} |")
    usable = [one for one in ratios if one > 0]
    if usable:
        mean = math.exp(statistics.fmean(map(math.log, usable)))
        lines.append(f"| geometric mean | | | | | {mean:.2f} (smallest {min(usable):.2f}) | |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=sorted(DATA), default=list(DATA))
    parser.add_argument("--costs", nargs="+", type=float, default=list(COSTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which any fit is stopped")
    parser.add_argument("--out", type=Path, help="where the table is written")
    parser.add_argument("--smoke", action="store_true")
    told = parser.parse_args()
    if not told.smoke and not os.environ.get("MERCER_DATA"):
        parser.exit(0, "benchmarks.svm_costs needs the data sets: set MERCER_DATA\n")
    wanted = [f"{name}, C = {C:g}" for name in told.data for C in told.costs]
    chosen = [task for task in TASKS if task.name in wanted]
    began, rows = time.perf_counter(), []
    for task in chosen[:1] if told.smoke else chosen:
        rows.append(measured(task, 1 if told.smoke else told.repeats, told.limit, told.smoke, told.peers))
        print(f"{time.perf_counter() - began:.0f} s: {table(rows[-1:], told.limit).splitlines()[2]}", file=sys.stderr)
    facts = "\n".join(f"- {name}: {value}" for name, value in harness.machine().items())
    text = (
        f"# C from 1 to 1,000\n\n{facts}\n"
        f"- medians of the runs; rows of more than {LONG:g} s are not repeated, fits stop after {told.limit:g} s\n"
        f"- scores: accuracy or R2 on test points, mercer / intelex\n\n{table(rows, told.limit)}\n"
    )
    print(text)
    if told.out:
        told.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
