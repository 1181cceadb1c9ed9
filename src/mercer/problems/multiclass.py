"""Machines that learn all k classes in one problem: Weston-Watkins, Crammer-Singer, Lee-Lin-Wahba.

Each is a loss of the k outputs f(x) = (f_1(x), ..., f_k(x)), with mercer's scaling of the sum:

    P = 1/2 sum_m ||f_m||^2 + sum_i C_i loss(y_i, f(x_i) + b)

    Weston-Watkins   loss = sum_{j != y} (margin - f_y + f_j)_+           margin 2 unless told otherwise
    Crammer-Singer   loss = max_{j != y} (margin - f_y + f_j)_+           margin 1
    Lee-Lin-Wahba    loss = sum_{j != y} (1/(k - 1) + f_j)_+, sum_j f_j = 0

The duals are written in variables a (n, k), and the expansion f_m = sum_i c_im k(x_i, .) + b_m:

    Weston-Watkins   c_ij = -a_ij, c_iy = sum_{j != y} a_ij;   0 <= a_ij <= C_i, a_iy = 0
    Crammer-Singer   the same c;                               0 <= a_ir, sum_r a_ir = C_i with the own class r = y
    Lee-Lin-Wahba    c_ij = mean_m(a_im) - a_ij;               0 <= a_ij <= C_i, a_iy = 0

    D = margin sum_i sum_{j != y} a_ij - 1/2 sum_m c_m'K c_m            Lee-Lin-Wahba: margin = 1/(k - 1)

so that sum_m c_im = 0: the outputs sum to zero everywhere.  A free bias adds sum_i c_im = 0 for every m, a penalised
one (1/2 b^2 joins the norm) puts K + 1 in place of K.  The gap P - D is a sum over points of non-negative terms:

    Crammer-Singer   sum_r a_r (max G - G_r),   G_r = f_r - margin [r = y]
    the others       sum_j (C_i - a_j) (d_j)_+ + a_j (-d_j)_+,   d_j the argument of the loss.

Two classes give the binary machine of f_1 - f_2: Weston-Watkins with the same C and (f_1 - f_2)/2, Crammer-Singer with
2 C and f_1 - f_2, Lee-Lin-Wahba with C/2 and (f_1 - f_2)/2.

Other scalings (Rifkin 2002, section 4.2.1, has no 1/2 before the norm; Fukumizu's slides have beta/2 ||W||^2 + sum xi)
are taken by the `from_` constructors.  The dual printed in Rifkin's (4.8) counts the product A_i A_j k times and mixes
two scalings; the sign of Lee, Lin and Wahba's target is lost there; (4.33) sums each slack k times.  The forms above
are the corrected ones.
"""

from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mercer.arrays import Array, Index
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.problems.program import GramLike
from mercer.problems.statement import Bias, checked_bias, checked_size, positive, weighted

Pairs = Literal["ordered", "unordered"]

WESTON_WATKINS, CRAMMER_SINGER, LEE_LIN_WAHBA = 0, 1, 2


class ClassProblem:
    """Base of the machines whose loss takes all k outputs of a point.

    `gram` is square over n points; `y` (n,) holds the classes as numbers 0..k-1, each of which must occur unless `k`
    is given; `weights` (n,) multiply C.
    """

    name: ClassVar[str] = "multiclass"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "none",
        *,
        k: int | None = None,
    ) -> None:
        n = checked_size(gram)
        self.gram = gram
        self.C = positive("C", C)
        self.y, self.k = class_numbers(y, n, k)
        self.box: Array = weighted(self.C, weights, n)
        self.bias: Bias = checked_bias(bias)
        self.constant = 1.0 if bias == "penalised" else 0.0

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.y.size)

    def losses(self, f: Array) -> Array:
        """Loss (n,) of each point at outputs f (n, k) that include the bias."""
        raise NotImplementedError

    def values(self, c: Array, f0: Array | None = None) -> Array:
        """(K + constant) c (n, k); `f0` is K c where it is known already."""
        f: Array = np.asarray(self.gram.dot(c), dtype=np.float64) if f0 is None else f0
        return f + self.constant * c.sum(axis=0) if self.constant else f

    def primal(self, c: ArrayLike, bias: ArrayLike | None = None, f0: Array | None = None) -> float:
        """Objective at coefficients (n, k) and a free bias (k,)."""
        c = np.asarray(c, dtype=np.float64)
        f = self.values(c, f0)
        b = np.zeros(self.k) if bias is None or self.bias != "free" else np.asarray(bias, dtype=np.float64)
        return 0.5 * float(np.vdot(c, f)) + float(self.box @ self.losses(f + b))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, k={self.k}, C={self.C:g}, bias={self.bias!r})"


class MulticlassProblem(ClassProblem):
    """Base of the large-margin machines: the loss is made of positive parts, one for each wrong class.

    `margin` is the customary one if None.
    """

    code: ClassVar[int] = -1
    customary: ClassVar[float | None] = None
    """The margin where none is given; None is 1/(k - 1)."""
    one_slack: ClassVar[bool] = False
    """Whether only the largest positive part of a point counts."""
    scale: ClassVar[float] = 1.0
    """Factor of this objective to that of `equivalent`."""

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "none",
        *,
        k: int | None = None,
        margin: float | None = None,
    ) -> None:
        super().__init__(gram, y, C, weights, bias, k=k)
        usual = 1.0 / (self.k - 1) if self.customary is None else self.customary
        self.margin = usual if margin is None else positive("margin", margin)

    @property
    def equivalent(self) -> "MulticlassProblem":
        """The problem that solvers work on."""
        return self

    def arguments(self, f: Array) -> Array:
        """What (n, k) the loss takes the positive part of at outputs f (n, k); minus infinity at the own class."""
        raise NotImplementedError

    def losses(self, f: Array) -> Array:
        """Loss (n,) of each point at outputs f (n, k) that include the bias."""
        return np.asarray(np.maximum(self.arguments(f), 0.0).sum(axis=1))

    def coefficients(self, a: Array) -> Array:
        """Expansion coefficients c (n, k) of the variables a (n, k)."""
        c = -a
        rows = np.arange(self.n)
        c[rows, self.y] = 0.0
        c[rows, self.y] = -c.sum(axis=1)
        return c

    def feasible(self, variables: ArrayLike) -> Array:
        """Variables (n, k) brought inside their bounds; the sums of a free bias are not looked at."""
        a = np.array(variables, dtype=np.float64)
        if a.shape != (self.n, self.k):
            raise InvalidInput(f"variables have shape {a.shape}, this problem has ({self.n}, {self.k})")
        if not np.isfinite(a).all():
            raise InvalidInput("variables contain NaN or infinite values")
        a = np.clip(a, 0.0, self.box[:, None])
        a[np.arange(self.n), self.y] = 0.0
        return np.asarray(a)

    def dual(self, a: Array, f0: Array | None = None) -> float:
        """Dual objective at variables a (n, k); a bound on the primal where `violation(a)` is zero."""
        c = self.coefficients(a)
        return self.margin * float(self._others(a)) - 0.5 * float(np.vdot(c, self.values(c, f0)))

    def _others(self, a: Array) -> float:
        """Sum of the variables of wrong classes."""
        return float(a.sum() - a[np.arange(self.n), self.y].sum())

    def violation(self, a: Array) -> tuple[float, float]:
        """Largest violation of the bounds, and of the sums that a free bias asks to be zero."""
        outside = max(0.0, float(-a.min()), float((a - self.box[:, None]).max()), self._own_violation(a))
        sums = np.abs(self.coefficients(a).sum(axis=0)).max() if self.bias == "free" else 0.0
        return outside, float(sums)

    def _own_violation(self, a: Array) -> float:
        return float(np.abs(a[np.arange(self.n), self.y]).max())

    def gaps(self, a: Array, f: Array) -> Array:
        """Non-negative terms (n,) whose sum is the gap, at outputs f (n, k) with the bias."""
        d = self.arguments(f)
        terms = (self.box[:, None] - a) * np.maximum(d, 0.0) + a * np.where(np.isfinite(d), np.maximum(-d, 0.0), 0.0)
        return np.asarray(terms.sum(axis=1))

    def certificate(
        self,
        a: Array,
        f0: Array | None = None,
        bias: ArrayLike | None = None,
        *,
        uncertainty: Uncertainty | None = None,
    ) -> Certificate:
        """Primal, dual and gap at dual-feasible a (n, k); without `bias` the best one for these f is computed.

        With `uncertainty` the values are bounds for all f0 within it.
        """
        c = self.coefficients(a)
        f = self.values(c, f0)
        if self.bias == "penalised":
            b = c.sum(axis=0)
        elif self.bias == "free":
            b = self.best_bias(f) if bias is None else np.asarray(bias, dtype=np.float64)
            f = f + b
        else:
            b = np.zeros(self.k)
        norm = 0.5 * float(np.vdot(c, f))  # a free bias adds b' sum_i c_i, which is zero
        primal = norm + float(self.box @ self.losses(f))
        gap = float(self.gaps(a, f).sum())
        found = Certificate(primal, primal - gap, gap, b)
        if uncertainty is None:
            return found
        return found.widened(gap + 2.0 * self.differences * float(self.box @ uncertainty.values), uncertainty.energy)

    @property
    def differences(self) -> int:
        """Of how many differences of two outputs the loss is a sum."""
        return 1 if self.one_slack else self.k - 1

    def best_bias(self, f: Array) -> Array:
        """The free bias (k,), of sum zero, that makes the losses at f (n, k) smallest: a linear program.

        It has one slack for each point and wrong class, or for each point.
        """
        i, j = np.divmod(np.flatnonzero(np.arange(self.k) != self.y[:, None]), self.k)
        cost, slack = (self.box, i) if self.one_slack else (self.box[i], np.arange(i.size))
        return least_hinges(self._shifts(i, j), self.arguments(f)[i, j], cost, slack)

    def _shifts(self, i: Index, j: Index) -> Any:
        """What a bias b (k,) adds to the arguments of points i and wrong classes j, as rows (m, k) that multiply it."""
        return sp.csr_array((np.ones(i.size), (np.arange(i.size), j)), shape=(i.size, self.k))


class PairedMargins(MulticlassProblem):
    """Machines that compare the output of the own class with every other."""

    @classmethod
    def from_rifkin(cls, gram: GramLike, y: ArrayLike, C: float, **options: Any) -> Self:
        """The problem sum ||f_m||^2 + C sum xi of Rifkin 2002 (no 1/2 before the norm): C here is half of that C."""
        return cls(gram, y, 0.5 * C, **options)

    def arguments(self, f: Array) -> Array:
        """Margin less f_y - f_j."""
        rows = np.arange(self.n)
        d = self.margin - f[rows, self.y][:, None] + f
        d[rows, self.y] = -np.inf
        return np.asarray(d)

    def _shifts(self, i: Index, j: Index) -> Any:
        return super()._shifts(i, j) - super()._shifts(i, self.y[i])


class WestonWatkins(PairedMargins):
    """One slack for every point and wrong class (Weston and Watkins 1998; Vapnik 1998; Rifkin 2002, (4.3)-(4.11))."""

    name: ClassVar[str] = "Weston-Watkins"
    code: ClassVar[int] = WESTON_WATKINS
    customary: ClassVar[float | None] = 2.0


class CrammerSinger(PairedMargins):
    """One slack for every point (Crammer and Singer 2001; Rifkin 2002, (4.33)-(4.35)); C is LIBLINEAR's."""

    name: ClassVar[str] = "Crammer-Singer"
    code: ClassVar[int] = CRAMMER_SINGER
    one_slack: ClassVar[bool] = True
    customary: ClassVar[float | None] = 1.0

    @classmethod
    def from_beta(cls, gram: GramLike, y: ArrayLike, beta: float, **options: Any) -> "CrammerSinger":
        """The problem beta/2 ||W||^2 + sum xi: C = 1/beta, and beta -> 0 is the hard margin."""
        return cls(gram, y, 1.0 / positive("beta", beta), **options)

    def losses(self, f: Array) -> Array:
        """The largest argument, or zero."""
        return np.asarray(np.maximum(self.arguments(f).max(axis=1), 0.0))

    def feasible(self, variables: ArrayLike) -> Array:
        """Variables of wrong classes scaled down where their sum exceeds C_i; the own class takes the rest."""
        a = super().feasible(variables)
        total = a.sum(axis=1)
        over = total > self.box
        a[over] *= (self.box[over] / total[over])[:, None]
        a[np.arange(self.n), self.y] = np.where(over, 0.0, self.box - total)
        return a

    def _own_violation(self, a: Array) -> float:
        return float(np.abs(a.sum(axis=1) - self.box).max())

    def gaps(self, a: Array, f: Array) -> Array:
        """sum_r a_r (max G - G_r)."""
        G = f.copy()
        G[np.arange(self.n), self.y] -= self.margin
        return np.asarray((a * (G.max(axis=1)[:, None] - G)).sum(axis=1))


class LeeLinWahba(MulticlassProblem):
    """Every wrong output pushed below -1/(k - 1) (Lee, Lin and Wahba 2004; Rifkin 2002, (4.12)-(4.13)).

    It is Fisher consistent: with enough data the largest output is that of the most probable class, also where no
    class has probability above one half.
    """

    name: ClassVar[str] = "Lee-Lin-Wahba"
    code: ClassVar[int] = LEE_LIN_WAHBA

    @classmethod
    def from_lambda(cls, gram: GramLike, y: ArrayLike, penalty: float, **options: Any) -> "LeeLinWahba":
        """The problem (1/n) sum loss + lambda sum ||f_j||^2: C = 1/(2 n lambda)."""
        return cls(gram, y, 1.0 / (2 * int(gram.shape[0]) * positive("penalty", penalty)), **options)

    def arguments(self, f: Array) -> Array:
        """1/(k - 1) + f_j."""
        d = self.margin + f
        d[np.arange(self.n), self.y] = -np.inf
        return np.asarray(d)

    def coefficients(self, a: Array) -> Array:
        """Mean over the classes less a."""
        return np.asarray(a.mean(axis=1, keepdims=True) - a)


class BredensteinerBennett:
    """1/2 sum_{ij} ||f_i - f_j||^2 + 1/2 sum_i ||f_i||^2 + sum_i C_i sum_{j != y} (1 - f_y + f_j)_+.

    At the optimum the f_m sum to zero, and then sum_{i,j} ||f_i - f_j||^2 = 2k sum ||f_i||^2: the problem is (2k + 1)
    times Weston-Watkins' with margin 1 and C/(2k + 1) (Bredensteiner and Bennett 1999; Rifkin 2002, (4.25)-(4.29)).
    In Rifkin's scaling and with margin 2 that is C_WW = 4 C/(2k + 1) and f_WW = 2 f_BB.  With `pairs="unordered"` the
    first sum runs over i < j, and 2k + 1 becomes k + 1.
    """

    name: ClassVar[str] = "Bredensteiner-Bennett"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "none",
        *,
        k: int | None = None,
        pairs: Pairs = "ordered",
    ) -> None:
        n = checked_size(gram)
        if pairs not in ("ordered", "unordered"):
            raise InvalidInput(f"pairs must be 'ordered' or 'unordered', got {pairs!r}")
        if bias == "penalised":
            raise InvalidInput("the equivalence of Bredensteiner-Bennett holds for bias='free' and bias='none'")
        numbers, k = class_numbers(y, n, k)
        self.C, self.pairs = positive("C", C), pairs
        self.scale = 2.0 * k + 1.0 if pairs == "ordered" else k + 1.0
        self.equivalent = WestonWatkins(gram, numbers, self.C / self.scale, weights, bias, k=k, margin=1.0)

    def primal(self, c: ArrayLike, bias: ArrayLike | None = None) -> float:
        """Objective at any coefficients (n, k) and a free bias (k,), from its definition."""
        twin = self.equivalent
        c = np.asarray(c, dtype=np.float64)
        f = np.asarray(twin.gram.dot(c), dtype=np.float64)
        inner = c.T @ f
        apart = twin.k * float(np.trace(inner)) - float(inner.sum())  # 1/2 sum over ordered pairs
        norms = (1.0 if self.pairs == "ordered" else 0.5) * apart + 0.5 * float(np.trace(inner))
        f = f if bias is None else f + np.asarray(bias)
        return norms + self.scale * float(twin.box @ twin.losses(f))

    def dual(self, a: Array) -> float:
        """Dual objective at the variables (n, k) of the equivalent problem."""
        return self.scale * self.equivalent.dual(a)


def class_numbers(y: ArrayLike, n: int, k: int | None) -> tuple[Index, int]:
    """Classes (n,) as numbers 0..k-1, and k >= 2."""
    given = np.asarray(y)
    numbers = given.astype(np.intp)
    if given.shape != (n,) or not np.array_equal(numbers, given):
        raise InvalidInput(f"y must hold {n} whole numbers, the classes of the points; got shape {given.shape}")
    if numbers.min() < 0:
        raise InvalidInput("y must hold the classes as numbers from 0 on: encode other labels first")
    most = int(numbers.max()) + 1
    if k is None:
        k = most
        if np.unique(numbers).size < k:
            raise InvalidInput("a class between 0 and the largest has no point: encode the labels first, or give k")
    if k < most or k < 2:
        raise InvalidInput(f"at least two classes are needed, and k={k} must exceed every class number ({most - 1})")
    return numbers, int(k)


def least_hinges(shift: Any, offset: Array, cost: Array, slack_of: Index) -> Array:
    """The b (k,) of sum zero that minimises sum_s cost_s max over rows r of s of (offset_r + shift_r b)_+."""
    from scipy.optimize import linprog

    rows, k = shift.shape
    slack = sp.csr_array((-np.ones(rows), (np.arange(rows), slack_of)), shape=(rows, cost.size))
    answer = linprog(
        np.concatenate([np.zeros(k), cost]),
        A_ub=sp.hstack([shift, slack], format="csr"),
        b_ub=-offset,
        A_eq=sp.csr_array(np.concatenate([np.ones(k), np.zeros(cost.size)])[None]),
        b_eq=[0.0],
        bounds=[(None, None)] * k + [(0.0, None)] * cost.size,
        method="highs",
    )
    if answer.x is None:
        raise InvalidInput(f"the bias could not be determined: {answer.message}")
    return np.asarray(answer.x[:k], dtype=np.float64)
