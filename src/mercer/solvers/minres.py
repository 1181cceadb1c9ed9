"""MINRES on the saddle-point form (Paige and Saunders 1975): the smallest residual in each Krylov space.

Lanczos vectors v_l of A, with b_{l+1} v_{l+1} = A v_l - a_l v_l - b_l v_{l-1}, give a tridiagonal T_l; its QR
factorisation by one new rotation per step turns min |b_1 e_1 - T_l y| into a two-term update of the solution.  The
residual norm is known at every step and never rises.  A may be indefinite, and singular if the system is consistent:
then the answer is the one of least length, so that C = inf (interpolation) works on singular K.

All k outputs run side by side, each with its own Lanczos process, and share each pass over the kernel matrix.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance
from mercer.solvers.linear_system import LinearSystem, require
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.saddle import Milestones, SaddleForm
from mercer.solvers.solution import Solution, Stopped

Array = NDArray[np.float64]


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem, singular ones included."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "MINRES solves least-squares problems only")
    return Acceptance(True, "needs products with the kernel matrix only, definite or not")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = 1e-10,
    start: Solution | Array | None = None,
    monitor: Monitor | None = None,
    residual: float | None = None,
    iterations: int | None = None,
) -> Solution:
    """Iterate until the relative duality gap is at most `tol`, or |A u - right| <= `residual` |right|.

    details: "residuals", the largest residual norm after each step over the largest |right|.
    """
    require(accepts(problem))
    system = LinearSystem(problem, definite=False)
    form = SaddleForm(system)
    goal = Milestones(form, tol, residual)
    limit = 10 * system.n + 100 if iterations is None else iterations
    with listening(monitor) as watch:
        U, stopped, history = _iterate(form, form.start(start), goal, limit, watch)
        c = form.feasible(U[: system.n])
        certificate = form.certificate(U)
        return system.certified(
            c,
            certificate,
            "minres",
            iterations=len(history) - 1,
            stopped=stopped,
            monitor=watch,
            details={"residuals": np.array(history) / goal.scale},
        )


def _over(top: Array, bottom: Array) -> Array:
    """Quotient, zero where the bottom is zero: a column whose Krylov space is exhausted stays where it is."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0)


def _iterate(
    form: SaddleForm, U: Array, goal: Milestones, limit: int, monitor: Monitor
) -> tuple[Array, Stopped, list[float]]:
    R = form.right - form.dot(U) if U.any() else form.right.copy()
    beta = np.linalg.norm(R, axis=0)
    v, v_before = _over(R, np.broadcast_to(beta, R.shape)), np.zeros_like(R)
    w, w_before = np.zeros_like(R), np.zeros_like(R)
    k = R.shape[1]
    cosine, sine = -np.ones(k), np.zeros(k)
    d_bar, epsilon, phi_bar = np.zeros(k), np.zeros(k), beta.copy()
    first = beta.copy()
    beta = np.zeros(k)
    history = [float(phi_bar.max(initial=0.0))]
    checks_left = 40
    while True:
        if goal.reached(history[-1], U):
            return U, "converged", history
        if not monitor.watch(len(history) - 1, *goal.certificate.total[:2], residual=history[-1] / goal.scale):
            return U, monitor.stopped or "interrupted", history
        if len(history) > limit:
            return U, "iterations", history
        if history[-1] <= 1e-15 * goal.scale or checks_left == 0:
            return U, "stalled" if goal.tol is not None else "converged", history
        y = form.dot(v) - beta * v_before
        alpha = np.sum(v * y, axis=0)
        y -= alpha * v
        beta_next = np.linalg.norm(y, axis=0)
        # A Krylov space that is exhausted leaves only rounding noise; its column is finished.
        beta_next = np.where(beta_next > 1e-14 * (np.abs(alpha) + beta), beta_next, 0.0)
        epsilon_before = epsilon
        delta = cosine * d_bar + sine * alpha
        g_bar = sine * d_bar - cosine * alpha
        epsilon = sine * beta_next
        d_bar = -cosine * beta_next
        gamma = np.hypot(g_bar, beta_next)
        cosine, sine = _over(g_bar, gamma), _over(beta_next, gamma)
        phi = cosine * phi_bar
        phi_bar = sine * phi_bar
        w, w_before = _over(v - epsilon_before * w_before - delta * w, np.broadcast_to(gamma, v.shape)), w
        U = U + phi * w
        v, v_before = _over(y, np.broadcast_to(beta_next, y.shape)), v
        beta = beta_next
        history.append(float(np.abs(phi_bar).max(initial=0.0)))
        checks_left -= history[-1] >= (1 - 1e-12) * history[-2] and history[-1] <= 1e-12 * float(first.max())
