"""Several classes from binary machines: codes, decoders, and the machines that hold all classes at once."""

from mercer.multiclass.codes import Audit, audit, make_code
from mercer.multiclass.multilabel import Multilabel
from mercer.multiclass.output_code import OutputCode

__all__ = ["Audit", "Multilabel", "OutputCode", "audit", "make_code"]
