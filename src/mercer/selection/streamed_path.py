"""A path of C where no n x n matrix can be held: the decomposition solver on streamed kernel values, warm from C to C.

The same outcomes as `mercer.selection.cross_validation` for two classes and real targets, one fold after the other; the
threads share the tiles of each product instead of the folds.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.problems import Problem, SupportVectorClassification, SupportVectorRegression, rescale
from mercer.selection.cross_validation import Classes, Outcome, Settings, Targets, Turned
from mercer.selection.folds import Layout
from mercer.solvers import decomposition

Array = NDArray[np.float64]


def streamed_fold(
    X: Any, kernel: Kernel, layout: Layout, fold: int, kind: Classes | Targets, settings: Settings, memory: int
) -> Outcome:
    """One fold for all C on points X (n, d) in working order."""
    began = time.perf_counter()
    held, where = layout.rows(fold), layout.outside(fold)
    gram = Gram(kernel, X[where], memory=memory, precision="float32", access="rows")
    scores, support = np.full(len(settings.costs), np.nan), np.full(len(settings.costs), np.nan)
    truth: Any = kind.codes[held] if isinstance(kind, Classes) else kind.y[held]
    weights, turned = kind.weights[where], Turned()
    before: Problem | None = None
    variables: Array | None = None
    for c, C in enumerate(settings.costs):
        if not settings.go_on():
            return Outcome(scores, support, time.perf_counter() - began, False)
        problem: Problem
        if isinstance(kind, Classes):
            signs = np.where(kind.codes[where] == 0, 1.0, -1.0)
            problem = SupportVectorClassification(gram, signs, float(C), weights)
        else:
            problem = SupportVectorRegression(gram, kind.y[where], float(C), kind.epsilon, weights)
        start = None if before is None or variables is None else rescale(variables, before, problem)
        solution = decomposition.solve(problem, tol=settings.tol, start=start)
        before, variables = problem, np.asarray(solution.variables)
        used = np.flatnonzero(solution.coefficients)
        cross = Gram(kernel, X[held], X[where[used]], memory=memory, precision="float32")
        values = np.asarray(cross.dot(solution.coefficients[used])) + float(solution.bias)
        predicted = np.where(values > 0.0, 0, 1) if isinstance(kind, Classes) else values
        scores[c], support[c] = settings.score(truth, predicted), len(used)
        losses = (predicted != truth).astype(np.float64) if isinstance(kind, Classes) else (predicted - truth) ** 2
        if settings.early and turned(losses):
            break
    return Outcome(scores, support, time.perf_counter() - began, True)
