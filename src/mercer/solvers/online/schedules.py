"""How large the t-th step is, t = 1, 2, ...

    constant          Lambda_t = rate                           follows a target that drifts
    inverse_sqrt      Lambda_t = rate / sqrt(t)                 the rule of thumb of Schoelkopf and Smola 2002, 10.6.3
    inverse           Lambda_t = rate / (1 + lambda rate t)     settles fastest on a target that stays (Bottou 2012)

A step multiplies f by 1 - lambda Lambda_t, which must be positive.
"""

import math
from dataclasses import dataclass
from enum import IntEnum

from mercer.compiled import loop
from mercer.errors import InvalidInput


class Shape(IntEnum):
    """The number of a schedule inside compiled loops."""

    CONSTANT = 0
    INVERSE_SQRT = 1
    INVERSE = 2


SCHEDULES = {shape.name.lower(): shape for shape in Shape}
_CONSTANT, _INVERSE_SQRT, _ = (int(shape) for shape in Shape)


@loop
def step_size(shape: int, rate: float, regularisation: float, t: int) -> float:
    """Lambda_t."""
    if shape == _CONSTANT:
        return rate
    if shape == _INVERSE_SQRT:
        return rate / math.sqrt(t)
    return rate / (1.0 + regularisation * rate * t)


@dataclass(frozen=True)
class Schedule:
    """Sizes of steps under a regularisation lambda."""

    name: str
    rate: float
    regularisation: float

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise InvalidInput(f"schedule={self.name!r} is not known; give one of {', '.join(SCHEDULES)}")
        if not self.rate > 0.0 or not self.regularisation >= 0.0:
            raise InvalidInput(
                f"rate must be positive and regularisation not negative, got {self.rate:g} and {self.regularisation:g}"
            )
        if not self.regularisation * self.size(1) < 1.0:
            raise InvalidInput(
                f"a step multiplies f by 1 - regularisation * rate, and {self.regularisation:g} * {self.size(1):g} is "
                "not below 1: lower rate or regularisation"
            )

    @property
    def shape(self) -> int:
        """The number of the schedule inside compiled loops."""
        return int(SCHEDULES[self.name])

    def size(self, t: int) -> float:
        """Lambda_t."""
        return float(step_size(self.shape, self.rate, self.regularisation, t))
