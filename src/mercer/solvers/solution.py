"""What a solver gives back: the point it reached, how good it is, and what stopped it.

A solution can be written to disk and read again to go on from: arrays and one JSON text in a NumPy archive, without
pickle, written beside the target and renamed so that no half-written file is ever seen.
"""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Required, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from mercer import writing
from mercer.arrays import Array
from mercer.errors import ModelFileError
from mercer.problems.certificate import Certificate, gap_text, relative_gap

# "stationary": the tolerance was met, but on a problem that is not convex, where that is no proof of an optimum.
# "seen": every point of a stream was learnt, which has no optimum to converge to.
# "diverged": the iterates moved away from the optimum, as they do where a step is too large for the method.
Stopped = Literal["converged", "iterations", "time", "interrupted", "stalled", "stationary", "seen", "diverged"]

FORMAT = "mercer solution"
VERSION = 1


class Record(NamedTuple):
    """One line of a solver's history."""

    iteration: int
    seconds: float
    primal: float
    dual: float
    gap: float
    facts: Mapping[str, Any] = {}


class Spent(TypedDict, total=False):
    """What a solution tells of the solve besides its point, with the defaults of `Solution`."""

    solver: Required[str]
    iterations: Required[int]
    stopped: Required[Stopped]
    seconds: Required[float]
    history: Sequence[Record]
    details: Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A point with its certificate.

    `coefficients` (n,) or (n, k) and `bias` (a number or (k,)) are the machine; `variables` (N,) are the signed
    variables of the quadratic program, the warm start of a later solve.
    """

    coefficients: Array
    bias: float | Array
    variables: Array
    primal: float
    dual: float
    gap: float
    iterations: int
    stopped: Stopped
    seconds: float
    solver: str
    multipliers: Mapping[str, float | Array] = field(default_factory=dict)
    history: Sequence[Record] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def relative_gap(self) -> float:
        """(P - D) / max(|P|, |D|)."""
        return relative_gap(self.primal, self.dual, self.gap)

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.stopped == "converged"

    @classmethod
    def certified(
        cls, certificate: Certificate, coefficients: Array, variables: Array, **spent: Unpack[Spent]
    ) -> "Solution":
        """Solution whose values, bias and multipliers are those of a certificate."""
        found = certificate
        values = (found.primal, found.dual, found.gap)
        return cls(coefficients, found.bias, variables, *values, multipliers=found.multipliers, **spent)

    def scaled(self, factor: float) -> "Solution":
        """The same point as a solution of the problem whose objective is `factor` times this one's."""
        return replace(self, primal=factor * self.primal, dual=factor * self.dual, gap=factor * self.gap)

    def __repr__(self) -> str:
        return (
            f"Solution({self.stopped} by {self.solver} after {self.iterations} iterations in {self.seconds:.3g} s: "
            f"primal {self.primal:.9g}, dual {self.dual:.9g}, relative gap {gap_text(self.relative_gap)}, "
            f"{int(np.count_nonzero(self.coefficients))} of {self.coefficients.size} coefficients non-zero)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path` (a NumPy archive); the file appears complete or not at all."""
        arrays: dict[str, Array] = {"coefficients": self.coefficients, "variables": self.variables}
        text = json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "bias": _pack("bias", self.bias, arrays),
                "multipliers": {k: _pack(f"multiplier {k}", v, arrays) for k, v in self.multipliers.items()},
                "details": _pack("detail", dict(self.details), arrays),
                "history": [[*record[:5], _pack("history", dict(record.facts), arrays)] for record in self.history],
                **{name: getattr(self, name) for name in _PLAIN},
            }
        )
        write_beside(path, arrays | {"text": np.array(text)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Solution":
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            facts = json.loads(str(arrays["text"]))
            if facts["format"] != FORMAT or facts["version"] != VERSION or facts["stopped"] not in get_args(Stopped):
                raise ModelFileError(f"{path} is not a solution of version {VERSION}")
            return cls(
                arrays["coefficients"],
                _unpack(facts["bias"], arrays),
                arrays["variables"],
                multipliers={k: _unpack(v, arrays) for k, v in facts["multipliers"].items()},
                history=tuple(Record._make([*line[:5], _unpack(line[5], arrays)]) for line in facts["history"]),
                details=_unpack(facts["details"], arrays),
                **{name: facts[name] for name in _PLAIN},
            )
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(f"{path} is damaged or not a solution file: {error}") from error


_PLAIN = ("primal", "dual", "gap", "iterations", "stopped", "seconds", "solver")


def _pack(name: str, value: Any, arrays: dict[str, Array]) -> Any:
    """JSON value; arrays move to the archive and leave their name behind."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        key = f"{name} #{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"map": {str(k): _pack(f"{name} {k}", v, arrays) for k, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_pack(name, v, arrays) for v in value]
    return value if isinstance(value, (int, float, str, bool)) or value is None else repr(value)


def _unpack(value: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, dict):
        if "array" in value:
            return arrays[value["array"]]
        return {k: _unpack(v, arrays) for k, v in value["map"].items()}
    return [_unpack(v, arrays) for v in value] if isinstance(value, list) else value


def write_beside(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a NumPy archive to a new file in the same folder, then give it the name `path`."""
    with writing.replacing(path) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]  # an array may have any name
