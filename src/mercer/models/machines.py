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

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.ensembles import (
    AdaBoost,
    Bagging,
    Committee,
    CoupledEnsemble,
    LocalMachines,
    MixtureOfExperts,
    Stacking,
)
from mercer.ensembles.sampled import BankedEnsemble
from mercer.errors import InvalidInput, ModelFileError
from mercer.kernels import Kernel
from mercer.least_squares import LSSVC, LSSVR
from mercer.least_squares.machine import LeastSquaresMachine
from mercer.machine.base import KernelEstimator
from mercer.machine.outcome import MET, common_kernel, common_outcome
from mercer.models.banks import (
    decode_bank,
    decode_labels_machines,
    encode_bank,
    encode_labels_machines,
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
from mercer.models.state import decode_state, encode_state
from mercer.models.structured import decode_structured, encode_structured
from mercer.multiclass import (
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    KernelLogistic,
    LeeLinWahbaSVC,
    Multilabel,
    OutputCode,
    WestonWatkinsSVC,
)
from mercer.multiclass.codes import Audit
from mercer.multiclass.support_vector_bank import CodedSVC
from mercer.online import OnlineNovelty, OnlineSVC, OnlineSVR
from mercer.ordinal import OrdinalSVC, ProportionalOdds, RankSVM
from mercer.structured import StructuredModel, StructuredPerceptron, StructuredSVM
from mercer.structured.base import StructuredMachine
from mercer.svm import (
    SVC,
    SVR,
    BayesPointMachine,
    KernelPerceptron,
    LinearProgrammingSVC,
    LinearProgrammingSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from mercer.svm.base import SupportVectorMachine
from mercer.tuned import (
    TunedLogistic,
    TunedOrdinalSVC,
    TunedProportionalOdds,
    TunedRankSVM,
    TunedSVC,
    TunedSVR,
)
from mercer.tuned.estimators import TunedClassifier, TunedMachine

MACHINES = (
    *(SVC, NuSVC, SVR, NuSVR, OneClassSVM, LSSVC, LSSVR),
    *(CrammerSingerSVC, WestonWatkinsSVC, LeeLinWahbaSVC, BredensteinerBennettSVC, KernelLogistic),
    *(OutputCode, Multilabel, TunedSVC, TunedLogistic, TunedSVR, OnlineSVC, OnlineSVR, OnlineNovelty),
    *(RankSVM, OrdinalSVC, ProportionalOdds, TunedRankSVM, TunedOrdinalSVC, TunedProportionalOdds),
    *(Bagging, Committee, Stacking, AdaBoost, MixtureOfExperts, CoupledEnsemble, LocalMachines),
    *(StructuredSVM, StructuredPerceptron),
    *(LinearProgrammingSVC, LinearProgrammingSVR, KernelPerceptron, BayesPointMachine),
)
REGISTRY: dict[str, type[Any]] = {kind.__name__: kind for kind in MACHINES}


# Writing -----------------------------------------------------------------------------------------------------------


def encode_machine(draft: Draft, machine: Any, solution: bool) -> None:
    """Store a fitted machine, with its solutions where they are wanted."""

    def write(part: Draft, inner: Any) -> None:
        encode_machine(part, inner, solution)

    draft.facts["machine"] = _name(machine)
    check_is_fitted(machine)
    features = getattr(machine, "n_features_in_", None)
    draft.facts["n_features_in_"] = None if features is None else int(features)
    draft.facts["named"] = hasattr(machine, "feature_names_in_")
    if draft.facts["named"]:
        draft.texts("feature_names_in_", list(machine.feature_names_in_))
    if isinstance(machine, KernelEstimator):
        encode_expansion(draft, machine)
        encode_certificate(draft, machine, solution)
    draft.facts["parameters"] = _encode_parameters(machine)
    if not isinstance(machine, TunedMachine):
        encode_state(draft, machine)
    if isinstance(machine, LeastSquaresMachine):
        encode_training(draft, machine)
    elif isinstance(machine, OutputCode):
        draft.record("audit", machine.audit_)
        encode_bank(draft, machine.bank_, write)
    elif isinstance(machine, Multilabel):
        encode_labels_machines(draft, machine, write)
    elif isinstance(machine, BankedEnsemble):
        encode_members(draft, machine, write)
    elif isinstance(machine, LocalMachines):
        encode_cells(draft, machine, write)
    elif isinstance(machine, CoupledEnsemble):
        encode_coupled(draft, machine, solution)
    elif isinstance(machine, StructuredMachine):
        encode_structured(draft, machine, solution)
    elif isinstance(machine, TunedMachine):
        encode_search(draft.part("search"), machine.search_, machine.grid_)
        write(draft.part("best_estimator_"), machine.best_estimator_)


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


def decode_machine(stored: Stored, kinds: Sequence[type] = MACHINES, model: type[StructuredModel] | None = None) -> Any:
    """The machine that `encode_machine` has stored, one of `kinds`; `model` is the user's own class of models."""
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
    elif isinstance(machine, LeastSquaresMachine):
        decode_training(stored, machine)
    elif isinstance(machine, OutputCode):
        decode_state(stored, machine, {})
        machine.audit_, machine.loss_ = stored.record("audit", Audit), machine._decoding_loss()
        machine.bank_ = decode_bank(stored, machine, features, decode_machine)
    elif isinstance(machine, Multilabel):
        decode_labels_machines(stored, machine, features, decode_machine)
    elif isinstance(machine, BankedEnsemble):
        decode_members(stored, machine, features, decode_machine)
    elif isinstance(machine, LocalMachines):
        decode_cells(stored, machine, features, decode_machine)
    elif isinstance(machine, CoupledEnsemble):
        decode_coupled(stored, machine, features)
    elif isinstance(machine, StructuredMachine):
        decode_structured(stored, machine, model)
    elif isinstance(machine, TunedMachine):
        _decode_tuned(stored, machine, features)
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


def _decode_tuned(stored: Stored, machine: TunedMachine, features: int | None) -> None:
    """Set the search and the machine it ended with."""
    machine.search_, machine.grid_ = decode_search(stored.part("search"))
    machine._publish()
    machine.best_estimator_ = decode_machine(stored.part("best_estimator_"), (machine._final,))
    refuse_other_points(machine.best_estimator_, machine, features)
    machine.kernel_ = machine.best_estimator_.kernel
    if not isinstance(machine.kernel_, Kernel):
        raise ModelFileError("its machine has no kernel")
    if isinstance(machine, TunedClassifier):
        machine.classes_ = machine.best_estimator_.classes_


def feature_names(stored: Stored, name: str, features: int | None) -> Any:
    """Names (d,) of the features."""
    found = stored.texts(name)
    if features is not None and len(found) != features:
        raise ModelFileError(f"it names {len(found)} of {features} features")
    return np.array(found, dtype=object)
