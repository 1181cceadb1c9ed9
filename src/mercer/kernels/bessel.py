"""The Matern function M_nu(t) = 2^(1-nu) / Gamma(nu) t^nu K_nu(t), M_nu(0) = 1, without overflow.

Bessel's K_nu(t) ~ Gamma(nu)/2 (2/t)^nu grows past every float as t -> 0 or nu -> infinity, although M_nu stays between
0 and 1, so everything is done in logarithms.  Below order 50 the scaled function e^t K_nu(t) of SciPy serves; where
even that is infinite, t is so small that M_nu(t) = exp(-t^2 / (4 (nu - 1))) to all digits.  From order 50 the uniform
expansion of Debye takes over (Abramowitz and Stegun 9.7.8): with x = t / nu, w = sqrt(1 + x^2), p = 1 / w,

    K_nu(t) ~ sqrt(pi / (2 nu w)) exp(-nu (w + log(x / (1 + w)))) sum_k (-1)^k U_k(p) / nu^k,

and Stirling's series for Gamma(nu) removes all large terms:

    log M_nu(t) = nu (log(1 + e/2) - e) - log(w)/2 + log(sum_k ...) - 1/(12 nu) + 1/(360 nu^3) - ...,   e = w - 1.

With terms up to k = 4 the error is below 1e-10 from order 50 on.
"""

import math

import numpy as np
from scipy.special import kve

from mercer.kernels.checks import Matrix

_LARGE_ORDER = 50.0


def log_matern(nu: float, t: Matrix) -> Matrix:
    """The logarithm log M_nu(t) for t >= 0."""
    if nu >= _LARGE_ORDER:
        return _debye(nu, t)
    safe = np.where(t > 0.0, t, 1.0)
    constant = (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
    value = constant + nu * np.log(safe) + log_bessel_k(nu, safe)
    tiny = -safe * safe / (4.0 * (nu - 1.0)) if nu > 1.0 else np.zeros_like(safe)
    value = np.where(np.isposinf(value), tiny, value)
    return np.where(t > 0.0, np.minimum(value, 0.0), 0.0)


def log_bessel_k(nu: float, t: Matrix) -> Matrix:
    """The logarithm log K_nu(t) for t > 0; infinite where K_nu itself is past the largest float."""
    # SciPy gives up above 1e9; there e^t K_nu(t) falls like t^(-1/2) to all digits.
    near = np.minimum(t, 1e8)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(kve(nu, near)) + 0.5 * np.log(near / t) - t)


def _debye(nu: float, t: Matrix) -> Matrix:
    x = t / nu
    w = np.sqrt(1.0 + x * x)
    excess = x * x / (1.0 + w)
    p, s = 1.0 / w, 1.0 / (1.0 + x * x)
    u1 = p * (3.0 - 5.0 * s) / 24.0
    u2 = s * (81.0 + s * (-462.0 + 385.0 * s)) / 1152.0
    u3 = p * s * (30375.0 + s * (-369603.0 + s * (765765.0 - 425425.0 * s))) / 414720.0
    u4 = s * s * (4465125.0 + s * (-94121676.0 + s * (349922430.0 + s * (-446185740.0 + 185910725.0 * s)))) / 39813120.0
    series = -u1 / nu + u2 / nu**2 - u3 / nu**3 + u4 / nu**4
    stirling = 1.0 / (12.0 * nu) - 1.0 / (360.0 * nu**3) + 1.0 / (1260.0 * nu**5)
    value = nu * (np.log1p(0.5 * excess) - excess) - 0.5 * np.log(w) + np.log1p(series) - stirling
    return np.where(t > 0.0, np.minimum(value, 0.0), 0.0)
