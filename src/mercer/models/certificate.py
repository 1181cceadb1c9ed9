"""The certificate of a fit in a model file: objective, dual, gap, solver and plan, what stopped it, its solutions.

History is kept as numbers (iteration, seconds, primal, dual, gap), without the facts some solvers add.  Solutions are
optional, because their n coefficients and N variables serve only to go on training:

    decomposition.solve(problem, start=machine.solution_.variables)
"""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from mercer.errors import ModelFileError
from mercer.machine.outcome import FitPlan
from mercer.models.fields import Draft, Stored, decode, encode
from mercer.solvers.solution import Record, Solution, Stopped

OUTCOMES = (*get_args(Stopped), "unknown")
NUMBERS = ("primal", "dual", "gap", "seconds")


def encode_certificate(draft: Draft, machine: Any) -> None:
    """Store the certificate, and the solutions where they are wanted and there."""
    for name in ("objective_", "dual_objective_", "gap_"):
        draft.facts[name] = encode(float(getattr(machine, name)), name)
    draft.facts["stopped_"], draft.facts["solver_"] = machine.stopped_, machine.solver_
    draft.record("plan_", machine.plan_)
    single = isinstance(machine.n_iter_, int)
    draft.facts["one iteration count"] = single
    draft.tensor("n_iter_", np.atleast_1d(np.asarray(machine.n_iter_, dtype=np.int64)))
    history = machine.history_
    several = isinstance(history, list) and not all(isinstance(line, Record) for line in history)
    parts = history if several else [history]
    draft.facts["several histories"] = several
    lines = [[float(value) for value in record[:5]] for part in parts for record in part]
    draft.tensor("history", np.array(lines, dtype=np.float64).reshape(-1, 5))
    draft.tensor("history.ends", np.cumsum([len(part) for part in parts], dtype=np.int64))
    found = getattr(machine, "solution_", None) if draft.solutions else None
    listed = found if isinstance(found, list) else [] if found is None else [found]
    draft.facts["solutions"] = [_described(draft, f"solution {i}", item) for i, item in enumerate(listed)]


def _described(draft: Draft, name: str, solution: Solution) -> dict[str, Any]:
    draft.tensor(f"{name}.coefficients", solution.coefficients)
    draft.tensor(f"{name}.variables", solution.variables)
    draft.tensor(f"{name}.bias", np.atleast_1d(np.asarray(solution.bias, dtype=np.float64)))
    numbers = {key: value for key, value in solution.multipliers.items() if np.ndim(value) == 0}
    return {
        **{key: encode(float(getattr(solution, key)), key) for key in NUMBERS},
        "iterations": int(solution.iterations),
        "stopped": solution.stopped,
        "solver": solution.solver,
        "one bias": np.ndim(solution.bias) == 0,
        "multipliers": {key: encode(float(value), key) for key, value in numbers.items()},
    }


def decode_certificate(stored: Stored, machine: Any) -> None:
    """Set the certificate, the history and, where they were stored, the solutions of a machine."""
    for name in ("objective_", "dual_objective_", "gap_"):
        setattr(machine, name, stored.number(name))
    machine.stopped_, machine.solver_ = stored.text("stopped_", OUTCOMES), stored.text("solver_")
    machine.plan_ = stored.record("plan_", FitPlan)
    iterations = stored.tensor("n_iter_", np.int64, (None,))
    if stored.flag("one iteration count"):
        if len(iterations) != 1:
            raise ModelFileError("'n_iter_' is not one number")
        machine.n_iter_ = int(iterations[0])
    else:
        machine.n_iter_ = iterations.astype(np.int32)
    histories = _histories(stored)
    machine.history_ = histories if stored.flag("several histories") else histories[0]
    described = enumerate(stored.entries("solutions"))
    found = [_solution(stored, f"solution {i}", item, histories) for i, item in described]
    if found:
        machine.solution_ = found[0] if len(found) == 1 else found


def _histories(stored: Stored) -> list[tuple[Record, ...]]:
    lines = stored.tensor("history", np.float64, (None, 5), finite=False)
    stretches = stored.stretches("history.ends", len(lines))
    if not stretches:
        raise ModelFileError("it has no history")
    if not np.isfinite(lines[:, 0]).all():
        raise ModelFileError("an iteration of its history is not a number")
    records = [Record._make([int(line[0]), *map(float, line[1:]), {}]) for line in lines]
    return [tuple(records[a:b]) for a, b in stretches]


def _solution(stored: Stored, name: str, facts: Any, histories: Sequence[tuple[Record, ...]]) -> Solution:
    if not isinstance(facts, dict):
        raise ModelFileError(f"{name!r} is not a JSON object")
    part = Stored(facts, {})
    bias = stored.tensor(f"{name}.bias", np.float64, (None,))
    single = part.flag("one bias")
    if single and len(bias) != 1:
        raise ModelFileError(f"the bias of {name!r} is not one number")
    multipliers = {key: decode(value) for key, value in part.section("multipliers").items()}
    if not all(isinstance(value, float) for value in multipliers.values()):
        raise ModelFileError(f"the multipliers of {name!r} are not numbers")
    numbers: dict[str, Any] = {key: part.number(key) for key in NUMBERS}
    number = int(name.rpartition(" ")[2])
    stopped: Any = part.text("stopped", get_args(Stopped))
    return Solution(
        _of_points(stored, f"{name}.coefficients"),
        float(bias[0]) if single else bias,
        _of_points(stored, f"{name}.variables"),
        **numbers,
        iterations=part.count("iterations"),
        stopped=stopped,
        solver=part.text("solver"),
        multipliers=multipliers,
        history=histories[number] if number < len(histories) else (),
    )


def _of_points(stored: Stored, name: str) -> Any:
    """(n,) for one machine, (n, k) for several outputs."""
    found = stored.tensors.get(name)
    return stored.tensor(name, np.float64, (None,) * (1 if found is None else max(1, found.ndim)))
