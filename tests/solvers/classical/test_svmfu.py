"""SvmFu: values never computed twice, exact outputs around the reduced set, and the rules of the queue."""

from collections import Counter

import numpy as np
import pytest
from problems.zoo import c_svc, case, gaussian, nu_svr

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Precomputed
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers.classical import svmfu
from mercer.solvers.classical.chunk_cache import ChunkCache
from mercer.solvers.classical.svmfu_chunk import Chunk
from mercer.solvers.quadratic import interior_point


class Counted:
    """A kernel matrix that remembers which values it was asked for."""

    def __init__(self, K):
        self.K, self.shape, self.dtype = K, K.shape, K.dtype
        self.asked = Counter()

    def block(self, rows, columns):
        rows, columns = np.arange(len(self.K))[rows], np.arange(len(self.K))[columns]
        self.asked.update((min(i, j), max(i, j)) for i in rows.tolist() for j in columns.tolist())
        return self.K[np.ix_(rows, columns)]

    def dot(self, V):
        return self.K @ V

    def columns_dot(self, index, V):
        return self.K[:, index] @ V

    def exact_dot(self, rows, columns, V):
        return self.K[np.ix_(np.arange(len(self.K))[slice(None) if rows is None else rows], columns)] @ V

    def diagonal(self):
        return np.diag(self.K).copy()

    def dense(self):
        return self.K


def classes(n, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def problem_of(n, C=1.0, sigma=1.0, seed=0, noise=0.5):
    X, y = classes(n, seed, noise)
    K = gaussian(X, sigma)
    return RegularisedRisk(Counted(K), y, Hinge(), C), K


def watch(monkeypatch, name, note, kind=svmfu.SvmFu):
    """Call note(self, result, *arguments) after every call of a method."""
    method = getattr(kind, name)

    def watched(self, *arguments, **named):
        out = method(self, *arguments, **named)
        note(self, out, *arguments)
        return out

    monkeypatch.setattr(kind, name, watched)


# Inner algorithm -------------------------------------------------------------------------------------------------


def test_no_value_is_computed_twice_and_pairs_that_never_move_are_not_computed():
    problem, _ = problem_of(150)
    found = svmfu.solve(problem, tol=1e-6)
    asked = problem.gram.asked
    assert max(asked.values()) == 1
    assert found.details["kernel_values"] == len(asked) < 150 * 151 / 2
    still = np.flatnonzero(found.coefficients == 0).tolist()
    assert any((i, j) not in asked for i in still for j in still if i < j)


def test_rows_known_bound_the_values_computed(monkeypatch):
    problem, _ = problem_of(200)
    rows = []
    fill = ChunkCache.fill_row
    monkeypatch.setattr(
        ChunkCache, "fill_row", lambda self, place: (rows.append(int(self.points[place])), fill(self, place))
    )
    found = svmfu.solve(problem, tol=1e-6)
    assert len(rows) == len(set(rows)), "a row is made once"
    assert found.details["kernel_values"] <= len(rows) * 200
    assert set(np.flatnonzero(found.coefficients)) <= set(rows)


def test_outputs_are_exact_after_every_return_from_the_reduced_set(monkeypatch):
    """S6: the members move alone, the gradients of the rest of the chunk follow on return."""
    problem, K = problem_of(120, C=1e3, sigma=0.7)
    returns = []

    def note(self, *_):
        points = self.cache.points[: self.state.u.size]
        returns.append(np.abs(self.state.F - K[np.ix_(points, points)] @ self.state.u).max())

    watch(monkeypatch, "solve_reduced", note, Chunk)
    found = svmfu.solve(problem, tol=1e-8)
    assert len(returns) > 1, "the reduced set was used more than once: the count starts again"
    assert max(returns) < 1e-9
    exact = interior_point.solve(RegularisedRisk(Gram(Precomputed(), K), problem.y, Hinge(), 1e3))
    assert found.dual == pytest.approx(exact.dual, rel=1e-8)


# Outer algorithm -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [8, 30, 90, 300])
@pytest.mark.parametrize("memory", ["1 MiB", "8 MiB"])
def test_the_answer_does_not_depend_on_chunk_or_cache(chunk, memory):
    X, y = classes(300)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X, storage="streamed"), y, Hinge(), 2.0)
    exact = interior_point.solve(problem)
    found = svmfu.solve(problem, tol=1e-5, chunk=chunk, memory=memory)
    assert found.converged
    assert found.dual == pytest.approx(exact.dual, rel=1e-6)
    assert problem.program().violation(found.variables)[1] < 1e-10
    assert found.details["chunk"] == chunk


def test_the_objective_falls_from_chunk_to_chunk_and_is_the_one_it_says(monkeypatch):
    problem, K = problem_of(300, C=10.0)
    program, values = problem.program(), []

    def note(self, *_):
        c = self.u
        exact = 0.5 * c @ K @ c + program.linear @ c
        assert self.objective() == pytest.approx(exact, rel=1e-9)
        values.append(exact)

    watch(monkeypatch, "advance", note)
    svmfu.solve(problem, tol=1e-4, chunk=60)
    assert len(values) > 3
    assert (np.diff(values) <= 1e-12 * abs(values[-1])).all()


def test_as_many_enter_as_the_rule_says(monkeypatch):
    """At most R = max(chunk - #free - 200, 100) once the chunk is full."""
    problem, _ = problem_of(1500, noise=1.0)
    entered = []

    def note(self, out, *_):
        loose = np.count_nonzero((self.u > self.signed.lower) & (self.u < self.signed.upper))
        if self.size == self.cache.points.size:
            entered.append((out[0].size, max(self.size - loose - 200, 100)))

    watch(monkeypatch, "_violators", note)
    svmfu.solve(problem, chunk=450)
    assert len(entered) > 2
    assert max(count for count, _ in entered) > 50
    assert all(count <= most for count, most in entered)


def test_the_search_for_violators_ends_200_looks_after_the_first(monkeypatch):
    problem, _ = problem_of(1500, noise=1.0)
    looks = []
    before = [0]

    def note(self, out, *_):
        entering, _ = out
        seen, before[0] = self.examined - before[0], self.examined
        outside = 1500 - self.size
        if entering.size and self.size == self.cache.points.size:
            looks.append((seen, outside))

    watch(monkeypatch, "_violators", note)
    found = svmfu.solve(problem, chunk=450)
    assert found.converged
    # Points far from the margin are seldom looked at: soft shrinking.
    assert np.mean([seen / outside for seen, outside in looks]) < 0.6
    assert min(seen for seen, _ in looks) <= 201


def test_the_end_is_a_pass_over_all_points(monkeypatch):
    problem, K = problem_of(400)
    last = []
    watch(monkeypatch, "_violators", lambda self, out, *_: last.append((out[0].size, self.examined, self.size)))
    tol = 1e-3
    found = svmfu.solve(problem, tol=tol, chunk=100)
    assert last[-1][0] == 0
    assert last[-1][1] - last[-2][1] == 400 - 100
    alpha, f = problem.y * found.coefficients, K @ found.coefficients + found.bias
    margin = problem.y * f
    assert (margin[alpha == 0] >= 1 - tol).all()
    assert (margin[alpha == 1.0] <= 1 + tol).all()
    assert np.abs(margin[(alpha > 0) & (alpha < 1)] - 1).max() <= tol


def test_points_that_were_dropped_are_looked_at_again(monkeypatch):
    problem, _ = problem_of(400, noise=1.0)
    plain = svmfu.solve(problem, chunk=100)
    dropped = []
    watch(monkeypatch, "_violators", lambda self, *_: dropped.append(int(self.dropped.sum())))
    shrunk = svmfu.solve(problem, chunk=100, drop_after=1)
    assert max(dropped) > 100
    assert shrunk.converged
    assert shrunk.dual == pytest.approx(plain.dual, rel=1e-5)


def test_without_the_final_check_the_certificate_still_counts_all_points():
    for seed in range(4):
        problem, K = problem_of(400, noise=1.0, seed=seed)
        exact = svmfu.solve(problem, tol=1e-6)
        found = svmfu.solve(problem, chunk=100, drop_after=1, final_check=False)
        assert found.dual <= exact.primal
        assert found.primal >= exact.dual
        assert found.dual == pytest.approx(
            np.abs(found.coefficients).sum() - 0.5 * found.coefficients @ K @ found.coefficients
        )
        assert found.converged == (found.details["violation"] <= 1e-3)


def test_values_of_points_outside_are_kept_where_there_is_room():
    """With the rectangle more memory means fewer values computed at the same chunk."""
    X, y = classes(1200, noise=1.0)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X, storage="streamed"), y, Hinge(), 1.0)
    square = 300 * 300 * 8
    without, beside = (
        svmfu.solve(problem, chunk=300, memory=square + extra).details["kernel_values"] for extra in (0, 4_000_000)
    )
    assert beside < 0.9 * without


def test_cached_values_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    X, _ = classes(60)
    K = gaussian(X)
    cache = ChunkCache(Counted(K), 0.0, 12, 12 * 12 * 8 + 12 * 9 * 20)
    cache.replace(np.arange(12), np.arange(12))
    for _ in range(60):
        place = int(rng.integers(12))
        if not cache.known[place]:
            cache.fill_row(place)
        outside = np.flatnonzero(cache.place < 0)
        some = rng.choice(outside, 9, replace=False)
        cache.look(some)
        columns = rng.choice(60, 15, replace=False)
        assert np.array_equal(cache.outside(some, columns), K[np.ix_(some, columns)])
        places, entering = rng.choice(12, 2, replace=False), rng.choice(outside, 2, replace=False)
        cache.replace(places, entering)
        for row in np.flatnonzero(cache.known):
            assert np.array_equal(cache.square[row], K[cache.points[row], cache.points])
    assert cache.hits > 0
    assert cache.report().bytes <= 12 * 12 * 8 + 12 * 9 * 20


# At the edge -----------------------------------------------------------------------------------------------------


def test_what_it_cannot_take_is_refused_with_a_remedy():
    with pytest.raises(InvalidInput, match="'smo'"):
        svmfu.solve(case(nu_svr, 0).problem)
    with pytest.raises(InvalidInput, match="'smo'"):
        svmfu.solve(case(c_svc, 0, bias="none").problem)
    problem = case(c_svc, 0, bias="free").problem
    with pytest.raises(InvalidInput, match="chunk"):
        svmfu.solve(problem, chunk=1)
    with pytest.raises(InvalidInput, match="drop_after"):
        svmfu.solve(problem, drop_after=0)
    with pytest.raises(BudgetTooSmall, match="lower chunk"):
        svmfu.solve(problem, chunk=20, memory=1000)
