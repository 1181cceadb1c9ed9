"""The advisors: every row of the tables is reachable, and what they recommend takes the problem."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Sigmoid
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.planning.literature import Situation, memory_estimate, recommend, recommend_least_squares
from mercer.problems import (
    NuClassification,
    RegularisedRisk,
)
from mercer.solvers.quadratic import interior_point

GIB = 1024**3


@pytest.mark.parametrize(
    ("task", "memory", "method"),
    [
        (Situation(10**6, stream=True), GIB, "online"),
        (Situation(2000, precise=True), GIB, "interior point"),
        (Situation(2000, equalities=2), GIB, "interior point"),
        (Situation(100_000, compact=True), GIB, "low rank"),
        (Situation(30_000, support=0.1), GIB, "chunking"),
        (Situation(200_000, support=0.5), GIB, "working set"),
        (Situation(200_000, equalities=4), GIB, "working set"),
        (Situation(200_000, smallest=True), GIB, "pairwise"),
        (Situation(2000), GIB, "pairwise"),
        (Situation(10**7, support=0.5), 10**8, "pairwise"),
        (Situation(10**6, features=50, linear=True), GIB, "low-rank interior point"),
        (Situation(2000, squared=True, penalised=True), GIB, "lagrangian"),
        (Situation(2000, other_regulariser=True), GIB, "gradient descent"),
        (Situation(2000, indefinite=True, precise=True), GIB, "pairwise"),
    ],
)
def test_every_row_of_the_table_is_reachable(task, memory, method):
    answer = recommend(task, memory=memory)
    assert answer.method == method
    assert answer.reasons
    assert "section 10." in answer.section
    assert answer.method in str(answer)


def test_recommended_memory_is_within_the_budget():
    for n in (10, 1000, 30_000, 300_000):
        for compact in (False, True):
            for equalities in (0, 1, 2, 5):
                answer = recommend(Situation(n, compact=compact, equalities=equalities), memory="256 MiB")
                assert answer.memory <= 256 * 1024**2, answer


def test_facts_are_read_off_a_problem_and_the_recommended_solver_accepts_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    gram = Gram(Gaussian(1.0), X)
    two = Situation.of(NuClassification(gram, y, 0.3))
    assert (two.n, two.equalities, two.linear, two.indefinite) == (40, 2, False, False)
    problem = RegularisedRisk(gram, X[:, 1], EpsilonInsensitive(), basis=X)
    answer = recommend(problem)
    assert answer.method == "interior point"
    assert interior_point.accepts(problem)
    assert Situation.of(RegularisedRisk(gram, y, SquaredHinge(), bias="penalised")).squared
    assert recommend(RegularisedRisk(gram, y, SquaredHinge(), bias="penalised")).method == "lagrangian"
    assert Situation.of(RegularisedRisk(gram, y, Hinge()), precise=True).precise
    linear = Gram(Linear(), rng.normal(size=(400, 2)))
    labels = np.where(rng.normal(size=400) > 0, 1.0, -1.0)
    assert recommend(RegularisedRisk(linear, labels, Hinge())).method == "low-rank interior point"
    crooked = RegularisedRisk(Gram(Sigmoid(1.0, -1.0), X), y, Hinge())
    assert recommend(crooked).method == "pairwise"
    assert not interior_point.accepts(crooked)


def test_memory_model_gives_the_printed_numbers():
    assert memory_estimate(5000, "cholesky") == 200_000_000
    assert memory_estimate(15_000, "cholesky") == 1_800_000_000
    assert memory_estimate(5000, "cholesky", itemsize=4) == 100_000_000


@pytest.mark.parametrize(
    ("n", "features", "options", "printed", "modern"),
    [
        (10**6, 20, {"linear": True}, "woodbury", "woodbury"),
        (900, 20, {}, "cholesky", "cholesky"),
        (4000, 20, {}, "conjugate gradients", "cholesky"),
        (20_000, 20, {"exact": True}, "recomputed rows", "conjugate gradients"),
        (20_000, 20, {}, "low rank", "conjugate gradients"),
        (40_000, 3, {}, "sparse", "sparse"),
        (40_000, 20, {"exact": True}, "recomputed rows", "recomputed rows"),
        (40_000, 20, {}, "low rank", "low rank"),
        (100_000, 20, {}, "ensemble", "low rank"),
        (10**7, 20, {}, "ensemble", "ensemble"),
    ],
)
def test_least_squares_tree_as_printed_and_for_this_machine(n, features, options, printed, modern):
    answer = recommend_least_squares(n, features, memory="4 GiB", **options)
    assert answer.printed == printed
    assert answer.method == modern
    assert answer.memory <= 4 * GIB


def test_bad_sizes_are_refused():
    with pytest.raises(InvalidInput, match="n must"):
        Situation(0)
    with pytest.raises(InvalidInput, match="support"):
        Situation(10, support=0.0)
    with pytest.raises(InvalidInput, match="features"):
        recommend_least_squares(10, 0)
