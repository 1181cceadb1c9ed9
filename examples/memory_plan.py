"""A kernel matrix that does not fit: what is planned, and a product without ever storing it."""

import numpy as np

from mercer import Gaussian, Gram

X = np.random.default_rng(0).standard_normal((3000, 10))
for budget in ("4 MiB", "1 GiB"):
    K = Gram(Gaussian(sigma=3.0), X, memory=budget)
    print(f"with {budget}:")
    print(K.plan())
    print("K 1 =", K.dot(np.ones(len(X)))[:3])
