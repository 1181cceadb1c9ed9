"""The spectrum kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.kernels
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Normalised, Spectrum, kernel_from_dict

words = st.lists(st.text(alphabet="abc", max_size=9), min_size=1, max_size=6)


def naive(s: str, t: str, p: int) -> int:
    return sum(s[i : i + p] == t[j : j + p] for i in range(len(s) - p + 1) for j in range(len(t) - p + 1))


@settings(max_examples=25, deadline=None)
@given(words, words, st.integers(1, 4))
def test_spectrum_counts_shared_substrings(X: list[str], Z: list[str], p: int) -> None:
    kernel = Spectrum(p)
    np.testing.assert_array_equal(kernel(X, Z), [[naive(s, t, p) for t in Z] for s in X])
    K = kernel(X)
    np.testing.assert_array_equal(K, [[naive(s, t, p) for t in X] for s in X])
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(K))
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * (1.0 + K.max())


def test_normalising_removes_the_length() -> None:
    kernel = Normalised(Spectrum(2))
    K = kernel(["abab", "abababab", "x", "ccc"])
    np.testing.assert_allclose(np.diag(K), [1.0, 1.0, 0.0, 1.0])
    assert K[0, 1] > 0.95
    np.testing.assert_array_equal(kernel.diagonal(["abab", "x"]), [1.0, 0.0])
    assert kernel.objects
    assert kernel.derivatives(["ab"]) == {}


def test_combinations_of_string_kernels_work() -> None:
    strings = ["banana", "ananas", "cabana"]
    kernel = 0.5 * Spectrum(2) + Spectrum(3) * Normalised(Spectrum(1))
    expected = 0.5 * Spectrum(2)(strings) + Spectrum(3)(strings) * Normalised(Spectrum(1))(strings)
    np.testing.assert_allclose(kernel(strings), expected)
    np.testing.assert_allclose(kernel.diagonal(strings), np.diag(expected))
    assert set(kernel.derivatives(strings)) == {"left__factor"}
    assert kernel_from_dict(kernel.to_dict()) == kernel
    assert eval(repr(kernel), {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__}) == kernel


def test_arrays_of_strings_are_taken_and_other_things_refused() -> None:
    strings = np.array(["abc", "bcd"])
    np.testing.assert_array_equal(Spectrum(2)(strings), [[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(Spectrum(2)(strings[:, None].astype(object)), [[2.0, 1.0], [1.0, 2.0]])
    with pytest.raises(InvalidInput, match="X is one string"):
        Spectrum()("abc")
    with pytest.raises(InvalidInput, match="it holds int"):
        Spectrum()(["abc", 3])
    with pytest.raises(InvalidInput, match="Z must be a non-empty sequence"):
        Spectrum()(["abc"], [])
    with pytest.raises(InvalidInput, match="p must be a whole number"):
        Spectrum(0)
    with pytest.raises(InvalidInput, match="not real numbers"):
        Gaussian()([["abc"]])
