"""One call that builds the right kind of kernel matrix for a budget and a pattern of access."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import cost
from mercer.gram.cached import CachedGram
from mercer.gram.cpu_engine import engine_of
from mercer.gram.dense import DenseGram
from mercer.gram.engine import Engine
from mercer.gram.lowrank import LowRankGram
from mercer.gram.mapped import MappedGram
from mercer.gram.operator import GramOperator
from mercer.gram.points import check_pair, check_points
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.sparse import SparseGram, find_neighbours
from mercer.gram.streamed import StreamedGram
from mercer.kernels.base import Kernel
from mercer.kernels.custom import Precomputed
from mercer.resources import budget as budget_of


def Gram(
    kernel: Any,
    X: Any,
    Z: Any = None,
    *,
    memory: int | float | str | None = None,
    precision: str = "float64",
    access: str = "products",
    storage: str = "auto",
) -> GramOperator:
    """The matrix K_ij = k(x_i, z_j) as an operator of shape (n, m).

    Parameters
    ----------
    kernel :
        a kernel; `Precomputed()` takes X as the matrix itself.
    X :
        points of the rows: (n, d) dense or CSR, or a list of n objects for kernels on objects.
    Z :
        points of the columns; None: the same as the rows, and the operator is symmetric.
    memory :
        most bytes the operator may allocate (a number, or text like "512 MiB"): its copy of the points, what it
        stores and its working tiles; arrays given to it and results handed out do not count.  None: a quarter of the
        memory that is free now.
    precision :
        "float64", or "float32": half the bytes and twice the speed; Gaussian values then have a relative error below
        4e-6 + 3e-7 (|x - c|^2 + |z - c|^2) / (2 sigma^2), c the mean of the points.
    access :
        what will be asked for most: "products", "rows", "blocks" or the "dense" matrix.
    storage :
        "auto" lets the cost model choose (print `plan()` to see why); or "dense", "streamed", "cached",
        "sparse", "lowrank", "precomputed", "mapped".

    Raises
    ------
    BudgetTooSmall : naming the smallest workable budget.
    InvalidInput : for points, kernels or options that cannot be used.

    """
    _check_option("access", access, cost.ACCESSES)
    _check_option("storage", storage, ("auto", *cost.STORAGES))
    dtype = cost.value_type(precision)
    budget = budget_of(memory)
    if not isinstance(kernel, Kernel):
        raise InvalidInput(
            f"kernel={kernel!r} is no kernel; give a mercer kernel, or wrap a function in Custom(function)"
        )
    if storage == "precomputed" or isinstance(kernel, Precomputed):
        if Z is not None or storage not in ("auto", "precomputed"):
            raise InvalidInput("a precomputed matrix is given as X alone, with Z=None and storage='auto'")
        return PrecomputedGram.build(kernel, X, budget)
    points = check_points(X, "X", objects=kernel.objects)
    others = None if Z is None or Z is X else check_points(Z, "Z", objects=kernel.objects)
    if others is not None:
        check_pair(points, others)
    values = engine_of(kernel, points, others, dtype)
    return _choose(values, budget, access) if storage == "auto" else _build(values, budget, storage)


def finer(operator: Any) -> GramOperator | None:
    """The matrix of an operator with values computed in float64, in the memory that the operator has; or None.

    None where there is no room for it, where the values were given and have no more digits, or where it is no operator
    of this package.  Rows that the operator keeps are forgotten.
    """
    if not isinstance(operator, GramOperator):
        return None
    values = operator.engine.in_double()
    if values is None:
        return None
    operator.forget()
    plan = operator.plan()
    kept = plan.stored if plan.storage == "dense" else 0
    try:
        return _choose(values, plan.budget - kept, "rows")
    except BudgetTooSmall:
        return None


def streamed(operator: GramOperator, index: NDArray[np.intp] | None = None) -> GramOperator:
    """The matrix of an operator, or of its points at `index`, with every value computed when it is asked for."""
    engine = operator.engine if index is None else operator.engine.subset(index)
    return _make(engine, cost.plan("streamed", engine.task(operator.plan().budget)))


def _choose(values: Engine, budget: int, access: Any) -> GramOperator:
    """Let the cost model choose, with the number of nonzero values estimated where the kernel is compact."""
    neighbours = None if access == "dense" else find_neighbours(values, budget)
    nonzeros = neighbours.estimate() if neighbours else None
    plan = cost.choose_plan(values.task(budget, access, nonzeros))
    if plan.storage != "sparse":
        return _make(values, plan)
    try:
        return SparseGram.build(values, budget, neighbours)
    except BudgetTooSmall:
        plan = cost.choose_plan(values.task(budget, access))
        return _make(values, plan.because("the support is compact, but its values and the search for them do not fit"))


def _build(values: Engine, budget: int, storage: str) -> GramOperator:
    """The kind of matrix asked for."""
    if storage == "sparse":
        return SparseGram.build(values, budget)
    if storage == "lowrank":
        return LowRankGram.build(values, budget)
    return _make(values, cost.plan(storage, values.task(budget)).because(f"storage={storage!r} was asked for"))


def _make(values: Engine, plan: cost.Plan) -> GramOperator:
    """The operator of a plan."""
    if plan.storage == "lowrank":
        return LowRankGram.build(values, plan.budget)
    kinds = {"dense": DenseGram, "streamed": StreamedGram, "cached": CachedGram, "mapped": MappedGram}
    return kinds[plan.storage](values, plan)


def _check_option(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInput(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}")
