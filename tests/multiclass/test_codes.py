"""Codes have the lengths, distances and clean columns the literature gives them; bad ones are refused by name."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.multiclass import bch, codes, generators
from mercer.multiclass.codes import audit, check, make_code, random_code


def distance(M):
    """Row distance by its definition."""
    return min(sum((1 - a * b) / 2 for a, b in zip(M[r], M[s])) for r, s in combinations(range(len(M)), 2))


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("ova", {6: 6, 10: 10, 14: 14, 20: 20}),
        ("ava", {6: 15, 10: 45, 14: 91, 20: 190}),
        ("complete", {6: 31, 10: 511, 14: 8191}),
        ("dense", {6: 26, 10: 34, 14: 39, 20: 44}),
        ("sparse", {6: 39, 10: 50, 14: 58, 20: 65}),
        ("bch", {10: 63, 14: 63, 20: 63}),
    ],
)
def test_codes_have_the_lengths_of_the_literature(name, lengths):
    for classes, machines in lengths.items():
        code = make_code(name, classes, 0)
        assert code.shape == (classes, machines)
        assert audit(code).clean


@pytest.mark.parametrize("name", codes.NAMES)
@pytest.mark.parametrize("classes", [2, 3, 4, 5, 7, 8, 12])
def test_every_code_is_valid_and_tells_all_classes_apart(name, classes):
    code = make_code(name, classes, 1)
    assert np.array_equal(check(code, classes), code)
    found = audit(code)
    assert found.clean
    assert found.unseparated == 0
    assert found.distance == distance(code)


def test_two_classes_have_one_machine_whatever_the_code():
    for name in codes.NAMES:
        assert np.array_equal(make_code(name, 2), [[-1], [1]])


def test_complete_is_the_exhaustive_code_of_alternating_runs():
    for k in range(3, 8):
        code = generators.exhaustive(k)
        assert np.array_equal(code[0], np.ones(2 ** (k - 1) - 1))
        for row in range(1, k):
            run = 2 ** (k - 1 - row)
            expected = np.tile(np.repeat([-1, 1], run), 2**k)[: code.shape[1]]
            assert np.array_equal(code[row], expected)
        assert audit(code).distance == 2 ** (k - 2)


def test_one_versus_all_and_complete_treat_all_classes_alike_and_dense_does_not():
    for k in (3, 4, 6, 9):
        assert audit(make_code("ova", k)).symmetric
        assert audit(make_code("ava", k)).symmetric
        assert audit(make_code("complete", k)).symmetric
    assert not audit(make_code("dense", 6, 0)).symmetric
    k = 6
    ova, complete = make_code("ova", k).astype(int), make_code("complete", k).astype(int)
    off = ~np.eye(k, dtype=bool)
    assert set((ova @ ova.T)[off]) == {k - 4}
    assert set((complete @ complete.T)[off]) == {-1}


def test_class_symmetry_is_that_of_all_permutations():
    random = np.random.default_rng(0)
    for _ in range(30):
        M = random.choice([-1, 1], size=(3, random.integers(1, 6)))
        words = sorted(tuple(column * column[0]) for column in M.T)
        closed = all(
            sorted(tuple(column * column[0]) for column in M[list(order)].T) == words
            for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))
        )
        assert codes.class_symmetric(M) == closed


def test_best_of_ten_thousand_draws_reaches_the_typical_distances():
    # Rifkin's codes allowed opposite columns; at six classes forbidding them gives more than his 11 and 19.
    dense = {k: audit(make_code("dense", k, 0)).distance for k in (6, 10, 14, 20)}
    sparse = {k: audit(make_code("sparse", k, 0)).distance for k in (6, 10, 14, 20)}
    assert dense[6] >= 11
    assert dense[10] == 14
    assert dense[14] in (15, 16)
    assert dense[20] in (16, 17)
    assert sparse[6] >= 19
    assert sparse[10] == pytest.approx(23.5, abs=0.5)
    assert sparse[14] == pytest.approx(26.5, abs=0.5)
    assert sparse[20] == pytest.approx(29.0, abs=0.5)


def test_share_of_unusable_sparse_columns_and_the_number_of_usable_ones():
    columns = np.array(list(product([-1, 0, 1], repeat=6)))
    chance = np.prod(np.where(columns == 0, 0.5, 0.25), axis=1)
    usable = (columns.max(axis=1) == 1) & (columns.min(axis=1) == -1)
    assert usable.sum() == 602
    assert 1 - chance[usable].sum() == pytest.approx(0.340, abs=5e-4)
    uniform = np.prod(1 - np.arange(39) / 602)
    assert uniform == pytest.approx(0.284, abs=5e-4)
    random = np.random.default_rng(0)
    drawn = random.choice(602, size=(4000, 39), p=chance[usable] / chance[usable].sum())
    distinct = np.mean([len(set(row)) == 39 for row in drawn.tolist()])
    assert distinct == pytest.approx(0.139, abs=0.02)


def test_random_codes_follow_the_seed():
    assert np.array_equal(make_code("dense", 9, 3), make_code("dense", 9, 3))
    assert not np.array_equal(make_code("dense", 9, 3), make_code("dense", 9, 4))
    assert random_code(12, 20, seed=0, draws=50).shape == (12, 20)


def test_bch_words_have_their_distances_and_clean_columns():
    for classes in (8, 9, 20, 63, 105, 126):
        found = audit(bch.bch(classes))
        assert found.distance == 31
        assert found.clean
    assert audit(bch.bch(127)).distance >= 27
    assert np.array_equal(bch.bch(7), codes.complete(7))


def test_the_smallest_bch_code_has_the_known_weights():
    generator, least = bch.GENERATORS[7]
    weights = [bch.product(message, generator).bit_count() for message in range(1, 128)]
    assert (weights.count(31), weights.count(32), weights.count(63)) == (63, 63, 1)
    assert min(weights) == least
    check_polynomial = 0o243
    assert bch.product(generator, check_polynomial) == 2**63 + 1


@pytest.mark.parametrize("dimension", [7, 10])
def test_a_full_bch_code_has_all_words_but_the_two_constant_ones(dimension):
    generator = bch.GENERATORS[dimension][0]
    rows = np.array([[generator << i >> bit & 1 for bit in range(63)] for i in range(dimension)])
    words = 2 * (np.array(list(product([0, 1], repeat=dimension))) @ rows % 2) - 1
    mixed = words[words.min(axis=1) < words.max(axis=1)]
    assert len(mixed) == 2**dimension - 2
    assert {tuple(row) for row in bch.bch(len(mixed)).tolist()} == {tuple(row) for row in mixed.tolist()}


@pytest.mark.parametrize("dimension", [10, 16])
def test_larger_bch_codes_have_their_least_distance(dimension):
    generator, least = bch.GENERATORS[dimension]
    row = [generator << i for i in range(dimension)]
    word, lightest = 0, 63
    for number in range(1, 2**dimension):  # in Gray order, one row at a time
        word ^= row[(number & -number).bit_length() - 1]
        lightest = min(lightest, word.bit_count())
    assert lightest == least


def test_messages_in_counting_order_are_not_safe():
    generator = bch.GENERATORS[7][0]
    words = [bch.product(message, generator) for message in range(1, 21)]
    M = np.array([[2 * (word >> i & 1) - 1 for i in range(63)] for word in words])
    found = audit(M)
    assert (found.one_sided, found.equal) == (2, 31)


def test_hill_climbing_ends_with_clean_columns_and_a_good_distance():
    code = generators.hill_climbing(10, 34, steps=3000, seed=0)
    found = audit(code)
    assert found.clean
    assert found.distance >= 13
    first, again = (generators.hill_climbing(8, 20, steps=50, seed=3) for _ in range(2))
    assert np.array_equal(first, again)


def test_chosen_columns_come_from_their_code():
    for code, whole in (
        (generators.chosen_columns(8, 30, seed=0), codes.complete(8)),
        (generators.bch_columns(15, 31, seed=0), bch.bch(15)),
    ):
        assert {tuple(column) for column in code.T} <= {tuple(column) for column in whole.T}
        assert audit(code).distance > 0
        assert audit(code).clean


def test_the_example_of_four_classes_and_six_machines_corrects_one_error():
    M = [[-1, -1, -1, 1, 1, 1], [-1, 1, 1, -1, -1, 1], [1, -1, 1, -1, 1, -1], [1, 1, -1, -1, 1, 1]]
    found = audit(M)
    assert (found.distance, found.corrects) == (3, 1)


def always_mended(M):
    """The most wrong machines that Hamming decoding mends wherever they are: every pattern of flips is tried."""
    k, machines = M.shape
    for wrong in range(1, machines + 1):
        for flipped in combinations(range(machines), wrong):
            for word in range(k):
                received = M[word].copy()
                received[list(flipped)] *= -1
                disagree = (received != M).sum(axis=1)
                if (np.delete(disagree, word) <= disagree[word]).any():
                    return wrong - 1
    return machines


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5, 6])
def test_a_code_corrects_what_every_pattern_of_flips_confirms_at_odd_and_even_distance(distance):
    M = np.ones((3, 9), dtype=int)
    M[1, :distance] = -1  # rows 0 and 1 differ in `distance` places, and row 2 from both in at least as many
    M[2, 9 - max(distance, 5) :] = -1
    found = audit(M)
    assert found.distance == distance
    assert found.corrects == always_mended(M)


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ([[1, 2], [-1, 1], [1, 1]], r"\+1, -1 and 0 only"),
        ([[1, np.nan], [-1, 1], [1, 1]], r"\+1, -1 and 0 only"),
        ([["a"], ["b"], ["c"]], r"\+1, -1 and 0 only"),
        ([[1, 1], [-1, 1], [-1, 1]], "column 1 of the code has no -1"),
        ([[1, 0], [-1, -1], [-1, 0]], r"column 1 of the code has no \+1"),
        ([[1, 1], [-1, -1], [1, 1]], "rows 0 and 2 of the code are equal"),
        ([[1, 1], [-1, -1]], "2 rows for 3 classes"),
        ([[1, -1], [-1, 1], [0, 0]], "row 2 of the code is all zero"),
        ([1, -1, 1], "must be a matrix"),
    ],
)
def test_an_invalid_code_is_refused_with_the_reason(matrix, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        check(matrix, 3)


def test_codes_that_cannot_be_are_refused():
    with pytest.raises(InvalidInput, match="complete"):
        make_code("complete", 30)
    with pytest.raises(InvalidInput, match="not one of"):
        make_code("best", 3)
    with pytest.raises(InvalidInput, match="too few"):
        random_code(20, 3)
    with pytest.raises(InvalidInput, match="at least two"):
        make_code("ova", 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(1, 8), st.randoms(use_true_random=False))
def test_audit_counts_what_the_definitions_say(k, F, random):
    M = np.array([[random.choice((-1, 0, 1)) for _ in range(F)] for _ in range(k)])
    found = audit(M)
    columns = [tuple(column) for column in M.T.tolist()]
    pairs = list(combinations(columns, 2))
    assert found.distance == distance(M)
    assert found.equal == sum(a == b for a, b in pairs)
    assert found.opposite == sum(a == tuple(-v for v in b) for a, b in pairs)
    assert found.one_sided == sum(max(c) < 1 or min(c) > -1 for c in columns)
    assert found.unseparated == sum(not (M[r] * M[s] < 0).any() for r, s in combinations(range(k), 2))
    assert found.zeros == np.mean(M == 0)


def test_a_thousand_classes_have_dense_and_sparse_codes_in_seconds():
    for name in ("dense", "sparse"):
        found = audit(make_code(name, 1000, 0))
        assert found.clean
        assert found.distance > 25
