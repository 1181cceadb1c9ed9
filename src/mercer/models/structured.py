"""Structured machines in a model file: the weights, the certificate, and the state that their model declares.

A model is stored by its name and by what `state` of it says: numbers, texts, kernels, and arrays.  mercer's own
models are looked up by that name.  One's own model is code, which a file cannot carry: its class is handed to `load`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, ModelFileError
from mercer.models.certificate import decode_certificate, encode_certificate
from mercer.models.fields import Draft, Stored, decode, decode_labels, encode, encode_labels
from mercer.models.state import decode_state
from mercer.structured import MODELS, StructuredModel
from mercer.structured.base import StructuredMachine


def encode_structured(draft: Draft, machine: StructuredMachine) -> None:
    """Store weights, certificate and model."""
    draft.facts["model name"] = machine.model_.name
    part = draft.part("model")
    kinds: dict[str, str] = {}
    for name, value in machine.model_.state().items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "iufb" and 1 <= value.ndim <= 2:
            kinds[name] = "numbers"
            part.tensor(name, value)
        elif isinstance(value, np.ndarray) and value.ndim == 1:
            kinds[name] = "texts"
            encode_labels(part, name, value)
        else:
            kinds[name] = "value"
            part.facts[name] = encode(value, name)
    draft.facts["kinds"] = kinds
    draft.tensor("coef", machine.coef_)
    encode_certificate(draft, machine)


def decode_structured(stored: Stored, machine: Any) -> None:
    """Set weights, certificate and model."""
    kind = _kind(stored.text("model name"), stored.model)
    try:
        machine.model_ = machine.model = kind.from_state(_state(stored))
        size = machine.model_.size()
    except (InvalidInput, TypeError, KeyError) as error:
        raise ModelFileError(f"its model {kind.name!r} cannot be made: {error}") from None
    machine.coef_ = stored.tensor("coef", np.float64, (size,))
    decode_certificate(stored, machine)
    decode_state(stored, machine, {})


def _kind(name: str, own: type[StructuredModel] | None) -> type[StructuredModel]:
    """The class of a name; `own` is that of a model that is not mercer's."""
    if own is not None and own.name == name:
        return own
    if name in MODELS:
        return MODELS[name]
    given = "" if own is None else f", not {own.name!r}"
    raise ModelFileError(
        f"its model is {name!r}{given}, which is not one of mercer's; hand its class over: load(path, model=...)"
    )


def _state(stored: Stored) -> Mapping[str, Any]:
    part, kinds = stored.part("model"), stored.section("kinds")
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind == "numbers":
            there = part.tensors.get(name, np.empty(0))
            found[name] = part.tensor(name, there.dtype, (None,) * there.ndim)
        elif kind == "texts":
            found[name] = decode_labels(part, name)
        elif kind == "value":
            found[name] = decode(part.fact(name))
        else:
            raise ModelFileError(f"{name!r} of its model is of the unknown kind {kind!r:.40}")
    return found
