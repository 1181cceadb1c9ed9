"""What every kind of kernel matrix costs, and the choice among them: the only place that knows either.

A budget bounds all that an operator allocates: its copy of the points, what it stores, its working tiles.  Arrays
handed in by the caller and results handed out to him are his.  For n x m values of s bytes on d features:

    kind         kept between calls             operations of a product with one vector
    dense        n m s                          2 n m
    streamed     nothing                        n m (2 d + G)        symmetric, both sides of a tile used: half
    cached       slots m s + 16 n               as streamed, less the rows that are held
    sparse       z (s + index) + n index        2 z                  z nonzero values
    lowrank      (n + m) r s                    2 (n + m) r          rank r
    precomputed  nothing (the caller's array)   2 n m
    mapped       nothing (n m s on disk)        2 n m
    points       (n + m) (d s + 24)             for kernels in fused tiles; CSR: entries (s + 4) + (n + m) (2 s + 40) +
                                                16 p for the p features in use, at most d and at most the entries
    tile         rows columns s a thread        rows columns CALLED for kernels evaluated through their own call
    copies       COPIED_VALUES s                where values are copied out of what is stored

CSR points stay compressed unless d <= 16 or more than half of their entries are stored (`tiles.worth_densifying`): a
stored entry costs up to twice as much as an entry of a dense product, a quarter where all are one number, and in few
dimensions the elementwise function outweighs both.

Above, G is the number of operations of the elementwise function of the kernel.  A dense matrix of 5000 points in
float64 takes 2e8 bytes (Hamers 2004, section 1.2.2).
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram.column_blocks import LINE, OFTEN_COUNTED, TILE
from mercer.gram.tiles import SLAB_BYTES, SQUARE, TILE_COLUMNS, TILE_ROWS
from mercer.resources import show

Access: TypeAlias = Literal["products", "rows", "dense", "blocks"]
Storage: TypeAlias = Literal["dense", "streamed", "cached", "sparse", "lowrank", "precomputed", "mapped"]

ACCESSES = ("products", "rows", "dense", "blocks")
STORAGES = ("dense", "streamed", "cached", "sparse", "lowrank", "precomputed", "mapped")

# Operations of the elementwise function, as multiplications of the same vector width (2^t by a polynomial).
FUNCTION_OPERATIONS = 20
# Bytes for each value that a kernel's own call may hold at once: it works in float64, and the hungriest kernels
# (Matern, B-spline, compact Gaussian) were measured to hold eight arrays of the size of the result.
CALLED = 80
# Values of one call of such a kernel: enough to hide the cost of the call, few enough to stay in cache.
CALLED_VALUES = 128 * 1024
# Values copied at a time from a stored matrix.
COPIED_VALUES = 128 * 1024
# Up to so many features a value costs about as much as fetching it from memory.
CHEAP_FEATURES = 48
# A row of a compressed matrix costs about five times as much per value as a dense one (indices, gather).
SPARSE_DENSITY = 0.2


def value_type(precision: str) -> np.dtype[Any]:
    """The type of kernel values for a precision by name."""
    if precision not in ("float32", "float64"):
        raise InvalidInput(f"precision={precision!r} is not known; choose 'float64' or 'float32'")
    return np.dtype(precision)


@dataclass(frozen=True)
class MatrixTask:
    """What is asked of a kernel matrix.

    Parameters
    ----------
    n, m, d : rows, columns and features.
    itemsize : bytes of one value.
    budget : bytes the operator may allocate.
    symmetric : columns and rows are the same points.
    fused : the kernel runs in fused tiles (otherwise through its own call).
    entries : stored entries of the points where they are CSR, else None.
    linear : the kernel is the inner product itself, so that the points are its factor.
    nonzeros : nonzero values of a compactly supported kernel, where they were counted, else None.
    access : what the caller will ask for most.
    workers : threads that hold a tile each.
    transient : bytes needed only while the points are prepared.

    """

    n: int
    m: int
    d: int
    itemsize: int
    budget: int
    symmetric: bool = True
    fused: bool = True
    entries: int | None = None
    linear: bool = False
    nonzeros: int | None = None
    access: Access = "products"
    workers: int = 1
    transient: int = 0


@dataclass(frozen=True)
class Plan:
    """How a kernel matrix will be held and worked on; print it.

    `bytes` is the most the operator allocates, `block` the rows and columns of one working tile, `operations` the
    multiplications and additions of one product with a vector, `reasons` why this kind was chosen.
    """

    storage: str
    shape: tuple[int, int]
    itemsize: int
    budget: int
    bytes: int
    stored: int
    points: int
    block: tuple[int, int]
    workers: int
    operations: float
    slots: int = 0
    reasons: list[str] = field(default_factory=list)

    def because(self, reason: str) -> "Plan":
        """The same plan with one more reason."""
        return replace(self, reasons=[*self.reasons, reason])

    def __str__(self) -> str:
        """A few lines for people."""
        rows, columns = self.block
        lines = [
            f"{self.storage} kernel matrix, {self.shape[0]} x {self.shape[1]}, float{8 * self.itemsize}",
            f"  memory      {show(self.bytes)} of {show(self.budget)}"
            f" (stored {show(self.stored)}, points {show(self.points)})",
            f"  tile        {rows} x {columns}, {self.workers} thread(s)",
            f"  product     {self.operations:.3g} operations a vector",
        ]
        if self.slots:
            lines.append(f"  cache       {self.slots} rows")
        return "\n".join(lines + [f"  because     {reason}" for reason in self.reasons])


def points_bytes(task: MatrixTask) -> int:
    """Bytes of the operator's own copy of the points: scaled, centred, with their squared norms."""
    if not task.fused:
        return 0
    count = task.n if task.symmetric else task.n + task.m
    if task.entries is not None:
        return task.entries * (task.itemsize + 4) + (40 + 2 * task.itemsize) * count + 16 * features_in_use(task)
    return count * (task.d * task.itemsize + 24)


def features_in_use(task: MatrixTask) -> int:
    """The most features that CSR points can hold."""
    return task.d if task.entries is None else min(task.d, task.entries)


def row_bytes(task: MatrixTask) -> int:
    """Bytes of one row of values."""
    return task.m * task.itemsize


def working_bytes(task: MatrixTask) -> int:
    """Bytes of the smallest working tile: that of the compiled loops for each thread, or one row of a kernel's call."""
    if not task.fused:
        return CALLED * task.m
    if task.entries is None:
        values = max(TILE_ROWS * min(task.m, TILE_COLUMNS), SQUARE**2 if task.m > SQUARE else 0) + TILE_ROWS * task.d
        return task.workers * values * task.itemsize
    features = features_in_use(task)
    # A line for each feature in the slab at least, which are no more than 1 / OFTEN_COUNTED times a mean row's entries.
    per_row = task.entries / max(1, task.n if task.symmetric else task.n + task.m)
    slab = max(SLAB_BYTES, LINE * min(features, math.ceil(per_row / OFTEN_COUNTED)))
    lists = 8 * features + (task.itemsize + 2) * task.entries
    return task.workers * (slab + lists + (4 + TILE) * TILE_COLUMNS * task.itemsize) + 8 * (task.n + task.m)


def copied_bytes(storage: str, task: MatrixTask) -> int:
    """Bytes of the strip through which values go into or out of what is stored."""
    if storage == "streamed":
        return 0
    return max(task.m, min(COPIED_VALUES, task.n * task.m)) * task.itemsize


def stored_bytes(storage: str, task: MatrixTask, *, slots: int = 0, rank: int = 0) -> int:
    """Bytes a kind of matrix keeps between calls."""
    if storage == "dense":
        return task.n * row_bytes(task)
    if storage == "cached":
        return slots * row_bytes(task) + 16 * task.n
    if storage == "sparse":
        nonzeros = task.n * task.m if task.nonzeros is None else task.nonzeros
        index = 4 if max(nonzeros, task.m) < 2**31 else 8
        return nonzeros * (task.itemsize + index) + (task.n + 1) * index
    if storage == "lowrank":
        if task.linear and task.entries is not None:
            return task.entries * (task.itemsize + 8)
        return rank * (task.n if task.symmetric else task.n + task.m) * task.itemsize
    return 0


def product_operations(storage: str, task: MatrixTask, *, rank: int = 0) -> float:
    """Multiplications and additions of one product with a vector."""
    values = float(task.n) * task.m
    if storage in ("dense", "precomputed", "mapped"):
        return 2 * values
    if storage == "sparse":
        return 2.0 * (values if task.nonzeros is None else task.nonzeros)
    if storage == "lowrank":
        if task.linear and task.entries is not None:
            return 4.0 * task.entries * (1 if task.symmetric else 0.5)
        return 2.0 * (task.n + task.m) * rank
    return values * value_operations(task) * (0.5 if task.symmetric else 1.0) + 2 * values


def value_operations(task: MatrixTask) -> float:
    """Operations of one kernel value."""
    features = task.d if task.entries is None else task.entries / max(1, task.n if task.symmetric else task.n + task.m)
    return 2.0 * features + FUNCTION_OPERATIONS


def worth_keeping(task: MatrixTask) -> bool:
    """Whether values cost so much more than reading them that rows in use are better kept than computed again."""
    return not task.fused or task.entries is not None or task.d > CHEAP_FEATURES


def smallest_budget(storage: str, task: MatrixTask) -> int:
    """Fewest bytes in which a kind of matrix can work at all."""
    if storage == "precomputed":
        return copied_bytes(storage, task)
    kept = stored_bytes(storage, task, slots=1, rank=1) + copied_bytes(storage, task)
    return points_bytes(task) + max(task.transient, kept + working_bytes(task))


def plan(storage: str, task: MatrixTask, *, rank: int = 0) -> Plan:
    """The plan of one kind of matrix; BudgetTooSmall, naming the smallest workable budget, where it cannot work."""
    smallest = smallest_budget(storage, task)
    if task.budget < smallest:
        keeps = storage in ("dense", "sparse", "lowrank")
        remedy = "; storage='streamed' keeps no values and storage='mapped' keeps them on disk" if keeps else ""
        raise BudgetTooSmall(
            f"memory={task.budget} ({show(task.budget)}) is too small for a {storage} kernel matrix of "
            f"{task.n} x {task.m} values on {task.d} features: the smallest workable budget is "
            f"memory={smallest} ({show(smallest)}){remedy}"
        )
    points = 0 if storage == "precomputed" else points_bytes(task)
    working = 0 if storage == "precomputed" else working_bytes(task)
    copied = copied_bytes(storage, task)
    free = task.budget - points - copied
    slots = min(task.n, (free - working - 16 * task.n) // row_bytes(task)) if storage == "cached" else 0
    stored = stored_bytes(storage, task, slots=slots, rank=rank)
    block = tile(task, free - stored)
    if not task.fused and storage != "precomputed":
        working = CALLED * block[0] * block[1]
    return Plan(
        storage=storage,
        shape=(task.n, task.m),
        itemsize=task.itemsize,
        budget=task.budget,
        bytes=points + max(task.transient, stored + working + copied),
        stored=stored,
        points=points,
        block=block,
        workers=task.workers,
        operations=product_operations(storage, task, rank=rank),
        slots=slots,
    )


def tile(task: MatrixTask, free: int) -> tuple[int, int]:
    """Rows and columns of a working tile: fixed in the compiled loops, near square and within `free` for calls."""
    if task.fused:
        return min(task.n, TILE_ROWS), min(task.m, TILE_COLUMNS)
    values = min(CALLED_VALUES, max(task.m, free // CALLED))
    columns = min(task.m, max(math.isqrt(values), values // task.n))
    return max(1, min(task.n, values // columns)), columns


def choose_plan(task: MatrixTask) -> Plan:
    """The cheapest kind of matrix for the stated access that fits in the budget."""
    dense_fits = task.budget >= smallest_budget("dense", task)
    if task.access == "dense":
        return plan("dense", task).because("the caller works on the whole matrix")
    thin = task.linear and product_operations("lowrank", task, rank=task.d) < task.n * task.m
    if thin and task.access == "products" and task.budget >= smallest_budget("lowrank", task):
        return plan("lowrank", task, rank=task.d).because("the kernel is the inner product: X itself is its factor")
    if task.nonzeros is not None:
        share = task.nonzeros / (task.n * task.m)
        if share <= SPARSE_DENSITY and task.budget >= smallest_budget("sparse", task):
            return plan("sparse", task).because(f"compact support leaves {share:.2%} of the values nonzero")
    if task.access == "rows":
        return plan("cached", task).because("rows are asked for one by one and again; the budget holds the latest")
    if task.access == "blocks":
        return plan("streamed", task).because("blocks are asked for once; nothing is worth keeping")
    if task.symmetric and dense_fits:
        return plan("dense", task).because(
            "the whole matrix fits, and repeated products read it instead of computing it"
        )
    if not task.symmetric:
        return plan("streamed", task).because("a product with new points is asked for once; nothing is worth keeping")
    needed = show(smallest_budget("dense", task))
    return plan("streamed", task).because(f"the whole matrix would need {needed}; tiles are computed and forgotten")
