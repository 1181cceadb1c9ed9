"""Claims of the sources about solvers, each measured: what a part computes, and the sentence that its numbers give.

Schoelkopf and Smola 2002: restarts up to 20 times faster (10.1.2), 80 to 90 % of rows found in a cache of a tenth of
them (10.1.3), three scores for working sets (10.4.3), support vectors growing with n (problem 10.18), time of the
low-rank interior point method linear in n (10.3.4), greedy bases (figures 10.2 and 10.3).  Rifkin 2002: SvmFu and
SVMLight on growing sets (figure 2-6), chunk size and cache (figure 2-7).  `solver_figures.py` has three more.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from parts import table
from solver_figures import FIGURES

from mercer.errors import BudgetTooSmall
from mercer.gram import LowRankGram
from mercer.kernels import Gaussian
from mercer.losses import Hinge
from mercer.lowrank.landmarks import choose, residual_diagonal
from mercer.problems import RegularisedRisk, rescale
from mercer.solvers import Monitor, by_name

Found = Any
LIMIT = 8.0
RESTARTED = ("decomposition", "smo", "svmlight", "osuna", "working_set")
CACHED = ("svmlight", "working_set", "osuna", "smo", "keerthi")


def solved(solver: str, problem: Any, **options: Any) -> tuple[Any, float]:
    """A solution and its seconds."""
    began = time.perf_counter()
    monitor = Monitor(time_limit=LIMIT, catch_interrupt=False)
    found = by_name(solver).solve(problem, tol=1e-3, monitor=monitor, **options)
    return found, time.perf_counter() - began


def restarts(cases: Any) -> Found:
    """A path of C from large to small, cold and warm."""
    case = cases["adult"].first(1000)
    gram = case.gram()
    grid = [100.0 * 0.6**k for k in range(10)]
    rows = []
    for solver in RESTARTED:
        cold, warm, before = [0.0, 0], [0.0, 0], None
        for C in grid:
            problem = RegularisedRisk(gram, case.y, Hinge(), C)
            fresh, seconds = solved(solver, problem)
            cold = [cold[0] + seconds, cold[1] + fresh.iterations]
            start = None if before is None else rescale(np.asarray(before[1].variables), before[0], problem)
            again, seconds = solved(solver, problem, start=start)
            if before is not None:
                warm = [warm[0] + seconds, warm[1] + again.iterations]
            else:  # the first of the path is cold in both
                cold = [0.0, 0]
            before = problem, again
        rows.append([solver, *cold, *warm])
    return rows


def tell_restarts(rows: Found) -> str:
    lines = [
        [s, f"{a:.2f}", str(int(b)), f"{c:.2f}", str(int(d)), f"{a / max(c, 1e-9):.1f}", f"{b / max(d, 1):.1f}"]
        for s, a, b, c, d in rows
    ]
    best = max(float(line[5]) for line in lines)
    verdict = "is reached" if best >= 20 else "is not reached here"
    head = ["solver", "cold s", "cold steps", "warm s", "warm steps", "times faster", "times fewer steps"]
    return (
        "Nine restarts on adult, n = 1000, C from 100 downwards by 0.6 each. The source has up to 20 times faster;\n"
        f"the best here is {best:.1f} times: the claim {verdict}.\n\n" + table(head, lines)
    )


def caches(cases: Any) -> Found:
    """Rows found in caches of a part of the matrix."""
    case = cases["adult"].first(1605)
    n = len(case.y)
    rows = []
    for solver in CACHED:
        for share in (0.05, 0.1, 0.2, 0.5):
            memory = max(int(share * n), 20) * 8 * n
            problem = case.problems()[0][1]
            try:
                found, _ = solved(solver, problem, memory=memory)
            except BudgetTooSmall:  # which is a finding
                rows.append([solver, share, None, "budget too small"])
                continue
            rows.append([solver, share, found.details.get("cache_rate"), found.details.get("kernel_values")])
    return rows


def tell_caches(rows: Found) -> str:
    lines = [
        [s, f"{share:.0%}", "" if rate is None else f"{rate:.0%}", str(values)] for s, share, rate, values, *_ in rows
    ]
    tenth = [rate for _, share, rate, *_ in rows if share == 0.1 and rate is not None]
    told = f"between {min(tenth):.0%} and {max(tenth):.0%}" if tenth else "not known"
    head = ["solver", "rows held", "requests found", "kernel values"]
    return f"Claim: 80 to 90 % at a tenth of the rows. Here: {told}.\n\n" + table(head, lines)


def elements(cases: Any) -> Found:
    """Kernel values that working sets compute with single values held, and with rows, in equal bytes."""
    case = cases["adult"].first(1000)
    n = len(case.y)
    rows = []
    for size in (2, 10, 50):
        for share in (0.1, 0.25, 0.5, 1.0, 2.0):
            memory = max(int(share * n), size) * 8 * n
            counted = []
            for cache in ("rows", "elements"):
                found = by_name("working_set").solve(case.problems()[0][1], size=size, memory=memory, cache=cache)
                counted += [int(found.details["kernel_values"]), float(found.details["cache_rate"])]
            rows.append([size, share, *counted])
    return {"n": n, "rows": rows}


def tell_elements(found: Found) -> str:
    rows = [
        [str(size), f"{share:.0%}", f"{a:.3g}", f"{p:.0%}", f"{b:.3g}", f"{q:.0%}", f"{b / a:.2f}"]
        for size, share, a, p, b, q in found["rows"]
    ]
    fewer = sum(b < a for _, _, a, _, b, _ in found["rows"])
    head = ["size", "bytes, of the matrix", "rows: values", "rows found", "elements: values", "values found", "ratio"]
    return (
        f"adult, n = {found['n']}, `working_set`, counts only. A value that is held alone costs 16 bytes, one of\n"
        "a row 8, and is held once for two rows. Every point that moves asks for its whole row, to update the\n"
        f"outputs. Single values spare computing at {fewer} of {len(rows)} settings.\n\n" + table(head, rows)
    )


def chunk_sizes(cases: Any) -> Found:
    """Sizes of chunks and working sets, and memory, against time."""
    case = cases["adult"].first(1605)
    n = len(case.y)
    rows = []
    for solver, option, sizes in (
        ("chunking", "size", (20, 100, 500, 2000)),
        ("svmlight", "size", (2, 10, 40, 200)),
        ("working_set", "size", (2, 10, 50, 100)),
        ("svmfu", "chunk", (300, 600, 1200)),
    ):
        for size in sizes:
            for share in (0.25, 1.0) if solver == "svmfu" else (1.0,):
                memory = max(int(share * 8 * n * n), 8 * 8 * min(size, n) ** 2)
                found, seconds = solved(solver, case.problems()[0][1], memory=memory, **{option: size})
                values = found.details.get("kernel_values", 0)
                rows.append([solver, size, share, found.stopped, seconds, values, found.iterations])
    return rows


def tell_chunk_sizes(rows: Found) -> str:
    lines = [
        [s, str(size), f"{share:.0%}", stopped, f"{seconds:.2f}", f"{values:.3g}", str(steps)]
        for s, size, share, stopped, seconds, values, steps in rows
    ]
    head = ["solver", "size", "memory, of the matrix", "stopped", "seconds", "kernel values", "steps"]
    fu = {(size, share): values for s, size, share, _, _, values, _ in rows if s == "svmfu"}
    helped = [fu[size, 1.0] < fu[size, 0.25] for size, share in fu if share == 1.0 and (size, 0.25) in fu]
    told = f"Four times the memory spared SvmFu kernel values at {sum(helped)} of {len(helped)} chunk sizes."
    return f"adult, n = 1605 (Rifkin 2002, figure 2-7). {told}\n\n" + table(head, lines)


def scores(cases: Any) -> Found:
    """The three scores of table 10.1."""
    rows = []
    for name in ("adult", "abalone"):
        case = cases[name].first(1000)
        for size in (10, 50):
            for score in ("gap", "gradient", "multiplier"):
                found, seconds = solved("working_set", case.problems()[0][1], size=size, score=score)
                details = found.details
                rows.append([name, size, score, found.stopped, details["rounds"], details["kernel_values"], seconds])
    return rows


def tell_scores(rows: Found) -> str:
    lines = [
        [name, str(size), score, stopped, str(rounds), f"{values:.3g}", f"{seconds:.2f}"]
        for name, size, score, stopped, rounds, values, seconds in rows
    ]
    wins: dict[str, int] = {}
    for name in {row[0] for row in rows}:
        for size in {row[1] for row in rows}:
            group = [row for row in rows if row[0] == name and row[1] == size]
            best = min(group, key=lambda row: row[4])[2]
            wins[best] = wins.get(best, 0) + 1
    told = ", ".join(f"{score} {count}" for score, count in sorted(wins.items()))
    head = ["data", "size", "score", "stopped", "sets", "kernel values", "seconds"]
    return f"The source prefers the terms of the gap. Fewest sets, of {sum(wins.values())}: {told}.\n\n" + table(
        head, lines
    )


def growth(cases: Any) -> Found:
    """Support vectors of growing sets, and SvmFu beside SVMLight."""
    case, rows = cases["adult"], []
    for n in [size for size in (400, 800, 1605, 3185, 6414) if size <= len(case.y)] or [len(case.y)]:
        some = case.first(n)
        found, seconds = solved("decomposition", some.problems()[0][1])
        row = [n, int(np.count_nonzero(found.coefficients)), seconds]
        for solver in ("svmfu", "svmlight", "smo"):
            other, seconds = solved(solver, some.problems()[0][1])
            row.append(seconds if other.stopped == "converged" else None)
        rows.append(row)
    return rows


def tell_growth(rows: Found) -> str:
    lines = [
        [str(n), str(support), f"{support / n:.2f}", *("stopped" if s is None else f"{s:.2f}" for s in seconds)]
        for n, support, *seconds in rows
    ]
    told = ""
    if len(rows) > 1:
        slope = np.polyfit(np.log([r[0] for r in rows]), np.log([r[1] for r in rows]), 1)[0]
        told = f"#SV grows as n^{slope:.2f}; problem 10.18 says linearly where the least risk is above zero. "
    head = ["n", "#SV", "share", "decomposition s", "svmfu s", "svmlight s", "smo s"]
    return f"{told}Rifkin 2002, figure 2-6, has SvmFu and SVMLight equal on adult.\n\n" + table(head, lines)


def low_rank(cases: Any) -> Found:
    """The interior point method on thin factors of growing length."""
    rng, rows = np.random.default_rng(0), []
    sizes = (1000, 2000, 4000, 8000, 16000) if len(cases["adult"].y) > 1000 else (100, 200)
    for n in sizes:
        Z = rng.normal(size=(n, 50)) / 7.0
        y = np.where(Z[:, 0] + 0.1 * rng.normal(size=n) > 0, 1.0, -1.0)
        problem = RegularisedRisk(LowRankGram.from_factors(Z), y, Hinge(), 1.0)
        began = time.perf_counter()
        found = by_name("interior_point").solve(problem, tol=1e-6)
        rows.append([n, time.perf_counter() - began, found.iterations, found.relative_gap])
    return rows


def tell_low_rank(rows: Found) -> str:
    each = [seconds / iterations for _, seconds, iterations, _ in rows]
    slope = np.polyfit(np.log([r[0] for r in rows]), np.log(each), 1)[0]
    lines = [[str(n), f"{s:.2f}", str(i), f"{1e3 * s / i:.1f}", f"{gap:.0e}"] for n, s, i, gap in rows]
    head = ["n", "seconds", "iterations", "ms an iteration", "relative gap"]
    return f"Rank 50. The time of an iteration grows as n^{slope:.2f}; claimed: linearly.\n\n" + table(head, lines)


def greedy(cases: Any) -> Found:
    """Residual traces of greedy bases against candidates, width and principal components; first picks on digits."""
    X = cases["abalone"].X[:1000]
    d, n = X.shape[1], len(X)
    kernel = Gaussian(sigma=float(np.sqrt(d / 2)))
    sizes = (5, 20, 80)
    candidates = []
    for count in (1, 10, 50, 59, 200):
        picked = [choose(kernel, X, m, method="sparse_greedy", seed=0, candidates=count, measure=False) for m in sizes]
        candidates.append([count, *(float(residual_diagonal(kernel, X, X[p.index]).sum()) for p in picked)])
    widths = []
    for ratio in (0.1, 0.5, 1.0, 5.0):
        own = Gaussian(sigma=float(np.sqrt(ratio * d / 2)))
        tail = np.cumsum(np.sort(np.linalg.eigvalsh(own(X))))
        for m in sizes:
            index = choose(own, X, m, method="sparse_greedy", seed=0, measure=False).index
            widths.append(
                [ratio, m, float(residual_diagonal(own, X, X[index]).sum()), float(max(tail[n - m - 1], 0.0))]
            )
    return {"n": n, "candidates": candidates, "widths": widths}


def tell_greedy(found: Found) -> str:
    candidates = [[str(c), *(f"{t:.3g}" for t in traces)] for c, *traces in found["candidates"]]
    widths = [[f"{r:g}", str(m), f"{a:.3g}", f"{b:.3g}", f"{a / max(b, 1e-12):.1f}"] for r, m, a, b in found["widths"]]
    last = {row[0]: row[-1] for row in found["candidates"]}
    ratio = last[50] / last[200]
    return (
        f"abalone, n = {found['n']}, residual trace after m basis functions (figures 10.2 and 10.3). At m = 80 fifty\n"
        f"candidates leave {ratio:.2f} times what 200 leave; the source sees no difference from 50 on.\n\n"
        + table(["candidates", "m = 5", "m = 20", "m = 80"], candidates)
        + "\n\n"
        + table(["2 sigma^2 / d", "m", "greedy", "principal components", "ratio"], widths)
    )


CLAIMS: dict[str, tuple[str, Callable[[Any], Found], Callable[[Found], str]]] = {
    "restarts": ("Restarts", restarts, tell_restarts),
    "caches": ("Row caches", caches, tell_caches),
    "elements": ("Single values or rows", elements, tell_elements),
    "chunks": ("Chunk size, set size and memory", chunk_sizes, tell_chunk_sizes),
    "scores": ("Three scores", scores, tell_scores),
    "growth": ("Growing sets", growth, tell_growth),
    "low_rank": ("Low-rank interior point", low_rank, tell_low_rank),
    "greedy": ("Greedy bases", greedy, tell_greedy),
    **FIGURES,
}
