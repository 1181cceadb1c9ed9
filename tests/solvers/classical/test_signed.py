"""The exact step on one and on two signed variables, against the textbook's formulas and against enumeration."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems.zoo import KINDS, case

from mercer.problems.program import QuadraticProgram
from mercer.solvers.classical.signed import NEVER, Signed, all_offsets, apply_move, best_move, has_kinks

UNIT = st.floats(0.0, 1.0)
REAL = st.floats(-3.0, 3.0)


def variables(lower, upper, left, right, left_ridge=(0.0, 0.0), right_ridge=(0.0, 0.0)):
    """Two variables of one group on two points."""
    arrays = (np.array(v, dtype=float) for v in (lower, upper, left, right, left_ridge, right_ridge))
    return Signed(np.arange(2, dtype=np.intp), *arrays, np.zeros(2, dtype=np.intp))


def slopes(signed, u, F):
    rise, fall = np.empty(u.size), np.empty(u.size)
    all_offsets(signed, u, rise, fall)
    return F + rise, F + fall


def best_pair(signed, u, K, F):
    """u after the step, from the side on which the objective falls."""
    u = u.copy()
    rise, fall = slopes(signed, u, F)
    i, j = (0, 1) if rise[0] < fall[1] else (1, 0)
    slope = rise[i] - fall[j]
    if slope >= 0:
        return u, 0.0
    moved, gained = best_move(signed, u, i, j, slope, K[0, 0] + K[1, 1], K[0, 1])
    apply_move(signed, u, i, j, moved)
    return u, gained


def objective(signed, u, K, F, at):
    """Value at u relative to that at `at`, where the outputs are F."""
    d = u - at
    psi = np.where(
        u > 0, signed.right * u + signed.right_ridge * u**2 / 2, signed.left * u + signed.left_ridge * u**2 / 2
    )
    before = np.where(
        at > 0, signed.right * at + signed.right_ridge * at**2 / 2, signed.left * at + signed.left_ridge * at**2 / 2
    )
    return 0.5 * d @ K @ d + F @ d + (psi - before).sum()


def enumerated(signed, u, K, F):
    """Smallest value over the candidates: ends, kinks, and the minimum of every piece."""
    chi = K[0, 0] + K[1, 1] - 2 * K[0, 1]
    low = max(signed.lower[0] - u[0], u[1] - signed.upper[1])
    high = min(signed.upper[0] - u[0], u[1] - signed.lower[1])
    candidates = [low, high, -u[0], u[1]]
    for side in ("left", "right"):
        for other in ("left", "right"):
            bend = chi + getattr(signed, f"{side}_ridge")[0] + getattr(signed, f"{other}_ridge")[1]
            if bend > 1e-12:
                a, r = getattr(signed, side)[0], getattr(signed, f"{side}_ridge")[0]
                b, q = getattr(signed, other)[1], getattr(signed, f"{other}_ridge")[1]
                candidates.append(-(F[0] + a + r * u[0] - F[1] - b - q * u[1]) / bend)
    t = np.clip(np.array(candidates), low, high)
    return min(objective(signed, u + s * np.array([1.0, -1.0]), K, F, u) for s in t)


@st.composite
def pairs(draw):
    """Any two variables with kinks and ridges, a feasible point, outputs, and a positive semidefinite 2 x 2 matrix."""
    lower, upper = -np.array([draw(UNIT), draw(UNIT)]), np.array([draw(UNIT), draw(UNIT)])
    left = np.array([draw(REAL), draw(REAL)])
    right = left + np.array([draw(UNIT), draw(UNIT)])
    ridges = [np.array([draw(UNIT), draw(UNIT)]) for _ in range(2)] if draw(st.booleans()) else [np.zeros(2)] * 2
    share = np.array([draw(UNIT), draw(UNIT)])
    L = np.array([[draw(REAL), 0.0], [draw(REAL), draw(REAL)]])
    flat = draw(st.booleans())
    K = np.ones((2, 2)) if flat else L @ L.T
    F = np.array([draw(REAL), draw(REAL)])
    inside = np.clip(lower + share * (upper - lower), lower, upper)  # a share of one may round to beyond the bound
    return variables(lower, upper, left, right, *ridges), inside, K, F


@settings(max_examples=400, deadline=None)
@given(pairs())
def test_the_pair_step_is_the_minimum_over_all_pieces(drawn):
    signed, u, K, F = drawn
    chi = K[0, 0] + K[1, 1] - 2 * K[0, 1]
    assume(chi == 0.0 or chi > 1e-9 * (K[0, 0] + K[1, 1]))
    found, gained = best_pair(signed, u, K, F)
    value = objective(signed, found, K, F, u)
    assert value <= enumerated(signed, u, K, F) + 1e-9
    assert value <= 1e-12, "the objective never rises"
    assert gained == pytest.approx(-value, abs=1e-9)
    assert ((found >= signed.lower) & (found <= signed.upper)).all()
    assert found.sum() == pytest.approx(u.sum(), abs=1e-11), "the sum is kept"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([-1.0, 1.0]), st.sampled_from([-1.0, 1.0]), st.tuples(UNIT, UNIT), st.tuples(REAL, REAL),
    st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0)), st.floats(-0.95, 0.95),
)  # fmt: skip
def test_the_classification_step_is_proposition_10_4_corrected(yi, yj, share, f, C, k):
    """chi = K_ii + K_jj - 2 K_ij, delta = y_i (E_j - E_i), clipped to the corrected bounds L and H."""
    y, C = np.array([yi, yj]), np.array(C)
    K = np.array([[1.0, k], [k, 1.0]])
    alpha, F = np.array(share) * C, np.array(f)
    signed = variables(np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0), -y, -y)
    E = F - y
    a, b = alpha
    if yi == yj:
        low, high = max(0.0, a + b - C[1]), min(C[0], a + b)
    else:
        low, high = max(0.0, a - b), min(C[0], C[1] + a - b)
    new = np.clip(a + yi * (E[1] - E[0]) / (2.0 - 2.0 * k), low, high)
    found, _ = best_pair(signed, y * alpha, K, F)
    assert abs(found[0]) == pytest.approx(new, abs=1e-9)
    assert abs(found[1]) == pytest.approx(b + yi * yj * (a - new), abs=1e-9)


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(REAL, REAL), st.tuples(REAL, REAL), st.tuples(UNIT, UNIT), st.tuples(UNIT, UNIT), st.floats(0.0, 0.5),
    st.sampled_from([0.0, 0.3, 1.0]), st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)  # fmt: skip
def test_the_regression_step_is_the_three_region_rule_with_its_final_clip(f, y, C, Cstar, eps, chi, where):
    """Section 10.5.3 with the sign of beta_0 and the final clip corrected, and the four cases of chi = 0."""
    C, Cstar, F, y = np.array(C), np.array(Cstar), np.array(f), np.array(y)
    beta = np.where(np.array(where) > 0, np.array(where) * C, np.array(where) * Cstar)
    K = np.array([[1.0, 1.0 - chi / 2], [1.0 - chi / 2, 1.0]])
    signed = variables(-Cstar, C, -y - eps, -y + eps)
    E, gamma = F - y, beta.sum()
    low, high = max(gamma - C[1], -Cstar[0]), min(gamma + Cstar[1], C[0])
    l, h = min(0.0, gamma), max(0.0, gamma)
    g = E[0] - E[1]
    assume(min(abs(g), abs(abs(g) - 2 * eps)) > 1e-9)
    if chi == 0.0:
        new = high if g < -2 * eps else h if g < 0 else l if g <= 2 * eps else low
    else:
        plain = beta[0] - g / chi
        new = plain
        if plain > h:
            new = max(plain - 2 * eps / chi, h)
        elif plain < l:
            new = min(plain + 2 * eps / chi, l)
    new = np.clip(new, low, high)
    found, _ = best_pair(signed, beta, K, F)
    rule = np.array([new, gamma - new])
    # Flat directions have many minima: the values agree, and where the curvature is positive the points too.
    assert objective(signed, found, K, F, beta) == pytest.approx(objective(signed, rule, K, F, beta), abs=1e-9)
    if chi > 0.0:
        assert found == pytest.approx(rule, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(pairs())
def test_clipping_the_free_minimum_is_optimal_along_the_constraint(drawn):
    """Problem 10.15: the step is orthogonal to the normal of the equality, and the box only cuts it shorter."""
    signed, u, K, F = drawn
    signed = signed._replace(right=signed.left, left_ridge=np.zeros(2), right_ridge=np.zeros(2))
    chi = K[0, 0] + K[1, 1] - 2 * K[0, 1]
    assume(chi > 1e-3)
    found, _ = best_pair(signed, u, K, F)
    step = found - u
    assert step @ np.ones(2) == pytest.approx(0.0, abs=1e-11)
    free = -(F[0] + signed.left[0] - F[1] - signed.left[1]) / chi
    low = max(signed.lower[0] - u[0], u[1] - signed.upper[1])
    high = min(signed.upper[0] - u[0], u[1] - signed.lower[1])
    assert step[0] == pytest.approx(np.clip(free, low, high), abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(pairs())
def test_one_variable_alone_goes_to_its_minimum(drawn):
    """Problem 10.14: without an equality a variable moves to its own minimum, kinks included."""
    signed, u, K, F = drawn
    assume(K[0, 0] > 1e-3)
    rise, fall = slopes(signed, u, F)
    before = u.copy()
    if rise[0] < 0:
        moved, gained = best_move(signed, u, 0, -1, rise[0], K[0, 0], 0.0)
        apply_move(signed, u, 0, -1, moved)
    elif fall[0] > 0:
        moved, gained = best_move(signed, u, -1, 0, -fall[0], K[0, 0], 0.0)
        apply_move(signed, u, -1, 0, moved)
    else:
        gained = 0.0
    value = objective(signed, u, K, F, before)
    assert gained == pytest.approx(-value, abs=1e-9)
    grid = np.linspace(signed.lower[0], signed.upper[0], 401)
    others = [objective(signed, np.array([t, before[1]]), K, F, before) for t in grid]
    assert value <= min(others) + 1e-9
    assert u[1] == before[1]


def test_the_gain_of_a_step_that_no_bound_cuts_off_is_half_delta_squared_over_chi():
    signed = variables([0.0, -9.0], [9.0, 0.0], [-1.0, 1.0], [-1.0, 1.0])
    K, F = np.array([[1.0, 0.2], [0.2, 1.0]]), np.zeros(2)
    _, gained = best_pair(signed, np.zeros(2), K, F)
    assert gained == pytest.approx(2.0**2 / (2 * (2 - 0.4)))


def test_rounding_leaves_no_variable_next_to_its_bound():
    """0.1 + 0.2 - 0.3 is not zero: without care it would stay free and unable to move, also in an infinite box."""
    for upper in (1.0, np.inf):
        signed = variables([0.0, 0.0], [upper, upper], [0.0, 0.0], [0.0, 0.0], [0.1, 0.1], [0.1, 0.1])
        u = np.array([0.1, 0.1 + 0.2])
        apply_move(signed, u, 0, 1, 0.3)
        assert u[1] == 0.0
        _, fall = slopes(signed, u, np.zeros(2))
        assert fall[1] == -NEVER


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_merged_variables_are_the_program_again(kind):
    """Two variables of opposite sign on one point become one, and never both differ from zero again."""
    problem = case(kind, 1).problem
    program = problem.program()
    signed = Signed.of(program)
    s = program.start()
    u = signed.merged(s)
    back = signed.split(u, program.size)
    assert program.coefficients(back) == pytest.approx(program.coefficients(s))
    assert program.objective(back) <= program.objective(s) + 1e-12
    if has_kinks(program):
        assert not (back[: program.n] * back[program.n :]).any()
        rng = np.random.default_rng(0)
        u = rng.uniform(np.maximum(signed.lower, -2), np.minimum(signed.upper, 2))
        s = signed.split(u, program.size)
        own = 0.5 * u @ (np.asarray(program.gram.dense()) + program.constant) @ u
        left, right = signed.left * u + signed.left_ridge * u**2 / 2, signed.right * u + signed.right_ridge * u**2 / 2
        assert own + np.where(u > 0, right, left).sum() == pytest.approx(program.objective(s))


def test_variables_of_different_sums_are_not_merged():
    """nu-SVR keeps the sums of both sides of the tube apart; a point may be on both when the tube has closed."""
    problem = case(next(kind for kind in KINDS if kind.__name__ == "nu_svr"), 0).problem
    program: QuadraticProgram = problem.program()
    assert not has_kinks(program)
    assert Signed.of(program).point.size == 2 * program.n
