"""What a bound says: a number, what it takes for granted, and whether it says anything at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mercer.errors import InvalidInput

Definition = Literal["remove", "replace"]
Side = Literal["upper", "lower"]


@dataclass(frozen=True)
class Bound:
    """An upper bound, or a lower one.

    value: the number; assumptions: what the theorem needs of data and machine; failed: those of them that are seen not
    to hold, in which case the number is a heuristic and no bound; trivial: the value known beforehand (1 for an error
    rate); confidence: the probability with which it holds (1 - delta for most), None where it always holds; details:
    parts of the number, by name; side: whether the true number is at most ("upper") or at least ("lower") this one.
    """

    value: float
    assumptions: tuple[str, ...]
    confidence: float | None = None
    trivial: float = 1.0
    failed: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    side: Side = "upper"

    @classmethod
    def under(cls, value: float, *assumptions: str | tuple[str, bool], **others: Any) -> "Bound":
        """The bound with its assumptions, each with whether it is seen to fail where that can be seen; other fields."""
        stated = [(text, False) if isinstance(text, str) else text for text in assumptions]
        failed = tuple(text for text, fails in stated if fails)
        return cls(value, tuple(text for text, _ in stated), failed=failed, **others)

    @property
    def vacuous(self) -> bool:
        """Whether the number is no better than what is known without looking."""
        return not (self.value < self.trivial if self.side == "upper" else self.value > self.trivial)

    @property
    def holds(self) -> bool:
        """Whether no assumption is known to fail."""
        return not self.failed

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        chance = "" if self.confidence is None else f" with probability {self.confidence:g}"
        most = "at most" if self.side == "upper" else "at least"
        lines = [f"{most} {self.value:.4g}{chance}{' (vacuous)' if self.vacuous else ''}"]
        lines += [f"  assumes: {text}" for text in self.assumptions]
        lines += [f"  FAILS: {text}" for text in self.failed]
        return "\n".join(lines)


def check_confidence(delta: float) -> float:
    """1 - delta for a delta strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise InvalidInput(f"delta must lie strictly between 0 and 1; it is {delta!r}.")
    return 1.0 - delta


def check_positive(**named: float) -> None:
    """Refuse numbers that are not positive, by their name."""
    for name, value in named.items():
        if not value > 0:
            raise InvalidInput(f"{name} must be positive; it is {value!r}.")


def check_definition(definition: str, allowed: Sequence[str] = ("remove", "replace")) -> None:
    """Refuse any other notion of stability."""
    if definition not in allowed:
        raise InvalidInput(f"definition must be {' or '.join(map(repr, allowed))}; it is {definition!r}.")
