"""Decimal text to float64, correctly rounded, inside compiled loops.

A number is  w * 10^q  with an integer w of at most 19 digits.

- w <= 2^53 and |q| <= 22: w and 10^|q| are exact in float64, so one multiplication or division rounds correctly
  (Clinger 1990).
- otherwise the product of w with the 128 leading bits of 5^q decides the rounding in all but rare cases
  (Lemire 2021, "Number parsing at a gigabyte per second").
- the rare cases, more than 19 digits and subnormal results are left to the caller, who hands the text to `float`.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import exact_loop

# Outcome of reading one number.
EXACT, SLOW, NOT_A_NUMBER, INFINITE, MALFORMED = 0, 1, 2, 3, 4

SMALLEST, LARGEST = -342, 308  # below 10^-342 * 2^64 all is zero, above 10^308 all is infinite

U = np.uint64
_LOW = np.uint64(0xFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ROUNDING_UNSURE = np.uint64(0x1FF)  # the 9 bits below the 55 that decide


@cache
def powers_of_five() -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]:
    """Leading 128 bits of 5^q for q from SMALLEST to LARGEST (high and low words), and 10^0 .. 10^22."""
    leading = []
    for q in range(SMALLEST, LARGEST + 1):
        if q < 0:
            power = 5**-q
            bits = (power - 1).bit_length()
            value = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // power + 1
        else:
            value = 5**q << 128
        leading.append(value >> (value.bit_length() - 128))
    high = np.array([value >> 64 for value in leading], dtype=np.uint64)
    low = np.array([value & 0xFFFFFFFFFFFFFFFF for value in leading], dtype=np.uint64)
    return high, low, np.array([10.0**k for k in range(23)])


@exact_loop
def _product(a: Any, b: Any) -> Any:
    """128-bit product of two 64-bit words: (high, low)."""
    a0, a1 = a & _LOW, a >> U(32)
    b0, b1 = b & _LOW, b >> U(32)
    cross, other = a0 * b1, a1 * b0
    middle = (a0 * b0 >> U(32)) + (cross & _LOW) + (other & _LOW)
    low = (a0 * b0 & _LOW) | (middle << U(32))
    return a1 * b1 + (cross >> U(32)) + (other >> U(32)) + (middle >> U(32)), low


@exact_loop
def _leading_zeros(w: Any) -> Any:
    """Number of zero bits above the highest one of w > 0."""
    zeros = U(0)
    for step in (32, 16, 8, 4, 2, 1):
        if w >> U(64 - step) == U(0):
            zeros += U(step)
            w = w << U(step)
    return zeros


@exact_loop
def _scaled(w: Any, q: Any, high: Any, low: Any) -> Any:
    """The number w * 10^q for w > 0: (outcome, value)."""
    if q < SMALLEST:
        return EXACT, 0.0
    if q > LARGEST:
        return INFINITE, np.inf
    zeros = _leading_zeros(w)
    w = w << zeros
    top, bottom = _product(w, high[q - SMALLEST])
    if top & _ROUNDING_UNSURE == _ROUNDING_UNSURE:
        more, _ = _product(w, low[q - SMALLEST])
        bottom += more
        if more > bottom:
            top += U(1)
    if bottom == _ALL and (q < -27 or q > 55):
        return SLOW, 0.0
    upper = top >> U(63)
    mantissa = top >> (upper + U(9))
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if exponent <= 0:
        return SLOW, 0.0
    halfway = bottom <= U(1) and -4 <= q <= 23 and mantissa & U(3) == U(1)
    if halfway and mantissa << (upper + U(9)) == top:
        mantissa = mantissa & ~U(1)
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa >= U(1) << U(53):
        mantissa = U(1) << U(52)
        exponent += 1
    if exponent >= 2047:
        return INFINITE, np.inf
    bits = np.uint64((mantissa & ~(U(1) << U(52))) | (U(exponent) << U(52)))
    return EXACT, bits.view(np.float64)


@exact_loop
def _word(text: Any, i: Any, end: Any) -> Any:
    """Read nan, inf or infinity in any case at i: (outcome, place after it)."""
    if i + 3 > end:
        return MALFORMED, i
    a, b, c = text[i] | 32, text[i + 1] | 32, text[i + 2] | 32
    if a == 110 and b == 97 and c == 110:
        return NOT_A_NUMBER, i + 3
    if a != 105 or b != 110 or c != 102:
        return MALFORMED, i
    i += 3
    if i < end and text[i] | 32 == 105:
        for expected in (105, 110, 105, 116, 121):
            if i >= end or text[i] | 32 != expected:
                return MALFORMED, i
            i += 1
    return INFINITE, i


@exact_loop
def read_number(text: Any, i: Any, end: Any, high: Any, low: Any, ten: Any) -> Any:
    """Read one number that starts at text[i] (bytes): (outcome, value, place after it).

    Accepted: an optional sign, digits with an optional point, an optional exponent; nan, inf, infinity.
    """
    negative = False
    if i < end and (text[i] == 43 or text[i] == 45):
        negative = text[i] == 45
        i += 1
    w = U(0)
    digits, seen, shift = 0, 0, 0
    point = False
    while i < end:
        c = text[i]
        if 48 <= c <= 57:
            seen += 1
            if digits > 0 or c != 48:
                digits += 1
                if digits <= 19:
                    w = w * U(10) + U(c - 48)
            if point:
                shift -= 1
        elif c == 46 and not point:
            point = True
        else:
            break
        i += 1
    if seen == 0:
        if point:
            return MALFORMED, 0.0, i
        outcome, i = _word(text, i, end)
        return outcome, np.nan, i
    if i < end and (text[i] == 101 or text[i] == 69):
        i += 1
        below = False
        if i < end and (text[i] == 43 or text[i] == 45):
            below = text[i] == 45
            i += 1
        if i >= end or text[i] < 48 or text[i] > 57:
            return MALFORMED, 0.0, i
        exponent = 0
        while i < end and 48 <= text[i] <= 57:
            exponent = min(10 * exponent + (text[i] - 48), 1 << 40)
            i += 1
        shift += -exponent if below else exponent
    sign = -1.0 if negative else 1.0
    if digits == 0:
        return EXACT, sign * 0.0, i
    if digits > 19:
        return SLOW, 0.0, i
    if w <= U(1) << U(53) and -22 <= shift <= 22:
        value = np.float64(w)
        return EXACT, sign * (value / ten[-shift] if shift < 0 else value * ten[shift]), i
    outcome, value = _scaled(w, shift, high, low)
    return outcome, sign * value, i
