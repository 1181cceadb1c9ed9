"""Between Python values and what a file may hold: names and numbers in JSON, arrays as tensors.

`Draft` collects a model while it is written.  `Stored` gives its parts back by name, and refuses with a
ModelFileError that names the part whatever is missing, left over, of the wrong type, shape or range.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer import losses
from mercer.errors import InvalidInput, ModelFileError
from mercer.kernels import Kernel, kernel_from_dict
from mercer.losses import Loss
from mercer.lowrank.approximations import Approximation, approximation_from_dict
from mercer.models.container import are_sizes

Array = NDArray[np.float64]
Record = TypeVar("Record")

MOST_TEXT = 1 << 28  # bytes of a NumPy array of texts, which gives every text the room of the longest
LARGEST_POWER = 1024  # of a degree, exponent or order of a kernel: larger ones only burn time


class Draft:
    """Facts (JSON) and tensors of a model that is being written.

    write : stores a machine of any kind; solutions : whether the solutions behind a machine are stored too.
    """

    def __init__(self, write: Callable[["Draft", Any], None], solutions: bool = False) -> None:
        self.facts: dict[str, Any] = {}
        self.tensors: dict[str, NDArray[Any]] = {}
        self.solutions = solutions
        self._write, self._place = write, ""

    def part(self, name: str) -> "Draft":
        """A draft inside this one: its tensors are called name/..."""
        part = Draft(self._write, self.solutions)
        part.tensors, part._place = self.tensors, f"{self._place}{name}/"
        self.facts[name] = part.facts
        return part

    def machine(self, name: str, machine: Any) -> None:
        """Store a machine that is part of another."""
        self._write(self.part(name), machine)

    def tensor(self, name: str, values: Any) -> None:
        """Store an array; one in column order is stored as its transpose, because products depend on the order."""
        array = np.asarray(values)
        if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
            self.facts.setdefault("column order", []).append(name)
            array = array.T
        self.tensors[self._place + name] = np.ascontiguousarray(array)

    def record(self, name: str, value: Any) -> None:
        """Store a dataclass of texts, numbers and truth values."""
        self.facts[name] = {key: encode(item, key) for key, item in asdict(value).items()}

    def texts(self, name: str, values: Sequence[str]) -> None:
        """Store texts as UTF-8 bytes and the places where each ends."""
        encoded = [text.encode("utf-8") for text in values]
        self.tensor(f"{name}.utf8", np.frombuffer(b"".join(encoded), dtype=np.uint8))
        self.tensor(f"{name}.ends", np.cumsum([len(text) for text in encoded], dtype=np.int64))


class Stored:
    """Facts and tensors of a model that is being read.

    read : gives back a machine of one of some kinds; model : the user's own class of structured models.
    """

    def __init__(
        self, facts: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], read: Any = None, model: Any = None
    ) -> None:
        self.facts = dict(facts)
        self.tensors = dict(tensors)
        self.model = model
        self._read, self._place, self._unread = read, "", set(tensors)
        self._inside: dict[str, dict[str, NDArray[Any]]] = {}  # by part
        for name, array in tensors.items():
            part, separator, rest = name.partition("/")
            if separator:
                self._inside.setdefault(part, {})[rest] = array
        turned = self.facts.get("column order", [])
        if not isinstance(turned, list) or not all(isinstance(name, str) and name in tensors for name in turned):
            raise ModelFileError("'column order' is not a list of its tensors")
        for name in turned:
            self.tensors[name] = self.tensors[name].T

    def part(self, name: str) -> "Stored":
        """What `Draft.part` has stored."""
        part = Stored(self.section(name), self._inside.get(name, {}), self._read, self.model)
        part._place, part._unread = f"{self._place}{name}/", self._unread
        return part

    def machine(self, name: str, kinds: Sequence[type]) -> Any:
        """The machine, one of `kinds`, that `Draft.machine` has stored."""
        return self._read(self.part(name), kinds)

    # Facts -----------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """The JSON value of that name."""
        if name not in self.facts:
            raise ModelFileError(f"{name!r} is missing")
        return self.facts[name]

    def section(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self.fact(name)
        if not isinstance(value, dict):
            raise ModelFileError(f"{name!r} is not a JSON object")
        return value

    def text(self, name: str, choices: Sequence[str] = ()) -> str:
        """A text, one of `choices` where they are given."""
        value = self.fact(name)
        if not isinstance(value, str) or (choices and value not in choices):
            raise ModelFileError(f"{name!r} is {value!r:.60}, not {' or '.join(choices) if choices else 'a text'}")
        return value

    def number(self, name: str) -> float:
        """A number, perhaps infinite or NaN."""
        value = decode(self.fact(name))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ModelFileError(f"{name!r} is {value!r:.60}, not a number")
        return float(value)

    def count(self, name: str, most: int = 1 << 62) -> int:
        """A whole number from 0 to `most`."""
        value = self.fact(name)
        if type(value) is not int or not 0 <= value <= most:
            raise ModelFileError(f"{name!r} is {value!r:.60}, not a whole number from 0 to {most}")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.fact(name)
        if not isinstance(value, bool):
            raise ModelFileError(f"{name!r} is {value!r:.60}, not true or false")
        return value

    def counts(self, name: str, lengths: Sequence[int]) -> tuple[int, ...]:
        """Whole numbers from 0 on, as many as one of `lengths`."""
        value = self.fact(name)
        if not are_sizes(value) or len(value) not in lengths:
            raise ModelFileError(f"{name!r} is {value!r:.60}, not a list of sizes")
        return tuple(value)

    def entries(self, name: str) -> list[Any]:
        """A JSON list."""
        value = self.fact(name)
        if not isinstance(value, list):
            raise ModelFileError(f"{name!r} is not a list")
        return value

    def record(self, name: str, kind: type[Record]) -> Record:
        """A dataclass of texts, numbers and truth values."""
        part = self.part(name)
        read: dict[Any, Callable[[str], Any]] = {str: part.text, int: part.count, float: part.number, bool: part.flag}
        entries = fields(kind)  # type: ignore[arg-type]  # bounding Record to dataclasses needs a protocol of its own
        return kind(**{field.name: read[field.type](field.name) for field in entries})

    # Tensors ---------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        return name in self.tensors

    def tensor(self, name: str, dtype: Any, shape: Sequence[int | None], finite: bool = True) -> NDArray[Any]:
        """A tensor of that type and shape (None: any size), finite unless told otherwise."""
        array = self.tensors.get(name)
        if array is None:
            raise ModelFileError(f"tensor {name!r} is missing")
        self._unread.discard(self._place + name)
        if array.dtype != np.dtype(dtype):
            raise ModelFileError(f"tensor {name!r} holds {array.dtype}, not {np.dtype(dtype)}")
        if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape)):
            wanted = " x ".join("any" if size is None else str(size) for size in shape)
            raise ModelFileError(f"tensor {name!r} has the shape {array.shape}, not {wanted}")
        if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"tensor {name!r} holds values that are not finite")
        return array

    def index(self, name: str, length: int | None, below: int) -> NDArray[np.intp]:
        """Positions from 0 to below `below`."""
        array = self.tensor(name, np.int64, (length,))
        if array.size and not (array.min() >= 0 and array.max() < below):
            raise ModelFileError(f"tensor {name!r} holds positions outside 0 to {below - 1}")
        return array.astype(np.intp, copy=False)

    def stretches(self, name: str, total: int) -> list[tuple[int, int]]:
        """Where each of several stretches begins and ends, by their ends; together they are `total` long."""
        borders = [0, *self.tensor(name, np.int64, (None,)).tolist()]
        if borders[-1] != total or borders != sorted(borders):
            raise ModelFileError(f"tensor {name!r} does not rise to {total}, the end of what it divides")
        return list(pairwise(borders))

    def texts(self, name: str) -> list[str]:
        """Texts that `Draft.texts` has stored."""
        letters = self.tensor(f"{name}.utf8", np.uint8, (None,)).tobytes()
        try:
            return [letters[a:b].decode("utf-8") for a, b in self.stretches(f"{name}.ends", len(letters))]
        except UnicodeDecodeError:
            raise ModelFileError(f"the texts of {name!r} are not UTF-8") from None

    def refuse_rest(self) -> None:
        """A tensor nobody asked for is a sign of another format."""
        if self._unread:
            raise ModelFileError(f"it holds tensors that do not belong to it: {', '.join(sorted(self._unread))!s:.120}")


# Values ------------------------------------------------------------------------------------------------------------


def encode(value: Any, name: str) -> Any:
    """A parameter as JSON; what JSON lacks is an object with one name: float, map, kernel, approximation or loss."""
    if isinstance(value, Kernel):
        return {"kernel": value.to_dict()}
    if isinstance(value, Approximation):
        return {"approximation": value.to_dict()}
    if isinstance(value, Loss):
        arguments = {key: encode(item, key) for key, item in value.get_params(deep=False).items()}
        return {"loss": {"name": type(value).__name__, "arguments": arguments}}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Mapping):
        return {"map": [[encode(key, name), encode(item, name)] for key, item in value.items()]}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [encode(item, name) for item in value]
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None  # a stream of random numbers is not part of the machine it was used for
    raise InvalidInput(
        f"{name}={value!r:.80} cannot be stored: a model file holds names and numbers, no Python code; use one of "
        "mercer's kernels, a precomputed matrix, or pickle the machine and load it only where you trust the file"
    )


def decode(value: Any) -> Any:
    """The value that `encode` has written."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ModelFileError(f"{value!r:.60} is not a value of this format")
    (kind, content), *_ = value.items()
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if kind == "kernel":
        return decode_kernel(content)
    if kind == "approximation":
        return approximation_from_dict(content)
    if kind == "loss":
        return _decode_loss(content)
    if kind == "map" and isinstance(content, list) and all(isinstance(i, list) and len(i) == 2 for i in content):
        keys = [decode(key) for key, _ in content]
        if all(isinstance(key, (str, int, float)) for key in keys):
            return dict(zip(keys, (decode(item) for _, item in content)))
    raise ModelFileError(f"{value!r:.60} is not a value of this format")


def _decode_loss(description: Any) -> Loss:
    part = Stored(description if isinstance(description, dict) else {}, {})
    found = getattr(losses, part.text("name"), None)
    if not (isinstance(found, type) and issubclass(found, Loss) and is_dataclass(found)):
        raise ModelFileError(f"{part.text('name')!r:.60} is no loss")
    return found(**{key: decode(value) for key, value in part.section("arguments").items()})


def decode_kernel(description: Any) -> Kernel:
    """The kernel a description stands for; powers are limited, because evaluating them costs time."""
    _refuse_powers(description)
    return kernel_from_dict(description)


def _refuse_powers(description: Any) -> None:
    if isinstance(description, dict):
        for name, value in description.items():
            if name in ("degree", "exponent", "n", "k") and isinstance(value, (int, float)) and value > LARGEST_POWER:
                raise ModelFileError(f"the kernel has {name}={value!r:.40}, more than {LARGEST_POWER}")
            _refuse_powers(value)


def encode_labels(draft: Draft, name: str, labels: NDArray[Any]) -> None:
    """Labels (k,) of any type: whole numbers, real numbers, truth values or texts."""
    if labels.dtype.kind in "iufb" and labels.dtype.itemsize <= 8:
        draft.facts[name] = "numbers"
        draft.tensor(name, labels)
        return
    values = labels.tolist()
    if not all(isinstance(value, str) for value in values):
        raise InvalidInput(f"labels of type {labels.dtype} cannot be stored; use whole numbers, real numbers or texts")
    draft.facts[name] = "objects" if labels.dtype.kind == "O" else "texts"
    draft.texts(name, values)


def decode_labels(stored: Stored, name: str) -> NDArray[Any]:
    """The labels (k,), all different."""
    kind = stored.text(name, ("numbers", "texts", "objects"))
    if kind == "numbers":
        found = stored.tensors.get(name)
        labels = stored.tensor(name, "f8" if found is None else found.dtype, (None,))
    else:
        values = stored.texts(name)
        if kind == "texts" and 4 * len(values) * max(map(len, values), default=0) > MOST_TEXT:
            raise ModelFileError("its labels are too long")
        labels = np.array(values, dtype=object if kind == "objects" else np.str_)
    if len(set(labels.tolist())) != len(labels):
        raise ModelFileError("a label occurs twice")
    return labels
