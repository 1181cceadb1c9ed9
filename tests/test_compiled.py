"""Compiled loops run where their machine code cannot be kept."""

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
