"""What survives a killed run: the parameters that were chosen, and the variables of the solver.

PATH holds JSON, PATH.search the candidates that a cross-validation has finished, PATH.solution the last solution of the
solver, written every `EVERY` seconds.  They carry to another run only when the data and the wishes are the same, which
a fingerprint tells.  Files appear complete or not at all.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mercer import writing
from mercer.cli.machines import Wish
from mercer.data import Dataset
from mercer.errors import InvalidInput, ModelFileError
from mercer.solvers.monitor import Snapshot
from mercer.solvers.solution import Record, Solution

FORMAT = "mercer checkpoint"
EVERY = 10.0


def fingerprint(data: Dataset, wish: Wish, **others: Any) -> str:
    """A digest of the points, the targets and all that decides the model."""
    digest = hashlib.sha256()
    parts = (data.X.data, data.X.indices, data.X.indptr) if data.is_sparse else (data.X,)
    for part in (*parts, data.y, *([] if data.query is None else [data.query])):
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    wishes = {name: value for name, value in asdict(wish).items() if name not in ("time", "memory")}
    digest.update(json.dumps([data.X.shape, wishes, others], sort_keys=True).encode())
    return digest.hexdigest()


class Resumed:
    """Variables (N,) of an earlier run, as the start of the same problem."""

    def __init__(self, variables: Any) -> None:
        self.variables = np.asarray(variables)

    def start(self, problem: Any) -> Any:
        """The variables, None when the problem is of another size."""
        return self.variables if problem.program().size == self.variables.size else None


class Checkpoint:
    """Stages of one run and their results; without a path nothing is written."""

    def __init__(self, path: Path | None, print_of: str, resume: bool) -> None:
        self.path, self.print = path, print_of
        self.stages: dict[str, Any] = {}
        self._stage, self._single = "", False
        self._machine: Any = None
        self._saved = time.perf_counter()
        if resume and path is None:
            raise InvalidInput("--resume needs --checkpoint PATH, the file to go on from")
        if resume and path is not None and path.exists():
            self._load(path)
        elif path is not None:
            if path.exists() and not _content(path):
                raise InvalidInput(f"{path}: is there and is no checkpoint of mercer; name another file")
            self.finish()
            self.done("begun", True)

    @property
    def search_file(self) -> Path | None:
        """File for the candidates that a cross-validation has finished."""
        return None if self.path is None else self._beside(".search")

    @property
    def _solution(self) -> Path:
        return self._beside(".solution")

    def _beside(self, ending: str) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + ending)

    def _load(self, path: Path) -> None:
        found = _content(path)
        if not isinstance(found.get("stages"), dict):
            raise InvalidInput(f"{path}: is not a checkpoint of mercer; start without --resume")
        if found.get("fingerprint") != self.print:
            raise InvalidInput(f"{path}: belongs to other data or options; start without --resume")
        self.stages = found["stages"]

    def done(self, stage: str, result: Any) -> None:
        """Keep the result of a stage; the solution of the solver inside it is not needed any more."""
        self.stages[stage] = result
        if self.path is None:
            return
        content = {"format": FORMAT, "fingerprint": self.print, "stages": self.stages}
        with writing.keeping_on(), writing.replacing(self.path) as stream:
            stream.write(json.dumps(content, indent=2).encode())
        self._solution.unlink(missing_ok=True)

    @contextmanager
    def training(self, machine: Any, stage: str, single: bool) -> Iterator[None]:
        """Train a machine from where an earlier run was, and keep its solution from time to time.

        `single` says that it is one problem: the solution of one of many would not help.  A machine that searches for
        its parameters gives them away as soon as it trains with them.
        """
        if self.path is None:
            yield
            return
        goes_on = single and hasattr(machine, "warm_start")
        if goes_on:
            found = self._found(stage)
            machine.warm_start = True
            machine._previous = None if found is None else [Resumed(found.variables)]
        self._stage, self._machine, self._single = stage, machine, single
        try:
            yield
        finally:
            self._stage, self._machine = "", None
            if goes_on:
                machine.warm_start, machine._previous = False, None

    def _found(self, stage: str) -> Solution | None:
        if self.stages.get("training") != stage or not self._solution.exists():
            self.done("training", stage)
            return None
        try:
            return Solution.load(self._solution)
        except ModelFileError:
            return None

    def hook(self, record: Record, snapshot: Snapshot | None) -> None:
        """Save the parameters of a search that has begun to train with them, and the present solution when due."""
        if not self._stage or snapshot is None:
            return
        ended = getattr(self._machine, "stopped_", None) == "converged"
        chosen = getattr(self._machine, "best_params_", None) if ended else None
        if chosen is not None and "chosen" not in self.stages:
            self.stages["training"] = self._stage
            self.done("chosen", dict(chosen))
        if self._single and time.perf_counter() - self._saved >= EVERY:
            with writing.keeping_on():
                snapshot().save(self._solution)
            self._saved = time.perf_counter()

    def finish(self) -> None:
        """Remove what is no longer needed."""
        if self.path is not None:
            for file in map(self._beside, ("", ".solution", ".search")):
                file.unlink(missing_ok=True)
                writing.remove_orphans(file.resolve())


def _content(path: Path) -> dict[str, Any]:
    """What an earlier run has written, empty where the file is none of its own."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}
