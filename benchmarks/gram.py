"""The kernel matrix against scikit-learn's, and the measured rules of the cost model.

    python benchmarks/gram.py            writes benchmarks/results/gram.json and gram.md
    python benchmarks/gram.py --smoke    small sizes, to see that everything runs; nothing is written

Headline: K v for the Gaussian kernel, n = 20,000, d = 50, float32, against `rbf_kernel(X) @ v` in the same run,
interleaved; at least 4 times faster, with a peak of extra memory under 64 MiB, measured in a process of its own.
"""

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import threads
from mercer.gram import Gram, tiles
from mercer.kernels import CompactGaussian, Gaussian

RESULTS = Path(__file__).parent / "results"
SMOKE = "--smoke" in sys.argv
N, D = (600 if SMOKE else 20_000), 50
GAMMA = 1.0 / D
SIGMA = (0.5 / GAMMA) ** 0.5
BUDGET = "64 MiB"


def points(n: int = N, d: int = D) -> Any:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def interleaved(contestants: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every contestant, one after the other in each round, after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repeats + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def headline() -> list[dict[str, Any]]:
    """The product K v: scikit-learn, and mercer in both precisions."""
    from sklearn.metrics.pairwise import rbf_kernel

    X = points()
    v = np.random.default_rng(1).normal(size=N).astype(np.float32)
    grams = {
        p: Gram(Gaussian(sigma=SIGMA), X, storage="streamed", precision=p, memory=BUDGET)
        for p in ("float32", "float64")
    }
    results: dict[str, Any] = {}

    def keep(name: str, product: Any) -> None:
        results[name] = product

    seconds = interleaved(
        {
            "scikit-learn rbf_kernel(X) @ v, float32": lambda: keep("scikit-learn", rbf_kernel(X, gamma=GAMMA) @ v),
            "mercer streamed, float32": lambda: keep("float32", grams["float32"].dot(v)),
            "mercer streamed, float64": lambda: keep("float64", grams["float64"].dot(v.astype(np.float64))),
        },
        repeats=5,
    )
    exact = results["float64"]
    base = statistics.median(seconds["scikit-learn rbf_kernel(X) @ v, float32"])
    rows = []
    for name, key in zip(seconds, ("scikit-learn", "float32", "float64")):
        median = statistics.median(seconds[name])
        error = float(np.abs(results[key] - exact).max() / np.abs(exact).max())
        peak = peak_of(key)
        rows.append(
            {
                "name": name,
                "seconds": seconds[name],
                "median": median,
                "ratio": base / median,
                "error": error,
                "peak_mib": peak,
            }
        )
    return rows


def peak_of(what: str) -> float:
    """Extra memory of one product, in MiB, from a process that does nothing else."""
    output = subprocess.run(
        [sys.executable, __file__, "--peak", what, *(["--smoke"] if SMOKE else [])],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(output.stdout.split()[-1])


def status(field: str) -> int:
    """A number of kibibytes from the kernel's account of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


def measure_peak(what: str) -> float:
    """Highest resident memory during the building of the operator and one product, less what was there before."""
    from sklearn.metrics.pairwise import rbf_kernel

    X, v = points(), np.ones(N, dtype=np.float32)

    def run(rows: Any) -> None:
        if what == "scikit-learn":
            rbf_kernel(rows, gamma=GAMMA) @ v[: len(rows)]
        else:
            kernel = Gaussian(sigma=SIGMA)
            Gram(kernel, rows, storage="streamed", precision=what, memory=BUDGET).dot(v[: len(rows)])

    run(X[:1000])  # libraries and compiled code are loaded before the measurement
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back to what is resident now
    run(X)
    return (status("VmHWM") - before) / 1024


def compressed_points() -> list[dict[str, Any]]:
    """CSR points worked on compressed, and turned dense: where the one becomes cheaper than the other."""
    rows = []
    rule, n = tiles.worth_densifying, 300 if SMOKE else 3000
    v = np.ones(n)
    try:
        for d in (16, 64, 256, 1024, 4096):
            for density in (0.01, 0.05, 0.2):
                X = sp.random_array((n, d), density=density, format="csr", rng=0, dtype=np.float32)
                grams = {}
                for name, dense in (("compressed", False), ("dense", True)):
                    tiles.worth_densifying = lambda X, dense=dense: dense
                    grams[name] = Gram(Gaussian(sigma=SIGMA), X, storage="streamed", precision="float32")
                    grams[name].dot(v)
                seconds = interleaved({name: lambda gram=gram: gram.dot(v) for name, gram in grams.items()}, repeats=3)
                medians = {name: statistics.median(times) for name, times in seconds.items()}
                rows.append({"d": d, "density": density, **medians, "rule": "dense" if rule(X) else "compressed"})
    finally:
        tiles.worth_densifying = rule
    return rows


def kinds() -> list[dict[str, Any]]:
    """Building and using each kind of matrix, 6000 points in 3 dimensions."""
    n = 300 if SMOKE else 6000
    X = np.random.default_rng(0).uniform(size=(n, 3))
    v = np.ones(n)
    rows = []
    for storage in ("dense", "streamed", "cached", "sparse", "lowrank", "mapped"):
        kernel: Any = CompactGaussian(sigma=0.02) if storage == "sparse" else Gaussian(sigma=0.5)
        Gram(kernel, X[:500], storage=storage).dot(v[:500])
        start = time.perf_counter()
        gram = Gram(kernel, X, storage=storage)
        built = time.perf_counter() - start
        seconds = interleaved({storage: lambda gram=gram: gram.dot(v)}, repeats=3)[storage]
        rows.append(
            {"storage": storage, "build": built, "product": statistics.median(seconds), "bytes": gram.plan().bytes}
        )
    return rows


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows]])


def report(results: dict[str, Any]) -> str:
    """The tables in Markdown."""
    first = table(
        ["product K v, n = 20,000, d = 50", "median s", "times faster", "largest error", "peak extra MiB"],
        [
            [r["name"], f"{r['median']:.3f}", f"{r['ratio']:.1f}", f"{r['error']:.1e}", f"{r['peak_mib']:.1f}"]
            for r in results["headline"]
        ],
    )
    second = table(
        ["d", "density", "compressed ms", "dense ms", "rule"],
        [
            [str(r["d"]), str(r["density"]), f"{1e3 * r['compressed']:.1f}", f"{1e3 * r['dense']:.1f}", r["rule"]]
            for r in results["compressed_points"]
        ],
    )
    third = table(
        ["storage", "build s", "product ms", "planned MiB"],
        [
            [r["storage"], f"{r['build']:.3f}", f"{1e3 * r['product']:.1f}", f"{r['bytes'] / 2**20:.1f}"]
            for r in results["kinds"]
        ],
    )
    return f"""# The kernel matrix

{results["machine"]}, {results["threads"]} threads, medians of interleaved runs; `python benchmarks/gram.py` reruns all.

{first}

Errors are relative to the largest entry of the float64 product; budgets of mercer's operators are {BUDGET}.

CSR points, 3000 x d, one float32 Gaussian product, worked on compressed or turned dense first:

{second}

6000 points in 3 dimensions, float64 (sparse: the compact Gaussian, all others: the Gaussian):

{third}
"""


def main() -> None:
    if sys.argv[1:2] == ["--peak"]:
        print(measure_peak(sys.argv[2]))
        return
    results: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "threads": threads.count()}
    results["headline"] = headline()
    results["compressed_points"] = compressed_points()
    results["kinds"] = kinds()
    if SMOKE:
        print(report(results))
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "gram.json").write_text(json.dumps(results, indent=1) + "\n")
    (RESULTS / "gram.md").write_text(report(results))
    print(report(results))


if __name__ == "__main__":
    main()
