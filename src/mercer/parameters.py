"""Values with named parameters: kernels, approximations and losses, as a search over parameters sees them.

A value is a frozen dataclass.  It never changes: `with_parameters` gives another one, whose parts are named as in
scikit-learn, `left__sigma` being the parameter sigma of the part `left`.  An estimator that holds a value shows these
names after its own (`kernel__left__sigma`) and puts the new value in the place of the old when one is set (see
`mercer.machine.arguments`), so that values can be shared, compared and used as keys all the while.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, TypeVar

from mercer.errors import InvalidInput

V = TypeVar("V", bound="Value")


class Value:
    """Base of the frozen dataclasses whose fields are parameters."""

    _checks: ClassVar[Mapping[str, Callable[[Any, str], Any]]] = {}
    """By the name of a field: what brings its value into its form, or refuses it by that name."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # a dataclass
            if check := self._checks.get(field.name):
                object.__setattr__(self, field.name, check(getattr(self, field.name), field.name))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All fields by name; `deep` adds the parameters of parts that are values, under `part__name`."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a dataclass
        if not deep:
            return own
        parts = (prefixed(name, part.get_params()) for name, part in own.items() if isinstance(part, Value))
        return {name: value for group in (own, *parts) for name, value in group.items()}

    def set_params(self, **params: Any) -> Self:
        """Refused for any parameter: a value does not change, and an owner that ignored the answer would not notice."""
        if not params:
            return self
        arguments = ", ".join(f"{name}={value!r:.40}" for name, value in params.items())
        raise InvalidInput(
            f"{self!r:.80} does not change: with_parameters({arguments}) makes another one.  mercer's estimators take "
            "its parameters under their own name, set_params(kernel__sigma=...); give others the new value itself"
        )

    def with_parameters(self, **values: Any) -> Self:
        """The same value with some parameters changed; names as in `get_params`."""
        known = self.get_params(deep=False)
        own: dict[str, Any] = {name: value for name, value in values.items() if name in known}
        deeper: dict[str, dict[str, Any]] = {}
        for name in values.keys() - own.keys():
            head, separator, tail = name.partition("__")
            if not separator or not isinstance(own.get(head, known.get(head)), Value):
                raise InvalidInput(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(self.get_params()) or 'none'}"
                )
            deeper.setdefault(head, {})[tail] = values[name]
        for head, parts in deeper.items():
            own[head] = own.get(head, known[head]).with_parameters(**parts)
        return replace(self, **own)  # type: ignore[type-var]  # of a subclass, which is a dataclass

    def __sklearn_clone__(self) -> Self:
        """What does not change is its own copy."""
        return self


def prefixed(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the part `name` under the names they have in the whole."""
    return {f"{name}__{key}": value for key, value in values.items()}


# In files ----------------------------------------------------------------------------------------------------------

_DEPTH = 64  # deeper nesting is nothing anybody built, but an attempt to exhaust the stack


def described(value: Value) -> dict[str, Any]:
    """Names and numbers that rebuild a value, ready for JSON; `rebuilt` reads them.

    {"name": "Scaled", "arguments": {"factor": 2.0, "kernel": {"name": "Gaussian", "arguments": {"sigma": 1.5}}}}
    """
    arguments = {name: _plain(item) for name, item in value.get_params(deep=False).items()}
    return {"name": type(value).__name__, "arguments": arguments}


def _plain(item: Any) -> Any:
    if isinstance(item, Value):
        return described(item)
    return [_plain(part) for part in item] if isinstance(item, tuple) else item


def rebuilt(description: Any, kinds: Mapping[str, type[V]], noun: str, depth: int = 0) -> V:
    """The value a dictionary describes, of one of the kinds; names and arguments that are not known are refused.

    Reading names and numbers cannot run code.  `noun` says what is looked for.
    """
    if not isinstance(description, Mapping) or set(description) != {"name", "arguments"}:
        article = "an" if noun[0] in "aeiou" else "a"
        raise InvalidInput(f"{article} {noun} is described by 'name' and 'arguments', got {description!r:.200}")
    if depth > _DEPTH:
        raise InvalidInput(f"the {noun} is nested more than {_DEPTH} deep; the file is damaged or not from mercer")
    name, arguments = description["name"], description["arguments"]
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput(f"{noun} name {name!r:.80} is not known; this version knows {sorted(kinds)}")
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    if not isinstance(arguments, Mapping) or not set(arguments) <= known:
        raise InvalidInput(f"{name} takes the arguments {sorted(known)}, got {arguments!r:.200}")
    values = {
        key: rebuilt(item, kinds, noun, depth + 1) if isinstance(item, Mapping) else item
        for key, item in arguments.items()
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise InvalidInput(f"{name} cannot be built from {arguments!r:.200}: {error}") from None
