"""Several classes from binary machines: codes, decoders, and the machines that hold all classes at once."""

from mercer.multiclass.codes import Audit, audit, make_code
from mercer.multiclass.machines import (
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    KernelLogistic,
    LeeLinWahbaSVC,
    WestonWatkinsSVC,
)
from mercer.multiclass.multilabel import Multilabel
from mercer.multiclass.output_code import OutputCode

__all__ = [
    "Audit",
    "BredensteinerBennettSVC",
    "CrammerSingerSVC",
    "KernelLogistic",
    "LeeLinWahbaSVC",
    "Multilabel",
    "OutputCode",
    "WestonWatkinsSVC",
    "audit",
    "make_code",
]
