"""What a fitted machine consists of beside its parameters, said by the machine itself.

`_state()` of an estimator names its attributes with their kinds; `mercer.models` writes and reads them by these kinds
alone.  Sizes in a shape are numbers, or names: "features", "outputs" (the functions of a machine), "classes", or any
other, whose first occurrence says how large it is.  A size is the same wherever its name occurs.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Labels:
    """Labels (classes,) of any type, all different."""


@dataclass(frozen=True)
class Number:
    """A number, perhaps infinite or NaN."""


@dataclass(frozen=True)
class Flag:
    """True or false."""


@dataclass(frozen=True)
class Word:
    """One of some words."""

    choices: tuple[str, ...]


@dataclass(frozen=True)
class Values:
    """Numbers of one type and shape, `finite` ones by default; perhaps None (`optional`), perhaps empty."""

    shape: tuple[int | str, ...]
    dtype: str = "f8"
    optional: bool = False
    perhaps_empty: bool = False
    finite: bool = True


State = Mapping[str, Labels | Number | Flag | Word | Values]
