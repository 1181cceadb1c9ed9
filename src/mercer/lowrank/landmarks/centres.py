"""Landmarks in the middle of clusters: k-means, and the spread-out rows it starts from.

k-means++ takes rows one after the other, each in proportion to its weighted squared distance to the nearest one taken
(Arthur and Vassilvitskii 2007).  A row need not be compared with a new centre c when its own centre o is so near that
|c - o| >= 2 |x - o|.  k-means moves such a start to the means of what is nearest to each centre; the centres are then
no rows of X.  Distances are those of the input space, with the features scaled as the kernel scales them.

Large data are not looked at as a whole: the start is taken from a random sample of rows, and the means follow random
batches of rows, each centre with the mean of all it has been given (Sculley 2010).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.gram import Points, take
from mercer.kernels.checks import whole
from mercer.kernels.distances import product, scaled, squared_norms, used_columns
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, Rows, said_of_rows
from mercer.resources import row_blocks

Array = NDArray[np.float64]

# Rows for each landmark, and at least, from which a start is taken or on which means are formed.
ROWS_PER_CENTRE = 10
LEAST_ROWS = 10_000
WHOLE_ROWS = 20_000
BATCH = 8192


@loop
def _nearer(U: Any, start: Any, stop: Any, centre: Any, number: Any, between: Any, nearest: Any, owner: Any) -> None:
    """Lower the squared distances nearest[start:stop] to that of a new centre; between[o] is |centre - centre_o|^2."""
    d = U.shape[1]
    for i in range(start, stop):
        if between[owner[i]] >= 4.0 * nearest[i]:
            continue
        total = 0.0
        for c in range(d):
            difference = U[i, c] - centre[c]
            total += difference * difference
        if total < nearest[i]:
            nearest[i] = total
            owner[i] = number


class _DenseSeeds:
    """Squared distances of dense rows U (n, d) to the nearest of the rows taken so far."""

    def __init__(self, U: Array, m: int) -> None:
        self.U = U
        self.nearest = np.full(len(U), np.inf)
        self.owner = np.zeros(len(U), dtype=np.intp)
        self.centres = np.empty((m, U.shape[1]))
        self.parts = threads.split(len(U), step=1024)

    def add(self, i: int, number: int) -> None:
        """Take the row i as centre `number`."""
        centre = self.U[i].copy()
        differences = self.centres[:number] - centre
        between = np.zeros(number + 1)
        np.einsum("ij,ij->i", differences, differences, out=between[:number])
        self.centres[number] = centre
        tasks = [(self.U, a, b, centre, number, between, self.nearest, self.owner) for a, b in self.parts]
        threads.run(_nearer, tasks)
        self.nearest[i] = 0.0


class _SparseSeeds:
    """The same for CSR rows, by one sparse product for each centre."""

    def __init__(self, U: Any) -> None:
        self.U = used_columns(U)[0] if U.shape[1] > U.nnz else U
        self.norms = squared_norms(self.U)
        self.nearest = np.full(U.shape[0], np.inf)

    def add(self, i: int, number: int) -> None:
        """Take the row i."""
        centre = np.asarray(self.U[[i]].toarray()).ravel()
        scale = self.norms + self.norms[i]
        distances = scale - 2.0 * (self.U @ centre)
        # What is left of two equal rows is rounding of their norms.
        distances[distances <= 1e-13 * scale] = 0.0
        np.minimum(self.nearest, distances, out=self.nearest)
        self.nearest[i] = 0.0


def spread_out(U: Points, weights: Array, m: int, rng: np.random.Generator) -> Rows:
    """At most m different rows of U by k-means++; fewer where all that is left are copies of them."""
    seeds = _SparseSeeds(U) if sp.issparse(U) else _DenseSeeds(U, m)
    taken: list[int] = []
    mass = weights
    while len(taken) < m:
        sums = np.cumsum(mass)
        if not sums[-1] > 0:
            break
        i = min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(sums) - 1)
        seeds.add(i, len(taken))
        taken.append(i)
        mass = weights * seeds.nearest
    return np.array(taken, dtype=np.intp)


def kmeans_plus_plus(task: LandmarkTask, rows: int | None = None) -> Choice:
    """Rows far from one another, by k-means++.

    rows: take them from so many random rows; None: from all, or from 10 m (at least 10,000) where there are more.
    """
    need_vectors(task, "kmeans++")
    chosen = _sampled(task, rows)
    U, _ = _features(task, chosen)
    picked = spread_out(U, task.weights[chosen], task.m, task.rng)
    return Choice(chosen[picked], details=said_of_rows(task, chosen))


def kmeans(task: LandmarkTask, iterations: int = 30, tol: float = 1e-4, rows: int | None = None) -> Choice:
    """Centres of clusters, from a start by k-means++.

    Up to 20,000 rows (or 10 m) are used as a whole, `iterations` times or until the summed squared distance falls by
    less than the share `tol`; of more, `iterations` random batches of 8192 rows (at least 4 m).  rows: as in
    `kmeans_plus_plus`, for the start.
    """
    need_vectors(task, "kmeans")
    if iterations < 0 or iterations != int(iterations) or not tol >= 0:
        raise InvalidInput(f"iterations={iterations!r}, tol={tol!r}: give a whole number and a number, zero or above")
    chosen = _sampled(task, rows)
    U, scale = _features(task, chosen)
    centres = take(U, spread_out(U, task.weights[chosen], task.m, task.rng))
    if len(task.active) <= max(WHOLE_ROWS, ROWS_PER_CENTRE * task.m):
        whole = U if len(chosen) == len(task.active) else _features(task, task.active)[0]
        centres, said = _lloyd(whole, task.weights[task.active], centres, iterations, tol)
    else:
        centres, said = _batches(task, centres, iterations)
    if scale is not None:
        centres = scaled(centres, 1.0 / scale) if sp.issparse(centres) else centres / scale
    if sp.issparse(centres):
        centres = centres.tocsr()
        centres.sort_indices()
    return Choice(points=centres, details={"rows": len(task.active), "start_rows": len(chosen)} | said)


def _lloyd(U: Points, weights: Array, centres: Points, iterations: int, tol: float) -> tuple[Points, dict[str, Any]]:
    """Move the centres to the means of all that is nearest to them, again and again."""
    before, used = np.inf, 0
    for _ in range(iterations):
        labels, distances = nearest_centres(U, centres)
        inertia = float(weights @ distances)
        if inertia >= (1.0 - tol) * before:
            break
        before, used = inertia, used + 1
        centres, _ = moved(U, weights, labels, centres, np.zeros(centres.shape[0]))
    _, distances = nearest_centres(U, centres)
    return centres, {"iterations": used, "inertia": float(weights @ distances)}


def _batches(task: LandmarkTask, centres: Points, batches: int) -> tuple[Points, dict[str, Any]]:
    """Let the centres follow random batches of rows."""
    size = max(BATCH, 4 * task.m)
    order = task.rng.permutation(task.active)
    counts = np.zeros(centres.shape[0])
    inertia, used = np.nan, 0
    for b in range(batches):
        here = order[b * size : (b + 1) * size]
        if not len(here):
            break
        U, _ = _features(task, here)
        w = task.weights[here]
        labels, distances = nearest_centres(U, centres)
        inertia = float(w @ distances) / len(here) * len(task.active)
        centres, counts = moved(U, w, labels, centres, counts)
        used += 1
    note = f"means of {used} batches of {size} random rows, start from a sample"
    return centres, {"batches": used, "batch": size, "inertia": inertia, "note": note}


def nearest_centres(U: Points, centres: Points) -> tuple[Rows, Array]:
    """The nearest centre of every row and its squared distance, (n,) both."""
    n, m = U.shape[0], centres.shape[0]
    norms, half = squared_norms(U), 0.5 * squared_norms(centres)
    labels, distances = np.empty(n, dtype=np.intp), np.empty(n)
    for here in row_blocks(n, m, 1 << 22):
        left = half - product(U[here], centres)
        labels[here] = np.argmin(left, axis=1)
        distances[here] = norms[here] + 2.0 * np.take_along_axis(left, labels[here, None], axis=1)[:, 0]
    return labels, np.maximum(distances, 0.0)


def moved(U: Points, weights: Array, labels: Rows, centres: Points, counts: Array) -> tuple[Points, Array]:
    """Centres as the means of `counts` earlier points at them and of the new rows; and the new counts.

    A centre that has been given nothing stays where it is.
    """
    n, m = U.shape[0], centres.shape[0]
    membership = sp.csr_array((weights, labels, np.arange(n + 1)), shape=(n, m)).T.tocsr()
    given = np.bincount(labels, weights, minlength=m)
    total = counts + given
    kept = np.divide(counts, total, out=np.ones(m), where=total > 0)
    share = np.divide(1.0, total, out=np.zeros(m), where=total > 0)
    sums = membership @ U
    if sp.issparse(U):
        return sp.diags_array(kept) @ centres + sp.diags_array(share) @ sums, total
    return kept[:, None] * centres + share[:, None] * sums, total


def need_vectors(task: LandmarkTask, method: str) -> None:
    """Refuse points that have no mean."""
    if isinstance(task.X, list):
        raise InvalidInput(f"method={method!r} takes distances of vectors, and X holds objects; use method='uniform'")


def _sampled(task: LandmarkTask, rows: int | None) -> Rows:
    """The rows from which a start is taken."""
    usual = max(LEAST_ROWS, ROWS_PER_CENTRE * task.m)
    return task.sample(usual if rows is None else max(whole(rows, "rows", 1), task.m))


def _features(task: LandmarkTask, rows: Rows) -> tuple[Points, Array | None]:
    """Rows of X in float64 with the kernel's scale of each feature, and that scale (d,) or None."""
    points = take(task.X, rows).astype(np.float64, copy=False)
    profile = task.kernel.profile
    if profile is None or profile.scale is None:
        return points, None
    scale = np.asarray(profile.scale, dtype=np.float64)
    return scaled(points, scale), scale
