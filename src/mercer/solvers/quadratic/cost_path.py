"""The path of C: one problem solved for a whole row of costs, each start taken from the solution before it.

    minimise  1/2 s'Ks + p's       C lower <= s <= C upper,   sum of s fixed at zero,        for C_1 < C_2 < ...

with the box of one unit cost (lower, upper) and the linear term p independent of C: support vector classification and
epsilon-insensitive regression are of this form.  K is stored (float32), and the n training points are one or two
contiguous stretches of it, so that with points ordered by fold "all folds but one" is trained on in place.

Multiplying s by C'/C keeps box and equality, keeps the variables that are at their bounds there, and multiplies F = K s
by the same factor (Schoelkopf and Smola 2002, section 10.1.2), so that a start costs nothing.  Going up, s itself is
feasible too, and the better start once few variables are at their bounds.  When none is, the path has ended: the
solution is the same for all larger C, and it is copied.  Prices rise, because the end then comes for nothing.

Up to `WHOLE` points every pair step looks at all of them; beyond, steps run on working sets that are samples of the
violators (as in `mercer.solvers.quadratic.decomposition`), and F follows by one pass over the rows of the points that
moved.  Where the free variables crowd a working set, steps look at all points after all.
"""

from typing import Any

import numpy as np

from mercer.compiled import loop
from mercer.solvers.quadratic.pair_steps import minimise_pairs
from mercer.solvers.quadratic.violations import free_gradients, survey, violators

WHOLE = 1400
WORKING_SET = 768
STEPS_PER_POINT = 20
INNER = 0.1
PATIENCE = 60
# A working set of this share of all points is no longer worth a matrix of its own.
LARGEST_SHARE = 0.6
# Below this share of bounded support vectors a solution is a better start as it is than scaled.
FEW = 0.1
CHUNK = 2048


@loop
def _choose(
    found: Any, count: int, last: Any, kept: int, lower: Any, upper: Any, s: Any, size: int, turn: int, chosen: Any
) -> int:
    """Mark the free points of the last set and a systematic sample of the violators; returns how many are free."""
    free = 0
    for at in range(kept):
        k = last[at]
        inside = False
        for l in range(s.shape[0]):
            inside |= lower[l, k] < s[l, k] < upper[l, k]
        if inside and free < size // 2:
            chosen[k] = True
            free += 1
    room = max(1, size - free)
    if count <= room:
        for at in range(count):
            chosen[found[at]] = True
    else:
        # Points lie in random order, so that every (count / room)-th is a random sample; it shifts from turn to turn.
        shift = (turn * 0.6180339887498949) % 1.0
        for at in range(room):
            chosen[found[int((at + shift) * count / room)]] = True
    return free


@loop
def _add_rows(K: Any, stretches: Any, points: Any, change: Any, F: Any) -> None:
    """F += K[:, points] change over the training points, a chunk of F at a time."""
    first, middle, second = stretches
    n = F.shape[0]
    for begin, end, shift in ((0, middle, first), (middle, n, second - middle)):
        for left in range(begin, end, CHUNK):
            right = min(end, left + CHUNK)
            part = F[left:right]
            for at in range(points.shape[0]):
                k = points[at]
                row = K[first + k if k < middle else second + k - middle]
                line = row[left + shift : right + shift]
                amount = change[at]
                for j in range(right - left):
                    part[j] += amount * np.float64(line[j])


@loop
def _cut(K: Any, stretches: Any, W: Any, out: Any) -> None:
    """K between the training points W."""
    first, middle, second = stretches
    for a in range(W.shape[0]):
        row = K[first + W[a] if W[a] < middle else second + W[a] - middle]
        for b in range(W.shape[0]):
            k = W[b]
            out[a, b] = row[first + k] if k < middle else row[second + k - middle]


@loop
def _level(G: Any, s: Any, program: Any, low: float, high: float, scratch: Any) -> float:
    """The mean gradient of the free variables, or the middle between the two extremes where there is none."""
    count = free_gradients(G, s, program, 0, scratch)
    return scratch[:count].sum() / count if count else 0.5 * (low + high)


@loop
def _by_sets(
    K: Any, stretches: Any, diagonal: Any, F: Any, s: Any, program: Any, tol: float, max_steps: int
) -> tuple[int, float]:
    """Working sets until the violation is at most tol; F and s are updated in place."""
    linear, _, lower, upper, _ = program
    layers, n = s.shape
    G, extremes, theta, scratch = np.empty((layers, n)), np.empty((1, 4)), np.empty(1), np.empty(layers * n)
    size = WORKING_SET
    found = np.empty(n, np.intp)
    last = np.empty(n, np.intp)
    kept = 0
    steps = turn = waited = 0
    best = np.inf
    while True:
        survey(F, s, program, G, extremes)
        low, high = extremes[0, 0], extremes[0, 2]
        violation = max(0.0, high - low)
        if violation < 0.95 * best:
            best, waited = violation, 0
        waited += 1
        if violation <= tol or steps >= max_steps or waited > PATIENCE:
            return steps, violation
        level = _level(G, s, program, low, high, scratch)
        theta[0] = level if low <= level <= high or high <= level <= low else 0.5 * (low + high)
        count, _ = violators(G, s, program, theta, 0.5 * tol, found)
        chosen = np.zeros(n, np.bool_)
        chosen[int(extremes[0, 1]) % n] = chosen[int(extremes[0, 3]) % n] = True
        free = _choose(found, count, last, kept, lower, upper, s, size, turn, chosen)
        W = np.flatnonzero(chosen)
        w = W.shape[0]
        block = np.empty((w, w), K.dtype)
        _cut(K, stretches, W, block)
        part, before = np.empty((layers, w)), np.zeros(w)
        terms, lows, highs = np.empty((layers, w)), np.empty((layers, w)), np.empty((layers, w))
        for l in range(layers):
            for a in range(w):
                part[l, a], terms[l, a] = s[l, W[a]], linear[l, W[a]]
                lows[l, a], highs[l, a] = lower[l, W[a]], upper[l, W[a]]
                before[a] += part[l, a]
        own = terms, np.zeros((layers, w)), lows, highs, np.zeros((layers, w), np.intp)
        inner = max(0.5 * tol, INNER * violation)
        done, _ = minimise_pairs(block, (0, w, w), diagonal[W], F[W], part, own, 1, inner, STEPS_PER_POINT * w)
        steps += done + 1
        turn += 1
        moved, change = np.empty(w, np.intp), np.empty(w)
        count = 0
        for a in range(w):
            total = 0.0
            for l in range(layers):
                s[l, W[a]] = part[l, a]
                total += part[l, a]
            if total != before[a]:
                moved[count], change[count] = W[a], total - before[a]
                count += 1
        _add_rows(K, stretches, moved[:count], change[:count], F)
        last[:w] = W
        kept = w
        if free >= size // 2:
            size += size // 2
            if size > LARGEST_SHARE * n:
                done, violation = minimise_pairs(K, stretches, diagonal, F, s, program, 1, tol, max_steps - steps)
                return steps + done, violation


@loop
def _offset(F: Any, s: Any, program: Any) -> float:
    """The bias: minus the gradient of the free variables, or the middle of what the bounded ones allow."""
    G, extremes = np.empty(s.shape), np.empty((1, 4))
    survey(F, s, program, G, extremes)
    low, high = extremes[0, 0], extremes[0, 2]
    if low == np.inf or high == -np.inf:
        return 0.0
    return -_level(G, s, program, low, high, np.empty(s.size))


@loop
def _largest(s: Any, lower: Any, upper: Any) -> float:
    """Largest share of its bound that a variable takes."""
    share = 0.0
    for l in range(s.shape[0]):
        for k in range(s.shape[1]):
            if upper[l, k] > 0.0:
                share = max(share, s[l, k] / upper[l, k])
            if lower[l, k] < 0.0:
                share = max(share, s[l, k] / lower[l, k])
    return share


@loop
def _start_factor(lower: Any, upper: Any, state: Any, factor: float) -> float:
    """What to multiply the last solution by: C'/C, or one when C rises and few of its variables are at a bound."""
    bound = support = 0
    for l in range(state.shape[0]):
        for k in range(state.shape[1]):
            if state[l, k] != 0.0:
                support += 1
                if state[l, k] == lower[l, k] or state[l, k] == upper[l, k]:
                    bound += 1
    return factor if factor < 1.0 or bound > FEW * support else 1.0


@loop
def cost_path(
    K: Any,
    stretches: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    costs: Any,
    tol: float,
    max_steps: int,
    state: Any,
    F: Any,
    start: float,
    coefficients: Any,
    biases: Any,
    facts: Any,
) -> float:
    """Solve for every C of `costs` in turn on `stretches` of K, as `minimise_pairs` has them.

    linear, lower, upper (layers, n) state the problem at C = 1; state (layers, n) and F (n,) hold the solution at
    C = start (zeros and start = 0: none) and are carried along; coefficients (costs, n), biases (costs,) and facts
    (costs, 2), the pair steps and the violation, are written.  Returns the C at which the path ended, infinity when it
    has not.
    """
    layers, n = state.shape
    first, middle, second = stretches
    diagonal = np.empty(n)
    for k in range(n):
        at = first + k if k < middle else second + k - middle
        diagonal[k] = K[at, at]
    low, high = start * lower, start * upper
    program = linear, np.zeros((layers, n)), low, high, np.zeros((layers, n), np.intp)
    ended = np.inf
    now = start
    for c in range(costs.shape[0]):
        C = costs[c]
        if ended < C:
            coefficients[c] = coefficients[c - 1]
            biases[c] = biases[c - 1]
            continue
        if now > 0.0:
            factor = _start_factor(low, high, state, C / now)
            for k in range(n):
                F[k] *= factor
                for l in range(layers):
                    state[l, k] *= factor
        for l in range(layers):
            for k in range(n):
                low[l, k], high[l, k] = C * lower[l, k], C * upper[l, k]
                state[l, k] = min(max(state[l, k], low[l, k]), high[l, k])
        if n <= WHOLE:
            steps, violation = minimise_pairs(K, stretches, diagonal, F, state, program, 1, tol, max_steps)
        else:
            steps, violation = _by_sets(K, stretches, diagonal, F, state, program, tol, max_steps)
        now = C
        for k in range(n):
            total = 0.0
            for l in range(layers):
                total += state[l, k]
            coefficients[c, k] = total
        biases[c] = _offset(F, state, program)
        facts[c, 0], facts[c, 1] = steps, violation
        if _largest(state, low, high) < 1.0 and violation <= tol:
            ended = C
    return ended
