"""How much the coefficients of a regularisation network move when its data do.

The machine without bias solves H a = y, H = K + I/gamma.  When one point is replaced, H and y change by D and d, and
(Golub and Van Loan 1996, section 2.7.2; Hamers 2004, section 6.2 and equation B.3, whose 6.13 has the wrong sign in the
denominator)

    |da| / |a|  <=  kappa / (1 - kappa rho) (rho + |d| / |y|),       kappa = |H| |H^-1|,   rho = |D| / |H|,

as long as |D| < 1/|H^-1|.  For a positive semidefinite K, kappa = (l_max + 1/gamma) / (l_min + 1/gamma) falls with the
regularisation 1/gamma: the more of it, the more stable the machine.
"""

import numpy as np
from numpy.typing import ArrayLike

from mercer import dense
from mercer.selection.bounds.result import Bound


def coefficient_change(H: ArrayLike, dH: ArrayLike, y: ArrayLike, dy: ArrayLike) -> Bound:
    """Bound on |da| / |a| for H a = y (n,) and (H + dH)(a + da) = y + dy, both matrices symmetric."""
    matrix, change = (np.asarray(A, dtype=np.float64) for A in (H, dH))
    values, changes = (np.abs(dense.eigenvalues(A)) for A in (matrix, change))
    kappa = float(values.max() / values.min()) if values.min() > 0.0 else np.inf
    rho = float(changes.max() / values.max())
    right = float(np.linalg.norm(np.asarray(dy)) / np.linalg.norm(np.asarray(y)))
    small = kappa * rho < 1.0
    return Bound.under(
        kappa / (1.0 - kappa * rho) * (rho + right) if small else np.inf,
        ("the change of H is smaller than 1/|H^-1|", not small),
        "the machine has no free bias",
        trivial=np.inf,
        details={"kappa": kappa, "rho": rho},
    )
