"""What one point changes: the update rules of online learning (Schoelkopf and Smola 2002, section 10.6.3).

A point with target y and output g = f(x) + b costs c(y, g), and a step of size Lambda along the gradient of
c + (lambda/2) ||f||^2 gives it the coefficient a = -Lambda dc/dg.  The bias moves by the same amount where there is
one.  With H(t) = 1 for t > 0 and 0 otherwise:

    rule                              loss c                            a / Lambda            other parameter

    hinge          (10.131)           (1 - y g)_+                       y H(1 - y g)
    nu             (10.132), (10.134) (rho - y g)_+ - nu rho            y H(rho - y g)        rho   += Lambda (nu - H)
    perceptron     (10.133)           (-y g)_+                          y H(-y g), with H(0) = 1
    squared        (10.135)           (y - g)^2 / 2                     y - g
    tube           (10.137)           (|y - g| - eps)_+ + nu eps        sgn(y - g) H          eps   += Lambda (H - nu)
    huber          (10.139), (10.140) |y - g| - sigma/2 beyond sigma,   sgn(y - g) beyond,    sigma += Lambda (H - nu)
                                      (y - g)^2 / (2 sigma) within      (y - g)/sigma within

where H tells whether y g lies below rho, or |y - g| beyond eps or sigma; for the perceptron it is also 1 at y g = 0, or
the function zero would never learn.  Novelty detection is the rule nu with y = 1 and no bias.  Where nu is zero, the
width of a tube, or Huber's, stays as it was given.  The signs of the updates of rho and the factor Lambda within sigma
are misprinted in the source; all rules here are gradients of their losses but that of sigma, which follows the quantile
of the residuals instead, and leaves a share nu of them outside.
"""

from enum import IntEnum

from mercer.compiled import loop


class Rule(IntEnum):
    """The number of a rule inside compiled loops."""

    HINGE = 0
    NU = 1
    PERCEPTRON = 2
    SQUARED = 3
    TUBE = 4
    HUBER = 5


RULES = {rule.name.lower(): rule for rule in Rule}

_HINGE, _NU, _PERCEPTRON, _SQUARED, _TUBE = (int(rule) for rule in list(Rule)[:5])
NARROWEST = 1e-12  # a width that divides residuals stays above this


@loop
def slope(rule: int, y: float, g: float, width: float) -> float:
    """-dc/dg, the coefficient that a step of size one gives to the point; `width` is rho, eps or sigma."""
    if rule == _PERCEPTRON:
        return y if y * g <= 0.0 else 0.0
    if rule < _PERCEPTRON:
        return y if y * g < (1.0 if rule == _HINGE else width) else 0.0
    residual = y - g
    if rule == _SQUARED:
        return residual
    if abs(residual) > width:
        return 1.0 if residual > 0.0 else -1.0
    return 0.0 if rule == _TUBE else residual / width


@loop
def moved_width(rule: int, y: float, g: float, width: float, nu: float, step: float) -> float:
    """rho, eps or sigma after a step."""
    if rule == _NU:
        return width + step * (nu - (1.0 if y * g < width else 0.0))
    if rule <= _SQUARED or nu == 0.0:
        return width
    moved = width + step * ((1.0 if abs(y - g) > width else 0.0) - nu)
    return max(moved, 0.0 if rule == _TUBE else NARROWEST)


@loop
def loss(rule: int, y: float, g: float, width: float, nu: float) -> float:
    """c(y, g)."""
    if rule <= _PERCEPTRON:
        margin = 1.0 if rule == _HINGE else width if rule == _NU else 0.0
        return max(0.0, margin - y * g) - (nu * width if rule == _NU else 0.0)
    residual = abs(y - g)
    if rule == _SQUARED:
        return 0.5 * residual * residual
    if rule == _TUBE:
        return max(0.0, residual - width) + nu * width
    return residual - 0.5 * width if residual > width else 0.5 * residual * residual / width


@loop
def wrong(rule: int, y: float, g: float, width: float) -> float:
    """What is counted beside the loss: a wrong sign, a novelty, or a residual beyond the width, as 0 or 1."""
    if rule in (_HINGE, _PERCEPTRON):
        return 1.0 if y * g <= 0.0 else 0.0
    if rule == _NU:
        return 1.0 if y * g < width else 0.0
    return 1.0 if abs(y - g) > width else 0.0
