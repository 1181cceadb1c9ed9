"""Two thousand damaged data files: each ends in a data set or in one line, in little time and memory."""

import lzma
import resource
import warnings
from pathlib import Path

import numpy as np

from mercer import data
from mercer.cli.exits import line_of
from mercer.cli.inspect import describe
from mercer.errors import MercerError

ROUNDS = 2000
TEXTS = (b"nan", b"inf", b"-1e999", b"1:1", b":", b"99999999999:1", b"2147483648:1", b"\xff\xfe", b"\x00", b"#", b",,")


def seeds(folder: Path) -> dict[str, bytes]:
    """Small correct files of every kind, by their endings."""
    iris = data.sample("iris").take(np.r_[0:8, 60:68, 120:128])
    for name in ("a.svm", "a.csv", "a.npz"):
        data.write(folder / name, iris)
    np.save(folder / "a.npy", iris.X)
    (folder / "b.csv").write_text("a;b;kind\n1.5;red;x\n2;blue;y\n;red;x\n")
    found = {path.name.partition(".")[2] + path.name[0]: path.read_bytes() for path in sorted(folder.iterdir())}
    return found | {"svm.xza": lzma.compress(found["svma"])}


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """The content with one or two changes: bytes flipped, cut, doubled, moved or replaced by a hostile word."""
    for _ in range(int(random.integers(1, 3))):
        size = max(1, len(content))
        a, b = sorted(int(place) for place in random.integers(0, size, 2))
        change = int(random.integers(6))
        if change == 0 and content:
            content = content[:a] + bytes([content[a] ^ (1 << int(random.integers(8)))]) + content[a + 1 :]
        elif change == 1:
            content = content[:a]
        elif change == 2:
            content = content[:b] + content[a:b] + content[b:]
        elif change == 3:
            content = content[:a] + content[b:]
        elif change == 4:
            word = TEXTS[int(random.integers(len(TEXTS)))]
            content = content[:a] + word + content[a:]
        else:
            content = content[:a] + random.bytes(int(random.integers(1, 9))) + content[a:]
    return content


def test_damaged_files_end_in_a_result_or_one_line(tmp_path: Path) -> None:
    kinds = seeds(tmp_path)
    random = np.random.default_rng(5)
    ends = {"result": 0, "error": 0}
    nameless: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = sorted(kinds)
    for turn in range(ROUNDS):
        name = names[turn % len(names)]
        path = tmp_path / f"damaged.{name[:-1]}"
        path.write_bytes(damaged(kinds[name], random))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                facts = describe(data.read(path, missing="keep"))
            assert facts["points"] >= 1
            ends["result"] += 1
        except MercerError as error:
            ends["error"] += 1
            nameless += [] if str(path) in line_of(error) else [line_of(error)]
    assert nameless == []
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2 * 1024**2  # KiB
    assert min(ends.values()) > ROUNDS // 20
