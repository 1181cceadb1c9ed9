"""Numbers read from text are the float64 nearest to it, as `float` gives."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.data.decimal_text import EXACT, INFINITE, MALFORMED, NOT_A_NUMBER, SLOW, powers_of_five, read_number


def parsed(text: str) -> tuple[int, float, int]:
    data = np.frombuffer(text.encode(), np.uint8)
    return read_number(data, 0, len(data), *powers_of_five())


def agrees(text: str) -> None:
    outcome, value, after = parsed(text)
    assert after == len(text)
    expected = float(text)
    if outcome == EXACT:
        assert struct.pack("d", value) == struct.pack("d", expected), text
    else:
        assert outcome == SLOW or (outcome == INFINITE and math.isinf(expected)), text


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_shortest_text_of_any_float_reads_back_exactly(x: float) -> None:
    agrees(repr(x))


@given(st.integers(0, 10**19 - 1), st.integers(-345, 312), st.sampled_from(["", "-", "+"]))
@settings(max_examples=300, deadline=None)
def test_any_integer_times_a_power_of_ten_is_correctly_rounded(w: int, q: int, sign: str) -> None:
    agrees(f"{sign}{w}e{q}")


@given(st.integers(0, 2**54), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_ties_are_rounded_to_even(m: int, k: int) -> None:
    agrees(str((2 * m + 1) << k))


@pytest.mark.parametrize(
    "text", ["0", "-0", "0.0e5", "1e400", "1e-400", "00012.500", ".5", "5.", "1E5", "9007199254740993"]
)
def test_unusual_forms(text: str) -> None:
    agrees(text)


@pytest.mark.parametrize("text", ["", ".", "-", "e5", "1e", "1e+", "na", "infinite", "x", "--1"])
def test_what_is_no_number_is_refused(text: str) -> None:
    outcome, _, after = parsed(text + " ")
    assert outcome == MALFORMED or after < len(text)


def test_words() -> None:
    assert parsed("nan")[0] == NOT_A_NUMBER
    assert parsed("-Inf")[0] == INFINITE
    assert parsed("Infinity") == (INFINITE, pytest.approx(math.nan, nan_ok=True), 8)
