"""Reading svmlight text: mercer's compiled reader and scikit-learn's, on the same uncompressed file."""

import lzma
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import harness
from mercer import data
from mercer.data.samples import FOLDER


def _unpacked(name: str) -> Any:
    """A function that gives the path of the unpacked file."""

    def load(smoke: bool) -> Path:
        packed = FOLDER / "iris.svm.xz" if smoke else Path(os.environ["MERCER_DATA"]) / f"{name}.svm.xz"
        path = Path(tempfile.gettempdir()) / f"mercer-benchmark-{os.getuid()}-{packed.stem}"
        if not path.exists():
            path.write_bytes(lzma.decompress(packed.read_bytes()))
        return path

    return load


def read_mercer(path: Path) -> dict[str, Any]:
    found = data.read(path, sparse=True)
    return {"MiB": path.stat().st_size / 2**20, "entries": found.X.nnz}


def read_sklearn(path: Path) -> dict[str, Any]:
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(str(path), zero_based=False)
    return {"MiB": path.stat().st_size / 2**20, "entries": X.nnz}


TASKS = [
    harness.Task(name, _unpacked(name), {"mercer": read_mercer, "scikit-learn": read_sklearn}, needs_data=True)
    for name in ("mnist.train", "a9a.train", "susy30k", "sector-scale.train")
]

if __name__ == "__main__":
    harness.main("reading", TASKS)
