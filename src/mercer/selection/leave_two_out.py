"""Exact leave-two-out of least-squares machines, and with it the honest error of a machine whose parameters are chosen.

Let G be the leading block of the inverse of the (bordered) system matrix of `mercer.solvers.linear.bordered` and a the
scaled coefficients.  A machine trained without the points of a set S misses their scaled targets by e_S with
G_SS e_S = a_S: giving those points the targets they are predicted makes their coefficients zero.  For a pair this is

    e_j^(-ij) = (G_ii a_j - G_ij a_i) / (G_ii G_jj - G_ij^2),

and all pairs cost O(n^2 k) after one inverse.  At a point u without weight f^(-i)(x_u) = f(x_u) - h_ui e_i, where h_ui
is how far the scaled target of i moves the output at u.

The leave-one-out error of the best of several parameters is too good: the held-out points helped to choose.  Nested
leave-one-out lets each point i be predicted by the machine whose parameters have the least leave-one-out error *among
the other n - 1 points*, which needs every pair and no training at all.  Its error minus the plain one at its minimum is
the optimism of the choice (Cawley and Talbot 2010 show how large that can be).
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense, threads
from mercer.compiled import loop
from mercer.errors import Infeasible, InvalidInput
from mercer.resources import row_blocks
from mercer.selection.leave_one_out import LeaveOneOut, error_rate, summarise
from mercer.solvers.linear.bordered import Array, Bordered, border_share, bordered, check_ridge, cholesky, eliminate

Index = NDArray[np.intp]
Criterion = Literal["loo", "error"] | Callable[[Array], Array]

BLOCK = 1 << 19  # predictions of pairs held at once by a thread: they stay in its cache
ROUNDING = 1e-12  # errors that differ by less, relatively, are equal


@dataclass(frozen=True)
class LeaveTwoOut:
    """What every pair of points left out needs.

    once: leave-one-out of the same machine; inverse G (m, m), coefficients a (m, k) and scale (m,) over the m points of
    positive weight, all scaled; place (n,): the number of each point among those, or -1 - its number among the others;
    reach h (n - m, m).
    """

    once: LeaveOneOut
    inverse: Array
    coefficients: Array
    scale: Array
    place: Index
    reach: Array

    def predictions(self, start: int, stop: int) -> Array:
        """f^(-ij)(x_j) at [i - start, j] (stop - start, n, k), and f^(-i)(x_i) where j = i."""
        once = self.once
        found = np.empty((stop - start, *once.targets.shape))
        sound = fill_pairs(
            self.inverse, self.coefficients, self.scale, self.place, self.reach,
            once.targets, once.predictions, start, found,
        )  # fmt: skip
        if not sound:
            raise Infeasible(
                "without some pair of points the functions outside the penalty are linearly dependent: leave out those "
                "that are nonzero at two points only."
            )
        return found


@loop
def fill_pairs(
    G: Array, a: Array, scale: Array, place: Index, reach: Array, y: Array, once: Array, start: int, out: Array
) -> bool:
    """Write the predictions of `LeaveTwoOut` for the first points start, start + 1, ... to out (r, n, k)."""
    rows, n, k = out.shape
    sound = True
    for row in range(rows):
        p = place[start + row]
        for j in range(n):
            t = place[j]
            if p < 0 or t == p:
                for c in range(k):
                    out[row, j, c] = once[j, c]
            elif t < 0:
                through = reach[-1 - t, p] / G[p, p]
                for c in range(k):
                    out[row, j, c] = once[j, c] - through * a[p, c]
            else:
                determinant = G[p, p] * G[t, t] - G[p, t] * G[p, t]
                sound = sound and determinant > 1e-14 * G[p, p] * G[t, t]
                own, cross = G[p, p] / (determinant * scale[t]), G[p, t] / (determinant * scale[t])
                for c in range(k):
                    out[row, j, c] = y[j, c] - (own * a[t, c] - cross * a[p, c])
    return sound


def leave_two_out(
    K: ArrayLike,
    Y: ArrayLike,
    ridge: float,
    *,
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
    projected: bool = False,
    overwrite: bool = False,
) -> LeaveTwoOut:
    """Leave-two-out of the machine with kernel matrix K (n, n), targets Y (n,) or (n, k) and ridge r = 1/C.

    The arguments are those of `leave_one_out`.  Costs n^3 operations and two matrices of memory; the pairs themselves
    are computed when they are asked for.
    """
    check_ridge(ridge)
    system = bordered(K, Y, weights=weights, border=border, constant=constant, projected=projected, overwrite=overwrite)
    m, q = system.border.shape
    if m < q + 2:
        raise InvalidInput(
            f"leave-two-out needs two points of positive weight more than functions outside the penalty: {m} and {q}."
        )
    factor = cholesky(system.matrix, ridge)
    dense.invert_factored(factor)
    inverse = factor.T  # symmetric, and now in C order
    solved = inverse @ system.columns
    once = summarise(system, ridge, solved, np.diagonal(inverse).copy())
    U = border_share(solved[:, :q], system.border)
    a, _ = eliminate(solved, system.border)
    inverse -= U @ U.T
    place = np.empty(len(once.targets), dtype=np.intp)
    place[system.used], place[system.unused] = np.arange(m), -1 - np.arange(len(system.unused))
    return LeaveTwoOut(once, inverse, np.ascontiguousarray(a), system.scale, place, _reach(system, inverse, solved))


def _reach(system: Bordered, G: Array, solved: Array) -> Array:
    """Reach h (n - m, m): how far the scaled target of each used point moves the output at each unused one."""
    if not system.unused.size:
        return np.empty((0, len(G)))
    reach = (system.across * system.scale) @ G
    q = system.border.shape[1]
    if q:
        border = dense.solve_square(system.border.T @ solved[:, :q], solved[:, :q].T)
        if system.moved is not None:
            border -= system.moved @ G
        reach += system.outside @ border
    return np.asarray(reach)


@dataclass(frozen=True)
class NestedLeaveOneOut:
    """Each point predicted by the candidate that the other points chose.

    candidates: their names, v of them; choice (n,): the number of the one chosen without each point; predictions
    (n, k): f^(-i)(x_i) of that choice; losses (n,): the criterion at them; plain (v,): the criterion of each candidate
    by plain leave-one-out; targets (n, k); weights (n,).
    """

    candidates: tuple[Hashable, ...]
    choice: Index
    predictions: Array
    losses: Array
    plain: Array
    targets: Array
    weights: Array

    @property
    def value(self) -> float:
        """The criterion, nested: an honest estimate for the machine with its choice."""
        return float(self.weights @ self.losses / np.sum(self.weights))

    @property
    def best(self) -> int:
        """Number of the candidate of least plain leave-one-out: the choice of all points together."""
        return first_least(self.plain)

    @property
    def optimism(self) -> float:
        """By how much the least plain leave-one-out is below the nested one."""
        return self.value - float(self.plain[self.best])

    @property
    def counts(self) -> dict[Hashable, int]:
        """How many points each candidate was chosen for, those of none left out."""
        numbers, counts = np.unique(self.choice, return_counts=True)
        return {self.candidates[number]: int(count) for number, count in zip(numbers, counts, strict=True)}

    @property
    def mean_squared_error(self) -> float:
        """Weighted mean of the squared honest residual, summed over outputs, whatever the criterion was."""
        return float(self.weights @ np.sum((self.targets - self.predictions) ** 2, axis=1) / np.sum(self.weights))

    def error_rate(self) -> float:
        """Weighted fraction of points whose class is missed, for targets of +-1 (one column, or one per class)."""
        return error_rate(self.predictions, self.targets, self.weights)


def nested_leave_one_out(
    matrices: Iterable[ArrayLike],
    Y: ArrayLike,
    C: ArrayLike,
    *,
    criterion: Criterion = "loo",
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
    projected: bool = False,
) -> NestedLeaveOneOut:
    """Nested leave-one-out over kernel matrices (n, n) and values of C; the candidates are named (kernel number, C).

    `matrices` may be a generator, so that one is held at a time.  criterion "loo" chooses by the mean squared residual,
    "error" by misclassification (the sign of one column of +-1, the largest of several columns), and a callable takes
    predictions (..., n, k) to losses (..., n): a decoder, or a loss of one's own.  Among equals the earlier kernel and
    then the smaller C win: name smooth kernels first.  The other arguments are those of `leave_one_out`.
    """
    values = np.unique(np.asarray(C, dtype=np.float64))
    if values.size == 0 or not np.all(np.isfinite(values)) or values[0] <= 0:
        raise InvalidInput("C must be positive finite numbers, at least one.")
    w = None if weights is None else np.asarray(weights, dtype=np.float64)

    def one(K: ArrayLike, value: float) -> list[LeaveTwoOut]:
        found = leave_two_out(K, Y, 1.0 / value, weights=w, border=border, constant=constant, projected=projected)
        return [found]

    named = (((number, float(C)), one(K, float(C))) for number, K in enumerate(matrices) for C in values)
    return nested(named, criterion, weights=w)


def nested(
    candidates: Iterable[tuple[Hashable, Sequence[LeaveTwoOut]]],
    criterion: Criterion = "loo",
    *,
    weights: Array | None = None,
) -> NestedLeaveOneOut:
    """Nested leave-one-out over named candidates, of which one is held at a time; the first of equals wins.

    A candidate is one machine or several whose columns stand side by side: those of a code each have their own points,
    the others being of weight zero.  weights (n,) say how much each point counts in the criterion.
    """
    names: list[Hashable] = []
    plain: list[float] = []
    for number, (name, parts) in enumerate(candidates):
        once = np.concatenate([part.once.predictions for part in parts], axis=1)
        if number == 0:
            targets = np.concatenate([part.once.targets for part in parts], axis=1)
            loss_of = losses_of(criterion, targets)
            w = np.ones(len(targets)) if weights is None else weights
            choice, least = np.zeros(len(w), dtype=np.intp), np.full(len(w), np.inf)
            predictions, losses = np.empty_like(once), np.empty(len(w))
        own, inner = loss_of(once), _inner(parts, loss_of, w)
        better = (inner < least * (1.0 - ROUNDING)) if number else np.ones(len(w), dtype=bool)
        choice[better], least[better] = number, inner[better]
        predictions[better], losses[better] = once[better], own[better]
        names.append(name)
        plain.append(float(w @ own / np.sum(w)))
    if not names:
        raise InvalidInput("there must be at least one candidate.")
    return NestedLeaveOneOut(tuple(names), choice, predictions, losses, np.array(plain), targets, w)


def first_least(values: Array) -> int:
    """Number of the first of the least values, up to rounding."""
    return int(np.flatnonzero(values <= np.min(values) * (1.0 + ROUNDING))[0])


def _inner(parts: Sequence[LeaveTwoOut], loss_of: Callable[[Array], Array], w: Array) -> Array:
    """The criterion (n,) among the other points, when each is left out."""
    n, columns = len(w), sum(part.coefficients.shape[1] for part in parts)

    def rows(start: int, stop: int) -> Array:
        found = [part.predictions(start, stop) for part in parts]
        losses = loss_of(found[0] if len(found) == 1 else np.concatenate(found, axis=2))
        losses[np.arange(stop - start), np.arange(start, stop)] = 0.0
        return np.asarray(losses @ w / (np.sum(w) - w[start:stop]))

    return np.concatenate(threads.run(rows, [(part.start, part.stop) for part in row_blocks(n, n * columns, BLOCK)]))


def losses_of(criterion: Criterion, targets: Array) -> Callable[[Array], Array]:
    """The criterion as a function of predictions (..., n, k) with values (..., n)."""
    if callable(criterion):
        given = criterion
        return lambda predictions: np.array(given(predictions), dtype=np.float64)
    if criterion == "loo":
        return lambda predictions: np.asarray(np.sum((predictions - targets) ** 2, axis=-1))
    if criterion != "error":
        raise InvalidInput(f"criterion must be 'loo', 'error' or a callable; it is {criterion!r}.")
    if targets.shape[1] > 1:
        shape, truth = targets.shape, np.argmax(targets, axis=1)
        return lambda predictions: misses(predictions.reshape(-1, *shape), truth).reshape(predictions.shape[:-1])
    if not np.all(np.abs(targets) == 1.0):
        raise InvalidInput("criterion='error' needs targets of +-1; for a regression take criterion='loo'.")
    return lambda predictions: np.asarray(((predictions > 0) != (targets > 0))[..., 0], dtype=np.float64)


@loop
def misses(predictions: Array, truth: Index) -> Array:
    """1 where the first largest of the columns is not the true one, else 0: (r, n) from (r, n, k)."""
    rows, n, k = predictions.shape
    found = np.zeros((rows, n))
    for row in range(rows):
        for j in range(n):
            best = 0
            for c in range(1, k):
                if predictions[row, j, c] > predictions[row, j, best]:
                    best = c
            if best != truth[j]:
                found[row, j] = 1.0
    return found
