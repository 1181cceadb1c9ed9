"""A classifier that chooses its own parameters by exact leave-one-out, and what it knows about itself."""

import numpy as np
from sklearn.datasets import make_moons

from mercer.kernels import Gaussian
from mercer.least_squares import LSSVC

X, y = make_moons(400, noise=0.25, random_state=0)
X_new, y_new = make_moons(2000, noise=0.25, random_state=1)

machine = LSSVC(C="loo", kernel=Gaussian(sigma="loo")).fit(X, y)

print(f"chosen: C = {machine.C_:.3g}, {machine.kernel_}")
print(f"leave-one-out error {machine.loo_error_:.3f}, error on new points {1 - machine.score(X_new, y_new):.3f}")
print(f"solver: {machine.solver_}; relative duality gap {machine.gap_ / machine.objective_:.1e}")

best = sorted(machine.loo_surface_, key=lambda point: point.value)[:3]
print(f"{len(machine.loo_surface_)} parameters were looked at; the best three:")
for point in best:
    print(
        f"  sigma {point.parameters['sigma']:.3f}  C {point.parameters['C']:8.3f}  squared residual {point.value:.4f}"
    )

pruned = machine.prune()
print(f"pruned to {len(pruned.support_)} of {len(X)} points: error {1 - pruned.score(X_new, y_new):.3f}")

path = LSSVC(C="loo", kernel=machine.kernel_).fit(X, y).path_
print(
    f"along {len(path.C)} values of C the degrees of freedom run from {path.degrees[0]:.1f} to {path.degrees[-1]:.1f}"
)
assert np.isclose(path.loo[path.index], np.min(path.loo))
