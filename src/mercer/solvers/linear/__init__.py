"""Linear systems of least-squares machines: direct, Krylov, stationary and spectral solvers of one bordered system."""
