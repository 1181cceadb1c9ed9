"""Sources of rows: every kind gives the same rows in order, and a source that changes between passes is found out."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.solvers.streamed.blocks import (
    ArrayBlocks,
    BlockSource,
    CheckedRows,
    IteratorBlocks,
    MappedBlocks,
    ParquetBlocks,
    as_source,
    one_against_rest,
)

N, D = 230, 4


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)), rng.standard_normal(N)


def parquet(path: Path, X: np.ndarray, y: np.ndarray) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    parquet.write_table(pyarrow.table({**columns, "target": y}), path, row_group_size=50)
    return path


def sources(X: np.ndarray, y: np.ndarray, folder: Path) -> dict[str, BlockSource]:
    mapped = np.memmap(folder / "X.bin", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(y), 37):
            yield X[start : start + 37], y[start : start + 37]

    return {
        "array": ArrayBlocks(X, y, rows=64),
        "csr": ArrayBlocks(sp.csr_matrix(X), y, rows=64),
        "mapped": ArrayBlocks(np.memmap(folder / "X.bin", dtype=np.float64, mode="r", shape=X.shape), y, rows=31),
        "parquet": ParquetBlocks(parquet(folder / "rows.parquet", X, y), "target", rows=40),
        "iterator": IteratorBlocks(pieces),
    }


@pytest.mark.parametrize("start", [0, 1, 50, 137, N])
def test_every_source_gives_the_rows_from_any_point_on(
    data: tuple[np.ndarray, np.ndarray], tmp_path: Path, start: int
) -> None:
    X, y = data
    for name, source in sources(X, y, tmp_path).items():
        blocks = list(source.blocks(start))
        points = [b.toarray() if sp.issparse(b) else b for b, _ in blocks]
        assert np.array_equal(np.concatenate([np.empty((0, D)), *points]), X[start:]), name
        assert np.array_equal(np.concatenate([np.empty(0), *[t for _, t in blocks]]), y[start:]), name


def test_every_source_gathers_single_rows(data: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = data
    index = np.sort(np.random.default_rng(1).choice(N, 40, replace=False))
    for name, source in sources(X, y, tmp_path).items():
        points, targets = source.rows(index)
        assert np.array_equal(points.toarray() if sp.issparse(points) else points, X[index]), name
        assert np.array_equal(targets, y[index]), name


def test_dense_sources_have_one_checksum_whatever_their_blocks(
    data: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = data
    sums = set()
    for name, source in sources(X, y, tmp_path).items():
        checked = CheckedRows(source)
        last = list(checked.blocks())[-1]
        assert checked.n == N
        assert last[-1] == checked.checksum
        if name != "csr":
            sums.add(checked.checksum)
    assert len(sums) == 1


def test_a_pass_can_be_taken_up_in_the_middle(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    checked = CheckedRows(ArrayBlocks(X, y, rows=50))
    blocks = list(checked.blocks())
    at, part, _, checksum = blocks[1]
    rest = list(checked.blocks(at + len(part), checksum))
    assert [first for first, *_ in rest] == [100, 150, 200]
    assert rest[-1][-1] == blocks[-1][-1]


def test_labels_become_columns_of_signs(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = data
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    source = one_against_rest(ArrayBlocks(X, labels, rows=100), ["a", "b", "c"])
    Y = np.concatenate([Y for _, Y in source.blocks()])
    assert np.array_equal(Y.argmax(axis=1), np.arange(N) % 3)
    assert set(np.unique(Y)) == {-1.0, 1.0}
    assert source.n == N
    assert np.array_equal(source.rows(np.array([4, 5]))[1], Y[[4, 5]])


def test_a_source_that_ends_early_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    lengths = iter([N, N, 150])

    def factory() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        length = next(lengths)
        yield X[:100], y[:100]
        yield X[100:length], y[100:length]

    checked = CheckedRows(IteratorBlocks(factory))
    assert checked.count() == N
    with pytest.raises(InvalidInput, match=r"ended after 150 rows of 230"):
        list(checked.blocks())


def test_an_iterator_in_place_of_a_factory_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    once = iter([(X, y)])
    source = IteratorBlocks(lambda: once)
    with pytest.raises(InvalidInput, match="holds no rows"):
        list(CheckedRows(source).blocks())
    with pytest.raises(InvalidInput, match="gave no block"):
        IteratorBlocks(lambda: once)


def test_a_source_that_grows_or_is_shuffled_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    order = np.arange(N)

    def factory() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield X[order], y[order]

    checked = CheckedRows(IteratorBlocks(factory))
    checked.count()
    order[:] = np.random.default_rng(2).permutation(N)
    with pytest.raises(InvalidInput, match="another order"):
        list(checked.blocks())
    X, y = np.vstack([X, X[:5]]), np.concatenate([y, y[:5]])
    order = np.arange(N + 5)
    with pytest.raises(InvalidInput, match="more than the 230 rows"):
        list(checked.blocks())


@pytest.mark.parametrize("change", ["width", "text", "nan", "targets", "number of targets"])
def test_a_block_of_another_kind_is_refused_where_it_occurs(data: tuple[np.ndarray, np.ndarray], change: str) -> None:
    X, y = data
    second, targets = X[100:], y[100:]
    if change == "width":
        second = second[:, :3]
    elif change == "text":
        second = second.astype(str)
    elif change == "nan":
        second = np.where(np.arange(D) == 1, np.nan, second)
    elif change == "targets":
        targets = targets[:-1]
    else:
        targets = np.stack([targets, targets], axis=1)
    source = IteratorBlocks(lambda: iter([(X[:100], y[:100]), (second, targets)]))
    with pytest.raises(InvalidInput, match="block at row 100"):
        list(CheckedRows(source).blocks())


def test_wrong_arrays_and_columns_are_refused(data: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = data
    with pytest.raises(InvalidInput, match="y has shape"):
        ArrayBlocks(X, y[:-1])
    with pytest.raises(InvalidInput, match="two dimensions"):
        ArrayBlocks(y, y)
    with pytest.raises(InvalidInput, match="y is missing"):
        as_source(X)
    with pytest.raises(InvalidInput, match="rows must be at least 1"):
        ArrayBlocks(X, y, rows=0)
    path = parquet(tmp_path / "a.parquet", X, y)
    with pytest.raises(InvalidInput, match="has no column 'nothing'"):
        ParquetBlocks(path, "nothing")
    (tmp_path / "b.parquet").write_text("not a table")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        ParquetBlocks(tmp_path / "b.parquet", "target")
    text = MappedBlocks(ArrayBlocks(X, y), lambda t: t.astype(str).reshape(-1) + "x")
    with pytest.raises(InvalidInput, match="are not numbers"):
        list(CheckedRows(text).blocks())
