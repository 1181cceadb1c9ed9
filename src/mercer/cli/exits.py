"""What the exit code of the command says.

0    all went well
1    an unexpected error: a fault of mercer
2    the command line was wrong
3    the data, a file or a parameter cannot be used
4    something needed is not there: memory, a device, an optional package
5    done, but a file could not be written where it was asked for; a line names it, and where the model is
130  interrupted
"""

from mercer.errors import BudgetTooSmall, DeviceNotFound, MercerError, MissingDependency

FAULT, USAGE, INPUT, RESOURCE, ELSEWHERE, INTERRUPTED = 1, 2, 3, 4, 5, 130


def code_of(error: BaseException) -> int:
    """Exit code that belongs to an error."""
    if isinstance(error, (BudgetTooSmall, DeviceNotFound, MissingDependency, MemoryError)):
        return RESOURCE
    if isinstance(error, (MercerError, OSError)):
        return INPUT
    return FAULT


def line_of(error: BaseException) -> str:
    """One line that says what happened and what to do."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, (MercerError, OSError)):
        return text
    if isinstance(error, MemoryError):
        return f"out of memory ({text})"
    return f"unexpected error, {type(error).__name__}: {text} (run again with --debug to see where, and report it)"
