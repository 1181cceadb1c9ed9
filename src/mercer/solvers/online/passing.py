"""A block of points learnt one after the other: the loop of online learning, for k outputs that share their points.

The expansion is f_m = sum_j c_mj k(x_j, .) over T old terms and the points of the block; `values` holds k(x_t, x_j) of
the points t of the block with both.  Step t, of size Lambda (Schoelkopf and Smola 2002, algorithm 10.6),

    g_m = f_m(x_t) + b_m,        f_m <- (1 - lambda Lambda) f_m + a_m k(x_t, .),        b_m <- b_m + a_m

with a_m from the rule.  The decay is lazy: the coefficients are c times one running product, which a step multiplies,
and a new term is divided by it.  Where more terms than the budget carry weight, the oldest are dropped.
"""

import math
from typing import Any

from mercer.compiled import loop
from mercer.solvers.online.rules import loss, moved_width, slope, wrong
from mercer.solvers.online.schedules import step_size

SMALLEST = 1e-100  # the running product is multiplied into the coefficients before it falls below this


@loop
def learn_block(
    rule: int, schedule: Any, nu: float, biased: bool, budget: int, values: Any, targets: Any, weights: Any, c: Any,
    births: Any, lengths: Any, alive: Any, b: Any, width: Any, totals: Any, clock: Any,
) -> None:  # fmt: skip
    """Learn the B points of a block, in their order.

    schedule (shape, rate, lambda); values (B, T + B); targets (k, B); weights (B,), zero for points to pass over;
    c (k, T + B), births (T + B,), the logarithm of the product of all decays at the birth of a term, and alive (T + B,)
    are written from T on, and alive says which terms are kept; lengths (T + B,) are sqrt(k(x, x)); b and width (k,);
    totals (k, 4) adds up weight and loss of the points before they are learnt, and has a bound on the norm of what was
    dropped and the largest slope; clock (4,) holds the number of steps, the logarithm of the product of all decays,
    that at the birth of the newest term that was dropped, and the weight of all mistakes: of several outputs the
    largest should be the one of target 1.
    """
    shape, rate, regularisation = schedule
    rows, every = values.shape
    old = every - rows
    outputs = c.shape[0]
    first, kept = 0, old
    scale = 1.0
    for t in range(rows):
        weight = weights[t]
        if weight == 0.0:
            continue
        clock[0] += 1.0
        size = step_size(shape, rate, regularisation, int(clock[0]))
        factor = 1.0 - regularisation * size
        here = old + t
        row = values[t]
        before, scale = scale, scale * factor
        clock[1] += math.log1p(-regularisation * size)
        any_moved, best, winner = False, -math.inf, 0
        for m in range(outputs):
            line = c[m]
            g = 0.0
            for j in range(first, here):
                g += line[j] * row[j]
            g = before * g + b[m]
            y = targets[m, t]
            if g > best:
                best, winner = g, m
            if outputs == 1:
                clock[3] += weight * wrong(rule, y, g, width[m])
            totals[m, 0] += weight
            totals[m, 1] += weight * loss(rule, y, g, width[m], nu)
            totals[m, 2] *= factor
            moved = weight * slope(rule, y, g, width[m])
            width[m] = moved_width(rule, y, g, width[m], nu, weight * size)
            totals[m, 3] = max(totals[m, 3], abs(moved))
            if moved != 0.0:
                any_moved = True
                line[here] = size * moved / scale
                if biased:
                    b[m] += size * moved
        if outputs > 1 and targets[winner, t] < 0.0:
            clock[3] += weight
        births[here], alive[here] = clock[1], any_moved
        kept += any_moved
        while kept > budget:
            if alive[first]:
                for m in range(outputs):
                    totals[m, 2] += scale * abs(c[m, first]) * lengths[first]
                clock[2] = births[first]
                alive[first] = False
                kept -= 1
            first += 1
        if scale < SMALLEST:
            for m in range(outputs):
                for j in range(first, here + 1):
                    c[m, j] *= scale
            scale = 1.0
    for m in range(outputs):
        for j in range(first, every):
            c[m, j] *= scale
