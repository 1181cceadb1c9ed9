"""What a choice says: a name, and why."""

from typing import NamedTuple


class Choice(NamedTuple):
    """The name of what was chosen, and the reason in words."""

    name: str
    reason: str

    @classmethod
    def asked(cls, argument: str, name: str) -> "Choice":
        """The user's own choice."""
        return cls(name, f"{argument}={name!r} was asked for")
