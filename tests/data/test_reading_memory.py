"""The limit bounds the memory that reading takes: measured as peak resident memory in a process of its own."""

import gzip
import io
import json
import lzma
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LIMIT = 24 << 20

# Reads every file of its arguments, and prints by how much each raised the peak, with the error if there was one.
CHILD = """
import ctypes, gc, json, sys, warnings
from pathlib import Path
from mercer.data import read
from mercer.errors import InvalidInput

warnings.simplefilter("ignore")
system = ctypes.CDLL(None)

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

def grown(path, limit):
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    system.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    try:
        found = repr(read(path, limit=limit, missing="impute"))
    except InvalidInput as error:
        found = str(error)
    return status("VmHWM") - before, found

limit, *paths = sys.argv[1:]
for path in paths:
    small = Path(path).with_name("small_" + Path(path).name)
    grown(small if small.exists() else path, 1 << 30 if small.exists() else int(limit))
    found = grown(path, int(limit))
    for _ in range(2):
        if found[0] > int(limit):  # pages that the system had taken away may have come back: the reader takes the least
            found = min(found, grown(path, int(limit)))
    print(json.dumps([Path(path).name, *found]))
"""

Content = Callable[[int], bytes]


def packed(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def parquet_of(**columns: Any) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


# Files of n points, with the largest n that is tried; the text takes many times its length where nothing bounds it.
FILES: dict[str, tuple[Content, int]] = {
    "lines.svm": (lambda n: b"1 1:2 2:3 3:4\n" * n, 2_000_000),
    "labels.svm": (lambda n: b"1 1:1\n" + b"1\n" * n, 4_000_000),
    "disorder.svm": (lambda n: b"1 7:1 2:1 3:1 4:1\n" * n, 1_000_000),
    "many labels.svm": (lambda n: b"1,2,3 7:1\n4,5 1:1\n" * (n // 2), 1_000_000),
    "one line.svm": (lambda n: b"1" + b"".join(b" %d:1" % k for k in range(1, n)), 500_000),
    "queries.svm": (lambda n: b"1 qid:5 7:1\n" * n, 2_000_000),
    "bomb.svm.gz": (lambda n: gzip.compress(b"1 1:2 2:3 3:4\n" * n, 1), 2_000_000),
    "bomb.svm.xz": (lambda n: lzma.compress(b"1 1:2 2:3 3:4\n" * n, preset=0), 2_000_000),
    "numbers.csv": (lambda n: b"a,b,y\n" + b"1,2,0\n" * n, 2_000_000),
    "gaps.csv": (lambda n: b"a,b,y\n" + b",1.5,0\n2,,1\n" * (n // 2), 1_000_000),
    "texts.csv": (lambda n: b"a,b,y\n" + b"".join(b"v%d,%d,yes\n" % (k % 50, k) for k in range(n)), 500_000),
    "names.csv": (lambda n: b"a,b,y\n" + b"".join(b"v%d,%d,yes\n" % (k, k) for k in range(n)), 500_000),
    "labels.csv": (lambda n: b"a,y\n" + b"".join(b"%d,v%d\n" % (k, k) for k in range(n)), 250_000),
    "late.csv": (lambda n: b"a,y\n" + b"1,0\n" * n + b"x,1\n", 1_000_000),
    "wide.csv": (lambda n: b",".join(b"x%d" % k for k in range(n)) + b"\n" + b",".join([b"1"] * n), 50_000),
    "no line end.csv": (lambda n: b"a,y\n1," + b"2" * n, 8_000_000),
    "long label.csv": (lambda n: b"a,y\n1," + b"x" * min(n, 110_000) + b"\n" + b"1,b\n" * (n // 100), 2_500_000),
    "bomb.csv.gz": (lambda n: gzip.compress(b"a,b,y\n" + b"1,2,0\n" * n, 1), 2_000_000),
    "double.npy": (lambda n: saved(np.ones((n, 4))), 2_000_000),
    "bytes.npy": (lambda n: saved(np.ones((n, 4), np.int8)), 2_000_000),
    "gaps.npy": (lambda n: saved(np.full((n, 4), [1, np.nan, 2, np.nan])), 700_000),
    "bomb.npz": (lambda n: packed(X=np.zeros((n, 4), np.float32), y=np.zeros(n)), 2_000_000),
    "labels.npz": (lambda n: packed(X=np.zeros((n, 1)), y=np.full(n, "x" * 40)), 300_000),
    "numbers.parquet": (lambda n: parquet_of(a=np.arange(n) / 7, b=np.arange(n), y=np.arange(n) % 2), 600_000),
    "bomb.parquet": (lambda n: parquet_of(a=np.ones(n), b=np.ones(n), y=np.ones(n)), 2_000_000),
    "texts.parquet": (lambda n: parquet_of(a=[f"v{k % 50}" for k in range(n)], y=np.arange(n) % 2), 500_000),
    "names.parquet": (lambda n: parquet_of(a=[f"v{k}" for k in range(n)], b=np.ones(n), y=np.arange(n) % 2), 300_000),
}
STEPS = (16, 4)


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str]]]:
    """By how much every file raised the peak, at two sizes, with what came of it."""
    folder = tmp_path_factory.mktemp("files")
    places: list[Path] = []
    for step in STEPS:
        for name, (content, n) in FILES.items():
            places.append(folder / f"{step} {name}")
            places[-1].write_bytes(content(n // step))
            (folder / f"small_{step} {name}").write_bytes(content(20))
    command = [sys.executable, "-c", CHILD, str(LIMIT), *map(str, places)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in FILES}
    for name, grown, result in map(json.loads, lines):
        found[name.partition(" ")[2]].append((grown, result))
    return found


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("name", FILES)
def test_reading_takes_no_more_memory_than_the_limit(growth: dict[str, list[tuple[int, str]]], name: str) -> None:
    for grown, result in growth[name]:
        assert grown <= LIMIT, result
    assert len(growth[name]) == len(STEPS)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is read from Linux's /proc")
def test_files_well_below_the_limit_are_read_and_bombs_are_refused(growth: dict[str, list[tuple[int, str]]]) -> None:
    for name, found in growth.items():
        if "line" not in name.split(".")[0] and name not in ("wide.csv", "long label.csv", "labels.npz"):
            assert found[0][1].startswith("Dataset"), (name, found)
        if "bomb" in name:
            assert "the limit for reading" in found[-1][1] or "does not fit in" in found[-1][1], (name, found)


# Under a limit on addresses ----------------------------------------------------------------------------------------

ROOM = 512 << 20

CONFINED = """
import resource, sys, warnings
from pathlib import Path
from mercer.data import read

try:
    import pyarrow.parquet
except ImportError:
    pass
lines = Path("/proc/self/status").read_text().splitlines()
size = 1024 * next(int(line.split()[1]) for line in lines if "VmSize" in line)
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[1]), resource.RLIM_INFINITY))
for path in sys.argv[2:]:
    print(read(path))
"""


def test_small_files_are_read_under_a_limit_on_addresses(tmp_path: Path) -> None:
    text = b"1 1:2 2:3\n0 1:1 2:2\n"
    contents = {
        "a.svm": text,
        "b.svm.gz": gzip.compress(text),
        "c.svm.xz": lzma.compress(text),
        "d.csv": b"a,b,y\n1,2,0\n2,3,1\n",
        "e.npy": saved(np.eye(2)),
        "f.npz": packed(X=np.eye(2), y=np.arange(2)),
        "g.npy.gz": gzip.compress(saved(np.eye(2))),
        "h.parquet": parquet_of(a=[1, 2], b=["u", "v"], y=[0, 1]),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-c", CONFINED, str(ROOM), *(str(tmp_path / name) for name in contents)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("Dataset(2 x") == len(contents)
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != ROOM  # this process is as free as before


def test_a_file_that_needs_more_addresses_than_there_are_ends_in_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(saved(np.zeros((1 << 20, 8))))
    command = [sys.executable, "-c", CONFINED, str(16 << 20), str(tmp_path / "a.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-1].startswith("mercer.errors.BudgetTooSmall"), done.stderr[-2000:]
    assert "a.npy: reading it takes more memory than there is" in done.stderr.splitlines()[-1]


def test_a_member_packed_by_another_method_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", saved(np.eye(2)))
    from mercer.data import read
    from mercer.errors import InvalidInput

    with pytest.raises(InvalidInput, match="packed by a method that NumPy does not use"):
        read(tmp_path / "a.npz")
