"""What members see: pure functions of sizes and a seed, with the coverage that theory says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.ensembles import sampling
from mercer.errors import InvalidInput

SAMPLERS = {
    "bootstrap": lambda n, q, **options: sampling.bootstrap(n, q, **options),
    "subsample": lambda n, q, **options: sampling.subsample(n, q, max(1, n // 2), **options),
    "disjoint": sampling.disjoint,
    "committee": sampling.committee,
}
every = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def same(first: sampling.Sample, second: sampling.Sample) -> bool:
    return np.array_equal(first.rows, second.rows) and np.array_equal(first.counts, second.counts)


@every
def test_a_sampler_is_a_function_of_its_seed(sampler):
    one, again, other = (sampler(50, 5, seed=seed) for seed in (3, 3, 4))
    assert all(same(a, b) for a, b in zip(one, again))
    assert not all(same(a, b) for a, b in zip(one, other))


@given(n=st.integers(4, 60), q=st.integers(2, 4), seed=st.integers(0, 1000))
def test_rows_ascend_and_parts_cover_everything(n, q, seed):
    for sampler in SAMPLERS.values():
        for sample in sampler(n, q, seed=seed):
            assert np.all(np.diff(sample.rows) > 0)
            assert 0 <= sample.rows[0] <= sample.rows[-1] < n
    parts = sampling.disjoint(n, q, seed=seed)
    np.testing.assert_array_equal(np.sort(np.concatenate([part.rows for part in parts])), np.arange(n))
    assert max(len(part.rows) for part in parts) - min(len(part.rows) for part in parts) <= 1
    for part, rest in zip(parts, sampling.committee(n, q, seed=seed)):
        np.testing.assert_array_equal(np.union1d(part.rows, rest.rows), np.arange(n))
        assert not len(np.intersect1d(part.rows, rest.rows))


def test_a_bootstrap_draws_n_times_and_misses_a_share_of_one_over_e():
    samples = sampling.bootstrap(2000, 20, seed=0)
    assert all(sample.counts.sum() == 2000 for sample in samples)
    missed = [1 - len(sample.rows) / 2000 for sample in samples]
    assert np.mean(missed) == pytest.approx((1 - 1 / 2000) ** 2000, abs=0.01)


@every
def test_every_member_sees_every_class(sampler):
    strata = np.array([0] * 40 + [1] * 4 + [2] * 4)
    for sample in sampler(48, 4, seed=0, strata=strata):
        assert set(strata[sample.rows]) == {0, 1, 2}


def test_coverage_is_what_counting_gives():
    samples = sampling.bootstrap(30, 6, seed=1)
    found = sampling.coverage(samples, 30)
    sets = [set(sample.rows.tolist()) for sample in samples]
    assert found.seen.tolist() == [sum(i in one for one in sets) for i in range(30)]
    assert found.shared.tolist() == [[len(a & b) for b in sets] for a in sets]
    pairs = [(a, b) for i, a in enumerate(sets) for b in sets[i + 1 :]]
    assert found.overlap == pytest.approx(np.mean([len(a & b) / min(len(a), len(b)) for a, b in pairs]))
    assert found.unseen == np.mean([not any(i in one for one in sets) for i in range(30)])


def test_impossible_sizes_are_refused():
    with pytest.raises(InvalidInput, match="members"):
        sampling.disjoint(3, 4)
    with pytest.raises(InvalidInput, match="size"):
        sampling.subsample(10, 2, 11)
    with pytest.raises(InvalidInput, match="features"):
        sampling.feature_subsets(3, 2, 4)
