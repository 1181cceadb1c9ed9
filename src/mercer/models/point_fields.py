"""Points in a model file: a dense matrix, a CSR matrix, texts, or none where the kernel matrix was given."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput, MercerError, ModelFileError
from mercer.kernels import Kernel
from mercer.models.fields import Draft, Stored

STORAGE = ("none", "dense", "csr_matrix", "csr_array", "texts")


def encode_points(draft: Draft, points: Any) -> None:
    """Store points (n, d), a list of texts, or None."""
    if points is None:
        draft.facts["points"] = "none"
    elif sp.issparse(points):
        points = points.tocsr()
        draft.facts["points"] = "csr_array" if isinstance(points, sp.sparray) else "csr_matrix"
        draft.facts["points shape"] = [int(size) for size in points.shape]
        draft.tensor("points.data", np.asarray(points.data, dtype=np.float64))
        for part in ("indices", "indptr"):
            draft.tensor(f"points.{part}", getattr(points, part))
    elif isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind == "f":
        draft.facts["points"] = "dense"
        draft.tensor("points", np.asarray(points, dtype=np.float64))
    elif all(isinstance(point, str) for point in points):
        draft.facts["points"] = "texts"
        draft.texts("points", list(points))
    else:
        raise InvalidInput("the machine was trained on Python objects, which a model file cannot carry: pickle it")


def decode_points(stored: Stored) -> Any:
    """The points as they were: an array or CSR matrix (n, d) of finite numbers, a list of texts, or None."""
    storage = stored.text("points", STORAGE)
    if storage == "none":
        return None
    if storage == "texts":
        return stored.texts("points")
    if storage == "dense":
        return stored.tensor("points", np.float64, (None, None))
    n, d = stored.counts("points shape", (2,))
    data = stored.tensor("points.data", np.float64, (None,))
    wide = stored.has("points.indptr") and stored.tensors["points.indptr"].dtype == np.int64
    kind = np.int64 if wide else np.int32
    starts = stored.tensor("points.indptr", kind, (n + 1,))
    columns = stored.tensor("points.indices", kind, (len(data),))
    if starts[0] != 0 or starts[-1] != len(data) or (np.diff(starts) < 0).any():
        raise ModelFileError("the rows of its sparse points do not fill their tensors")
    if columns.size and not (columns.min() >= 0 and columns.max() < d):
        raise ModelFileError(f"its sparse points have columns outside 0 to {d - 1}")
    make = sp.csr_array if storage == "csr_array" else sp.csr_matrix
    points = make((data, columns, starts), shape=(n, d))
    points.sort_indices()
    return points


def count(points: Any) -> int:
    """Number of points of any kind."""
    return int(points.shape[0]) if hasattr(points, "shape") else len(points)


def refuse_misfit(kernel: Kernel | None, points: Any) -> None:
    """Try the kernel on one point: it must take points of this kind and width."""
    if kernel is None or points is None:
        return
    if kernel.placeholders:
        raise ModelFileError(f"the width of its kernel {kernel!r:.80} was never chosen")
    if count(points) == 0:
        return
    try:
        with np.errstate(all="ignore"):
            kernel(points[:1], points[:1])
    except (MercerError, ValueError, TypeError, ArithmeticError, AttributeError, IndexError) as error:
        raise ModelFileError(f"its kernel {kernel!r:.80} does not fit its points: {error}") from None
