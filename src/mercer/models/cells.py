"""Local machines in a model file: the tree of cells is part of their state, and the machine of each cell a part."""

from typing import Any

import numpy as np

from mercer.ensembles import LocalMachines
from mercer.errors import ModelFileError
from mercer.models.banks import features_of, refuse_other_points
from mercer.models.fields import Draft, Stored
from mercer.models.state import decode_state


def encode_cells(draft: Draft, ensemble: LocalMachines) -> None:
    """Store the machine of every cell, or what it always answers."""
    constants = [isinstance(machine, float) for machine in ensemble.machines_]
    draft.facts["constant cells"] = constants
    draft.tensor("constants", np.array([machine for machine in ensemble.machines_ if isinstance(machine, float)]))
    for number, machine in enumerate(ensemble.machines_):
        if not constants[number]:
            draft.machine(f"cell {number}", machine)


def decode_cells(stored: Stored, ensemble: LocalMachines) -> None:
    """Set the tree and the machines of local machines that have their parameters."""
    constant = stored.entries("constant cells")
    cells = len(constant)
    decode_state(stored, ensemble, {"features": features_of(ensemble) or 0, "cells": cells})
    _refuse_no_tree(ensemble.children_, cells)
    answers = iter(stored.tensor("constants", np.float64, (sum(flag is True for flag in constant),)).tolist())
    ensemble.machines_ = [
        next(answers) if flag is True else _machine(stored, f"cell {number}", ensemble)
        for number, flag in enumerate(constant)
    ]
    if ensemble._classify:
        known = set(range(len(ensemble.classes_)))
        if any(machine not in known for machine in ensemble.machines_ if isinstance(machine, float)):
            raise ModelFileError("a cell answers with a class that there is not")
    ensemble.children_ = ensemble.children_.astype(np.intp)
    ensemble._conclude()


def _machine(stored: Stored, name: str, ensemble: LocalMachines) -> Any:
    machine = stored.machine(name, (type(ensemble._first),))
    refuse_other_points(machine, ensemble._first, features_of(ensemble))
    if ensemble._classify and not np.isin(machine.classes_, ensemble.classes_).all():
        raise ModelFileError("a cell knows a class that the machine does not")
    return machine


def _refuse_no_tree(children: Any, cells: int) -> None:
    """Every node but the first, and every cell, must be the child of one node of a smaller number."""
    nodes = cells - 1
    if len(children) != max(nodes, 0):
        raise ModelFileError(f"{len(children)} nodes do not lead to {cells} cells")
    below = np.sort(children.ravel())
    wanted = np.concatenate([np.arange(-cells, 0), np.arange(1, nodes)]) if nodes else below
    inward = children.reshape(-1, 2) > np.arange(nodes)[:, None]
    if not np.array_equal(below, wanted) or not (inward | (children.reshape(-1, 2) < 0)).all():
        raise ModelFileError("its cells are not the leaves of a tree")
