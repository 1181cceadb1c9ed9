"""What kind of file a path names: a model of mercer, a model of LIBSVM, or data."""

from pathlib import Path
from typing import Literal

from mercer.data.files import open_binary, read_block

Kind = Literal["model", "libsvm", "data"]

LIBSVM_HEADS = (b"svm_type ", b"solver_type ")


def kind_of(path: Path) -> Kind:
    """By the first bytes: a model begins with the length of a JSON header, one of LIBSVM with its type."""
    with open_binary(path) as stream:
        first = read_block(stream, 256, path)
    if first[8:9] == b"{" and first[3:8] == bytes(5):
        return "model"
    if first.startswith(LIBSVM_HEADS):
        return "libsvm"
    return "data"
