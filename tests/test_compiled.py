"""Compiled loops run where their machine code cannot be kept, and never run code that was kept for something else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The limit on the size of files stands for a full disk: writing fails with an error after some bytes.
FULL = """
import resource, signal, sys, warnings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.path.insert(0, sys.argv[2])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import squares
    print(squares.total(10), squares.total(4))
print([w.category.__name__ for w in seen], [str(w.message) for w in seen])
"""
SQUARES = """
from mercer.compiled import loop

@loop
def total(n):
    found = 0
    for k in range(n):
        found += k * k
    return found
"""


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are POSIX's")
def test_a_full_disk_for_compiled_code_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "squares.py").write_text(SQUARES)
    cache = tmp_path / "cache"
    cache.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FULL, "1000", str(tmp_path)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    numbers, said = done.stdout.splitlines()
    assert numbers == "285 14"
    assert said.startswith("['NotSaved']")
    assert "make room, or name another folder in NUMBA_CACHE_DIR" in said
    assert not list(cache.rglob("*.nbc"))


FIRST = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import firsts
print(firsts.first(np.arange(3, 6, dtype=sys.argv[2])))
"""
FIRSTS = """
from mercer.compiled import loop

@loop
def first(x):
    return x[0]
"""


def first_of(folder: Path, kind: str) -> str:
    """What a new process finds to be the first of 3, 4, 5 as this kind of numbers."""
    return subprocess.run(
        [sys.executable, "-c", FIRST, str(folder), kind],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=300, check=True,
    ).stdout.strip()  # fmt: skip


def test_code_kept_for_other_types_or_another_source_is_not_run(tmp_path: Path) -> None:
    source = tmp_path / "firsts.py"
    source.write_text(FIRSTS)
    assert (first_of(tmp_path, "f8"), first_of(tmp_path, "i8")) == ("3.0", "3")
    one, other = sorted((tmp_path / "cache").rglob("*.nbc"))
    before = one.read_bytes(), other.read_bytes()
    one.write_bytes(before[1])
    other.write_bytes(before[0])
    assert (first_of(tmp_path, "f8"), first_of(tmp_path, "i8")) == ("3.0", "3")
    source.write_text(FIRSTS.replace("x[0]", "x[2]"))
    assert (first_of(tmp_path, "f8"), first_of(tmp_path, "i8")) == ("5.0", "5")
    one.write_bytes(one.read_bytes()[:1000])
    assert (first_of(tmp_path, "f8"), first_of(tmp_path, "i8")) == ("5.0", "5")
    assert {one, other} == set((tmp_path / "cache").rglob("*.nbc"))
