"""Every error and warning mercer raises, so that a caller can catch or filter each by its class.

An error message names the argument at fault and what to do about it.
"""


class MercerError(Exception):
    """Root of all errors raised by mercer."""


class InvalidInput(MercerError, ValueError):
    """An argument or a data set cannot be used as given."""


class NotPositiveDefinite(InvalidInput):
    """A kernel or matrix is not positive definite where the method needs it."""


class Infeasible(InvalidInput):
    """The constraints of the optimisation problem admit no point."""


class BudgetTooSmall(MercerError, MemoryError):
    """The memory budget does not hold even the smallest working piece."""


class DeviceNotFound(MercerError, RuntimeError):
    """The device asked for is not on this machine."""


class ModelFileError(MercerError, ValueError):
    """A model file is damaged, foreign or of an unknown version."""


class MissingDependency(MercerError, ImportError):
    """An optional package is needed for this and is not installed."""


class MercerWarning(UserWarning):
    """Root of all warnings issued by mercer."""


class NotConverged(MercerWarning):
    """A solver stopped before its tolerance was met; the certificate says how far it is."""


class Advice(MercerWarning):
    """The data or the parameters look unwise; the message says what to change."""


class PrecisionLoss(MercerWarning):
    """A result carries fewer correct digits than asked for."""
