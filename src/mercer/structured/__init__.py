"""Structured output: models that say what a structure is, and the machines that learn to predict it."""

from mercer.problems.structured import SparseVector
from mercer.structured.chains import Chain
from mercer.structured.model import Found, StructuredModel
from mercer.structured.multiclass import Multiclass
from mercer.structured.perceptron import StructuredPerceptron
from mercer.structured.support_vector import StructuredSVM

__all__ = [
    "Chain", "Found", "Multiclass", "SparseVector", "StructuredModel", "StructuredPerceptron", "StructuredSVM",
]  # fmt: skip
