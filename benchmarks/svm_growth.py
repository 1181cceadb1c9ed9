"""How training grows with the number of points: covtype, class 2 against the rest, n = 10,000 to 100,000.

mercer is held to 256 MiB for kernel values throughout; the table's peak is the growth of the process's resident memory
during the fit, which holds the model's copy of its support vectors too.  scikit-learn-intelex, the faster peer on
these data, runs beside it with the same cache up to 50,000 points.
"""

from typing import Any

from benchmarks import harness, peers
from benchmarks.svm import Split, covtype

SIZES = (10_000, 20_000, 50_000, 100_000)
CACHE = 256


def trained(library: str) -> Any:
    """Fit with one library."""

    def work(part: Split) -> dict[str, Any]:
        return peers.fitted(library, "SVC", part.X, part.y, gamma="scale", C=1.0, tol=1e-3, cache_size=CACHE)

    return work


def libraries(rows: int) -> tuple[str, ...]:
    """The peer is left out where it would take minutes."""
    return ("mercer", "scikit-learn-intelex") if rows <= 50_000 else ("mercer",)


TASKS = [
    harness.Task(f"n = {rows:,}", covtype(rows), {lib: trained(lib) for lib in libraries(rows)}, needs_data=True)
    for rows in SIZES
]

if __name__ == "__main__":
    harness.main("svm_growth", TASKS)
