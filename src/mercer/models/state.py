"""What a machine declares as its state (`mercer.machine.fitted_state`), written and read by the kinds of attributes."""

from typing import Any

import numpy as np

from mercer.errors import InvalidInput, ModelFileError
from mercer.machine.fitted_state import Flag, Labels, Number, Values, Word
from mercer.models.fields import Draft, Stored, decode_labels, encode, encode_labels


def encode_state(draft: Draft, machine: Any) -> None:
    """Store every attribute that the machine declares."""
    for attribute, kind in machine._state().items():
        name = attribute.strip("_")
        try:
            value = getattr(machine, attribute)
        except AttributeError:
            raise InvalidInput(f"{attribute} is missing: a parameter was changed after fit; fit again") from None
        match kind:
            case Labels():
                encode_labels(draft, name, value)
            case Number():
                draft.facts[name] = encode(float(value), name)
            case Flag():
                draft.facts[name] = bool(value)
            case Word():
                draft.facts[name] = str(value)
            case Values():
                if kind.optional:
                    draft.facts[name] = value is not None
                if value is not None:
                    draft.tensor(name, np.asarray(value, dtype=kind.dtype))


def decode_state(stored: Stored, machine: Any, sizes: dict[str, int]) -> None:
    """Set every attribute that the machine declares; `sizes` by name are held against shapes, and added to."""
    for attribute, kind in machine._state().items():
        name = attribute.strip("_")
        match kind:
            case Labels():
                value: Any = decode_labels(stored, name)
                sizes["classes"] = len(value)
                if len(value) < 2:
                    raise ModelFileError(f"it has {len(value)} classes")
            case Number():
                value = stored.number(name)
            case Flag():
                value = stored.flag(name)
            case Word():
                value = stored.text(name, kind.choices)
            case Values():
                value = _values(stored, name, kind, sizes)
        setattr(machine, attribute, value)


def _values(stored: Stored, name: str, kind: Values, sizes: dict[str, int]) -> Any:
    if kind.optional and not stored.flag(name):
        return None
    found = stored.tensors.get(name)
    if kind.perhaps_empty and found is not None and found.size == 0:
        return stored.tensor(name, kind.dtype, (0,) * len(kind.shape))
    shape = [sizes.get(size) if isinstance(size, str) else size for size in kind.shape]
    value = stored.tensor(name, kind.dtype, shape, finite=kind.finite)
    sizes |= {size: length for size, length in zip(kind.shape, value.shape) if isinstance(size, str)}
    return value
