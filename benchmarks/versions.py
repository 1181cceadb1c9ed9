"""Two versions of mercer side by side: an earlier commit and this tree, room by room, in one run.

    python -m benchmarks.versions --old REVISION [--threads 2] [--rooms svm tuning] [--repeats 3]

Each case runs in two processes, one of either version, that are there at the same time and take turns: old, new, new,
old, old ...  So a disturbance of the machine meets both; short cases have more turns.  Data are read and code is
compiled before the clock starts; the room "first fit" measures just that compiling, with an empty cache.  The time of a
case is the median of its turns, the gap beside it the relative one that the version claims for its last machine, where
it claims one.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness

ROOT = Path(__file__).resolve().parents[1]
LEAST, MOST = 4.0, 15  # seconds that the turns of a case take together, and turns of each version that are enough


class Case(NamedTuple):
    """What is timed: `expression` over X, y and the names of mercer, with `given` (a fitted machine) as m."""

    room: str
    data: str
    rows: int
    expression: str
    given: str = "None"
    loops: int = 1


FIT = ".fit(X, y)"
CASES = (
    Case("svm", "a9a", 20_000, "SVC()" + FIT),
    Case("svm", "ijcnn1", 35_000, "SVC()" + FIT),
    Case("svm", "letter", 10_000, "SVC()" + FIT),
    Case("svm", "satimage", 5_000, "SVC(C=100)" + FIT),
    Case("svm", "usps", 7_000, "SVC()" + FIT),
    Case("svm", "shuttle", 30_000, "SVC(C=10)" + FIT),
    Case("svm", "kin8nm", 8_000, "SVR()" + FIT),
    Case("svm", "california", 10_000, "SVR(C=10)" + FIT),
    Case("svm", "usps", 7_000, "m.predict(X)", "SVC()" + FIT),
    Case("svm, few points", "heart", 270, "SVC()" + FIT, loops=50),
    Case("svm, few points", "satimage", 300, "SVC()" + FIT, loops=20),
    Case("svm, few points", "kin8nm", 100, "SVR()" + FIT, loops=100),
    Case("svm, few points", "kin8nm", 300, "SVR()" + FIT, loops=50),
    Case("svm, few points", "usps", 1_000, "NuSVC(nu=0.05)" + FIT, loops=3),
    Case("svm, few points", "heart", 270, "m.predict(X[:1])", "SVC()" + FIT, loops=500),
    Case("least squares", "satimage", 4_000, "LSSVC()" + FIT),
    Case("least squares", "kin8nm", 4_000, "LSSVR()" + FIT),
    Case("least squares", "kin8nm", 1_500, "LSSVR(C='loo')" + FIT),
    Case("least squares", "a9a", 6_000, "LSSVC(solver='block_conjugate_gradient', memory='64 MiB')" + FIT),
    Case("least squares", "heart", 270, "LSSVC()" + FIT, loops=100),
    Case("least squares", "heart", 270, "m.predict(X[:1])", "LSSVC()" + FIT, loops=500),
    Case("low rank", "ijcnn1", 8_000, "SVC(approximation=Nystrom(300, seed=0))" + FIT),
    Case("low rank", "a9a", 30_000, "LSSVC(approximation=Nystrom(500, seed=0))" + FIT),
    Case("low rank", "california", 20_000, "LSSVR(approximation=RandomFourier(500, seed=0))" + FIT),
    Case("tuning", "heart", 270, "TunedSVC(random_state=0)" + FIT),
    Case("tuning", "satimage", 1_500, "TunedSVC(random_state=0)" + FIT),
    Case("tuning", "kin8nm", 400, "TunedSVR(random_state=0)" + FIT),
    Case("multiclass", "satimage", 3_000, "CrammerSingerSVC()" + FIT),
    Case("multiclass", "satimage", 3_000, "WestonWatkinsSVC()" + FIT),
    Case("multiclass", "satimage", 1_000, "KernelLogistic()" + FIT),
    Case("multiclass", "satimage", 3_000, "OutputCode(LSSVC(), code='ava')" + FIT),
    Case("multiclass", "satimage", 3_000, "OutputCode(SVC(), code='ova')" + FIT),
    Case("first fit", "heart", 270, "SVC()" + FIT),
    Case("first fit", "heart", 270, "LSSVC()" + FIT),
)
NUMBERS = ("kin8nm", "california")
SMOKE = Case("svm", "heart", 270, "SVC()" + FIT)
CHILD = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from mercer import *
from mercer.data import read, sample
path, numbers, rows, expression, given, loops, warm = sys.argv[1:]
data = sample("heart-statlog") if path == "-" else read(path)
X, y = data.X[:int(rows)], data.y[:int(rows)]
if numbers == "True":
    X = X.toarray() if hasattr(X, "toarray") else X
    X, y = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), (y - y.mean()) / y.std()
m = eval(given)
if warm == "True":
    eval(expression)
print("ready", flush=True)
for line in sys.stdin:
    began = time.perf_counter()
    for _ in range(int(loops)):
        found = eval(expression)
    seconds = (time.perf_counter() - began) / int(loops)
    gap, value = getattr(found, "gap_", None), getattr(found, "objective_", None)
    share = None if gap is None or value is None else float(np.max(np.asarray(gap) / np.abs(value)))
    print(json.dumps({"seconds": seconds, "gap": share}), flush=True)
"""


def checkout(revision: str, folder: Path) -> Path:
    """The sources of a revision, unpacked below `folder`; a folder of sources is taken as it is."""
    if Path(revision).is_dir():
        return Path(revision).resolve()
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


class Version:
    """A process of one version that has a case ready and runs it once when told to."""

    def __init__(self, source: Path, case: Case, path: str, threads: int, cache: str | None) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source), "MERCER_NUM_THREADS": str(threads)}
        environment |= {} if cache is None else {"NUMBA_CACHE_DIR": cache}
        told = (path, case.data in NUMBERS, case.rows, case.expression, case.given, case.loops, cache is None)
        command = [sys.executable, "-c", CHILD, *map(str, told)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.seconds: list[float] = []
        self.gap: float | None = None
        self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise RuntimeError(self.process.stderr.read().strip().splitlines()[-1])
        return line

    def turn(self) -> None:
        """Run the case once and keep its time."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        found = json.loads(self._answer())
        self.seconds.append(found["seconds"])
        self.gap = found["gap"]

    def end(self) -> None:
        """Let the process go."""
        self.process.communicate()


def measure(case: Case, trees: dict[str, Path], path: str, threads: int, repeats: int) -> dict[str, Any]:
    """Median seconds of both versions, taking turns, and the gaps they claim."""
    row: dict[str, Any] = {"case": case}
    try:
        sides = {name: Version(tree, case, path, threads, None) for name, tree in trees.items()}
        began, turns = time.perf_counter(), 0
        while turns < repeats or (time.perf_counter() - began < LEAST and repeats > 1 and turns < MOST):
            for side in list(sides.values())[:: 1 if turns % 2 == 0 else -1]:
                side.turn()
            turns += 1
        for name, side in sides.items():
            row[name], row[f"gap {name}"] = statistics.median(side.seconds), side.gap
            side.end()
    except RuntimeError as error:
        row["failed"] = str(error)
    return row


def first_fit(case: Case, trees: dict[str, Path], path: str, threads: int, repeats: int) -> dict[str, Any]:
    """Median seconds of a first fit, with nothing compiled."""
    row: dict[str, Any] = {"case": case}
    seconds: dict[str, list[float]] = {name: [] for name in trees}
    for _ in range(repeats):
        for name, tree in trees.items():
            with tempfile.TemporaryDirectory() as cache:
                side = Version(tree, case, path, threads, cache)
                side.turn()
                side.end()
                seconds[name] += side.seconds
                row[f"gap {name}"] = side.gap
    return {**row, **{name: statistics.median(found) for name, found in seconds.items()}}


def table(rows: list[dict[str, Any]]) -> str:
    """The measurements, and the geometric mean of the ratios in each room and over all."""
    lines = ["| room | data | rows | what | old, ms | new, ms | new / old | gap, old | gap, new |", "|---" * 9 + "|"]
    ratios: dict[str, list[float]] = {}
    for row in rows:
        case = row["case"]
        what = case.expression if case.given == "None" else f"{case.expression} of {case.given}"
        head = f"| {case.room} | {case.data} | {case.rows} | `{what}` |"
        if "failed" in row:
            lines.append(f"{head} {row['failed']} | | | | |")
            continue
        ratios.setdefault(case.room, []).append(row["new"] / row["old"])
        gaps = " | ".join("" if row[f"gap {side}"] is None else f"{row[f'gap {side}']:.1e}" for side in ("old", "new"))
        times = f"{1e3 * row['old']:.4g} | {1e3 * row['new']:.4g} | {row['new'] / row['old']:.2f}"
        lines.append(f"{head} {times} | {gaps} |")
    every = [one for name, room in ratios.items() for one in room if name != "first fit"]
    means = {**ratios, "all but the first fit": every}
    for name, values in means.items():
        if values:
            mean = math.exp(statistics.fmean(map(math.log, values)))
            lines.append(f"| {name}: geometric mean | | | largest {max(values):.2f} | | | {mean:.2f} | | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", default="HEAD", help="revision to compare with, or a folder of its sources")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rooms", nargs="+", default=sorted({case.room for case in CASES}))
    parser.add_argument("--out", type=Path, help="where the table is written")
    parser.add_argument("--smoke", action="store_true")
    told = parser.parse_args()
    folder = os.environ.get("MERCER_DATA")
    if not told.smoke and not folder:
        parser.exit(0, "benchmarks.versions needs the data sets: set MERCER_DATA\n")
    rows: list[dict[str, Any]] = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        # The smoke run compares the tree with itself: a checkout would have to be compiled first.
        trees = {"old": ROOT / "src" if told.smoke else checkout(told.old, Path(scratch)), "new": ROOT / "src"}
        for case in [SMOKE] if told.smoke else [case for case in CASES if case.room in told.rooms]:
            found = [Path(str(folder)) / f"{case.data}{ending}" for ending in (".train.svm.xz", ".svm.xz")]
            path = "-" if case.data == "heart" else str(next(one for one in found if one.exists()))
            run = first_fit if case.room == "first fit" else measure
            rows.append(run(case, trees, path, told.threads, 1 if told.smoke else told.repeats))
            print(
                f"{time.perf_counter() - began:.0f} s: {table(rows[-1:]).splitlines()[2]}", file=sys.stderr, flush=True
            )
    facts = "\n".join(f"- {name}: {value}" for name, value in harness.machine().items())
    text = f"# {told.old} and this tree\n\n{facts}\n- turns of each version: {told.repeats} or more\n\n{table(rows)}\n"
    print(text)
    if told.out:
        told.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
