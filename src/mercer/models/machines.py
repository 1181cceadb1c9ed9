"""A fitted machine of any kind in a model file: its class, its parameters, what it declares, and the machines in it.

    kernel machines       an expansion (`expansion`) and a certificate (`certificate`); least squares also their targets
    OutputCode            a code, a decoder, and the machines of the code (`banks`)
    Multilabel            the machines of the labels (`banks`)
    ensembles             their members, and the machine above them (`ensembles`)
    structured machines   weights, a certificate, and the state of their model (`structured`)
    TunedSVC and others   the table of the search (`search`) and the machine it ended with

Machines inside a machine are stored as parts of the file, by the same two functions.  The class of a machine is looked
up in `REGISTRY`, its kernel among mercer's kernels, and its parameters pass the checks of `fit`: reading runs no code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer import ensembles, least_squares, multiclass, online, ordinal, structured, svm, tuned
from mercer.ensembles.sampled import BankedEnsemble
from mercer.errors import InvalidInput, ModelFileError
from mercer.kernels import Kernel
from mercer.least_squares.machine import LeastSquaresMachine
from mercer.least_squares.narx import NARX
from mercer.machine.base import KernelEstimator
from mercer.machine.outcome import MET, common_kernel, common_outcome
from mercer.models.banks import (
    decode_code,
    decode_labels_machines,
    encode_code,
    encode_labels_machines,
    features_of,
    refuse_other_points,
)
from mercer.models.cells import decode_cells, encode_cells
from mercer.models.certificate import decode_certificate, encode_certificate
from mercer.models.coupled import decode_coupled, encode_coupled
from mercer.models.ensembles import decode_members, encode_members
from mercer.models.expansion import decode_expansion, encode_expansion
from mercer.models.fields import Draft, Stored, decode, encode
from mercer.models.least_squares import decode_training, encode_training
from mercer.models.search import decode_search, encode_search
from mercer.models.state import encode_state
from mercer.models.structured import decode_structured, encode_structured
from mercer.multiclass import Multilabel, OutputCode
from mercer.multiclass.support_vector_bank import CodedSVC
from mercer.structured import StructuredModel
from mercer.structured.base import StructuredMachine
from mercer.svm.base import SupportVectorMachine
from mercer.tuned.estimators import TunedClassifier, TunedMachine

ROOMS = (svm, least_squares, multiclass, tuned, online, ordinal, ensembles, structured)


def _estimators() -> dict[str, type[Any]]:
    """The estimators of these rooms but for NARX, a recipe around a machine that may be anything."""
    named = ((name, getattr(room, name)) for room in ROOMS for name in room.__all__)
    return {name: kind for name, kind in named if hasattr(kind, "fit") and kind is not NARX}


REGISTRY = _estimators()
MACHINES = tuple(REGISTRY.values())


# Writing -----------------------------------------------------------------------------------------------------------


def encode_machine(draft: Draft, machine: Any) -> None:
    """Store a fitted machine."""
    draft.facts["machine"] = _name(machine)
    check_is_fitted(machine)
    features = features_of(machine)
    draft.facts["n_features_in_"] = None if features is None else int(features)
    draft.facts["named"] = hasattr(machine, "feature_names_in_")
    if draft.facts["named"]:
        draft.texts("feature_names_in_", list(machine.feature_names_in_))
    if isinstance(machine, KernelEstimator):
        encode_expansion(draft, machine)
        encode_certificate(draft, machine)
    draft.facts["parameters"] = _encode_parameters(machine)
    if not isinstance(machine, TunedMachine):
        encode_state(draft, machine)
    for kind, (write, _) in OF_KIND.items():
        if isinstance(machine, kind):
            write(draft, machine)


def _name(machine: Any) -> str:
    """The name of its class, which must be one of mercer's."""
    kind = type(machine)
    if kind not in (*MACHINES, CodedSVC):
        remedy = "; save its best_estimator_" if hasattr(machine, "best_estimator_") else ", or pickle it"
        raise InvalidInput(
            f"{kind.__name__} cannot be stored in a model file; it holds one of {', '.join(REGISTRY)}{remedy}"
        )
    return kind.__name__


def _encode_parameters(machine: Any) -> dict[str, Any]:
    """The parameters as JSON; a machine among them is its class and its own parameters."""
    found: dict[str, Any] = {}
    for name, value in machine.get_params(deep=False).items():
        if isinstance(value, BaseEstimator):
            found[name] = {"estimator": _described(value)}
        elif isinstance(value, (list, tuple)) and any(isinstance(item, BaseEstimator) for item in value):
            found[name] = {"estimators": [_described(item) for item in value]}
        elif name in ("checkpoint", "executor"):
            found[name] = None  # where it was trained is not part of the machine
        elif isinstance(value, StructuredModel):
            found[name] = None  # that of the fit is stored, with the sizes it has read off the data
        elif name == "scoring" and callable(value):
            raise InvalidInput(
                "scoring is a Python function, which a model file cannot carry without running code; save the "
                "best_estimator_, which does not need it, or pickle the machine"
            )
        else:
            found[name] = encode(value, name)
    return found


def _described(machine: Any) -> dict[str, Any]:
    return {"machine": _name(machine), "parameters": _encode_parameters(machine)}


# Reading -----------------------------------------------------------------------------------------------------------


def decode_machine(stored: Stored, kinds: Sequence[type] = MACHINES) -> Any:
    """The machine that `encode_machine` has stored, one of `kinds`."""
    machine = _built(stored, kinds)
    features = None if stored.fact("n_features_in_") is None else stored.count("n_features_in_")
    if features is not None:
        machine.n_features_in_ = features
    if stored.flag("named"):
        machine.feature_names_in_ = feature_names(stored, "feature_names_in_", features)
    if isinstance(machine, KernelEstimator):
        decode_expansion(stored, machine, features)
        decode_certificate(stored, machine)
    if isinstance(machine, SupportVectorMachine):
        machine.fit_status_, machine._previous = int(machine.stopped_ not in (*MET, "unknown")), None
    for kind, (_, read) in OF_KIND.items():
        if isinstance(machine, kind):
            read(stored, machine)
    if isinstance(machine, (OutputCode, Multilabel)):
        machine.kernel_, machine.stopped_ = common_kernel(machine._parts()), common_outcome(machine._parts())
    return machine


def _built(stored: Stored, kinds: Sequence[type]) -> Any:
    """A machine of one of `kinds` with its parameters, not yet fitted."""
    names = {kind.__name__: kind for kind in kinds}
    kind: Any = names[stored.text("machine", tuple(names))]
    parameters = {name: _parameter(value) for name, value in stored.section("parameters").items()}
    if parameters.get("checkpoint") is not None:
        raise ModelFileError("it names a file that training would write to")
    machine = kind(**parameters)
    machine._validate_params()
    return machine


def _parameter(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {"estimator"}:
        return _unfitted(value["estimator"])
    if isinstance(value, Mapping) and set(value) == {"estimators"}:
        described = value["estimators"]
        if not isinstance(described, list):
            raise ModelFileError("its machines are not a list")
        return [_unfitted(item) for item in described]
    return decode(value)


def _unfitted(described: Any) -> Any:
    return _built(Stored({"parameter": described}, {}).part("parameter"), MACHINES)


def _encode_tuned(draft: Draft, machine: TunedMachine) -> None:
    """Store the search and the machine it ended with."""
    encode_search(draft.part("search"), machine.search_, machine.grid_)
    draft.machine("best_estimator_", machine.best_estimator_)


def _decode_tuned(stored: Stored, machine: TunedMachine) -> None:
    """Set the search and the machine it ended with."""
    machine.search_, machine.grid_ = decode_search(stored.part("search"))
    machine._publish()
    machine.best_estimator_ = stored.machine("best_estimator_", (machine._final,))
    refuse_other_points(machine.best_estimator_, machine, features_of(machine))
    machine.kernel_ = machine.best_estimator_.kernel
    if not isinstance(machine.kernel_, Kernel):
        raise ModelFileError("its machine has no kernel")
    if isinstance(machine, TunedClassifier):
        machine.classes_ = machine.best_estimator_.classes_


# What a kind of machine consists of beside its parameters and its declared state, written and read.
OF_KIND: dict[type, tuple[Callable[[Draft, Any], None], Callable[[Stored, Any], None]]] = {
    LeastSquaresMachine: (encode_training, decode_training),
    OutputCode: (encode_code, decode_code),
    Multilabel: (encode_labels_machines, decode_labels_machines),
    BankedEnsemble: (encode_members, decode_members),
    ensembles.LocalMachines: (encode_cells, decode_cells),
    ensembles.CoupledEnsemble: (encode_coupled, decode_coupled),
    StructuredMachine: (encode_structured, decode_structured),
    TunedMachine: (_encode_tuned, _decode_tuned),
}


def feature_names(stored: Stored, name: str, features: int | None) -> Any:
    """Names (d,) of the features."""
    found = stored.texts(name)
    if features is not None and len(found) != features:
        raise ModelFileError(f"it names {len(found)} of {features} features")
    return np.array(found, dtype=object)
