"""The best labelling of a chain by dynamic programming (Viterbi 1967), plain and with a loss added to it.

A chain of T positions has scores S (T, k) of its labels and A (k, k) of neighbouring ones; a labelling y scores

    S(y) = sum_t S[t, y_t] + sum_t A[y_t-1, y_t] .

With z the right labelling, T_y the number of positions where y differs from it, the maxima are

    PLAIN      S(y)                              Viterbi, O(T k^2)
    HAMMING    T_y + S(y) - S(z)                 Viterbi with 1 added to every wrong label
    SLACK      T_y (1 + S(y) - S(z))             Viterbi that also counts the errors, O(T^2 k^2)
    ZERO_ONE   [y != z] + S(y) - S(z)            the same with a count that stops at one, O(T k^2)

Of labellings with equal values the first labels win, from the end of the chain on.
"""

from typing import Any

import numpy as np

from mercer.compiled import exact_loop, loop

PLAIN, HAMMING, SLACK, ZERO_ONE = 0, 1, 2, 3


@loop
def _viterbi(S: Any, A: Any, z: Any, extra: float, path: Any) -> None:
    """The labelling of the largest score, where every label but the one in z gets `extra`."""
    T, k = S.shape
    back = np.empty((T, k), np.int32)
    best, new = np.empty(k), np.empty(k)
    for b in range(k):
        best[b] = S[0, b] + (extra if b != z[0] else 0.0)
    for t in range(1, T):
        for b in range(k):
            new[b] = best[0] + A[0, b]
            back[t, b] = 0
        for a in range(1, k):
            start = best[a]
            for b in range(k):
                found = start + A[a, b]
                better = found > new[b]
                new[b] = found if better else new[b]
                back[t, b] = a if better else back[t, b]
        for b in range(k):
            best[b] = new[b] + S[t, b] + (extra if b != z[t] else 0.0)
    last = 0
    for b in range(1, k):
        if best[b] > best[last]:
            last = b
    for t in range(T - 1, -1, -1):
        path[t] = last
        last = back[t, last]


@loop
def _counting_viterbi(S: Any, A: Any, z: Any, most: int, path: Any) -> None:
    """The labelling of the largest e (1 + S(y) - S(z)), e = min(errors, most).

    With most = 1 its maximum is that of [y != z] + S(y) - S(z) too: both are 0 for y = z and equal elsewhere.
    """
    T, k = S.shape
    best, new = np.full((most + 1, k), -np.inf), np.empty((most + 1, k))
    back = np.zeros((T, most + 1, k), np.int32)  # e k + a: number of errors and label before
    right = S[0, z[0]]
    for b in range(k):
        best[0 if b == z[0] else 1, b] = S[0, b]
    for t in range(1, T):
        right += A[z[t - 1], z[t]] + S[t, z[t]]
        new[:] = -np.inf
        for e in range(min(t, most) + 1):
            for b in range(k):
                after = e if b == z[t] else min(e + 1, most)
                for a in range(k):
                    found = best[e, a] + A[a, b] + S[t, b]
                    if found > new[after, b]:
                        new[after, b] = found
                        back[t, after, b] = e * k + a
        best, new = new, best
    errors, last, highest = 0, z[T - 1], 0.0
    for e in range(1, most + 1):
        for b in range(k):
            if e * (1.0 + best[e, b] - right) > highest:
                errors, last, highest = e, b, e * (1.0 + best[e, b] - right)
    for t in range(T - 1, -1, -1):
        path[t] = last
        before = back[t, errors, last]
        errors, last = before // k, before % k


@exact_loop
def value_of(S: Any, A: Any, z: Any, path: Any, mode: int) -> tuple[float, float]:
    """Loss and value of a labelling, in the sense of `mode`; exactly zero for the right one."""
    errors, margin = 0, 0.0
    for t in range(len(path)):
        if path[t] != z[t]:
            errors += 1
            margin += S[t, path[t]] - S[t, z[t]]
        if t > 0 and (path[t] != z[t] or path[t - 1] != z[t - 1]):
            margin += A[path[t - 1], path[t]] - A[z[t - 1], z[t]]
    loss = float(min(errors, 1)) if mode == ZERO_ONE else float(errors)
    if mode == PLAIN:
        return loss, margin
    return loss, loss * (1.0 + margin) if mode == SLACK else loss + margin


@loop
def best_labelling(S: Any, A: Any, z: Any, mode: int, path: Any) -> None:
    """Write the labelling (T,) of the highest value into `path`; z is not read for PLAIN."""
    T = S.shape[0]
    if T == 0:
        return
    if mode in (PLAIN, HAMMING):
        _viterbi(S, A, z, 1.0 if mode == HAMMING else 0.0, path)
    else:
        _counting_viterbi(S, A, z, T if mode == SLACK else 1, path)


@loop
def best_labellings(
    S: Any, A: Any, z: Any, offsets: Any, mode: int, first: int, last: int, path: Any, losses: Any, values: Any
) -> None:
    """The labellings of chains first..last, whose rows of S begin at `offsets`, with their losses and values."""
    for i in range(first, last):
        rows = slice(offsets[i], offsets[i + 1])
        best_labelling(S[rows], A, z[rows], mode, path[rows])
        losses[i], values[i] = value_of(S[rows], A, z[rows], path[rows], mode)
