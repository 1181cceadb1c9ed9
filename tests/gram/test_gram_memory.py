"""Amounts of memory are read and written as people write them, and the free amount is a real one."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import resources as memory
from mercer.errors import InvalidInput


@pytest.mark.parametrize(
    "text, size",
    [
        ("512 MiB", 512 * 2**20),
        ("2GB", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("10 kb", 10_000),
        ("4KiB", 4096),
        ("100000", 100_000),
        (" 7 B ", 7),
        (1024, 1024),
        (np.int64(5), 5),
        (1e6, 1_000_000),
    ],
)
def test_parse_reads_decimal_and_binary_units(text, size):
    assert memory.parse(text) == size


@pytest.mark.parametrize(
    "text", ["", "many", "12 parsecs", "-3 MB", 0, -1, "0 GB", float("nan"), float("inf"), True, None, []]
)
def test_parse_refuses_what_is_no_amount_and_names_the_argument(text):
    with pytest.raises(InvalidInput, match="memory"):
        memory.parse(text)


@given(st.integers(1, 2**50))
def test_show_is_read_back_within_its_four_digits(size):
    assert memory.parse(memory.show(size)) == pytest.approx(size, rel=1e-3, abs=1)


def test_default_budget_is_the_stated_share_of_the_free_memory():
    assert 0.9 * memory.SHARE < memory.budget(None) / memory.available() < 1.1 * memory.SHARE


def _group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(str(content))


def test_the_tightest_limit_of_the_control_groups_counts_and_file_cache_is_given_back(tmp_path, monkeypatch):
    _group(tmp_path, memory__max="max", memory__current=0, memory__stat="")
    _group(tmp_path / "a", memory__max=10_000, memory__current=4_000, memory__stat="anon 1\ninactive_file 500\n")
    _group(tmp_path / "a" / "b", memory__max="max", memory__current=4_000, memory__stat="")
    monkeypatch.setattr(
        memory, "_group_folders", lambda root, controller: [tmp_path / "a" / "b", tmp_path / "a", tmp_path]
    )
    assert memory._group_free_v2() == 6_500
    assert memory.available() == 6_500


def test_an_unlimited_control_group_does_not_count(tmp_path, monkeypatch):
    _group(tmp_path, memory__limit_in_bytes=2**63 - 4096, memory__usage_in_bytes=0)
    monkeypatch.setattr(memory, "_group_folders", lambda root, controller: [tmp_path])
    assert memory._group_free_v1() is None
