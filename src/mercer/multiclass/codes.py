"""Code matrices: which binary machines stand for k classes, and how good a set of them is.

A code is M (k, F) with entries +1, -1 and 0.  Machine a is trained on the points whose class has M_ca != 0, with that
entry as label (Rifkin 2002, section 4.2.2; Allwein, Schapire and Singer 2000):

    "ova"       F = k              one class against the rest
    "ava"       F = k (k - 1)/2    every class against every other; zeros elsewhere
    "complete"  F = 2^(k-1) - 1    every split of the classes, up to exchange of the two sides
    "dense"     F = 10 log2 k      random +-1, the best of 10,000 draws
    "sparse"    F = 15 log2 k      random, 0 with probability 1/2, the best of 10,000 draws
    "bch"       F = 63             words of a BCH code (`mercer.multiclass.bch`)

"Best" is the largest row distance

    rho = min over pairs of classes r, s of  sum_a (1 - M_ra M_sa)/2 ,

where a zero counts one half; a code without zeros corrects floor((rho - 1)/2) wrong machines.  Two columns that are
equal or opposite are one machine twice, so that their errors come together: they are avoided where so many different
columns exist.  Every column must have both signs: a random one that has not is drawn again at once, not the whole
matrix (Rifkin 2002, section 4.3).
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.errors import InvalidInput

Code = NDArray[np.int8]

NAMES = ("ova", "ava", "complete", "dense", "sparse", "bch")
MOST_COMPLETE = 20  # classes for which all 2^(k-1) - 1 columns are written down
DRAWS = 10_000
LISTED = 4  # times the columns of a code: where there are no more different ones, codes are drawn from the list of all
SCORED_AT_ONCE = 1 << 23  # entries of random codes and of their products held together


# The codes --------------------------------------------------------------------------------------------------------


def make_code(code: str | ArrayLike, classes: int, seed: Any = None) -> Code:
    """The code matrix (k, F) of a name, or a given matrix after `check`.

    `seed` decides the random codes.  Two classes have one split, whatever the name.
    """
    if not isinstance(code, str):
        return check(code, classes)
    if classes < 2:
        raise InvalidInput(f"a code needs at least two classes, got {classes}")
    if code not in NAMES:
        raise InvalidInput(f"code={code!r} is not one of {', '.join(NAMES)}, and not a matrix (classes, machines)")
    if code == "ova":
        return one_versus_all(classes)
    if code == "ava":
        return all_versus_all(classes)
    if code == "complete":
        return complete(classes)
    if code == "bch":
        from mercer.multiclass.bch import bch

        return bch(classes)
    return random_code(classes, sparse=code == "sparse", seed=seed)


def one_versus_all(classes: int) -> Code:
    """+1 on the diagonal, -1 elsewhere; (2, 1) for two classes, whose machines would be the same twice."""
    M = (2 * np.eye(classes, dtype=np.int8) - 1).astype(np.int8)
    return M[:, 1:] if classes == 2 else M


def all_versus_all(classes: int) -> Code:
    """Column (i, j), i < j in lexical order: +1 for class i, -1 for class j, 0 elsewhere."""
    if classes == 2:
        return one_versus_all(2)
    first, second = np.triu_indices(classes, 1)
    M = np.zeros((classes, len(first)), dtype=np.int8)
    M[first, np.arange(len(first))] = 1
    M[second, np.arange(len(first))] = -1
    return M


def complete(classes: int) -> Code:
    """Every split of the classes into two sides, once: the first class is +1, the others count in binary."""
    if classes == 2:
        return one_versus_all(2)
    if classes > MOST_COMPLETE:
        raise InvalidInput(
            f"code='complete' has 2^{classes - 1} - 1 machines for {classes} classes; it is offered up to "
            f"{MOST_COMPLETE} classes: use 'dense' or 'bch'"
        )
    number = np.arange(2 ** (classes - 1) - 1)
    bits = (number[None, :] >> np.arange(classes - 2, -1, -1)[:, None]) & 1
    return np.vstack([np.ones_like(number), 2 * bits - 1]).astype(np.int8)


def random_code(
    classes: int, columns: int | None = None, *, sparse: bool = False, draws: int = DRAWS, seed: Any = None
) -> Code:
    """The random code of largest row distance among `draws`: dense (+-1), or sparse (0 half of the time).

    Default lengths are ceil(10 log2 k) and ceil(15 log2 k), and never more than there are different columns.  No
    column is equal or opposite to another; no row of a sparse code is all zero, and no two classes are alike.
    """
    if classes == 2:
        return one_versus_all(2)
    different = _different(classes, sparse)
    usual = int(np.ceil((15 if sparse else 10) * np.log2(classes)))
    F = min(columns if columns is not None else usual, different)
    if F < 1 or (not sparse and classes > 2**F):
        raise InvalidInput(f"columns={columns} are too few to tell {classes} classes apart")
    if different == F:
        return complete(classes) if not sparse else _best(classes, F, True, 1, np.random.default_rng(seed))
    if isinstance(seed, int | np.integer):
        return _searched(classes, F, sparse, draws, int(seed)).copy()
    return _best(classes, F, sparse, draws, np.random.default_rng(seed))


@lru_cache(maxsize=64)
def _searched(classes: int, F: int, sparse: bool, draws: int, seed: int) -> Code:
    """The code of a seed, found once: folds and repeated fits ask for the same one."""
    return _best(classes, F, sparse, draws, np.random.default_rng(seed))


def _best(classes: int, F: int, sparse: bool, draws: int, random: np.random.Generator) -> Code:
    """The code of largest row distance among `draws`."""
    different = _different(classes, sparse)
    few = different if different <= LISTED * F else 0
    # Beyond some hundred classes all draws have nearly the same distance, and each costs k^2 F operations.
    draws = max(1, min(draws, int(2e10 / (classes**2 * F))))
    batch = max(1, min(draws, SCORED_AT_ONCE // (classes * (F + classes)), SCORED_AT_ONCE // max(1, few)))
    best: Code | None = None
    distance = -1.0
    for start in range(0, draws, batch):
        drawn = _draw(random, min(batch, draws - start), classes, F, sparse, few > 0)
        rho = row_distances(drawn)
        at = int(np.argmax(rho))
        if rho[at] > distance:
            best, distance = np.array(drawn[at]), float(rho[at])
    if best is None or distance <= 0:
        raise InvalidInput(f"no random code of {F} columns told {classes} classes apart: give more columns")
    return best


def _different(classes: int, sparse: bool) -> int:
    """How many columns there are with both signs, up to exchange of the two."""
    return int((3**classes - 2 ** (classes + 1) + 1) // 2 if sparse else 2 ** (classes - 1) - 1)


def _draw(random: np.random.Generator, count: int, k: int, F: int, sparse: bool, listed: bool) -> Code:
    """Random codes (count, k, F) whose columns have both signs and differ from one another up to sign."""
    codes = (_from_all if listed else _one_by_one)(random, count, k, F, sparse).transpose(0, 2, 1)
    if sparse:
        # A row of zeros belongs to no machine: it is F/2 from all others, yet nothing is trained on it.
        idle = np.flatnonzero(np.abs(codes).max(axis=2).min(axis=1) == 0)
        if len(idle):
            codes[idle] = _draw(random, len(idle), k, F, sparse, listed)
    return codes


def _one_by_one(random: np.random.Generator, count: int, k: int, F: int, sparse: bool) -> Code:
    """Columns (count, F, k) drawn independently; those that will not do are drawn again."""
    codes = _entries(random, (count, F, k), sparse)
    columns = codes.reshape(-1, k)
    bad, open_codes = np.flatnonzero(_one_sided(columns)), np.arange(count)
    while len(open_codes):
        while len(bad):
            columns[bad] = _entries(random, (len(bad), k), sparse)
            bad = bad[_one_sided(columns[bad])]
        which, where = np.nonzero(_repeated(codes[open_codes]))
        bad, open_codes = open_codes[which] * F + where, open_codes[np.unique(which)]
    return codes


def _from_all(random: np.random.Generator, count: int, k: int, F: int, sparse: bool) -> Code:
    """The same law where most columns there are will be taken: drawn without replacement from the list of all."""
    values = np.array([-1, 0, 1] if sparse else [-1, 1], dtype=np.int8)
    every = values[np.indices((len(values),) * k).reshape(k, -1).T]
    first = np.take_along_axis(every, (every != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    every = every[(first == 1) & ~_one_sided(every)]
    # The column of largest log-probability plus Gumbel noise, then the next: sampling without replacement.
    weight = np.log(np.where(every == 0, 0.5, 0.25)).sum(axis=1) if sparse else np.zeros(len(every))
    keys = weight + random.gumbel(size=(count, len(every)))
    chosen = np.argpartition(-keys, F - 1, axis=1)[:, :F]
    signs = random.choice(np.array([-1, 1], dtype=np.int8), size=(count, F, 1))
    return np.asarray(every[chosen] * signs)


def _entries(random: np.random.Generator, shape: tuple[int, ...], sparse: bool) -> Code:
    """Random entries: 1 and -1 alike for 0 and 1, or 0, 0, 1, -1 for 0 to 3."""
    drawn = random.integers(0, 4 if sparse else 2, size=shape, dtype=np.int8)
    used = drawn >> 1 if sparse else np.int8(1)
    return np.asarray(used - 2 * (used & drawn))


def _one_sided(columns: Code) -> NDArray[np.bool_]:
    """Whether a column (..., k) lacks +1 or -1."""
    lacking = np.empty(columns.shape[:-1], dtype=np.bool_)
    _mark_one_sided(np.ascontiguousarray(columns).reshape(-1, columns.shape[-1]), lacking.reshape(-1))
    return lacking


def _repeated(codes: Code) -> NDArray[np.bool_]:
    """Which columns of codes (count, F, k) repeat an earlier one of the same code, up to sign: (count, F)."""
    # Columns by a hash, opposite for opposite ones: equal ones always meet, and should two others meet, one of them is
    # drawn again for nothing.
    weights = np.random.default_rng(0).integers(1, 2**61, size=codes.shape[-1])
    repeated = np.zeros(codes.shape[:-1], dtype=np.bool_)
    threads.run(_mark_repeated, [(codes[a:b], weights, repeated[a:b]) for a, b in threads.split(len(codes))])
    return repeated


def row_distances(codes: ArrayLike) -> NDArray[np.float64]:
    """The row distance rho of codes (..., k, F): (...,)."""
    M = np.asarray(codes, dtype=np.int8)
    k, F = M.shape[-2:]
    rows, largest = np.ascontiguousarray(M).reshape(-1, k, F), np.empty(M.shape[:-2], dtype=np.int64)
    parts = [(rows[a:b], largest.reshape(-1)[a:b]) for a, b in threads.split(len(rows))]
    threads.run(_largest_products, parts)
    return np.asarray((F - largest) / 2.0)


@loop
def _mark_one_sided(columns: Any, lacking: Any) -> None:
    for a in range(len(columns)):
        most = least = 0
        for entry in columns[a]:
            most = max(most, entry)
            least = min(least, entry)
        lacking[a] = most < 1 or least > -1


@loop
def _mark_repeated(codes: Any, weights: Any, repeated: Any) -> None:
    count, F, k = codes.shape
    words = np.empty(F, dtype=np.int64)
    for c in range(count):
        for a in range(F):
            word = np.int64(0)
            for r in range(k):
                word += codes[c, a, r] * weights[r]
            words[a] = abs(word)
            for b in range(a):
                if words[b] == words[a]:
                    repeated[c, a] = True


@loop
def _largest_products(codes: Any, largest: Any) -> None:
    """The largest inner product of two different rows of codes (count, k, F)."""
    count, k, F = codes.shape
    for c in range(count):
        best = -F
        for r in range(k):
            for s in range(r):
                product = 0
                for a in range(F):
                    product += codes[c, r, a] * codes[c, s, a]
                best = max(best, product)
        largest[c] = best


# Checks and audits ------------------------------------------------------------------------------------------------


def check(matrix: ArrayLike, classes: int | None = None) -> Code:
    """A given code as (k, F) of small integers, or InvalidInput that says what is wrong with it and where."""
    given = np.asarray(matrix)
    if given.ndim != 2 or given.shape[1] == 0:
        raise InvalidInput(f"the code must be a matrix (classes, machines), got shape {given.shape}")
    if given.dtype.kind not in "iufb" or not np.isin(given, (-1, 0, 1)).all():
        raise InvalidInput("the code may hold +1, -1 and 0 only (0: the class takes no part in that machine)")
    if given.shape[0] < 2:
        raise InvalidInput("the code has one row; it needs a row for each of at least two classes")
    if classes is not None and given.shape[0] != classes:
        raise InvalidInput(f"the code has {given.shape[0]} rows for {classes} classes: give one row for each class")
    M = given.astype(np.int8)
    lacking = np.flatnonzero(_one_sided(M.T))
    if lacking.size:
        column = int(lacking[0])
        sign = "+1" if M[:, column].max() < 1 else "-1"
        raise InvalidInput(f"column {column} of the code has no {sign}: every machine needs both sides")
    rows, first = np.unique(M, axis=0, return_index=True)
    if len(rows) < len(M):
        second = min(set(range(len(M))) - set(first.tolist()))
        twin = int(np.flatnonzero((M[second] == M).all(axis=1))[0])
        raise InvalidInput(f"rows {twin} and {second} of the code are equal: no decoder can tell these classes apart")
    idle = np.flatnonzero(~M.any(axis=1))
    if idle.size:
        raise InvalidInput(f"row {int(idle[0])} of the code is all zero: no machine would see that class")
    return M


@dataclass(frozen=True)
class Audit:
    """What a code is worth before any machine is trained.

    distance: rho; corrects: wrong machines that Hamming decoding always mends (codes without zeros); zeros: share of
    zero entries; one_sided: columns without both signs; equal, opposite: pairs of columns that are one machine twice;
    unseparated: pairs of classes that no machine has on different sides; symmetric: whether, with a column, all its
    permutations over the classes are there too, up to sign; widest: the largest number of columns in which two
    classes differ.
    """

    classes: int
    machines: int
    distance: float
    corrects: int
    zeros: float
    one_sided: int
    equal: int
    opposite: int
    unseparated: int
    symmetric: bool
    widest: int

    @property
    def clean(self) -> bool:
        """No column one-sided, equal or opposite to another."""
        return self.one_sided == self.equal == self.opposite == 0


def audit(matrix: ArrayLike) -> Audit:
    """Look a code (k, F) over; it need not be valid."""
    M = np.asarray(matrix, dtype=np.int8)
    k, F = M.shape
    differ = np.zeros((k, k))
    for start in range(0, F, SCORED_AT_ONCE // k + 1):
        wide = M[:, start : start + SCORED_AT_ONCE // k + 1].astype(np.float64)
        differ += (np.abs(wide) @ np.abs(wide).T - wide @ wide.T) / 2.0
    differ = differ[np.triu_indices(k, 1)]
    words = Counter(_words(M))
    opposite = sum(count * words.get(word, 0) for word, count in Counter(_words(-M)).items())
    distance = float(row_distances(M)) if k > 1 else 0.0
    return Audit(
        classes=k,
        machines=F,
        distance=distance,
        corrects=max(0, int((distance - 1) // 2)) if M.all() else 0,
        zeros=float(np.mean(M == 0)),
        one_sided=int(_one_sided(M.T).sum()),
        equal=int(sum(count * (count - 1) // 2 for count in words.values())),
        opposite=(opposite - words.get(bytes(k), 0)) // 2,
        unseparated=int(np.sum(differ == 0)),
        symmetric=class_symmetric(M),
        widest=int(differ.max(initial=0)),
    )


def class_symmetric(matrix: ArrayLike) -> bool:
    """Whether the code is closed under permutation of the classes, up to the sign of columns.

    That is, with one column of p entries +1 and m entries -1 it has all k!/(p! m! (k - p - m)!) of them, equally often.
    A zero-free symmetric code of least-squares machines decides like one-versus-all (Rifkin 2002, section 4.4).
    """
    M = np.asarray(matrix, dtype=np.int8)
    k, F = M.shape
    leading = np.take_along_axis(M, (M != 0).argmax(axis=0)[None, :], axis=0)
    M = M * leading
    kinds: dict[tuple[int, int], list[int]] = {}
    for column, sizes in enumerate(zip((M > 0).sum(axis=0).tolist(), (M < 0).sum(axis=0).tolist())):
        kinds.setdefault((min(sizes), max(sizes)), []).append(column)
    for (fewer, more), columns in kinds.items():
        arrangements = comb(k, fewer) * comb(k - fewer, more) // (2 if fewer == more > 0 else 1)
        counts = Counter(_words(M[:, columns])) if arrangements <= F else Counter()
        if len(counts) != arrangements or len(set(counts.values())) != 1:
            return False
    return True


def _words(M: Code) -> list[bytes]:
    """Every column as bytes, for looking up."""
    return [column.tobytes() for column in np.ascontiguousarray(M.T)]
