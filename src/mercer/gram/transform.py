"""From base quantity to kernel value, elementwise and vectorised.

A tile of the kernel matrix starts as the BLAS product P = U V' of prepared points.  With a_i = |u_i|^2 / 2 and
b_j = |v_j|^2 / 2 (both zero for dot-product kernels) the base quantity is

    t_ij = P_ij - a_i - b_j        ( = -|u_i - v_j|^2 / 2,  or  <u_i, v_j> )

and the kernel value is g(t_ij) with g chosen by a code:

    linear               t
    polynomial           (gamma t + offset)^degree
    sigmoid              tanh(gamma t + offset)
    gaussian             2^t                        points are prepared with the factor sqrt(2 gamma log2 e)
    exponential          exp(-r),                   r = sqrt(-2 t), points prepared with the factor 1 / sigma
    matern32             (1 + r) exp(-r),           factor sqrt(3) / sigma
    matern52             (1 + r + r^2/3) exp(-r),   factor sqrt(5) / sigma
    rational_quadratic   (1 - 2 t)^(-alpha),        factor 1 / (sigma sqrt(2 alpha))

exp and 2^t are written as a polynomial and a shift of the exponent bits, so that the compiler turns the loop over a
row into vector instructions.  Relative error of the float32 form: 4e-7 for the power itself; the error of the value is
that plus the rounding of t, |t| 6e-8 for each of its three terms.  Float64: 4e-16.  Powers below 2^-126 (float64:
2^-1022) come out as that smallest number, not as zero.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from mercer.compiled import FAST, loop

LINEAR, POLYNOMIAL, SIGMOID, GAUSSIAN, EXPONENTIAL, MATERN32, MATERN52, RATIONAL_QUADRATIC = range(8)

CODES = {
    "linear": LINEAR,
    "polynomial": POLYNOMIAL,
    "sigmoid": SIGMOID,
    "gaussian": GAUSSIAN,
    "exponential": EXPONENTIAL,
    "matern32": MATERN32,
    "matern52": MATERN52,
    "rational_quadratic": RATIONAL_QUADRATIC,
}

LOG2_E = 1.4426950408889634
ROUNDING_32 = np.float32(4.0 * np.finfo(np.float32).eps)
# BLAS sums a few hundred products in turn before it starts anew: up to 9 units in the last place were seen.
ROUNDING_64 = 16.0 * float(np.finfo(np.float64).eps)


def _reinterpret(typingctx: Any, bits: Any) -> Any:
    """Read an integer's bits as the floating-point number of the same width."""
    result = types.float32 if bits.bitwidth == 32 else types.float64

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = ir.FloatType() if bits.bitwidth == 32 else ir.DoubleType()
        return builder.bitcast(arguments[0], target)

    return result(bits), code


_float_of_bits: Any = intrinsic(_reinterpret)


@loop
def power_of_two_32(t: Any) -> Any:
    """2^t in float32 for t <= 127."""
    t = max(t, np.float32(-126.0))
    whole = np.floor(t + np.float32(0.5))
    r = t - whole
    p = np.float32(1.5353362e-4)
    p = p * r + np.float32(1.3398874e-3)
    p = p * r + np.float32(9.6184370e-3)
    p = p * r + np.float32(5.5503324e-2)
    p = p * r + np.float32(2.4022648e-1)
    p = p * r + np.float32(6.9314720e-1)
    p = p * r + np.float32(1.0)
    return p * _float_of_bits(np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)))


@loop
def power_of_two_64(t: Any) -> Any:
    """2^t in float64 for t <= 1023."""
    t = max(t, -1022.0)
    whole = np.floor(t + 0.5)
    # exp(r) with |r| <= ln(2)/2: the Taylor series to degree 13 is exact to the last place there.
    r = (t - whole) * 0.6931471805599453
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _float_of_bits((np.int64(whole) + np.int64(1023)) << np.int64(52))


@loop
def _power(base: Any, exponent: Any) -> Any:
    """base^exponent, by repeated products where the exponent is a small whole number."""
    whole = int(exponent)
    if exponent != whole or whole < 0 or whole > 16:
        return base**exponent
    result = 1.0
    for _ in range(whole):
        result *= base
    return result


@loop
def transform_row_32(
    code: int,
    parameters: NDArray[np.float64],
    row: NDArray[np.float32],
    a: np.float32,
    b: NDArray[np.float32],
) -> None:
    """Replace the products in `row` (m,) by kernel values, in float32."""
    m = row.shape[0]
    zero = np.float32(0.0)
    one = np.float32(1.0)
    if code == GAUSSIAN:
        for j in range(m):
            row[j] = power_of_two_32(min(row[j] - a - b[j], zero))
    elif code == POLYNOMIAL:
        gamma, offset, degree = np.float32(parameters[0]), np.float32(parameters[1]), parameters[2]
        for j in range(m):
            row[j] = np.float32(_power(gamma * row[j] + offset, degree))
    elif code == SIGMOID:
        gamma, offset = np.float32(parameters[0]), np.float32(parameters[1])
        for j in range(m):
            row[j] = np.tanh(gamma * row[j] + offset)
    elif code in (EXPONENTIAL, MATERN32, MATERN52):
        log2_e = np.float32(LOG2_E)
        linear = zero if code == EXPONENTIAL else one
        square = np.float32(1.0 / 3.0) if code == MATERN52 else zero
        for j in range(m):
            t = row[j] - a - b[j]
            # A distance below the rounding of the three terms is none; its root would be a thousand times larger.
            r = np.sqrt(np.float32(-2.0) * t) if t < -ROUNDING_32 * (a + b[j]) else zero
            row[j] = (one + r * (linear + r * square)) * power_of_two_32(-log2_e * r)
    elif code == RATIONAL_QUADRATIC:
        alpha = np.float32(parameters[0])
        for j in range(m):
            row[j] = (one - np.float32(2.0) * min(row[j] - a - b[j], zero)) ** (-alpha)


@loop
def transform_row_64(
    code: int,
    parameters: NDArray[np.float64],
    row: NDArray[np.float64],
    a: float,
    b: NDArray[np.float64],
) -> None:
    """Replace the products in `row` (m,) by kernel values, in float64."""
    m = row.shape[0]
    if code == GAUSSIAN:
        for j in range(m):
            row[j] = power_of_two_64(min(row[j] - a - b[j], 0.0))
    elif code == POLYNOMIAL:
        gamma, offset, degree = parameters[0], parameters[1], parameters[2]
        for j in range(m):
            row[j] = _power(gamma * row[j] + offset, degree)
    elif code == SIGMOID:
        gamma, offset = parameters[0], parameters[1]
        for j in range(m):
            row[j] = np.tanh(gamma * row[j] + offset)
    elif code in (EXPONENTIAL, MATERN32, MATERN52):
        linear = 0.0 if code == EXPONENTIAL else 1.0
        square = 1.0 / 3.0 if code == MATERN52 else 0.0
        for j in range(m):
            t = row[j] - a - b[j]
            r = np.sqrt(-2.0 * t) if t < -ROUNDING_64 * (a + b[j]) else 0.0
            row[j] = (1.0 + r * (linear + r * square)) * power_of_two_64(-LOG2_E * r)
    elif code == RATIONAL_QUADRATIC:
        for j in range(m):
            row[j] = (1.0 - 2.0 * min(row[j] - a - b[j], 0.0)) ** (-parameters[0])


def transform_row(code: int, parameters: NDArray[np.float64], row: NDArray[Any], a: float, b: NDArray[Any]) -> None:
    """Replace the products in `row` (m,) by kernel values in the precision of `row`; the plain NumPy twin."""
    t = row - a - b
    r = np.sqrt(-2.0 * np.minimum(t, 0.0))
    if code == POLYNOMIAL:
        row[:] = (parameters[0] * row + parameters[1]) ** parameters[2]
    elif code == SIGMOID:
        row[:] = np.tanh(parameters[0] * row + parameters[1])
    elif code == GAUSSIAN:
        row[:] = np.exp2(np.minimum(t, 0.0))
    elif code == EXPONENTIAL:
        row[:] = np.exp(-r)
    elif code == MATERN32:
        row[:] = (1.0 + r) * np.exp(-r)
    elif code == MATERN52:
        row[:] = (1.0 + r + r * r / 3.0) * np.exp(-r)
    elif code == RATIONAL_QUADRATIC:
        row[:] = (1.0 - 2.0 * np.minimum(t, 0.0)) ** (-parameters[0])


@overload(transform_row, jit_options={"fastmath": FAST, "nogil": True, "error_model": "numpy"})
def _transform_row(code, parameters, row, a, b):  # type: ignore[no-untyped-def] # Numba compares bare signatures
    """Choose the compiled form by the precision of the row."""
    if row.dtype == types.float32:
        return lambda code, parameters, row, a, b: transform_row_32(code, parameters, row, a, b)
    return lambda code, parameters, row, a, b: transform_row_64(code, parameters, row, a, b)
