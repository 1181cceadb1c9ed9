"""What a computation may use, in one object that is handed down whole; amounts of memory as text and as numbers.

    Resources(memory="2 GiB", precision="float32").budget == 2147483648
    parse("512 MiB") == 536870912          budget(None) == SHARE * available()

Decimal units (kB, MB, GB, TB) are powers of 1000, binary units (KiB, MiB, GiB, TiB) powers of 1024.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from mercer.errors import InvalidInput

# Without a stated budget an operator may take this share of the memory that is free when it is built.
SHARE = 0.25
BLOCK_VALUES = 1 << 21  # numbers of a passing array that is made block by block: 16 MiB in float64

_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Resources:
    """Memory for kernel values, their precision, the device and the threads of one fit or prediction.

    memory : bytes, or text such as "2 GiB"; None is a `SHARE` of what is free when it is asked for.
    precision : "float32", "float64", or "auto": whoever computes the values decides.
    device : where they are computed.
    threads : how many, as in scikit-learn's `n_jobs`; None is all.
    """

    memory: int | str | None = None
    precision: str = "auto"
    device: Literal["cpu"] = "cpu"
    threads: int | None = None

    @property
    def budget(self) -> int:
        """Bytes that may be taken now."""
        return budget(self.memory)


def parse(memory: int | float | str) -> int:
    """Number of bytes meant by an integer or by text such as "512 MiB", "2GB" or "100000"."""
    if isinstance(memory, str):
        match = _PATTERN.fullmatch(memory)
        if match is None or match[2].lower() not in _UNITS:
            raise InvalidInput(f'memory={memory!r} is not an amount of memory; write it like 536870912 or "512 MiB"')
        size = float(match[1]) * _UNITS[match[2].lower()]
    elif isinstance(memory, (int, float, np.integer, np.floating)) and not isinstance(memory, bool):
        size = float(memory)
    else:
        raise InvalidInput(f'memory={memory!r} is not an amount of memory; write it like 536870912 or "512 MiB"')
    if not 1 <= size < 2**63:
        raise InvalidInput(f"memory={memory!r} must be at least one byte and finite")
    return int(size)


def show(size: float) -> str:
    """Readable text of a number of bytes in binary units, such as "512 MiB" for 536870912."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} TiB"


def budget(memory: int | float | str | None) -> int:
    """Bytes of a stated budget; `None` stands for `SHARE` of the free memory."""
    return int(SHARE * available()) if memory is None else parse(memory)


def row_blocks(n: int, width: int, most: int = BLOCK_VALUES) -> Iterator[slice]:
    """The rows 0..n-1, `width` numbers each, in slices of at most `most` numbers (one row at least)."""
    step = max(1, most // max(1, width))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def available() -> int:
    """Bytes this process may still take: free memory of the machine, or of its control group where that is less."""
    amounts = [_machine_free()]
    amounts += [free for free in (_group_free_v2(), _group_free_v1()) if free is not None]
    return max(0, min(amounts))


def _machine_free() -> int:
    """Memory the machine can hand out without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        try:  # macOS does not tell what is free; half of what is there is a careful guess
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        except (ValueError, OSError, AttributeError):
            return 2 * 1024**3


def _read_number(path: Path) -> int | None:
    """The integer a control-group file holds, or None ("max", unreadable, absent)."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _reclaimable(path: Path, field: str) -> int:
    """Bytes of file cache in a control group: counted as used, but given back on demand."""
    try:
        for line in path.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == field:
                return int(value)
    except (OSError, ValueError):
        pass
    return 0


def _group_folders(root: Path, controller: str) -> list[Path]:
    """Folders of this process's control group and of all groups above it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            folder = root / path.strip("/")
            return [folder, *(parent for parent in folder.parents if parent == root or root in parent.parents)]
    return []


def _group_free_v2() -> int | None:
    """What the version 2 control groups leave free; None where they set no limit."""
    free: list[int] = []
    for folder in _group_folders(Path("/sys/fs/cgroup"), ""):
        limit, used = _read_number(folder / "memory.max"), _read_number(folder / "memory.current")
        if limit is not None and used is not None:
            free.append(limit - used + _reclaimable(folder / "memory.stat", "inactive_file"))
    return min(free, default=None)


def _group_free_v1() -> int | None:
    """What the version 1 control groups leave free; an unlimited group reports a number near 2^63."""
    free: list[int] = []
    for folder in _group_folders(Path("/sys/fs/cgroup/memory"), "memory"):
        limit, used = _read_number(folder / "memory.limit_in_bytes"), _read_number(folder / "memory.usage_in_bytes")
        if limit is not None and used is not None and limit < 2**60:
            free.append(limit - used + _reclaimable(folder / "memory.stat", "total_inactive_file"))
    return min(free, default=None)
