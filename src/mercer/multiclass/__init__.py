"""Several classes from binary machines: codes, decoders, and the machines that hold all classes at once."""

from mercer.multiclass.codes import Audit, audit, make_code

__all__ = ["Audit", "audit", "make_code"]
