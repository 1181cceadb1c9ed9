"""Files appear complete or not at all, whatever ends the process that writes them."""

import errno
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from mercer import writing
from mercer.errors import CannotWrite, NotSaved
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

KILLED = """
import os, signal, sys
from mercer.writing import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes no more bytes."""

    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


def test_a_file_is_replaced_when_all_is_written_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with writing.replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(TypeError), writing.replacing(path) as stream:
        stream.writelines([b"other", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="the signal that cannot be caught is POSIX's")
def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "model.mercer"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=120)
    assert killed.returncode < 0
    (part,) = tmp_path.iterdir()
    assert part.name.startswith(".model.mercer.")
    assert part.name.endswith(".part")
    other = tmp_path / f".other.mercer.{part.name.removeprefix('.model.mercer.')}"
    other.write_bytes(b"of another file")
    alive = tmp_path / f".model.mercer.{writing._host()}-{os.getppid()}-01234567.part"
    alive.write_bytes(b"of a process that lives")
    with writing.replacing(path) as stream:
        stream.write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, other, alive])


def test_a_full_disk_is_found_by_trying_and_nothing_is_left_behind(tmp_path: Path, full: None) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(CannotWrite, match=r"a: cannot be written \(No space left on device\); make room"):
        writing.try_writing(path)
    with pytest.raises(CannotWrite, match="No space left"), writing.replacing(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_and_a_name_that_is_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match=r"none does not exist; create it first"):
        writing.try_writing(tmp_path / "none" / "a")
    with pytest.raises(CannotWrite, match="is a folder"):
        writing.try_writing(tmp_path)
    writing.try_writing(tmp_path / ("long" * 60))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are POSIX's")
def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    with writing.replacing(pipe) as stream:
        stream.write(b"through")
    reader.join(timeout=60)
    assert heard == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a", tmp_path / "link"
    link.symlink_to(target)
    with writing.replacing(link) as stream:
        stream.write(b"x")
    assert link.is_symlink()
    assert target.read_bytes() == b"x"


def test_a_checkpoint_on_a_full_disk_warns_and_the_solver_goes_on(tmp_path: Path, full: None) -> None:
    solution = Solution.__new__(Solution)

    def save(path: object) -> None:
        with writing.replacing(tmp_path / "state") as stream:
            stream.write(b"x")

    object.__setattr__(solution, "save", save)
    with Monitor(checkpoint=tmp_path / "state", every=0.0) as monitor:
        with pytest.warns(NotSaved, match="The training goes on"):
            assert monitor.watch(1, 1.0, 0.0, snapshot=lambda: solution)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotSaved)
            assert monitor.watch(2, 1.0, 0.0, snapshot=lambda: solution)
