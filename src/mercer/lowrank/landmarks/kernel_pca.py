"""Landmarks that carry the leading principal components of the kernel.

The m leading eigenvectors U (n, m) of K span the best subspace of rank m, but each is a mixture of all points.  A QR
factorisation of U' with column pivoting finds m points whose rows of U are as independent as possible, so that their
kernel functions span nearly the same subspace (Golub and Van Loan 1996, section 12.2).  With sample weights K is
W^1/2 K W^1/2.
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from mercer import dense
from mercer.gram import GramOperator
from mercer.lowrank.landmarks.factor import DEPENDENT, Array, check_shares
from mercer.lowrank.landmarks.greedy import full_rows
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, said_of_rows

# Lanczos needs a few vectors for each eigenvector; from this share of n on a full decomposition is cheaper.
DENSE_FROM = 0.2
SMALL = 200


def kernel_pca(task: LandmarkTask, tol: float = DEPENDENT, rows: int | None = None) -> Choice:
    """Points with the most independent rows in the leading eigenvectors.

    tol: eigenvalues at most this share of the largest count as zero, and there are no more landmarks than others.
    rows: look at so many random rows only; None: at all where that is affordable.
    """
    task.need_definite("kernel_pca")
    check_shares(tol=tol)
    chosen = full_rows(task, rows)
    gram = task.gram(chosen)
    values, vectors = leading_eigenvectors(gram, np.sqrt(task.weights[chosen]), task.m, task.rng)
    keep = values > tol * float(values.max(initial=0.0))
    picked = dense.pivoted_qr(vectors[:, keep].T)[2][: int(keep.sum())]
    return Choice(chosen[picked], details=said_of_rows(task, chosen) | {"eigenvalues": values[keep]})


def leading_eigenvectors(gram: GramOperator, root: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The m largest eigenvalues of diag(root) K diag(root), falling, and their eigenvectors (n, m)."""
    n = gram.shape[0]
    if n <= SMALL or m >= DENSE_FROM * n:
        values, vectors = dense.eigen(gram.dense() * root[:, None] * root)
        return values[::-1][:m], np.ascontiguousarray(vectors[:, ::-1][:, :m])

    def multiply(v: Array) -> Array:
        return np.asarray(root * gram.dot(root * v.ravel()))

    operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
    values, vectors = eigsh(operator, k=m, which="LA", v0=rng.normal(size=n))
    order = np.argsort(values)[::-1]
    return values[order], np.ascontiguousarray(vectors[:, order])
