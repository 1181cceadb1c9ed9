"""A block of sparse column points laid out by feature, and the products of sparse rows with it.

    slab     features that many of the column points hold: dense, in lines of `LINE` bytes, so that for each entry of a
             row one line is added in vector registers; bytes where only shared features are counted (see `Rows`)
    lists    all others: for each feature the points of the block that hold it, with their values

The products of a row point with the block cost, for each of its entries, one line of the slab for every chunk of
columns or one walk along a list: work is done only where two points meet in a feature.  With 60 words a document out of
2^20 hashed ones that is a few additions for each pair, whatever the width.

A line of bytes costs about a quarter of a line of float32 (measured on two cores with vectors of 512 bits).
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.numbering import Rows

# Bytes of a line of numbers, and of a line of counts: what vector registers sum while a row's entries go by.
LINE = 256
COUNT_LINE = 256
# Lines start at multiples of this, so that no vector crosses a line of the cache.
ALIGNED = 64
# Columns that fill the widest vector of float32.
VECTOR = 16
# The most features of a row that a byte can count.
COUNTED_AT_ONCE = 255
# Features that a larger share of the column points hold stand in the slab, of numbers and of bytes.
OFTEN = 1.0 / 16.0
OFTEN_COUNTED = 1.0 / 128.0
# Rows that meet one chunk of the slab after the other, while it is in cache.
TILE = 32


class Block(NamedTuple):
    """Room for a block of column points, and what is laid out there.

    `slab` (chunks, often, lanes) holds feature p of column c at [c // lanes, p, c % lanes].  Another feature has its
    list at place[p - often, 0] up to place[p - often, 1] of `holders`, positions within the block, and of `held`,
    values.  `offsets` and `levels` (chunks lanes,) are half norms and levels of the columns.  `tile` (TILE,
    chunks lanes) is room for their products with some rows.  Slab and place are zero between two blocks.
    """

    slab: NDArray[Any]
    place: NDArray[np.uint32]
    holders: NDArray[np.uint16]
    held: NDArray[Any]
    offsets: NDArray[Any]
    levels: NDArray[Any]
    tile: NDArray[Any]


def lanes_of(counted: bool, itemsize: int) -> int:
    """Columns of one chunk of the slab."""
    return COUNT_LINE if counted else LINE // itemsize


class Rooms:
    """Rooms for blocks of at most `width` points on so many features, kept for the next call: new memory costs time."""

    def __init__(self, width: int, features: int, often: int, counted: bool, dtype: np.dtype[Any]) -> None:
        lanes = lanes_of(counted, dtype.itemsize)
        self._chunks, self._lanes = -(-width // lanes), lanes
        self._features, self._often = features, often
        self._kind, self._dtype = np.dtype(np.uint8) if counted else dtype, dtype
        self._free: list[Block] = []

    def run(self, function: Any, points: Rows, columns: NDArray[np.intp], width: int, tasks: list[Any]) -> None:
        """Call function(room, *task) side by side, each with a room for any `width` of the columns, those in a row."""
        lengths = points.ends[columns] - points.heads[columns]
        most = int(np.add.reduceat(lengths, np.arange(0, len(lengths), width)).max()) if len(lengths) else 0
        rooms = [self._room(most) for _ in tasks]
        threads.run(function, [(room, *task) for room, task in zip(rooms, tasks, strict=True)])
        self._free += rooms  # unless the call was interrupted, which leaves them laid out

    def _room(self, most: int) -> Block:
        """A room with lists of so many entries."""
        try:
            room = self._free.pop()
        except IndexError:
            room = None
        if room is not None and len(room.holders) > most:
            return room
        columns = self._chunks * self._lanes
        return Block(
            aligned_zeros((self._chunks, self._often, self._lanes), self._kind),
            np.zeros((self._features - self._often, 2), np.uint32),
            np.empty(most + 1, np.uint16),
            np.empty(most + 1, self._dtype),
            np.zeros(columns, self._dtype),
            aligned_zeros((columns,), self._dtype),
            aligned_zeros((TILE, columns), self._dtype),
        )


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros that starts at a multiple of ALIGNED."""
    size = int(np.prod(shape)) * dtype.itemsize
    buffer = np.zeros(size + ALIGNED, np.uint8)
    first = -buffer.ctypes.data % ALIGNED
    return buffer[first : first + size].view(dtype).reshape(shape)


def _lines_of_entries(
    typingctx: Any, rows: Any, start: Any, stop: Any, block: Any, chunk: Any, level: Any, r: Any, tile: Any, more: Any
) -> Any:
    """Write to tile[r] the products of the entries start..stop of `rows` with one chunk of the slab of `block`.

    Where there are `more` entries than one call counts, the products are added to those of the calls before.

    The sums over the entries stay in vector registers, which no loop over the columns, compiled as it is written,
    would do.  A slab of bytes counts, at most COUNTED_AT_ONCE entries; the counts are widened and multiplied with
    `level` and the levels of the columns.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row_fields, block_fields = signature.args[0], signature.args[3]

        def field(at: int, name: str) -> Any:
            fields = (row_fields if at == 0 else block_fields).fields
            kind = (row_fields if at == 0 else block_fields).types[fields.index(name)]
            value = builder.extract_value(arguments[at], fields.index(name))
            return context.make_array(kind)(context, builder, value)

        slab_type = block_fields.types[block_fields.fields.index("slab")].dtype
        counted = slab_type == types.uint8
        out_type = signature.args[7].dtype
        out_bytes = out_type.bitwidth // 8
        lanes = COUNT_LINE if counted else LINE // out_bytes
        line = ir.VectorType(context.get_data_type(slab_type), lanes)
        index = ir.IntType(64)
        slab, indices, values = field(3, "slab"), field(0, "indices"), field(0, "values")
        out = context.make_array(signature.args[7])(context, builder, arguments[7])
        width = cgutils.unpack_tuple(builder, out.shape, 2)[1]
        often = cgutils.unpack_tuple(builder, slab.shape, 3)[1]
        lines = builder.bitcast(slab.data, line.as_pointer())
        lines = builder.gep(lines, [builder.mul(arguments[4], often)])

        sums = cgutils.alloca_once(builder, line)
        builder.store(ir.Constant(line, None), sums)
        with cgutils.for_range_slice(builder, arguments[1], arguments[2], ir.Constant(index, 1)) as (at, _):
            feature = builder.sext(builder.load(builder.gep(indices.data, [at])), index)
            column = builder.load(builder.gep(lines, [feature]), align=ALIGNED)
            before = builder.load(sums)
            if counted:
                builder.store(builder.add(before, column), sums)
            else:
                value = _spread(builder, builder.load(builder.gep(values.data, [at])), lanes)
                product = builder.fmul(value, column, flags=("contract",))
                builder.store(builder.fadd(before, product, flags=("contract",)), sums)

        left = builder.mul(arguments[4], ir.Constant(index, lanes))
        first = builder.add(builder.mul(arguments[6], width), left)
        levels, total = field(3, "levels").data, builder.load(sums)
        # A few registers at a time: counts take four or eight times as many once they are widened.
        part = LINE // out_bytes
        piece = ir.VectorType(context.get_data_type(out_type), part)

        def put(added: bool) -> None:
            for at in range(0, lanes, part):
                here = ir.Constant(index, at)
                some = _part(builder, total, at, part)
                if counted:
                    own = builder.bitcast(builder.gep(levels, [builder.add(left, here)]), piece.as_pointer())
                    scale = builder.fmul(_spread(builder, arguments[5], part), builder.load(own, align=ALIGNED))
                    some = builder.fmul(builder.uitofp(some, piece), scale)
                place = builder.bitcast(builder.gep(out.data, [builder.add(first, here)]), piece.as_pointer())
                if added:
                    some = builder.fadd(builder.load(place, align=ALIGNED), some)
                builder.store(some, place, align=ALIGNED)

        with builder.if_else(builder.trunc(arguments[8], ir.IntType(1))) as (again, once):
            with again:
                put(added=True)
            with once:
                put(added=False)
        return context.get_dummy_value()

    signature = types.void(
        rows, types.int64, types.int64, block, types.int64, tile.dtype, types.int64, tile, types.int64
    )
    return signature, code


def _spread(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of one number."""
    vector = ir.VectorType(value.type, lanes)
    unset = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(unset, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, unset, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))


def _part(builder: Any, vector: Any, left: int, width: int) -> Any:
    """The numbers left..left + width of a vector."""
    if left == 0 and vector.type.count == width:
        return vector
    kind = ir.IntType(32)
    places = ir.Constant(ir.VectorType(kind, width), [ir.Constant(kind, left + j) for j in range(width)])
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), places)


sum_lines: Any = intrinsic(_lines_of_entries)


@loop
def padded(width: int) -> int:
    """So many columns and those that fill the last vector: they have no entries, and their values count for nothing."""
    return (width + VECTOR - 1) // VECTOR * VECTOR


@loop
def lay_out(points: Any, a: Any, columns: Any, left: Any, right: Any, block: Any) -> None:
    """Lay out the points columns[left:right] with half norms a; slab and place must be zero."""
    slab, place = block.slab, block.place
    often, lanes = slab.shape[1], slab.shape[2]
    counted = slab.itemsize == 1
    for c in range(left, right):
        i = columns[c]
        chunk, lane = (c - left) // lanes, (c - left) % lanes
        block.offsets[c - left] = a[i]
        block.levels[c - left] = points.levels[i]
        for at in range(points.indptr[i], points.heads[i]):
            slab[chunk, points.indices[at], lane] = 1 if counted else points.values[at]
        for at in range(points.heads[i], points.ends[i]):
            place[points.indices[at] - often, 1] += 1
    # Lists begin at 1, so that a zero marks a feature that has none yet.
    free = 1
    for c in range(left, right):
        i = columns[c]
        for at in range(points.heads[i], points.ends[i]):
            p = points.indices[at] - often
            if place[p, 0] == 0:
                place[p, 0] = free
                free += place[p, 1]
                place[p, 1] = place[p, 0]
            block.holders[place[p, 1]] = c - left
            block.held[place[p, 1]] = points.values[at]
            place[p, 1] += 1


@loop
def clear(points: Any, columns: Any, left: Any, right: Any, block: Any) -> None:
    """Undo `lay_out` by touching only what it wrote."""
    slab, place = block.slab, block.place
    often, lanes = slab.shape[1], slab.shape[2]
    for c in range(left, right):
        i = columns[c]
        chunk, lane = (c - left) // lanes, (c - left) % lanes
        for at in range(points.indptr[i], points.heads[i]):
            slab[chunk, points.indices[at], lane] = 0
        for at in range(points.heads[i], points.ends[i]):
            place[points.indices[at] - often, 0] = 0
            place[points.indices[at] - often, 1] = 0


@loop
def tile_products(points: Any, rows: Any, top: Any, bottom: Any, block: Any, used: Any) -> None:
    """Products of the points rows[top:bottom], at most TILE, with the `used` columns laid out, into the tile."""
    tile, place = block.tile, block.place
    often, lanes = block.slab.shape[1], block.slab.shape[2]
    if often == 0:
        for r in range(bottom - top):
            for j in range(used):
                tile[r, j] = 0
    for chunk in range((used + lanes - 1) // lanes if often else 0):
        for r in range(top, bottom):
            i = rows[r]
            first, end = points.indptr[i], points.heads[i]
            last = min(end, first + COUNTED_AT_ONCE)
            sum_lines(points, first, last, block, chunk, points.levels[i], r - top, tile, 0)
            while last < end:
                first, last = last, min(end, last + COUNTED_AT_ONCE)
                sum_lines(points, first, last, block, chunk, points.levels[i], r - top, tile, 1)
    for r in range(top, bottom):
        i = rows[r]
        row = tile[r - top]
        for at in range(points.heads[i], points.ends[i]):
            p = points.indices[at] - often
            value = points.values[at]
            for k in range(place[p, 0], place[p, 1]):
                row[block.holders[k]] += value * block.held[k]
