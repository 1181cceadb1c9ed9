"""A chaotic series continued on its own: windows of the past, parameters by leave-one-out, free run."""

import numpy as np

from mercer.kernels import Gaussian
from mercer.least_squares import LSSVR, NARX


def mackey_glass(length: int, delay: int = 17) -> np.ndarray:
    """The Mackey-Glass series, one value a step, by Euler's method with ten steps each."""
    fine = 10
    x = np.full((length + delay) * fine + 1, 1.2)
    for t in range(delay * fine, len(x) - 1):
        late = x[t - delay * fine]
        x[t + 1] = x[t] + (0.2 * late / (1 + late**10) - 0.1 * x[t]) / fine
    return x[delay * fine :: fine][:length]


series = mackey_glass(1000)
train, future = series[:700], series[700:800]

model = NARX(LSSVR(C="loo", kernel=Gaussian(sigma="loo")), lag=20).fit(train)
machine = model.estimator_
print(f"chosen: C = {machine.C_:.3g}, {machine.kernel_}; leave-one-out mean squared error {machine.loo_error_:.2e}")

run = model.predict(len(future))
for steps in (10, 50, 100):
    error = np.sqrt(np.mean((run[:steps] - future[:steps]) ** 2)) / np.std(series)
    print(f"free run of {steps:>3} steps: relative error {error:.4f}")
