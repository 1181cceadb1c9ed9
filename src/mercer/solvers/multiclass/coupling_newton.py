"""Newton's method for the divergence of a Bradley-Terry model, point by point, in theta = log p.

With mu_a = q_a+ / q_a, the shares pi_a+ = p / q_a+ and pi_a- = p / q_a- of the classes in the two sides of machine a,
and u_a = pi_a+ - pi_a-, the divergence l has

    slope        g = sum_a n_a (mu_a - r_a) u_a
    curvature    H = sum_a n_a [ mu_a (1 - mu_a) u_a u_a' + (mu_a - r_a) (V(pi_a+) - V(pi_a-)) ],   V(v) = diag(v) - vv'

(the second part vanishes for pairs, where l is convex).  No difference of nearly equal numbers enters: mu - r is taken
on the smaller side, so that probabilities of 1e-100 are found to the same relative accuracy as large ones.

The step solves (H + tau D) d = -g with D = p times the denominators of the minorise-maximise step, plus |g|: tau = 0 is
Newton's, and at tau = 1 the matrix is positive definite whatever H is, with the direction of that step.  tau rises
until l falls.  theta is free up to a constant, and the largest class stays where it is.

A point has converged where a step changes no probability by more than `tol` of itself and the scale-free slope
|g_s| / sum_a n_a pi_as, by which the minorise-maximise factor of class s misses one, is at most `SLOPE`.  A class that
still falls (g_s > 0) counts as zero once it is at most `GONE` of its side in every machine: its best probability is 0.
Nor do steps count of a class whose own scale-free slope is rounding error: with a code that has zeros some classes may
fall together, their ratios settled by a machine of their own.
"""

from typing import Any

import numpy as np

from mercer.compiled import exact_loop

SLOPE = 1e-8
GONE = 1e-9
FLAT = 1e-14  # a scale-free slope that is rounding error
SMALL = 1e-2
HASTE = 4.0
LONGEST = 10.0  # a probability changes by at most this factor's exponential in one step
LOWEST = -690.0  # log of the least probability, in units of the largest
DECREASE = 1e-4  # share of the predicted decrease that must be seen
ROUNDING = 1e-14  # l is known to this share of its size
STALLED = 1e-6  # steps below this that no longer shrink are rounding errors
PIVOT = 1e-13
MOST_DAMPING = 1e8


@exact_loop
def _sides(theta: Any, members: Any, ends: Any, p: Any, plus: Any, minus: Any) -> None:
    """Write p = exp(theta - max theta) and its sums over both sides of each machine."""
    p[:] = np.exp(theta - theta.max())
    for a in range(len(plus)):
        total = 0.0
        for e in range(ends[a, 0], ends[a, 1]):
            total += p[members[e]]
        plus[a] = total
        total = 0.0
        for e in range(ends[a, 1], ends[a, 2]):
            total += p[members[e]]
        minus[a] = total


@exact_loop
def _value(r: Any, n_a: Any, plus: Any, minus: Any) -> float:
    """The divergence up to a constant: sum_a n_a [-r log mu - (1 - r) log(1 - mu)]."""
    total = 0.0
    for a in range(len(r)):
        whole = plus[a] + minus[a]
        total -= n_a[a] * (r[a] * np.log(plus[a] / whole) + (1.0 - r[a]) * np.log(minus[a] / whole))
    return total


@exact_loop
def _expand(r: Any, n_a: Any, members: Any, ends: Any, p: Any, plus: Any, minus: Any, out: Any, H: Any) -> None:
    """Slope, p times denominators, largest share of a side: rows of out (3, k); lower half of the curvature H."""
    shares = np.empty(len(p))
    out[:] = 0.0
    H[:] = 0.0
    for a in range(len(r)):
        whole = plus[a] + minus[a]
        mu, rest = plus[a] / whole, minus[a] / whole
        miss = mu - r[a] if r[a] <= 0.5 else (1.0 - r[a]) - rest
        first, middle, last = ends[a]
        for e in range(first, last):
            s, up = members[e], e < middle
            share = p[s] / (plus[a] if up else minus[a])
            signed = n_a[a] * (share if up else -share)
            shares[e - first] = share
            out[0, s] += miss * signed
            out[1, s] += n_a[a] * p[s] / whole
            out[2, s] = max(out[2, s], share)
            H[s, s] += n_a[a] * mu * rest * share * share + miss * signed * (1.0 - share)
            # Members are sorted on each side: s > t on the same side, either order across.
            same = n_a[a] * share * (mu * rest - miss if up else mu * rest + miss)
            for i in range(first if up else middle, e):
                H[s, members[i]] += same * shares[i - first]
            if not up:
                across = -n_a[a] * share * mu * rest
                for i in range(first, middle):
                    t = members[i]
                    H[max(s, t), min(s, t)] += across * shares[i - first]


@exact_loop
def _solve(H: Any, damping: Any, slope: Any, tau: float, fixed: Any, L: Any, d: Any) -> bool:
    """Solve (H + tau diag(damping)) d = -slope, d[fixed] = 0, by Cholesky's method; False where it breaks down."""
    k = len(slope)
    for i in range(k):
        if i == fixed:
            L[i, :] = 0.0
            d[i] = 0.0
            continue
        right = -slope[i]
        for j in range(i + 1):
            if j == fixed:
                L[i, j] = 0.0
                continue
            value = H[i, j]
            for t in range(j):
                value -= L[i, t] * L[j, t]
            if i == j:
                value += tau * damping[i]
                if not value > PIVOT * damping[i]:
                    return False
                L[i, i] = np.sqrt(value)
            else:
                L[i, j] = value / L[j, j]
                right -= L[i, j] * d[j]
        d[i] = right / L[i, i]
    for i in range(k - 1, -1, -1):
        if i != fixed:
            value = d[i]
            for j in range(i + 1, k):
                value -= L[j, i] * d[j]
            d[i] = value / L[i, i]
    return True


@exact_loop
def _measure(d: Any, out: Any) -> tuple[float, float]:
    """The longest step of a class that is not flat and the largest scale-free slope, gone classes left out."""
    step, slope = 0.0, 0.0
    for s in range(len(d)):
        if not (out[0, s] >= 0.0 and out[2, s] <= GONE):
            own = abs(out[0, s]) / out[1, s]
            slope = max(slope, own)
            if own > FLAT:
                step = max(step, abs(d[s]))
    return step, slope


@exact_loop
def _hasten(d: Any, out: Any) -> None:
    """Lengthen the step of small classes that fall to zero: Newton's takes them to a share 1/e only.

    The factor of such a class misses one by more than the class itself can make up for, so that no step is too long.
    """
    for s in range(len(d)):
        if out[2, s] <= SMALL and out[0, s] > 10.0 * SMALL * out[1, s] and d[s] < -0.5:
            d[s] *= HASTE


@exact_loop
def _minimise(
    theta: Any, r: Any, n_a: Any, members: Any, ends: Any, tol: float, max_steps: int, p: Any, H: Any, L: Any
) -> int:
    """Move theta (k,) to the minimum and write exp(theta), up to scale, to p; return the steps, -1 if too many."""
    k, F = len(theta), len(r)
    plus, minus = np.empty(F), np.empty(F)
    out, d, damping = np.empty((3, k)), np.empty(k), np.empty(k)
    tau, before = 0.0, np.inf
    _sides(theta, members, ends, p, plus, minus)
    value = _value(r, n_a, plus, minus)
    for number in range(max_steps):
        _expand(r, n_a, members, ends, p, plus, minus, out, H)
        damping[:] = out[1] + np.abs(out[0])
        fixed, start, moved = np.argmax(theta), theta.copy(), False
        while tau <= MOST_DAMPING:
            if _solve(H, damping, out[0], tau, fixed, L, d):
                step, slope = _measure(d, out)
                _hasten(d, out)
                longest = np.max(np.abs(d))
                if longest > LONGEST:
                    d *= LONGEST / longest
                theta[:] = np.maximum(start + d, start[fixed] + LOWEST)
                _sides(theta, members, ends, p, plus, minus)
                fresh, promised = _value(r, n_a, plus, minus), np.dot(out[0], d)
                noise = ROUNDING * (np.sum(n_a) + abs(value))
                if fresh <= value + DECREASE * promised or (-promised <= noise and fresh <= value + noise):
                    moved = True
                    break
            tau = max(10.0 * tau, 1e-8)
        if not moved:
            theta[:] = start
            _sides(theta, members, ends, p, plus, minus)
            return -1
        value = fresh
        # A step damped strongly is short without being near the end.
        if tau <= 1e-6 and slope <= SLOPE and (step <= tol or (step <= STALLED and step >= 0.5 * before)):
            return number + 1
        before = step
        tau = 0.1 * tau if tau > 1e-7 else 0.0
    return -1


@exact_loop
def minimise(
    theta: Any, r: Any, n_a: Any, members: Any, ends: Any, tol: float, max_steps: int, steps: Any, start: int, stop: int
) -> None:
    """Turn rows start .. stop of theta (n, k) into probabilities for r (n, F); steps (n,): -1 where not converged.

    members lists the classes of each machine, those of its positive side from ends[a, 0], those of its negative side
    from ends[a, 1], up to ends[a, 2].
    """
    k = theta.shape[1]
    p, H, L = np.empty(k), np.empty((k, k)), np.empty((k, k))
    for i in range(start, stop):
        steps[i] = _minimise(theta[i], r[i], n_a, members, ends, tol, max_steps, p, H, L)
        theta[i] = p / np.sum(p)
