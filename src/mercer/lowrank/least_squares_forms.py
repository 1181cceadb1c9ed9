"""The low-rank least-squares machines of the literature, each by its own system, on one set of landmarks.

With landmarks S, A = k(X, S) (n, m), B = k(S, S) (m, m), ridge r = 1/C and K~ = A B^-1 A':

    subset               (K_SS + r I) c = y_S                 the exact machine on the landmarks alone
    rectangle            (A'A + r B) a = A'y                  all points in the loss, landmarks in the expansion
    nystrom              (K~ + r I) c = y  by Woodbury        an expansion on all points, or its projection
    eigen                the same with B = U diag(l) U'
    incomplete_cholesky  the same with K~ = G G'
    rsvm                 (A'A + r I) a = A'y                  the ridge on the coefficients themselves
    fixed_size           least squares on Z = A U diag(l)^-1/2 by QR

(Rifkin 2002, section 3.7; Hamers 2004, chapter 5, with the printed systems made symmetric where they are not: 5.13,
5.16, 5.20-5.22, 5.24, 5.30 and 5.32.)  A free bias borders each system with A'1 and n.

All but subset and rsvm are one machine: the same bias, the same outputs K~c + b at the training points, and
a = B^-1 A'c.  They differ at new points only, where `evaluation="full"` takes k(x, x_i) of all points in the place of
its projection k(x, S) B^-1 k(S, x_i), which does not belong to the problem that was solved.

Every function takes (kernel, X, Y, landmarks, *, C=1.0, bias="free"), with X (n, d), Y (n,) or (n, k) and the bias
"free" or "none", and returns a Solution whose certificate is that of K~.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.gram import Gram, KernelColumns, take
from mercer.kernels import Kernel, Precomputed
from mercer.lowrank.feature_map import KernelMap, landmark_matrix, spectral_map, triangular_map
from mercer.lowrank.landmarks import Landmarks
from mercer.problems.least_squares import LeastSquares, certify
from mercer.solvers.linear import cholesky, minres, symmlq
from mercer.solvers.linear.bordered import eliminate
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Bias = Literal["free", "none"]
Evaluation = Literal["projected", "full"]
InnerSolver = Literal["ldl", "minres", "symmlq"]


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """What every form starts from: kernel, points X (n, d), targets Y (n, k), landmarks S (m, d), C and the border."""

    kernel: Kernel
    X: Any
    Y: Array
    S: Any
    index: NDArray[np.intp] | None
    C: float
    border: Array
    began: float

    @property
    def ridge(self) -> float:
        """1/C."""
        return 1.0 / self.C

    @property
    def free_bias(self) -> bool:
        """Whether there is a bias outside the penalty."""
        return bool(self.border.shape[1])

    def values(self) -> Array:
        """A (n, m)."""
        return KernelColumns(self.kernel, self.S).values(self.X)


def predict(solution: Solution, kernel: Kernel, X: Any, landmarks: Any, X_new: Any) -> Array:
    """Outputs (t, k) at new points of a solution found here for points X and these landmarks."""
    points = X if solution.details["points"] == "all" else _stated(kernel, X, None, landmarks, 1.0, "none").S
    return np.asarray(kernel(X_new, points) @ solution.coefficients + solution.bias)


# The forms ---------------------------------------------------------------------------------------------------------

FORMS: dict[str, Callable[..., Solution]] = {}


def _form(method: Callable[..., Solution]) -> Callable[..., Solution]:
    """A form as a function (kernel, X, Y, landmarks, *, C=1.0, bias="free") that takes its own options besides."""

    def solve(
        kernel: Kernel, X: Any, Y: ArrayLike, landmarks: Any, *, C: float = 1.0, bias: Bias = "free", **options: Any
    ) -> Solution:
        return method(_stated(kernel, X, Y, landmarks, C, bias), **options)

    solve.__name__, solve.__doc__ = method.__name__, method.__doc__
    FORMS[method.__name__] = solve
    return solve


@_form
def subset(task: ReducedSystem, rescale: bool = False) -> Solution:
    """The exact machine on the landmarks, which must be points of X, alone (Rifkin 2002, section 3.7).

    rescale : keep lambda = 1/(C n) in the place of the ridge 1/C, that is, multiply C by n/m.
    """
    if task.index is None:
        raise InvalidInput("subset trains on the landmarks, so that they must be points of X: give their index")
    C = task.C * len(task.Y) / len(task.index) if rescale else task.C
    gram = Gram(task.kernel, task.S, storage="streamed")
    solution = cholesky.solve(LeastSquares(gram, task.Y[task.index], C, None, "free" if task.free_bias else "none"))
    return _described(solution, "subset", "landmarks", solution.coefficients, np.asarray(solution.bias), task.began)


@_form
def rectangle(task: ReducedSystem, solver: InnerSolver = "ldl", jitter: float = 0.0) -> Solution:
    """Minimise 1/2 a'Ba + C/2 |y - Aa - b|^2 over the landmarks' coefficients.

    Also known as subset of regressors and reduced basis.

    solver : of the semidefinite m x m system; jitter : added to its diagonal, which biases the answer.
    """
    A, B = task.values(), landmark_matrix(task.kernel, task.S)
    a, b = _normal_equations(A, task.ridge * B, task, solver, jitter)
    return _on_landmarks("rectangle", task, A, triangular_map(task.kernel, task.S), a, b)


reduced_basis = FORMS["reduced_basis"] = rectangle


@_form
def nystrom(
    task: ReducedSystem, evaluation: Evaluation = "projected", solver: InnerSolver = "ldl", jitter: float = 0.0
) -> Solution:
    """(r B + A'A) [s_1 s_y] = A'[1 y], then [eta nu] = C ([1 y] - A [s_1 s_y]), b = 1'nu / 1'eta, c = nu - b eta.

    evaluation : "projected" gives coefficients B^-1 A'c on the landmarks, "full" leaves c on all points.
    """
    A, B = task.values(), landmark_matrix(task.kernel, task.S)
    c, b = _by_woodbury(task, A, lambda right: _semidefinite(task.ridge * B + A.T @ A, right, solver, jitter))
    return _on_all("nystrom", task, triangular_map(task.kernel, task.S), c, b, evaluation)


@_form
def eigen(
    task: ReducedSystem, evaluation: Evaluation = "projected", rank: int | None = None, tol: float | None = None
) -> Solution:
    """With U~ = A U diag(l)^-1 and K~ = U~ diag(l) U~':  (r diag(l)^-1 + U~'U~) s = U~'[1 y], positive definite.

    Eigenvalues below `tol` times the largest are dropped, and all but the largest `rank`.
    """
    found = spectral_map(task.kernel, task.S, rank, tol)
    assert found.transform is not None
    lengths = np.einsum("ij,ij->j", found.transform, found.transform)  # 1 / l_i, since U has unit columns
    extended = task.values() @ (found.transform * np.sqrt(lengths))
    core = task.ridge * np.diag(lengths) + extended.T @ extended
    c, b = _by_woodbury(task, extended, lambda right: dense.solve_positive(core, right))
    return _on_all("eigen", task, found, c, b, evaluation)


@_form
def incomplete_cholesky(task: ReducedSystem, evaluation: Evaluation = "projected") -> Solution:
    """With K~ = G G':  (r I + G'G) s = G'[1 y], always positive definite.  The landmarks are the pivots."""
    found = triangular_map(task.kernel, task.S)
    G = found.features(task.X)
    core = task.ridge * np.eye(G.shape[1]) + G.T @ G
    c, b = _by_woodbury(task, G, lambda right: dense.solve_positive(core, right))
    return _on_all("incomplete Cholesky", task, found, c, b, evaluation)


@_form
def rsvm(task: ReducedSystem, solver: InnerSolver = "ldl") -> Solution:
    """Minimise 1/2 |a|^2 + C/2 |y - Aa - b|^2: the ridge of the reduced support vector machine, bias left free."""
    A = task.values()
    a, b = _normal_equations(A, task.ridge * np.eye(A.shape[1]), task, solver, 0.0)
    return _on_landmarks("rsvm", task, A, KernelMap(task.kernel, task.S), a, b)


@_form
def fixed_size(task: ReducedSystem) -> Solution:
    """The least-squares solution of [Z 1; sqrt(r) I 0] [w; b] = [y; 0] by QR, with Z = A U diag(l)^-1/2."""
    found = spectral_map(task.kernel, task.S)
    Z = found.features(task.X)
    p, q = Z.shape[1], task.border.shape[1]
    tall = np.block([[Z, task.border], [np.sqrt(task.ridge) * np.eye(p), np.zeros((p, q))]])
    Q, R = dense.qr(tall)
    both = dense.solve_triangular(np.ascontiguousarray(R.T), Q[: len(Z)].T @ task.Y, transposed=True)
    b = both[p] if q else np.zeros(task.Y.shape[1])
    assert found.transform is not None
    return _on_landmarks("fixed size", task, task.values(), found, found.transform @ both[:p], b)


# What they share ---------------------------------------------------------------------------------------------------


def _stated(kernel: Kernel, X: Any, Y: Any, landmarks: Any, C: float, bias: Any) -> ReducedSystem:
    """The task with its landmarks: a Landmarks object, the index (m,) of rows of X, or points (m, d)."""
    if not 0.0 < C < np.inf:
        raise InvalidInput(f"C must be positive and finite, got {C!r}")
    if bias not in ("free", "none"):
        raise InvalidInput(f"bias must be 'free' or 'none', got {bias!r}")
    n = int(X.shape[0])
    targets = np.empty((n, 0)) if Y is None else np.asarray(Y, dtype=np.float64).reshape(n, -1)
    index, points = None, landmarks
    if isinstance(landmarks, Landmarks):
        index, points = landmarks.index, landmarks.points
    elif np.ndim(landmarks) == 1:
        index = np.asarray(landmarks, dtype=np.intp)
        points = take(X, index)
    border = np.ones((n, 1 if bias == "free" else 0))
    return ReducedSystem(kernel, X, targets, points, index, float(C), border, time.perf_counter())


def _normal_equations(
    A: Array, penalty: Array, task: ReducedSystem, solver: InnerSolver, jitter: float
) -> tuple[Array, Array]:
    """Solve for a (m, k) and b (k,) in [[penalty + A'A, A'1], [1'A, n]] [a; b] = [A'y; 1'y]."""
    m = A.shape[1]
    wide = np.hstack([A, task.border])
    M = wide.T @ wide
    M[:m, :m] += penalty
    both = _semidefinite(M, wide.T @ task.Y, solver, jitter)
    return both[:m], both[m] if task.free_bias else np.zeros(task.Y.shape[1])


def _semidefinite(M: Array, right: Array, solver: InnerSolver, jitter: float) -> Array:
    """Solve M x = right for a semidefinite M whose system has a solution."""
    if jitter:
        M = M + jitter * np.eye(len(M))
    if solver == "ldl":
        factor = np.array(M, order="F")
        pivots = dense.factorise_indefinite(factor)
        x = None if pivots is None else dense.solve_indefinite(factor, pivots, right)
        return x if x is not None and np.isfinite(x).all() else dense.least_squares(M, right)
    if solver not in ("minres", "symmlq"):
        raise InvalidInput(f"solver must be 'ldl', 'minres' or 'symmlq', got {solver!r}")
    problem = LeastSquares(Gram(Precomputed(), 0.5 * (M + M.T)), right, np.inf, None, "none")
    run = minres.solve if solver == "minres" else symmlq.solve
    return run(problem, tol=None, residual=1e-14, iterations=20 * len(M)).coefficients


def _by_woodbury(task: ReducedSystem, V: Array, solve: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Coefficients c (n, k) and bias b (k,) from (K~ + r I)^-1 [1 y] = C ([1 y] - V s), s = solve(V'[1 y])."""
    right = np.hstack([task.border, task.Y])
    c, b = eliminate(task.C * (right - V @ solve(V.T @ right)), task.border)
    return c, b.sum(axis=0)


def _on_landmarks(name: str, task: ReducedSystem, A: Array, found: KernelMap, a: Array, b: Array) -> Solution:
    """The solution with coefficients a (m, k) on the landmarks; its dual point is c = C e."""
    c = task.C * (task.Y - A @ a - b)
    return _described(_certified(task, found, c), name, "landmarks", a, b, task.began)


def _on_all(name: str, task: ReducedSystem, found: KernelMap, c: Array, b: Array, evaluation: Evaluation) -> Solution:
    """The solution with coefficients c (n, k) on all points, or their projection T (Z'c) on the landmarks."""
    if evaluation not in ("projected", "full"):
        raise InvalidInput(f"evaluation must be 'projected' or 'full', got {evaluation!r}")
    certified = _certified(task, found, c)
    if evaluation == "full":
        return _described(certified, name, "all", c, b, task.began)
    alpha = np.zeros((int(task.S.shape[0]), c.shape[1]))
    alpha[found.kept] = found.expansion(found.features(task.X).T @ c).coefficients
    return _described(certified, name, "landmarks", alpha, b, task.began)


def _certified(task: ReducedSystem, found: KernelMap, c: Array) -> Solution:
    """The certificate of c (n, k) for the machine with kernel K~ = Z Z'."""
    if task.free_bias:
        c = c - c.mean(axis=0)  # what rounding leaves of 1'c
    Z = found.features(task.X)
    certificate = certify(c, Z @ (Z.T @ c), task.Y, task.border, np.ones(len(c)), task.C)
    return Solution.certified(certificate, c, c, solver="low rank", iterations=1, stopped="converged", seconds=0.0)


def _described(solution: Solution, name: str, points: str, coefficients: Array, b: Array, began: float) -> Solution:
    """The solution under the name of its form; `points` says where its coefficients sit: "landmarks" or "all"."""
    return replace(
        solution,
        coefficients=coefficients,
        bias=np.asarray(b, dtype=np.float64),
        solver=name,
        seconds=time.perf_counter() - began,
        details={"points": points},
    )
