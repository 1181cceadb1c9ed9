"""The reduced-set support vector machine: the hinge over all points, the expansion on the landmarks alone.

    min over a, b of   1/2 a'Ba + C sum_i (1 - y_i ((A a)_i + b))_+,        A = k(X, S),  B = k(S, S)

Its dual is the ordinary dual with K~ = A B^-1 A' in the place of K, and the coefficients come back from B a = A'c with
c_i = y_i alpha_i (Rifkin 2002, section 3.7.2; Fine and Scheinberg 2001).  The plain version predicts with c and the
exact kernel of all points instead; only this last step differs.  The epsilon-insensitive loss goes the same way.

`SVC(approximation=Nystrom(m))` is this machine with all that belongs to an estimator.
"""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.gram import LowRankGram, take
from mercer.kernels import Kernel
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.lowrank.feature_map import triangular_map
from mercer.lowrank.landmarks import Landmarks
from mercer.problems import RegularisedRisk
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic import interior_point, linear_dual
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]


def solve(
    kernel: Kernel,
    X: Any,
    y: ArrayLike,
    landmarks: Any,
    *,
    C: float = 1.0,
    epsilon: float | None = None,
    weights: ArrayLike | None = None,
    bias: Literal["free", "none", "penalised"] = "free",
    evaluation: Literal["projected", "full"] = "projected",
    solver: Literal["interior_point", "linear_dual"] = "interior_point",
    tol: float = 1e-8,
    monitor: Monitor | None = None,
) -> Solution:
    """Fit labels y (n,) of +-1, or real targets to within `epsilon` where that is given.

    landmarks : a Landmarks object, the index (m,) of rows of X, or points (m, d).
    evaluation : "projected" gives coefficients (m,) on the landmarks, "full" leaves c (n,) on all points.
    tol : the relative gap of the interior point method, or the violation at which coordinate descent stops.
    """
    if evaluation not in ("projected", "full"):
        raise InvalidInput(f"evaluation must be 'projected' or 'full', got {evaluation!r}")
    points = landmarks.points if isinstance(landmarks, Landmarks) else landmarks
    points = take(X, np.asarray(points, dtype=np.intp)) if np.ndim(points) == 1 else points
    found = triangular_map(kernel, points)
    gram = LowRankGram.from_factors(found.features(X))
    if solver not in ("interior_point", "linear_dual"):
        raise InvalidInput(f"solver must be 'interior_point' or 'linear_dual', got {solver!r}")
    loss = Hinge() if epsilon is None else EpsilonInsensitive(epsilon)
    problem = RegularisedRisk(gram, y, loss, C, weights, bias)
    run = interior_point.solve if solver == "interior_point" else linear_dual.solve
    solution = run(problem, tol=tol, monitor=monitor)
    if evaluation == "full":
        return replace(solution, details={**solution.details, "points": "all"})
    alpha = np.zeros(int(points.shape[0]))
    alpha[found.kept] = found.expansion(gram.factor().T @ solution.coefficients).coefficients[:, 0]
    return replace(solution, coefficients=alpha, details={**solution.details, "points": "landmarks"})
