"""The kernel matrix as an operator: rows, blocks, products, under a memory budget."""

from mercer.gram.cached import CachedGram, CacheReport
from mercer.gram.columns import KernelColumns
from mercer.gram.cost import MatrixTask, Plan, choose_plan
from mercer.gram.dense import DenseGram
from mercer.gram.distances import SquaredDistances
from mercer.gram.factory import Gram, finer, streamed
from mercer.gram.lowrank import LowRankGram
from mercer.gram.mapped import MappedGram
from mercer.gram.operator import GramOperator
from mercer.gram.points import Index, Points, check_points, size, take
from mercer.gram.precomputed import PrecomputedGram, is_symmetric
from mercer.gram.rows import PointColumns, RowsOnDemand, fill_all, fill_row
from mercer.gram.sparse import SparseGram
from mercer.gram.streamed import StreamedGram
from mercer.gram.stretches import StoredStretches, stretches_of

__all__ = [
    "CacheReport",
    "CachedGram",
    "DenseGram",
    "Gram",
    "GramOperator",
    "Index",
    "KernelColumns",
    "LowRankGram",
    "MappedGram",
    "MatrixTask",
    "Plan",
    "PointColumns",
    "Points",
    "PrecomputedGram",
    "RowsOnDemand",
    "SparseGram",
    "SquaredDistances",
    "StoredStretches",
    "StreamedGram",
    "check_points",
    "choose_plan",
    "fill_all",
    "fill_row",
    "finer",
    "is_symmetric",
    "size",
    "streamed",
    "stretches_of",
    "take",
]
