"""Damaged and hostile files end in one line without control characters, and in the exit code that the manual names."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer.cli.app import main
from mercer.cli.exits import INPUT
from mercer.data import Dataset, read, write
from mercer.data.text import read_documents
from mercer.errors import InvalidInput, MercerWarning, UnseenCategory

LINES = b"".join(b"%d 1:%d 2:0.5\n" % (k % 2, k) for k in range(2000))


def saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def headed(shape: tuple[int, ...], descr: Any, content: bytes = b"") -> bytes:
    """A .npy file with any header."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


def archived(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def swollen() -> bytes:
    """An archive whose member says it unpacks to a terabyte."""
    content = bytearray(archived(X=headed((1 << 37, 1), "<f8", bytes(4096))))
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 0xFFFFFFF0)
    return bytes(content)


def with_dictionary(code: int, text: bytes = LINES) -> bytes:
    """A small .xz file that asks for a dictionary of (2 + code % 2) 2^(code / 2 + 11) bytes; 40 stands for 4 GiB."""
    content = bytearray(lzma.compress(text, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}]))
    end = 12 + 4 * (content[12] + 1)  # of the header of the block, which a check sum ends
    assert content[14:16] == b"\x21\x01"
    content[16] = code
    content[end - 4 : end] = struct.pack("<I", zlib.crc32(content[12 : end - 4]))
    return bytes(content)


def parquet_bytes(columns: dict[str, Any]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def not_utf8() -> bytes:
    return parquet_bytes({"a": ["good", "evil"] * 20, "y": [0, 1] * 20}).replace(b"evil", b"\xff\xfe\xfd\xfc")


def cut(content: bytes) -> bytes:
    return content[: 2 * len(content) // 3]


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "many dimensions.npy": (lambda: headed((1,) * 70, "<f8", bytes(8)), "70 dimensions"),
    "three dimensions.npy": (lambda: saved(np.zeros((2, 2, 2))), "3 dimensions"),
    "scalar.npy": (lambda: saved(np.float64(1)), "must be a matrix"),
    "complex.npy": (lambda: saved(np.zeros((2, 2), complex)), "must hold real numbers"),
    "dates.npy": (lambda: saved(np.zeros((2, 2), "M8[s]")), "must hold real numbers"),
    "structured.npy": (lambda: saved(np.zeros(2, [("a", "f8"), ("b", "i4")])), "must hold real numbers"),
    "nothing wide.npy": (lambda: headed((10**12, 10**6), "<U0"), "must hold real numbers"),
    "nothing void.npy": (lambda: headed((10**12, 5), "|V0"), "must hold real numbers"),
    "sub-arrays.npy": (lambda: headed((2,), ("<f8", (3,)), bytes(48)), "must hold real numbers|is not a NumPy file"),
    "negative.npy": (lambda: headed((-2, -4), "<f8", bytes(64)), "negative length|not a NumPy file"),
    "huge.npy": (lambda: headed((1 << 40, 1 << 40), "<f8", bytes(64)), "announces"),
    "no such type.npy": (lambda: headed((2, 2), "<q9", bytes(32)), "is not a NumPy file"),
    "empty.npy": (lambda: b"", "is not a NumPy file"),
    "texts as points.npy": (lambda: saved(np.array([["a", "b"]])), "X must hold real numbers"),
    "no characters.npz": (
        lambda: archived(X=saved(np.eye(2)), y=headed((2,), "<U1", b"\xff\xff\xff\xff" * 2)), "not characters"
    ),
    "half pairs.npz": (
        lambda: archived(X=saved(np.eye(2)), y=headed((2,), "<U1", struct.pack("<II", 0xD800, 65))), "not characters"
    ),
    "no ASCII.npz": (lambda: archived(X=saved(np.eye(2)), y=saved(np.array([b"\xff", b"a"]))), "not characters"),
    "swollen.npz": (swollen, "swollen.npz"),
    "cut.npz": (lambda: cut(archived(X=saved(np.random.default_rng(0).normal(size=(50, 4))))), "not a .npz file"),
    "cut.npy": (lambda: cut(saved(np.eye(20))), "is damaged"),
    "cut.svm.gz": (lambda: cut(gzip.compress(LINES)), "cannot be read"),
    "cut.svm.bz2": (lambda: cut(bz2.compress(LINES)), "cannot be read"),
    "cut.svm.xz": (lambda: cut(lzma.compress(LINES)), "cannot be read"),
    "changed.svm.gz": (lambda: gzip.compress(LINES)[:200] + b"\0\0\0\0" + gzip.compress(LINES)[204:], "cannot be read"),
    "changed.svm.xz": (lambda: lzma.compress(LINES)[:200] + b"\0\0\0\0" + lzma.compress(LINES)[204:], "cannot be read"),
    "trailing.svm.xz": (lambda: lzma.compress(LINES) + b"something else", "cannot be read"),
    "dictionary.svm.xz": (lambda: with_dictionary(40), "more than 512 MiB of memory.*xz -9"),
    "cut.parquet": (lambda: cut(parquet_bytes({"a": list(range(500)), "y": [0, 1] * 250})), "is not a Parquet file"),
    "cut.csv.gz": (lambda: cut(gzip.compress(b"a,y\n" + b"1,2\n" * 9)), "cannot be read"),
    "not UTF-8.parquet": (not_utf8, "column 'a' holds text that is not UTF-8"),
    "control.csv": (lambda: b"a\x1b[2J,a\x1b[2J,y\n1,2,3\n", r"two columns are called 'a\\x1b\[2J'"),
    "control.svm": (lambda: b"1 1:1\n\x1b]0;title\x07 1:1\n", r"line 2: .*\\x1b"),
    "control.parquet": (lambda: parquet_bytes({"a\x1b[2J\r": [[1]], "y": [1]}), r"column 'a\\x1b\[2J\\r'"),
    "control.npz": (lambda: archived(**{"\x1b[2J\r": saved(np.eye(2))}), r"holds '\\x1b\[2J\\r'"),
    "regression of texts.csv": (lambda: b"a,y\n1,\x1b[2J\n2,\n", "target 'y' of point 2 is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_in_one_printable_line(tmp_path: Path, name: str) -> None:
    content, complaint = HOSTILE[name]
    path = tmp_path / name
    path.write_bytes(content())
    with pytest.raises(InvalidInput, match=complaint) as caught:
        read(path, missing="keep", limit="1 GiB")
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    assert len(message) < 600


@pytest.mark.parametrize("name", HOSTILE)
def test_the_command_ends_with_the_code_of_unusable_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(HOSTILE[name][0]())
    with pytest.raises(SystemExit) as end:
        main(["inspect", name])
    output = capsys.readouterr()
    assert end.value.code == INPUT
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.rstrip("\n").isprintable()
    assert name in output.err


def test_xz_files_of_every_preset_and_of_several_streams_are_read(tmp_path: Path) -> None:
    for preset in (0, 6, 9):
        (tmp_path / "a.svm.xz").write_bytes(lzma.compress(LINES, preset=preset))
        assert read(tmp_path / "a.svm.xz").n == 2000
    parts = lzma.compress(LINES) + bytes(8) + lzma.compress(LINES) + bytes(4)
    (tmp_path / "b.svm.xz").write_bytes(parts)
    assert read(tmp_path / "b.svm.xz").n == 4000
    (tmp_path / "c.svm.xz").write_bytes(lzma.compress(LINES, format=lzma.FORMAT_ALONE))
    assert read(tmp_path / "c.svm.xz").n == 2000


def test_a_dictionary_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.svm.xz").write_bytes(with_dictionary(27))
    assert read(tmp_path / "a.svm.xz", limit="256 MiB").n == 2000
    with pytest.raises(InvalidInput, match="takes more than 32 MiB of memory, the limit for reading"):
        read(tmp_path / "a.svm.xz", limit="32 MiB")


def test_documents_in_an_archive_with_a_large_dictionary_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("label/name")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"words"))
    (tmp_path / "a.tar.xz").write_bytes(with_dictionary(20, stream.getvalue()))
    assert read_documents(tmp_path / "a.tar.xz").texts == ("words",)
    (tmp_path / "b.tar.xz").write_bytes(with_dictionary(40, stream.getvalue()))
    with pytest.raises(InvalidInput, match=r"more than 512 MiB of memory"):
        read_documents(tmp_path / "b.tar.xz")


def test_a_very_long_label_is_refused_before_it_widens_all_others(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,y\n1," + b"x" * 110_000 + b"\n" + b"1,b\n" * 25_000)
    assert path.stat().st_size < 220_000
    with pytest.raises(InvalidInput, match="a label of the target 'y' has 110000 characters, more than 1000"):
        read(path)
    path.write_bytes(b"a,y\n1," + b"x" * 1000 + b"\n2,b\n")
    labels = read(path).y
    assert labels is not None
    assert [len(label) for label in labels] == [1000, 1]


def test_warnings_that_quote_a_file_hold_no_control_characters(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\nu,1,0\nv,2,1\n")
    (tmp_path / "b.csv").write_text("a,b,y\n\x1b[31mred,1,0\nv,2,1\n")
    with pytest.warns(UnseenCategory) as caught:
        read(tmp_path / "b.csv", like=read(tmp_path / "a.csv"))
    assert str(caught[0].message).isprintable()
    assert r"\x1b[31mred" in str(caught[0].message)
    assert str(MercerWarning("a\x1b[2Jb\nc")) == r"a\x1b[2Jb\nc"


def test_labels_of_truth_are_written_and_read_again(tmp_path: Path) -> None:
    data = Dataset(np.eye(3), np.array([True, False, True]))
    for name in ("a.csv", "a.npz"):
        write(tmp_path / name, data)
        again = read(tmp_path / name).y
        assert again is not None
        assert again.dtype == bool
        assert again.tolist() == [True, False, True]
