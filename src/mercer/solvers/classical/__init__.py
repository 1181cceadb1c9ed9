"""The solvers of the literature, one file each, readable beside their mathematics.

All minimise the quadratic program of `mercer.problems.program` in signed variables and are strategies of the one engine
of working sets (`mercer.solvers.working_sets`), which asks the monitor, keeps limits, computes the outputs again in
float64 and states the certificate.  What they share is written once:

    row_cache.py       rows of the kernel matrix under a byte budget, least recently used leave first; counters
    element_cache.py   single kernel values under a byte budget; counters
    dual.py            variables, gradient, thresholds, outputs F = K c updated from differences, shrinking, `descend`
    signed.py          variables with a kink, so that classification and regression are one; the exact step on a pair
    steps.py           that step in compiled code on rows that are held; signed_dual.py runs loops of it
    shrinking.py       look counts and sticky flags: which variables stay at their bound for now
    working_set.py     a few variables at a time, by any inner solver
    ../quadratic/analytic_step.py   the steps on one and on two variables

A solver module declares NAME, ACCEPTS (in words), SECTION (of its source), `accepts(problem)` and

    solve(problem, *, tol=1e-3, gap_tol=None, start=None, monitor=None, max_iter=-1, memory=None, ...) -> Solution

and has a line in `mercer.solvers.catalogue`.  Its method is a subclass of `ClassicalDual` whose `advance(aim, most)`
makes at most `most` steps towards a violation of at most `aim` and returns how many it made; `solve` is one call of
`descend`, to which it hands the parameters above unread (`dual.Limits`).  Variable v of N sits on point v % n;
`dual.flat` and `dual.G.ravel()` hold all variables in that order.
"""
