"""The machines with one problem for all classes, their primal handed as written to a general interior point solver."""

import clarabel
import numpy as np
import scipy.sparse as sp

from mercer.gram import Gram
from mercer.kernels import Precomputed


def points(n=24, k=3, d=2, seed=0, noise=0.6):
    """Points (n, d) in k overlapping clusters; every class has at least two."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), np.arange(k), rng.integers(0, k, n - 2 * k)])
    centres = 1.5 * rng.normal(size=(k, d))
    return centres[y] + noise * rng.normal(size=(n, d)), y


def gaussian(X, gamma=0.5):
    """Kernel matrix of X, a little away from singular so that it has a root."""
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-gamma * squares) + 1e-9 * np.eye(len(X))


def given(K):
    """The Gram operator of a matrix."""
    return Gram(Precomputed(), K)


def minimise(P, q, A, b, equal=0):
    """Min 1/2 z'Pz + q'z with the first `equal` rows A z = b and the others A z <= b: value and z."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = ([clarabel.ZeroConeT(equal)] if equal else []) + [clarabel.NonnegativeConeT(A.shape[0] - equal)]
    answer = clarabel.DefaultSolver(sp.csc_matrix(sp.triu(P)), q, sp.csc_matrix(A), b, cones, settings).solve()
    z = np.array(answer.x)
    return 0.5 * z @ (P @ z) + q @ z, z


def reference(kind, K, y, C, bias="none", norm=None, margin=None):
    """Optimal value and outputs (n, k) of a machine: kind "ww", "cs" or "llw", C a number or (n,).

    Variables are the k weight vectors in the features of a root of K, the biases, and the slacks.  `norm` (k, k) is the
    quadratic form between the weight vectors, the identity unless given.
    """
    n, k = len(y), int(y.max()) + 1
    box = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    root = np.linalg.cholesky(K)
    margin = {"ww": 2.0, "cs": 1.0, "llw": 1.0 / (k - 1)}[kind] if margin is None else margin
    slacks = n if kind == "cs" else n * k
    at_bias, at_slack = k * n, k * n + k
    size = at_slack + slacks
    norm = np.eye(k) if norm is None else norm
    P = sp.block_diag([sp.kron(norm, sp.eye(n)), (1.0 if bias == "penalised" else 0.0) * sp.eye(k), 0 * sp.eye(slacks)])
    rows, right = [], []
    q = np.zeros(size)
    equalities = []
    if bias == "none":
        for m in range(k):
            row = np.zeros(size)
            row[at_bias + m] = 1.0
            equalities.append(row)
    elif bias == "free":
        row = np.zeros(size)
        row[at_bias : at_bias + k] = 1.0
        equalities.append(row)
    if kind == "llw":
        for i in range(n):  # outputs sum to zero: in feature space, the weight vectors do
            row = np.zeros(size)
            row[i : k * n : n] = 1.0
            equalities.append(row)
        if bias == "penalised":
            row = np.zeros(size)
            row[at_bias : at_bias + k] = 1.0
            equalities.append(row)
    for i in range(n):
        for j in range(k):
            if j == y[i]:
                continue
            slack = at_slack + (i if kind == "cs" else i * k + j)
            row = np.zeros(size)
            row[j * n : (j + 1) * n] += root[i]
            row[at_bias + j] += 1.0
            if kind != "llw":
                row[y[i] * n : (y[i] + 1) * n] -= root[i]
                row[at_bias + y[i]] -= 1.0
            row[slack] = -1.0
            rows.append(row)
            right.append(-margin)
            q[slack] = box[i]
    below = sp.hstack([sp.csc_matrix((slacks, at_slack)), -sp.eye(slacks)])
    A = sp.vstack([sp.csr_matrix(np.array(equalities).reshape(-1, size)), sp.csr_matrix(np.array(rows)), below])
    b = np.concatenate([np.zeros(len(equalities)), right, np.zeros(slacks)])
    value, z = minimise(P, q, A, b, len(equalities))
    W = z[:at_bias].reshape(k, n)
    return value, root @ W.T + z[at_bias:at_slack]
