"""Lower bounds against every method there is, and against covers found by trying all of them."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, norm

from mercer.errors import InvalidInput
from mercer.selection.bounds import (
    agnostic_lower_bound,
    coin_error,
    covering_exponent,
    covering_floor,
    shattered_width,
    vapnik_bound,
    vc_lower_bound,
)


def test_no_rule_tells_a_coin_better():
    for tosses, bias in product(range(0, 40), (0.05, 0.2, 0.5, 0.9)):
        # The best rule is the majority: half of the overlap of both distributions is its error.
        heads = np.arange(tosses + 1)
        overlap = np.minimum(binom.pmf(heads, tosses, (1 + bias) / 2), binom.pmf(heads, tosses, (1 - bias) / 2))
        assert coin_error(bias, tosses) <= overlap.sum() / 2 + 1e-15


def test_the_error_of_a_coin_is_the_one_proved_for_an_even_number_of_tosses():
    # An odd number m of tosses misleads the majority as often as m + 1 tosses with ties drawn by lot.  For those Slud's
    # inequality gives at least half the normal tail beyond z, z^2 = (m + 1) a^2 / (1 - a^2), and g is at most that.
    for tosses, bias in product(range(1, 40, 2), (0.05, 0.2, 0.5, 0.7)):
        z = bias * math.sqrt((tosses + 1) / (1 - bias**2))
        assert coin_error(bias, tosses) <= norm.sf(z) / 2
    # The excess of one coin is the bias at which the error is delta.
    for n, delta in product((1, 2, 9, 100), (1e-4, 0.02, 0.1)):
        excess = agnostic_lower_bound(1, n, delta=delta).details["one_coin"]
        assert coin_error(excess, n) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("delta", [0.001, 0.02, 0.1])
def test_every_method_on_one_point_meets_its_distribution(n, delta):
    excess = agnostic_lower_bound(1, n, delta=delta).details["one_coin"]
    samples = list(product((0, 1), repeat=n))
    chance = {s: [math.prod((1 + s * excess * (2 * y - 1)) / 2 for y in ys) for ys in samples] for s in (-1, 1)}
    for method in product((-1, 1), repeat=len(samples)):  # all maps of labels to a decision
        wrong = [sum(c for c, g in zip(chance[s], method, strict=True) if g != s) for s in (-1, 1)]
        assert max(wrong) >= delta


@pytest.mark.parametrize(("h", "n"), [(1, 4), (2, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("delta", [0.001, 0.02])
def test_the_best_method_on_shattered_points_has_the_excess_risk(h, n, delta):
    floor = agnostic_lower_bound(h, n, delta=delta).details["all_coins"]
    assert floor > 0
    for bias in (0.1, 0.3, 0.5, 0.7):
        gain = bias * (coin_error(bias, n / h) - delta) / (1 - delta)
        if gain <= 0:
            continue
        assert gain <= floor * (1 + 1e-6)
        # Over all coins and samples: the majority is best in the mean of the coins, for each point on its own.
        seen = 0.0
        for coins in product((-1, 1), repeat=h):
            for xs, ys in product(product(range(h), repeat=n), product((-1, 1), repeat=n)):
                votes = np.bincount(xs, weights=ys, minlength=h)
                wrong = np.sum(np.where(votes == 0, 1, np.sign(votes)) != coins)
                chance = math.prod((1 + bias * y * coins[x]) / (2 * h) for x, y in zip(xs, ys, strict=True))
                seen += chance * (bias * wrong / h >= gain) / 2**h
        assert seen >= delta


def test_the_lower_bound_has_the_form_of_the_theorem_and_lies_below_upper_bounds():
    for h, n, delta in product((1, 5, 50), (100, 10_000), (1e-4, 1e-2)):
        found = agnostic_lower_bound(h, n, delta=delta)
        assert not found.vacuous
        # Theorem 1.3 holds with this constant.
        assert found.value >= vc_lower_bound(0.0, h, n, c=1 / 2000, delta=delta).value
        # A best function on the sample has at most twice the upper bound's term.
        assert found.value <= 2 * vapnik_bound(0.0, h, n, delta=delta).value
    assert vc_lower_bound(0.1, 3, 100, c=0.5, delta=0.01).value == pytest.approx(0.1 + np.sqrt((3 + np.log(100)) / 200))
    assert agnostic_lower_bound(3, 100, delta=0.3).vacuous
    assert str(found).startswith("at least")


def least_cover(values, eps, distance):
    """The least number of balls around members that hold all functions, by trying every choice."""
    apart = distance(np.abs(values[:, None] - values[None]), axis=2) <= eps
    for size in range(1, len(values) + 1):
        if any(apart[list(centres)].any(axis=0).all() for centres in combinations(range(len(values)), size)):
            return size
    raise AssertionError


def fat_dimension(values, rho):
    """The largest number of points that a finite class shatters at width rho, witnesses half-way between values."""
    points = values.shape[1]
    for size in range(points, 0, -1):
        for chosen in combinations(range(points), size):
            levels = [np.unique((v[:, None] + v[None]) / 2) for v in values[:, chosen].T]
            for witness in product(*levels):
                above, below = values[:, chosen] >= np.add(witness, rho), values[:, chosen] <= np.subtract(witness, rho)
                patterns = {tuple(row) for row, sure in zip(above, (above | below).all(axis=1), strict=True) if sure}
                if len(patterns) == 2**size:
                    return size
    return 0


@pytest.mark.parametrize("seed", range(4))
def test_covers_of_a_finite_class_lie_between_the_two_halves_of_the_theorem(seed):
    random = np.random.default_rng(seed)
    values = np.vstack([list(product((0.0, 1.0), repeat=3)), random.uniform(size=(1, 3))]) * random.uniform(
        0.8, 1, (9, 3)
    )
    m = values.shape[1]
    for eps in (0.01, 0.02, 0.2, 0.3):
        for distance in (np.max, np.mean):
            exact = math.log2(least_cover(values, eps, distance))
            floor = covering_floor(fat_dimension(values, 16 * eps), m)
            assert floor.holds
            assert floor.value <= exact
        exact = math.log2(least_cover(values, eps, np.max))
        assert covering_floor(fat_dimension(values, 1.01 * eps), m, distance="largest").value <= exact
        assert exact <= covering_exponent(fat_dimension(values, eps / 4), eps, m, 1.0).value
    assert fat_dimension(values, 0.39) == 3


@pytest.mark.parametrize("n", [2, 4, 6])
def test_orthogonal_points_attain_the_floor_by_the_largest_distance(n):
    width = shattered_width(np.eye(n))
    values = width * np.array(list(product((-1.0, 1.0), repeat=n)))
    apart = np.max(np.abs(values[:, None] - values[None]), axis=2)[~np.eye(2**n, dtype=bool)]
    assert apart.min() > 2 * 0.99 * width  # no two in one ball of that radius, whatever its centre
    assert covering_floor(n, n, distance="largest").value == math.log2(len(values))
    assert covering_floor(n, n).value == pytest.approx(n * math.log2(math.e) / 8)


def test_refusals_name_the_argument():
    assert not covering_floor(5, 3).holds
    assert covering_floor(0, 3).vacuous
    with pytest.raises(InvalidInput, match="distance"):
        covering_floor(1, 3, distance="median")
    with pytest.raises(InvalidInput, match="dimension"):
        agnostic_lower_bound(0, 3)
    with pytest.raises(InvalidInput, match="bias"):
        coin_error(1.0, 3)
