"""How far the values f0 = K c behind a certificate are from those of the stated problem, in exact arithmetic.

Kernel values in float32 are right to about 4e-8, and their errors have no bias; but a sum of them with coefficients c
is off by about eps sqrt(sum_j c_j^2 k_jj) at every point, and a loss of slope C makes C times that of a point on the
margin.  A gradient that was only ever updated also carries the rounding of all its updates.  So the values are
computed again in float64 at a random sample of three kinds of points, m_free of the n_free that are strictly inside
their bounds, m_bound of the other n_bound support vectors, and m of all, and what the sample shows is made part of the
certificate (`mercer.problems.certificate.Uncertainty`).  With u_i = |error_i| / sqrt(k_ii):

    each point            MARGIN max u over the sample
    mean over the free    mean u + DEVIATIONS spread / sqrt(m_free)
    c'Kc / 2              half the sum over both kinds of  n (|mean c_i error_i| + DEVIATIONS spread / sqrt(m))

The last two are confidence bounds for sums over all points of a kind: the sample is random, so they hold however the
errors depend on each other.  Two things a sample of so few may fail to see are added to the error of
c'Kc / 2.  Values k_ii computed from a distance that rounding makes positive are below one, all of them: the errors of
the diagonal, found in small blocks along it, have one sign, and half of sum_i c_i^2 times twice their size is taken.
And a narrow kernel has values between few pairs of points only: half of eps sum_i c_i^2 k_ii is the size of a sum of
independent errors of eps in every value.

Only the sum over the free points matters, since every one of them adds its error times
its box to the gap, while a point at a bound adds nothing unless its error takes it across the margin.
"""

from typing import Any

import numpy as np

from mercer.arrays import Mask, Vector
from mercer.problems.base import Problem
from mercer.problems.certificate import SCALED_FROM, Certificate, Uncertainty
from mercer.problems.program import QuadraticProgram

# The largest error of all points is taken to be below so many times the largest of the sample. A choice, not a
# measurement: the largest error was 3 to 18 times the root mean square in nearly all of some fifty fits, 45 in one.
MARGIN = 4.0
DEVIATIONS = 5.0
SMALLEST_SAMPLE, LARGEST_SAMPLE = 32, 256
POINTS_FOR_ONE = 64
# Rounding of sums, in units of eps sqrt(sum_j c_j^2 k_jj): against sums in long double the largest error of Gaussian
# and linear kernels in float64, with widths from 0.1 to 5 and points up to 100 from the origin, was 24 and the largest
# root mean square 4.4; in float32 on eight data sets they were 21 and 2.4.
ROUNDING = 32.0
MEAN_ROUNDING = 8.0
# Points of one block on the diagonal.
BLOCK = 64
# Errors of f0 are left alone below this share of tol in the mean, where they add no more to the gap than this share of
# it, or this share of tol times the objective.
LEAST_ACCURACY = 0.25
LEAST_SHARE = 0.25
LEAST_GAP = 0.1


def sample_size(n: int) -> int:
    """How many of n points are computed again: a share that costs a few hundredths of a fit."""
    return int(min(max(n // POINTS_FOR_ONE, SMALLEST_SAMPLE), LARGEST_SAMPLE, n))


def predicted(
    coefficients: Vector,
    diagonal: Vector,
    free: Mask,
    steps: int = 0,
    dtype: Any = np.float64,
) -> Uncertainty:
    """What the rounding of values and sums in `dtype` lets one expect, without computing anything again.

    coefficients are (n,), or (n, k) for k outputs; diagonal (n,) is that of K, `free` (n,) marks points strictly
    inside their bounds; the values were computed at once, or built up in so many `steps` on one point.
    """
    root = np.sqrt(np.maximum(diagonal, 0.0))
    sizes = np.abs(coefficients) * (root if coefficients.ndim == 1 else root[:, None])
    own = sizes if coefficients.ndim == 1 else np.sqrt((sizes**2).sum(axis=1))
    size = float(np.sqrt(np.sum(own**2)))
    if steps:
        size += float(np.max(own, initial=0.0)) * float(np.sqrt(steps))
    unit = float(np.finfo(dtype).eps) * size
    values = unit * np.where(free, MEAN_ROUNDING, ROUNDING) * root
    level = MEAN_ROUNDING * unit
    return Uncertainty(values, 0.5 * level * float(sizes.sum()), level)


def sampled(gram: Any, coefficients: Vector, f0: Vector, diagonal: Vector, free: Mask, seed: int) -> Uncertainty:
    """What a random sample says about the errors of f0 = K c (n,); `free` (n,) marks points inside their bounds."""
    random = np.random.default_rng(seed)
    m = sample_size(f0.size)
    support = np.flatnonzero(coefficients)
    kinds = [np.flatnonzero(free), np.setdiff1d(support, np.flatnonzero(free)), np.arange(f0.size)]
    drawn = [random.choice(kind, min(kind.size, (m + 2) // 3), replace=False) for kind in kinds]
    points = np.concatenate(drawn)
    errors = gram.exact_dot(points, support, coefficients[support]) - f0[points]
    root = np.sqrt(np.maximum(diagonal, 0.0))
    sizes = np.divide(np.abs(errors), root[points], out=np.zeros(points.size), where=root[points] > 0)
    own = predicted(coefficients, diagonal, free)
    largest = MARGIN * float(sizes.max(initial=0.0)) + own.level * ROUNDING / MEAN_ROUNDING
    count = drawn[0].size
    level = own.level + (mean_bound(sizes[:count], kinds[0].size) if count else float(sizes.mean()))
    values = largest * root
    values[free] = level * root[free]
    energy, start = own.energy + unseen_energy(gram, coefficients, diagonal), 0
    for kind, some in zip(kinds[:2], drawn):
        terms = coefficients[some] * errors[start : start + some.size]
        energy += 0.5 * kind.size * mean_bound(terms, kind.size)
        start += some.size
    return Uncertainty(values, energy, level)


def unseen_energy(gram: Any, coefficients: Vector, diagonal: Vector) -> float:
    """The error of c'Kc / 2 that a sample may fail to see; coefficients and the diagonal of K are (n,)."""
    support = np.flatnonzero(coefficients)
    wrong = np.empty(support.size)
    for start in range(0, support.size, BLOCK):
        some = support[start : start + BLOCK]
        wrong[start : start + BLOCK] = np.abs(np.diagonal(gram.block(some, some)) - diagonal[some])
    eps = float(np.finfo(gram.dtype).eps)
    return 0.5 * float(coefficients[support] ** 2 @ (eps * np.maximum(diagonal[support], 0.0) + 2.0 * wrong))


def mean_bound(values: Vector, population: int) -> float:
    """A bound on |mean| over a population from which `values` (m,) were drawn at random without repetition."""
    m = values.size
    if m == 0:
        return 0.0
    spread = float(values.std(ddof=1)) if m > 1 else abs(float(values[0]))
    return abs(float(values.mean())) + DEVIATIONS * spread * float(np.sqrt((1.0 - m / population) / m))


def inside(program: QuadraticProgram, s: Vector) -> Mask:
    """Which points (n,) have a variable strictly inside its bounds."""
    free = (program.lower < s) & (s < program.upper)
    if program.identity:
        return np.asarray(free)
    return np.bincount(program.point[free], minlength=program.n) > 0


def negligible(level: float, extra: float, gap: float, size: float, tol: float) -> bool:
    """Whether errors of mean `level` that add `extra` to a gap leave violation and gap as they are to the user.

    `size` is that of the objective; `tol` bounds the violation, and relative gaps worth telling apart.
    """
    return level <= LEAST_ACCURACY * tol and extra <= max(LEAST_SHARE * gap, LEAST_GAP * tol * size)


def coarse(gram: Any) -> bool:
    """Whether the values of an operator are not in float64, but can be had so."""
    return getattr(gram, "dtype", np.float64) != np.float64 and hasattr(gram, "exact_dot")


def exact_product(gram: Any, V: Vector) -> Vector:
    """K V for V (n,) or (n, k), with every value in float64 where the operator can give it."""
    return np.asarray(gram.exact_dot(None, None, V) if coarse(gram) else gram.dot(V), dtype=np.float64)


def recomputed(gram: Any, coefficients: Vector) -> Vector:
    """f0 = K c (n,) with all values computed in float64."""
    support = np.flatnonzero(coefficients)
    return np.asarray(gram.exact_dot(None, support, coefficients[support]), dtype=np.float64)


def certified(problem: Problem, s: Vector, h: Vector | None = None) -> Certificate:
    """The certificate at s (N,), with K c computed in float64 and what its own rounding may be off by."""
    program = problem.program()
    c, gram = program.coefficients(s), program.gram
    f0 = recomputed(gram, c) if coarse(gram) else None
    doubt = predicted(c, np.asarray(gram.diagonal(), dtype=np.float64), inside(program, s))
    return problem.certificate(s, f0, h, aim=SCALED_FROM, uncertainty=doubt)
