"""Several classes from binary machines: codes, decoders, and the machines that hold all classes at once."""

from mercer.multiclass.codes import Audit, audit, make_code
from mercer.multiclass.multilabel import Multilabel
from mercer.multiclass.output_code import OutputCode
from mercer.multiclass.single_problem import (
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    KernelLogistic,
    LeeLinWahbaSVC,
    WestonWatkinsSVC,
)

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
