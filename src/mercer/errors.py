"""Every error and warning mercer raises, so that a caller can catch or filter each by its class.

An error message names the argument at fault and what to do about it.
"""


def printable(text: str) -> str:
    """The text in one line, with signs that would act on a terminal (control characters) written as escapes."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


class MercerError(Exception):
    """Root of all errors raised by mercer; its text may quote a file and holds no control characters."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInput(MercerError, ValueError):
    """An argument or a data set cannot be used as given."""


class NotPositiveDefinite(InvalidInput):
    """A kernel or matrix is not positive definite where the method needs it."""


class Infeasible(InvalidInput):
    """The constraints of the optimisation problem admit no point."""


class ContradictoryCertificates(MercerError, ArithmeticError):
    """The certificates of two problems contradict one another, so that one of them is wrong."""


class BudgetTooSmall(MercerError, MemoryError):
    """The memory budget does not hold even the smallest working piece."""


class DeviceNotFound(MercerError, RuntimeError):
    """The device asked for is not on this machine."""


class ModelFileError(MercerError, ValueError):
    """A model file is damaged, foreign or of an unknown version."""


class CannotWrite(MercerError, OSError):
    """A file cannot be written where it was asked for."""


class MissingDependency(MercerError, ImportError):
    """An optional package is needed for this and is not installed."""


class MercerWarning(UserWarning):
    """Root of all warnings issued by mercer; its text may quote a file and holds no control characters."""

    def __str__(self) -> str:
        return printable(super().__str__())


class NotConverged(MercerWarning):
    """A solver stopped before its tolerance was met; the certificate says how far it is."""


class NoCertificate(MercerWarning):
    """The kernel is not positive definite, so that nothing bounds the distance of the fit from the optimum."""


class NoMargin(MercerWarning):
    """The margin of a nu-machine cannot be told from zero, so that its decision values have no unit."""


class Advice(MercerWarning):
    """The data or the parameters look unwise; the message says what to change."""


class ColumnLeftOut(MercerWarning):
    """A column of a table was not made a feature, because it tells points apart and teaches nothing about others."""


class UnseenCategory(MercerWarning):
    """A table holds texts that its training data did not hold; they are treated as missing."""


class PrecisionLoss(MercerWarning):
    """A result carries fewer correct digits than asked for."""


class NotSaved(MercerWarning):
    """A checkpoint or compiled code could not be kept on disk; the work goes on without it."""
