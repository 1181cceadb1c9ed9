"""The kernel matrix as an operator: rows, blocks, products, under a memory budget."""

from mercer.gram.cached import CachedGram, CacheReport
from mercer.gram.cost import Plan
from mercer.gram.dense import DenseGram
from mercer.gram.distances import SquaredDistances
from mercer.gram.factory import Gram
from mercer.gram.lowrank import LowRankGram
from mercer.gram.mapped import MappedGram
from mercer.gram.operator import GramOperator
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.sparse import SparseGram
from mercer.gram.streamed import StreamedGram

__all__ = [
    "CacheReport",
    "CachedGram",
    "DenseGram",
    "Gram",
    "GramOperator",
    "LowRankGram",
    "MappedGram",
    "Plan",
    "PrecomputedGram",
    "SparseGram",
    "SquaredDistances",
    "StreamedGram",
]
