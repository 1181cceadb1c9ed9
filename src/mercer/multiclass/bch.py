"""Codes from words of the binary BCH codes of length 63 (Bose and Ray-Chaudhuri 1960; Rifkin 2002, section 3.6).

Over the field of x^6 + x + 1 the primitive narrow-sense codes (63, 7), (63, 10) and (63, 16) have least distance 31,
27 and 23.  The word of message m is m(x) g(x) over GF(2), bit i of m the coefficient of x^i; bits 0/1 become -1/+1.

Which words are taken matters for the columns.  They are free of constant, equal and opposite ones as soon as the
messages have full affine rank over GF(2), so the powers of two come first, then the rest in ascending order without
0 and without the message of the all-ones word.  Messages in counting order are not safe: 1..20 give two constant
columns and 31 equal pairs.  Up to seven classes there are no 63 different columns; the complete code is all there is.
"""

import numpy as np

from mercer.errors import InvalidInput
from mercer.multiclass.codes import Code, complete

LENGTH = 63
# Dimension: (generator polynomial, least distance)
GENERATORS = {7: (0o5231045543503271737, 31), 10: (0o472622305527250155, 27), 16: (0o6331141367235453, 23)}


def product(a: int, b: int) -> int:
    """Product of two polynomials over GF(2), coefficients in the bits of integers."""
    result = 0
    while b:
        if b & 1:
            result ^= a
        a, b = a << 1, b >> 1
    return result


def messages(dimension: int, count: int) -> list[int]:
    """The first `count` messages in the order at the head of this file."""
    ones = 2**LENGTH - 1
    generator = GENERATORS[dimension][0]
    powers = [1 << i for i in range(dimension)]
    chosen = powers[:count]
    number = 1
    while len(chosen) < count:
        if number & (number - 1) and product(number, generator) != ones:
            chosen.append(number)
        number += 1
    return chosen


def bch(classes: int) -> Code:
    """Code (k, 63) of the smallest dimension that has words enough: row distance 31 up to 126 classes."""
    if classes <= 7:
        return complete(classes)
    dimension = next((d for d in GENERATORS if classes <= 2**d - 2), None)
    if dimension is None:
        raise InvalidInput(f"code='bch' has words for up to 65,534 classes, got {classes}: use 'ova' or 'dense'")
    generator = GENERATORS[dimension][0]
    words = [product(message, generator) for message in messages(dimension, classes)]
    bits = np.array([[(word >> i) & 1 for i in range(LENGTH)] for word in words], dtype=np.int8)
    return 2 * bits - 1
