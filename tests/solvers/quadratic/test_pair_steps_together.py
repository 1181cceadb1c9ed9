"""A team takes the steps of one thread, to the last bit, and is done without where it is slow."""

import numpy as np
import pytest

from mercer import threads
from mercer.kernels import Gaussian
from mercer.solvers.quadratic import pair_steps_together
from mercer.solvers.quadratic.pair_steps import minimise_pairs
from mercer.solvers.quadratic.pair_steps_together import Crew, team_steps
from mercer.teams import Team


def program_of(layers, groups, n, seed=0, ridge=0.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    K = Gaussian(sigma=1.0)(X).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n) > 0, 1.0, -1.0)
    box = random.uniform(1.0, 5.0, size=n)
    lower, upper = np.where(y > 0, 0.0, -box), np.where(y > 0, box, 0.0)
    group = np.zeros((layers, n), np.intp)
    if groups == 2:
        group[:] = y > 0
        s = np.where(np.arange(n) % 3 == 0, 0.5 * (lower + upper), 0.0)
    else:
        s = np.zeros(n)
    if layers == 1:
        parts = [-y[None], np.full((1, n), ridge), lower[None], upper[None]]
        s = s[None]
    else:
        zero = np.zeros(n)
        parts = [np.stack([0.1 - y, -0.1 - y]), np.full((2, n), ridge), np.stack([zero, -box]), np.stack([box, zero])]
        s = np.zeros((2, n))
    return K, [np.ascontiguousarray(part) for part in parts] + [group], s


@pytest.mark.parametrize(("layers", "groups", "ridge"), [(1, 1, 0.0), (2, 1, 0.0), (1, 2, 0.0), (1, 1, 0.3)])
@pytest.mark.parametrize("members", [1, 2, 3])
def test_a_team_takes_the_same_steps_to_the_last_bit(layers, groups, ridge, members, monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", str(members))
    n = 700
    K, program, start = program_of(layers, groups, n, ridge=ridge)
    diagonal = np.ones(n)
    s, F = start.copy(), K.astype(np.float64) @ start.sum(axis=0)
    t, H = start.copy(), F.copy()
    alone = minimise_pairs(K, (0, n, n), diagonal, F, s, tuple(program), groups, 1e-6, 5000)
    room, curvature = np.empty((2, groups, n)), np.empty(n, np.float32)
    together = Team(members).run(
        team_steps, 2, K, diagonal, H, t, tuple(program), room, curvature, 1e-6, 5000
    )
    assert alone[0] > 500
    assert alone == together
    np.testing.assert_array_equal(s, t)
    np.testing.assert_array_equal(F, H)


def test_members_that_are_busy_elsewhere_are_done_without(monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    seen = []

    def inside():
        # This thread may use one thread only, as a task beside others.
        team = Team(2)
        seen.append(team.run(lambda me, records: records.shape[1], 1))

    threads.run(inside, [(), ()])
    assert seen == [1, 1]


def test_a_member_that_comes_late_changes_nothing(monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    monkeypatch.setattr("mercer.teams.ASSEMBLED", 0.0)
    for _ in range(20):
        assert Team(2).run(lambda me, records: me, 1) == 0


def test_an_error_of_the_first_member_lets_the_others_go(monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")

    def fail(me, records):
        if me == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Team(2).run(fail, 1)


@pytest.mark.parametrize("worth", [0.0, 1e9])
def test_whether_a_team_is_slow_or_fast_changes_no_bit(worth, monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    monkeypatch.setattr(pair_steps_together, "FEWEST", 100)
    monkeypatch.setattr(pair_steps_together, "WORTH", worth)
    monkeypatch.setattr(pair_steps_together, "SHORT", 0.0)
    n = 900
    K, program, start = program_of(1, 1, n, seed=4)
    s, F, t, H = start.copy(), np.zeros(n), start.copy(), np.zeros(n)
    crew, taken = Crew(), 0
    for _ in range(6):
        done, _ = crew.minimise(K, np.ones(n), F, s, tuple(program), 1, 1e-6, 1500)
        taken += done
    alone = minimise_pairs(K, (0, n, n), np.ones(n), H, t, tuple(program), 1, 1e-6, taken)
    assert alone[0] == taken
    np.testing.assert_array_equal(s, t)
    np.testing.assert_array_equal(F, H)


def test_a_team_whose_steps_gain_nothing_but_rounding_ends(monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    for name, value in {"FEWEST": 100, "WORTH": 1e9, "STRETCHES": 1, "LONGEST_BURST": 2000}.items():
        monkeypatch.setattr(pair_steps_together, name, value)
    n = 300
    K, program, s = program_of(1, 1, n, seed=6)
    most = 2_000_000
    done, violation = Crew().minimise(K, np.ones(n), np.zeros(n), s, tuple(program), 1, 0.0, most)
    assert 0.0 < violation < 1e-6
    assert done < most
