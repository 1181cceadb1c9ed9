"""Landmarks in the place of all points: how accuracy and size of a machine grow with their number."""

import numpy as np

from mercer import LSSVC, SVC
from mercer.kernels import Gaussian
from mercer.lowrank import Nystrom, OrthogonalFourier

rng = np.random.default_rng(0)


def rings(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the plane, labelled by the ring they lie on."""
    X = rng.uniform(-3.0, 3.0, (n, 2))
    y = (np.floor(np.linalg.norm(X, axis=1) + 0.1 * rng.standard_normal(n)) % 2).astype(int)
    return X, y


X, y = rings(5_000)
X_new, y_new = rings(5_000)
kernel = Gaussian(sigma=0.6)

for m in (10, 40, 160):
    machine = LSSVC(C="loo", kernel=kernel, approximation=Nystrom(m)).fit(X, y)
    print(
        f"least squares, {m:4d} landmarks: C = {machine.C_:8.3g}, leave-one-out error {machine.loo_error_:.3f}, "
        f"error on new points {1 - machine.score(X_new, y_new):.3f}"
    )

for approximation in (Nystrom(160), Nystrom(160, landmarks="kmeans++"), OrthogonalFourier(320)):
    machine = SVC(C=10.0, kernel=kernel, approximation=approximation).fit(X, y)
    print(
        f"support vectors, {type(approximation).__name__}: error {1 - machine.score(X_new, y_new):.3f}, relative "
        f"duality gap {machine.gap_ / machine.objective_:.1e}"
    )

automatic = LSSVC(C=10.0, kernel=kernel, approximation="auto").fit(X, y)
print(f'approximation="auto": {automatic.approximation_reason_}')
