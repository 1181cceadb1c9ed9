"""The binary machines of `OutputCode` and `Multilabel` in a model file, each a machine inside the file.

A bank is one machine whose outputs are the columns of a code, the coefficients of all columns on shared points, or one
machine for each column.  A column that never saw two classes is the number it always answers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from mercer.errors import ModelFileError
from mercer.least_squares import LSSVC, LSSVR
from mercer.machine.outcome import FitPlan
from mercer.models.expansion import decode_kernel_and_points, encode_kernel_and_points
from mercer.models.fields import Draft, Stored, encode
from mercer.models.point_fields import count
from mercer.models.state import decode_state
from mercer.multiclass import Multilabel, OutputCode
from mercer.multiclass.banks import Bank, CloneBank
from mercer.multiclass.codes import Audit, Code
from mercer.multiclass.least_squares_bank import LinearBank, SubsystemBank
from mercer.multiclass.support_vector_bank import CodedSVC, SupportVectorBank
from mercer.svm import SVC

BANKS = {kind.__name__: kind for kind in (LinearBank, SupportVectorBank, SubsystemBank, CloneBank)}


# The bank of a code ------------------------------------------------------------------------------------------------


def encode_code(draft: Draft, machine: OutputCode) -> None:
    """Store the machines of a code, and what is known of it."""
    bank = machine.bank_
    draft.record("audit", machine.audit_)
    draft.facts["bank"] = type(bank).__name__
    if isinstance(bank, (LinearBank, SupportVectorBank)):
        draft.machine("inner", bank.machine)
    elif isinstance(bank, SubsystemBank):
        _encode_subsystems(draft, bank)
    elif isinstance(bank, CloneBank):
        encode_columns(draft, bank.machines)
        draft.facts["members"] = [bank._pairwise and where is not None for where in bank._members]
        for column, where in enumerate(bank._members):
            if draft.facts["members"][column]:
                draft.tensor(f"members {column}", np.asarray(where, dtype=np.int64))


def decode_code(stored: Stored, machine: OutputCode) -> None:
    """Set the code and its machines."""
    decode_state(stored, machine, {})
    machine.audit_, machine.loss_ = stored.record("audit", Audit), machine._decoding_loss()
    machine.bank_ = _decode_bank(stored, machine, features_of(machine))


def _decode_bank(stored: Stored, machine: OutputCode, features: int | None) -> Bank:
    """The machines of a code whose owner has its parameters and its code."""
    base, code = machine._base, machine.code_
    pairwise = bool(get_tags(base).input_tags.pairwise)
    if code.size == 0 or np.abs(code).max() > 1:
        raise ModelFileError("its code has entries other than -1, 0 and 1, or none")
    if pairwise and machine._kept is not None:
        kept = machine._kept
        if not len(kept) or kept.min() < 0 or kept.max() >= (features or 0):
            raise ModelFileError("the points it kept are not columns of its kernel matrix")
        features = len(kept)
    kind = BANKS[stored.text("bank", tuple(BANKS))]
    if kind is SupportVectorBank and isinstance(base, SVC):
        return _shared_vectors(stored.machine("inner", (SVC, CodedSVC)), code, base, features)
    if kind is LinearBank and isinstance(base, LSSVC):
        found = stored.machine("inner", (LSSVC,))
        refuse_other_points(found, base, features)
        if len(found.classes_) != len(code) or not code.all():
            raise ModelFileError(f"its machines are not those of a code of {code.shape[1]} columns")
        return LinearBank(found, code)
    if kind is SubsystemBank and isinstance(base, LSSVC):
        return _decode_subsystems(stored, base, code, features)
    if kind is not CloneBank:
        raise ModelFileError(f"{type(base).__name__} has no machines of the kind {kind.__name__}")
    sides = stored.entries("members")
    if len(sides) != code.shape[1]:
        raise ModelFileError(f"{len(sides)} machines are not the {code.shape[1]} columns of its code")
    members = [
        stored.index(f"members {column}", None, features or 0) if side is True else None
        for column, side in enumerate(sides)
    ]
    widths = [features if where is None else len(where) for where in members]
    return CloneBank(decode_columns(stored, base, widths), members, pairwise)


def _shared_vectors(machine: SVC, code: Code, base: SVC, features: int | None) -> SupportVectorBank:
    refuse_other_points(machine, base, features)
    if isinstance(machine, CodedSVC):
        fits = np.array_equal(machine._code, code)
    else:
        pairs = machine._paired and machine.decision_function_shape == "ovo"
        fits = len(machine.classes_) == len(code) and (
            len(code) == 2 or (pairs and len(machine._intercept_) == code.shape[1])
        )
    if not fits:
        raise ModelFileError(f"its machines are not those of a code of {code.shape[1]} columns")
    return SupportVectorBank(machine, code)


def _encode_subsystems(draft: Draft, bank: SubsystemBank) -> None:
    draft.facts["C"], draft.facts["solver_"] = encode(float(bank.C), "C"), bank.solver_
    draft.record("plan_", bank.plan_)
    encode_kernel_and_points(draft, bank.kernel, bank._X)
    draft.tensor("labels", bank.labels.astype(np.int64))
    draft.tensor("coefficients", bank.coefficients)
    draft.tensor("intercepts", bank.intercepts)
    for name in ("weights", "gaps"):
        value = getattr(bank, name)
        draft.facts[name] = value is not None
        if value is not None:
            draft.tensor(name, value)


def _decode_subsystems(stored: Stored, base: LSSVC, code: Code, features: int | None) -> SubsystemBank:
    given = bool(get_tags(base).input_tags.pairwise)
    kernel, points = decode_kernel_and_points(stored, "precomputed" if given else "features", features)
    n, F = features if points is None else count(points), code.shape[1]
    labels = stored.index("labels", n, len(code))
    C = stored.number("C")
    if not C > 0.0:
        raise ModelFileError(f"its C is {C}")
    weights = stored.tensor("weights", np.float64, (n,)) if stored.flag("weights") else None
    bank = SubsystemBank(base, code, points, labels, weights, C, kernel)
    bank.solver_, bank.plan_ = stored.text("solver_"), stored.record("plan_", FitPlan)
    bank.gaps = stored.tensor("gaps", np.float64, (F,), finite=False) if stored.flag("gaps") else None
    bank.coefficients = stored.tensor("coefficients", np.float64, (n, F))
    bank.intercepts = stored.tensor("intercepts", np.float64, (F,))
    return bank


# One machine for each column ---------------------------------------------------------------------------------------


def encode_columns(draft: Draft, machines: Sequence[Any]) -> None:
    """Store the machine of every column, or the number it always answers."""
    draft.facts["columns"] = [machine if isinstance(machine, float) else None for machine in machines]
    for column, machine in enumerate(machines):
        if not isinstance(machine, float):
            draft.machine(f"column {column}", machine)


def decode_columns(stored: Stored, base: Any, widths: Sequence[int | None]) -> list[Any]:
    """The machines, all like `base`, for points of these widths, or the numbers."""
    answers = stored.entries("columns")
    if len(answers) != len(widths) or not all(answer in (None, -1.0, 0.0, 1.0) for answer in answers):
        raise ModelFileError(f"its columns are not {len(widths)} machines and signs")
    machines = []
    for column, (answer, width) in enumerate(zip(answers, widths)):
        machine = float(answer) if answer is not None else stored.machine(f"column {column}", (type(base),))
        if not isinstance(machine, float):
            refuse_other_points(machine, base, width)
            if not hasattr(machine, "decision_function") or len(getattr(machine, "classes_", "+-")) != 2:
                raise ModelFileError(f"the machine of column {column} does not tell two classes apart")
        machines.append(machine)
    return machines


def features_of(machine: Any) -> int | None:
    """How many features a machine takes, None where it takes objects."""
    return getattr(machine, "n_features_in_", None)


def refuse_other_points(machine: Any, base: Any, features: int | None) -> None:
    """A machine inside another must take the points that the outer one passes on."""
    given = get_tags(base).input_tags.pairwise
    if features_of(machine) != features or get_tags(machine).input_tags.pairwise != given:
        raise ModelFileError(f"the {type(machine).__name__} inside it takes other points than it")
    if getattr(machine, "_kind", None) is not None and (machine._kind == "precomputed") != given:
        raise ModelFileError(f"the {type(machine).__name__} inside it takes other points than it")


# Several labels ----------------------------------------------------------------------------------------------------


def encode_labels_machines(draft: Draft, machine: Multilabel) -> None:
    """Store the machine that all labels share, or one for each."""
    draft.facts["shared"] = machine._shared is not None
    if machine._shared is not None:
        draft.machine("inner", machine._shared)
    else:
        encode_columns(draft, machine.machines_ or [])


def decode_labels_machines(stored: Stored, machine: Multilabel) -> None:
    """Set the machines, and what is known of the labels."""
    features = features_of(machine)
    decode_state(stored, machine, {})
    machine.machines_ = machine._shared = None
    if stored.flag("shared"):
        machine._shared = stored.machine("inner", (LSSVR, CodedSVC))
        refuse_other_points(machine._shared, machine._base, features)
        machine.n_labels_ = len(machine._shared._intercept_)
    else:
        machine.n_labels_ = len(stored.entries("columns"))
        machine.machines_ = decode_columns(stored, machine._base, [features] * machine.n_labels_)
    k, columns = len(machine.classes_), machine.n_labels_
    if k != max(2, columns) or (k == 2 and columns == 2 and not machine.multilabel_):
        raise ModelFileError(f"its {columns} columns are not those of {k} classes")
    if machine.multilabel_ and not np.array_equal(machine.classes_, np.arange(k)):
        raise ModelFileError("its labels are not the numbers of columns")
