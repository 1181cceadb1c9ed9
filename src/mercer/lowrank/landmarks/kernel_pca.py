"""Landmarks that carry the leading principal components of the kernel.

The m leading eigenvectors U (n, m) of K span the best subspace of rank m, but each is a mixture of all points.  A QR
factorisation of U' with column pivoting finds m points whose rows of U are as independent as possible, so that their
kernel functions span nearly the same subspace (Golub and Van Loan 1996, section 12.2).  With sample weights K is
W^1/2 K W^1/2.
"""

import numpy as np
from scipy.linalg import qr
from scipy.sparse.linalg import LinearOperator, eigsh

from mercer.gram import GramOperator
from mercer.lowrank.landmarks.cholesky import check_tolerances
from mercer.lowrank.landmarks.factor import DEPENDENT, Array
from mercer.lowrank.landmarks.greedy import full_rows
from mercer.lowrank.landmarks.task import Choice, Task, said_of_rows

# Lanczos needs a few vectors for each eigenvector; from this share of n on a full decomposition is cheaper.
DENSE_FROM = 0.2
SMALL = 200


def kernel_pca(task: Task, tol: float = DEPENDENT, rows: int | None = None) -> Choice:
    """Points with the most independent rows in the leading eigenvectors.

    tol: eigenvalues at most this share of the largest count as zero, and there are no more landmarks than others.
    rows: look at so many random rows only; None: at all where that is affordable.
    """
    task.need_definite("kernel_pca")
    check_tolerances(tol, 0.0)
    chosen = full_rows(task, rows)
    gram = task.gram(chosen)
    values, vectors = leading_eigenvectors(gram, np.sqrt(task.weights[chosen]), task.m, task.rng)
    keep = values > tol * float(values.max(initial=0.0))
    _, pivots = qr(vectors[:, keep].T, mode="r", pivoting=True, check_finite=False, overwrite_a=True)
    picked = pivots[: int(keep.sum())].astype(np.intp)
    said = said_of_rows(task, chosen) | {"eigenvalues": values[keep]}
    if len(picked) < task.m:
        said["dropped"] = task.m - len(picked)
    return Choice(chosen[picked], details=said)


def leading_eigenvectors(gram: GramOperator, root: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The m largest eigenvalues of diag(root) K diag(root), falling, and their eigenvectors (n, m)."""
    n = gram.shape[0]
    if n <= SMALL or m >= DENSE_FROM * n:
        values, vectors = np.linalg.eigh(gram.dense() * root[:, None] * root)
        return values[::-1][:m], np.ascontiguousarray(vectors[:, ::-1][:, :m])

    def multiply(v: Array) -> Array:
        return np.asarray(root * gram.dot(root * v.ravel()))

    operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
    values, vectors = eigsh(operator, k=m, which="LA", v0=rng.normal(size=n))
    order = np.argsort(values)[::-1]
    return values[order], np.ascontiguousarray(vectors[:, order])
