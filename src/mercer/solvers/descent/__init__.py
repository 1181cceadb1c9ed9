"""Methods of first and second order that move all variables at once.

    gradient      steepest descent in function space and in coefficient space      Schoelkopf and Smola 2002, 10.6.1
    regularisers  the same in the coefficients, for other regularisers than the norm   table 10.3
    lagrangian    fixed-point iteration for squared losses                         the same, 10.6.2
    newton        Newton steps on the primal objective                             the same, problem 10.17
    irwls         iteratively reweighted least squares                             Perez-Cruz et al. 2005
    relaxation    successive over-relaxation and AdaTron, one variable after the other

All take a quadratic program in signed variables (`mercer.problems.program`), stop at a relative duality gap, and hand
their iterates to `mercer.solvers.descent.run`, which certifies them, keeps the best, and says when they diverge.
"""
