"""Structured output: models that say what a structure is, and the machines that learn to predict it."""

from mercer.problems.structured import SparseVector
from mercer.structured import metrics
from mercer.structured.chains import Chain
from mercer.structured.grids import GridModel
from mercer.structured.label_pairs import LabelPairs
from mercer.structured.model import Found, StructuredModel
from mercer.structured.multiclass import Multiclass
from mercer.structured.perceptron import StructuredPerceptron
from mercer.structured.support_vector import StructuredSVM
from mercer.structured.trees import TreeModel
from mercer.structured.with_kernel import WithKernel

KINDS: tuple[type[StructuredModel], ...] = (Multiclass, Chain, TreeModel, GridModel, LabelPairs, WithKernel)
MODELS = {kind.name: kind for kind in KINDS}
"""mercer's own models by the names that model files know them by."""

__all__ = [
    "MODELS", "Chain", "Found", "GridModel", "LabelPairs", "Multiclass", "SparseVector", "StructuredModel",
    "StructuredPerceptron", "StructuredSVM", "TreeModel", "WithKernel", "metrics",
]  # fmt: skip
