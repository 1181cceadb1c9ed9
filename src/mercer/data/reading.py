"""One function to read any data file, and one to write it; the ending of the name says the format."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mercer.data.allowance import Allowance
from mercer.data.arrays import read_npy, read_npz, write_npz
from mercer.data.dataset import Dataset, Request, Target, resolve_missing
from mercer.data.files import stem_and_format
from mercer.data.parquet import read_parquet
from mercer.data.svmlight import read_svmlight, svmlight_blocks, write_svmlight
from mercer.data.tables import csv_blocks, read_csv, write_csv
from mercer.errors import BudgetTooSmall, InvalidInput

FORMATS = {
    "svmlight": ("svm", "svmlight", "libsvm", "mlsvm", "letor", "dat", "t", "tr", "val", "scale", "txt", ""),
    "csv": ("csv", "tsv", "data"),
    "parquet": ("parquet", "pq"),
    "npy": ("npy",),
    "npz": ("npz",),
}
READERS: dict[str, Callable[[Request], Dataset]] = {
    "svmlight": read_svmlight, "csv": read_csv, "parquet": read_parquet, "npy": read_npy, "npz": read_npz,
}  # fmt: skip
BLOCK_ROWS = 4096  # of a CSV file that is read in blocks
BLOCK_BYTES = 1 << 20  # of svmlight text
_OF_ENDING = {ending: name for name, endings in FORMATS.items() for ending in endings}


def format_of(path: Path, format: str | None = None) -> str:
    """Name of the format: the one given, else the one the ending stands for, else svmlight."""
    if format is not None:
        if format not in FORMATS:
            raise InvalidInput(f"format={format!r} must be one of {', '.join(FORMATS)}")
        return format
    return _OF_ENDING.get(stem_and_format(path)[1], "svmlight")


def read(
    path: str | Path,
    *,
    target: Target = None,
    groups: str | int | None = None,
    format: str | None = None,
    missing: str = "refuse",
    like: Dataset | None = None,
    sparse: bool | None = None,
    features: int | None = None,
    zero_based: bool | None = None,
    multilabel: bool | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    ignore: Sequence[str | int] = (),
    limit: int | str | None = None,
) -> Dataset:
    """Read a data file: svmlight / LIBSVM text, CSV (each also .gz, .xz, .bz2), Parquet, .npy or .npz.

    - `target`: name or number of the target column, several of them, or False for none.  By default the column called
      target, label, class or y, else the last one; svmlight and .npz files carry their own.
    - `groups`: name or number of the column that tells the query of each point, for rankings: whole numbers of 64 bits
      or texts.  svmlight files have qid: on their lines, .npz files an array query.
    - `missing`: what to do with missing values: "refuse" (an error), "impute" (the mean of the column), "drop" (the
      point) or "keep" (NaN in X).  Missing categories are rows of zeros in any case.
    - `like`: the training data whose features, categories and imputed values this file must follow.
    - `sparse`: True for CSR, False for dense; by default dense when a quarter of the entries are not zero.
    - `features`, `zero_based`, `multilabel` (svmlight): the number of features, whether they count from 0 (by default
      when a 0 occurs), whether y is a matrix of labels (by default when a line has several).
    - `header`, `delimiter`, `ignore` (tables): whether the first line names the columns (by default when none of its
      cells is a number), the sign between cells, and columns to leave out.
    - `limit`: most bytes of memory that reading may take, text, decompressor, scratch and result together (an upper
      bound on what becomes resident above what the process held before), by default half of what is free.

    A table gives the same data set from CSV and from Parquet: see `mercer.data.columns` for what is a number, a truth
    value or a text, and `mercer.data.encoding` for the columns that are left out, with the warning `ColumnLeftOut`.
    """
    place = Path(path)
    reader = READERS[format_of(place, format)]
    allowance = Allowance(limit, place)
    request = Request(
        place, target, groups, like, sparse, features, zero_based, multilabel, header, delimiter, ignore,
        allowance.limit,
    )  # fmt: skip
    try:
        data = reader(request)
    except MemoryError:
        raise BudgetTooSmall(f"{path}: reading it takes more memory than there is; free some") from None
    if like is not None and data.d != like.d:
        raise InvalidInput(f"{path}: has {data.d} features where the training data have {like.d}")
    allowance.take(data.nbytes)
    return resolve_missing(data, missing, like.imputed if like is not None else None, allowance)


def read_blocks(
    path: str | Path,
    *,
    target: Target = None,
    format: str | None = None,
    rows: int = BLOCK_ROWS,
    size: int = BLOCK_BYTES,
) -> Iterator[Dataset]:
    """The points of a text file, or of a pipe, in blocks: so many rows of a CSV file, so many bytes of svmlight text.

    One block is held at a time.  The first one settles what features there are, and missing values stay NaN.
    """
    place = Path(path)
    kind = format_of(place, format)
    if kind == "svmlight":
        return svmlight_blocks(place, size)
    if kind == "csv":
        return csv_blocks(place, rows, target=target)
    raise InvalidInput(f"{path}: a file of the format {kind} is not read in blocks; svmlight text and CSV are")


def write(path: str | Path, data: Dataset, *, format: str | None = None) -> None:
    """Write a data file (svmlight, CSV or .npz); an existing file is replaced only when all is written."""
    place = Path(path)
    kind = format_of(place, format)
    writers: dict[str, Callable[[Path, Dataset], None]] = {
        "svmlight": write_svmlight, "csv": write_csv, "npz": write_npz,
    }  # fmt: skip
    if kind not in writers:
        raise InvalidInput(f"{path}: the format {kind} is read only; write svmlight, csv or npz")
    writers[kind](place, data)
