"""A search that is told to stop looks up within one cost of C, however its kernel values are kept."""

from collections.abc import Callable

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.selection import class_pairs
from mercer.selection.class_pairs import Pairs
from mercer.selection.cross_validation import Classes, Path, Settings, one_fold
from mercer.selection.folds import Layout, assign
from mercer.selection.scoring import score_of
from mercer.selection.similarities import Streamed
from mercer.selection.streamed_path import streamed_fold
from mercer.solvers.working_sets import WHOLE


class Patience:
    """Says "go on" a number of times, and counts how often it was asked after that."""

    def __init__(self, times: int) -> None:
        self.left, self.late = times, 0

    def __call__(self) -> bool:
        self.left -= 1
        self.late += self.left < 0
        return self.left >= 0


def noise(n: int, classes: int) -> tuple[np.ndarray, Classes, Layout]:
    """Points (n, 3) in working order with classes at random, which take the solver many steps."""
    random = np.random.default_rng(0)
    codes = np.arange(n) % classes
    layout = Layout.of(assign(n, 3, codes, 0), codes, 0)
    return random.normal(size=(n, 3)), Classes(codes[layout.order], classes, np.ones(n)), layout


def settings(costs: list[float], go_on: Callable[[], bool]) -> Settings:
    return Settings(np.array(costs), 1e-3, score_of(None, True), False, go_on)


def test_a_streamed_path_stops_inside_the_solution_of_one_price() -> None:
    X, kind, layout = noise(1800, 2)
    asked = Patience(3)  # once before the cost, then between rounds of the solver
    outcome = streamed_fold(X, Gaussian(0.5), layout, 0, kind, settings([1e3], asked), 1 << 22)
    assert not outcome.complete
    assert np.isnan(outcome.scores).all()
    assert asked.late == 1


def test_a_stored_path_stops_inside_the_solution_of_one_cost() -> None:
    X, kind, layout = noise(2400, 2)
    K = Streamed(X, 1 << 28).at(Gaussian(0.5)).block(slice(None), slice(None))
    asked = Patience(3)
    outcome = one_fold(K, layout, 0, kind, settings([1e3], asked))
    assert not outcome.complete
    assert asked.late == 1


def test_a_path_taken_cost_by_cost_is_the_path_taken_at_once() -> None:
    X, kind, layout = noise(2400, 2)
    K = Streamed(X, 1 << 28).at(Gaussian(0.5)).block(slice(None), slice(None))
    held, stated = layout.rows(0), kind.stated(layout.outside(0))
    assert stated[1].size > WHOLE
    at_once, in_turn = (Path(K, held, stated, settings([1.0, 10.0, 30.0], lambda: True)) for _ in range(2))
    assert at_once.advance(3)
    assert all(in_turn.advance(to) for to in (1, 2, 3))
    np.testing.assert_array_equal(at_once.coefficients, in_turn.coefficients)
    np.testing.assert_array_equal(at_once.biases, in_turn.biases)


def test_pairs_stop_between_strips_of_their_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    X, kind, layout = noise(300, 3)
    values = Streamed(X, 1 << 28).at(Gaussian(1.0))
    monkeypatch.setattr(class_pairs, "STRIP", 2000)
    asked = Patience(2)
    assert not any(outcome.complete for outcome in Pairs(values, layout, kind, settings([1.0], asked)).run())
    whole = Pairs(values, layout, kind, settings([1.0], lambda: True))
    points = np.arange(0, 300, 2)
    found, distances = whole._matrix(points), ((X[points, None] - X[None, points]) ** 2).sum(axis=2)
    assert found is not None
    np.testing.assert_allclose(found, np.exp(-0.5 * distances), atol=2e-6)
