"""All machines of a code with zeros at once: conjugate gradients on one kernel matrix.

Machine a is trained on the points S of its classes, M_ca != 0.  With A = K + 1/C it solves

    A_SS c + b 1 = y_S,    1'c = 0

(no b and no second equation without a bias), that is A with the rows and columns outside S struck out.  A sparse code
has nearly as many different S as columns, each about half of the points, and factorising each costs several times the
one factorisation of one-versus-all.  Products do not: with the points in the order of their classes one pass over K
serves all machines, a class being multiplied with the machines that use it.

What makes the passes few is a preconditioner that is struck out as easily.  Let L L' be the Nystrom approximation of K
by m landmarks and A_c the diagonal block of class c.  Then

    P = blockdiag(B_c) + L L',    B_c = A_c - L_c L_c',

agrees with A inside every class and lacks, between classes, only what the landmarks leave unexplained.  For any set of
classes (Woodbury)

    P_S^-1 = blockdiag(B_c^-1) - U_S H_S^-1 U_S',    U_c = B_c^-1 L_c,    H_S = 1 + sum over c in S of L_c' U_c,

so one inverse for each class and a small matrix for each set are all that is factorised.  Landmarks are drawn where
kernel values reach into other classes.  Iterations run in float32.  The certificate is that of the float64 matrix: for
1'c = 0 the duality gap is C/2 sum r_i^2 with r the residual (`mercer.problems.least_squares`); where it is too large,
the iterations start again on r.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense, threads
from mercer.arrays import Array, Index
from mercer.solvers.linear.class_panels import Panels
from mercer.solvers.linear.conjugate_directions import ConjugateDirections, over_rows

Single = NDArray[np.float32]
Code = NDArray[np.int8]  # (k, F): -1, 0 or 1 for every class and machine

LEAST_TOL = 1e-6  # relative gap: what one run in float32 reaches, and machines that decide alike
LANDMARKS = 256
MOST_STEPS = 40  # of one run; where they do not suffice, factorising costs no more
MOST_RUNS = 3
STEPS_EXPECTED = 25
SAMPLED = 256  # points among which kernel values between classes are looked at


class Stalled(Exception):
    """The iterations do not converge in the time that factorising would take."""


class Layout:
    """Points in the order of their classes: `classes`[c] is the stretch of class c, `users`[c] the machines using it.

    `sets` are the machines (columns of the code) by the set of classes they use, `borders` (k + 1,) where classes
    begin.
    """

    def __init__(self, labels: Index, code: Code) -> None:
        self.code = code
        self.borders: Index = np.searchsorted(labels, np.arange(len(code) + 1)).astype(np.intp)
        self.classes = [slice(a, b) for a, b in pairwise(self.borders.tolist())]
        self.users = [np.flatnonzero(entries) for entries in code]
        self.sets = list(class_sets(code).items())


def class_sets(code: Code) -> dict[tuple[int, ...], list[int]]:
    """The columns of a code by the set of classes they use."""
    sets: dict[tuple[int, ...], list[int]] = {}
    for column, entries in enumerate(code.T):
        sets.setdefault(tuple(np.flatnonzero(entries).tolist()), []).append(column)
    return sets


@dataclass(frozen=True)
class Machines:
    """Coefficients (n, F), biases (F,), relative duality gaps (F,) and the number of passes over the kernel matrix."""

    coefficients: Array
    biases: Array
    gaps: Array
    steps: int


def worthwhile(layout: Layout) -> bool:
    """Whether the passes cost less than factorising every set: operations of both, float32 being twice as fast."""
    sizes, F = np.diff(layout.borders).astype(np.float64), layout.code.shape[1]
    n, m = float(sizes.sum()), min(float(LANDMARKS), float(sizes.sum()))
    direct = sum(float(sizes[list(classes)].sum()) ** 3 / 3.0 for classes, _ in layout.sets)
    prepared = float((sizes**3).sum()) + 3.0 * n * m * m + len(layout.sets) * m**3
    products = STEPS_EXPECTED * 2.0 * F * (n * n + 2.0 * n * m)
    return n > 4 * LANDMARKS and bool(sizes.all()) and 0.5 * (prepared + products) < direct


def solve(
    K: NDArray[Any], layout: Layout, Y: Array, C: float, *, roots: Array | None, bias: str, tol: float, seed: int = 0
) -> Machines:
    """Machines with targets Y (n, F), zero where a machine does not use the point, to a relative gap of `tol`.

    K (n, n) in the order of the classes; `roots` (n,) square roots of the weights, all positive.  Raises `Stalled`
    where factorising is the better method.
    """
    constant = 1.0 if bias == "penalised" else 0.0
    scale = np.ones(len(K)) if roots is None else roots
    single = None if roots is None else roots.astype(np.float32)
    A = Panels.pack(K, layout.borders, layout.code, constant, scale.astype(np.float32))
    used = np.ascontiguousarray((Y != 0).T * scale)  # (F, n): the border of every machine, and its points
    targets = np.ascontiguousarray((Y * scale[:, None]).T)
    inverse = Preconditioner(_Part(K, constant, single), 1.0 / C, layout, np.random.default_rng(seed))
    system = _System(A, np.float32(1.0 / C), inverse, used.astype(np.float32), bias == "free")

    a, residual, gaps, steps = np.zeros_like(targets), targets, np.full(len(targets), np.inf), 0
    for _ in range(MOST_RUNS):
        wanted = float(np.sqrt(0.1 * tol / min(1.0, gaps.max())))  # of the norm of the residual in P^-1
        step, count = system.iterate(residual.astype(np.float32), wanted)
        steps += count
        a += step
        if bias == "free":
            a -= used * (over_rows(used, a) / over_rows(used, used))
        c = np.ascontiguousarray((a * scale).T)
        f = _product(K, c) + constant * c.sum(axis=0)
        residual, b, gaps = _certificate(a, (f * scale[:, None]).T, targets, used, C, bias == "free")
        if np.all(gaps <= tol):
            return Machines(c, c.sum(axis=0) if constant else b, gaps, steps)
    raise Stalled


def _certificate(a: Array, f: Array, targets: Array, used: Array, C: float, free: bool) -> tuple[Array, Array, Array]:
    """Residuals (F, n), the biases that make the gaps smallest, and the relative gaps (F,), all rows scaled alike."""
    errors = np.where(used != 0, targets - f, 0.0)
    b = over_rows(used, errors) / over_rows(used, used) if free else np.zeros((len(a), 1))
    errors -= b * used
    residual = errors - a / C
    gap = 0.5 * C * over_rows(residual, residual)
    primal = 0.5 * C * over_rows(errors, errors) + 0.5 * over_rows(a, f)
    return residual, b[:, 0], (gap / np.maximum(primal - 0.5 * gap, np.finfo(np.float64).tiny))[:, 0]


@dataclass(frozen=True)
class _Part:
    """Parts of scale_i (K_ij + constant) scale_j in float32; no scale is a scale of one."""

    K: NDArray[Any]
    constant: float
    scale: Single | None

    def __call__(self, rows: Any, columns: Any = slice(None)) -> Single:
        part = np.asarray(self.K[rows, columns], dtype=np.float32)
        if self.constant:
            part = part + np.float32(self.constant)
        if self.scale is not None:
            part = self.scale[rows, None] * part * self.scale[columns]
        return part


class Preconditioner:
    """P_S^-1 of all machines, applied to (F, n) values of float32."""

    def __init__(self, A: _Part, ridge: float, layout: Layout, random: np.random.Generator) -> None:
        n, self.layout = len(A.K), layout
        m = min(LANDMARKS, n)
        where = np.sort(random.choice(n, m, replace=False, p=_reach(A, layout, random)))
        rows = A(where)
        core = np.ascontiguousarray(rows[:, where], dtype=np.float64)
        core.ravel()[:: m + 1] += 1e-2 * ridge  # keeps B_c safely positive
        if not dense.factorise(core):
            raise Stalled

        def block(own: slice) -> tuple[Single, Single, Single]:
            turned = rows[:, own].T.astype(np.float64, order="C")
            dense.solve_triangular_rows(core, turned)
            L: Single = turned.T.astype(np.float32, order="C")
            inverse = _inverse(A(own, own) - L.T @ L, ridge)
            U: Single = np.asarray(L @ inverse)
            return inverse, U, np.asarray(U @ L.T)

        def small(classes: tuple[int, ...], machines: list[int]) -> Single:
            H = grams[classes[0]].copy()
            for c in classes[1:]:
                H += grams[c]
            return _inverse(H, 1.0)

        blocks = threads.run(block, [(own,) for own in layout.classes])
        self.inverses, self.across = [b[0] for b in blocks], [b[1] for b in blocks]
        grams = [b[2] for b in blocks]
        self.small = threads.run(small, layout.sets)

    def __call__(self, v: Single) -> Single:
        """P_S^-1 v for each machine's own S; v (F, n) is zero outside."""
        z = np.zeros_like(v)
        s = np.zeros((len(v), len(self.across[0])), dtype=np.float32)
        parts = list(zip(self.layout.users, self.layout.classes, self.inverses, self.across, strict=True))
        for users, own, inverse, U in parts:
            here = v[users, own]
            z[users, own] = here @ inverse
            s[users] += here @ U.T
        for (_, machines), H in zip(self.layout.sets, self.small, strict=True):
            s[machines] = s[machines] @ H
        for users, own, _, U in parts:
            z[users, own] -= s[users] @ U
        return z


@dataclass(frozen=True)
class _System:
    """(A + ridge)_S for all machines, and conjugate gradients on it within 1'c = 0 (`used` is that border)."""

    A: Panels
    ridge: np.float32
    inverse: Preconditioner
    used: Single
    free: bool

    def iterate(self, residual: Single, wanted: float) -> tuple[Single, int]:
        """Reduce each machine's residual to `wanted` of its norm in P^-1; returns the step (F, n) and the passes.

        What lies along the border is taken out of the residual as well as of the direction: left there, it would not
        vanish, and rounding would carry it into the iterates (Gould, Hribar and Nocedal 2001).
        """
        border = self.inverse(self.used) if self.free else None
        size = over_rows(self.used, border) if border is not None else None

        def projected(r: Single) -> Single:
            z = self.inverse(r)
            if border is not None and size is not None:
                share = over_rows(self.used, z) / size
                r -= share * self.used
                z -= share * border
            return z

        x, q = np.zeros_like(residual), np.empty_like(residual)

        def product(p: Single) -> Single:
            self.A.product(p, self.ridge, q)
            return q

        search = ConjugateDirections(product, residual.copy(), x, projected, over_rows)
        goal = np.float32(wanted**2) * search.energy
        for count in range(1, MOST_STEPS + 1):
            search.step()
            if np.all(search.energy <= goal):
                return x, count
        raise Stalled


def _product(K: NDArray[Any], c: Array) -> Array:
    """K c, rows shared out among the threads."""
    f = np.empty_like(c)

    def rows(first: int, last: int) -> None:
        np.matmul(K[first:last], c, out=f[first:last])

    threads.run(rows, threads.split(len(K)))
    return f


def _reach(A: _Part, layout: Layout, random: np.random.Generator) -> Array:
    """Probabilities (n,) of becoming a landmark: the root of the squared kernel values with points of other classes."""
    n = len(A.K)
    sample = np.sort(random.choice(n, min(SAMPLED, n), replace=False))
    squares = A(sample) ** 2
    for own in layout.classes:
        squares[(sample >= own.start) & (sample < own.stop), own] = 0.0
    reach = np.sqrt(squares.sum(axis=0, dtype=np.float64))
    reach += 1e-3 * reach.mean() + np.finfo(np.float64).tiny
    return np.asarray(reach / reach.sum())


def _inverse(B: Single, ridge: float) -> Single:
    """(B + ridge)^-1, written over B."""
    B.ravel()[:: len(B) + 1] += np.float32(ridge)
    if not dense.invert(B):
        raise Stalled
    return B
