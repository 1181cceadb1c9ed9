"""Max-margin Markov networks in their marginals: mass moves from the worst labelling in use to the best of all.

For one example after another, with g = h + s the scores that count the loss,

    z = argmax g over all labellings,      v = argmin g over labellings whose marginals are all positive,

and as much mass moves from v to z as raises the dual most, or as there is.  Both are found by max-product, and the
exact step is one division, the dual being quadratic along it.  This is the structured SMO of Taskar, Guestrin and
Koller (2003) with the pair chosen by the gap.  On the 0/1 polytope of the marginals it converges linearly (Garber and
Meshi 2016, who call it a conditional gradient that does not depend on a decomposition).  No list of labellings is kept.
An example is visited with one product of its rows of K with all coefficients, and several steps are made from that.
"""

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.problems.forests import Tree, sweep
from mercer.problems.markov_networks import Marginals, MarkovNetworks, mean_score, part_of
from mercer.solvers.contract import Acceptance, Limits, Start
from mercer.solvers.iteration import Iteration, solved
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped

Labels = Index

STEPS = 30  # at most, for one example in one visit
FINER = 0.1  # a visit ends when the part of the example in the gap is this share of what it was
# Between two looks at all examples the solver visits those that have more than this share of the mean gap.
SHARE, PASSES = 0.1, 5
NOTHING = 1e-14  # a marginal below this is zero
PATIENCE = 20  # looks at all examples without a smaller gap, after which rounding is all that is left


def accepts(problem: Any) -> Acceptance:
    """Max-margin Markov networks on forests."""
    if not isinstance(problem, MarkovNetworks):
        return Acceptance(False, f"marginals are those of MarkovNetworks, not of {type(problem).__name__}")
    return Acceptance(True, f"{problem.n} examples with {problem.N} nodes")


def solve(problem: MarkovNetworks, *, tol: float = 1e-3, seed: int = 0, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of passes (-1: no bound).

    The coefficients (N, k) are those of the expansion, the tables (P, k, k) of the edges are the multiplier "tables".
    """
    return solved(_Search, problem, accepts(problem), tol=tol, seed=seed, **limits)


class _Search(Iteration):
    """The state of a solve: marginals, coefficients c (N, k), and tables W (P, k, k)."""

    name = "marginals"

    def __init__(self, problem: MarkovNetworks, tol: float, start: Start, monitor: Monitor, seed: int) -> None:
        super().__init__(problem, tol, start, monitor)
        self.random = np.random.default_rng(seed)
        self.m = problem.right() if self.initial is None else _unpacked(problem, self.initial)

    def run(self, limit: int) -> Stopped:
        """Passes until the gap is closed."""
        smallest, unchanged = np.inf, 0
        while True:
            self.c, self.W = self.problem.coefficients(self.m), self.problem.tables(self.m)
            certificate, parts = self.problem.certificate(self.m)
            keep_on = self.tell(certificate.primal, certificate.dual)
            unchanged = 0 if certificate.gap < smallest else unchanged + 1
            smallest = min(smallest, certificate.gap)
            if certificate.converged(self.tol):
                return "converged"
            if not keep_on:
                return self.halted()
            if unchanged > PATIENCE:
                return "stalled"
            if self.iterations >= limit:
                return "iterations"
            self._passes(parts, min(PASSES, limit - self.iterations))

    def _passes(self, parts: Array, count: int) -> None:
        """Passes over the examples that have most of the gap; `parts` (n,) is kept up to date."""
        for _ in range(count):
            for i in self.random.permutation(np.flatnonzero(parts > SHARE * parts.mean())):
                parts[i] = self._visit(int(i))
            self.iterations += 1
            if not self.monitor.go_on():
                return

    def _visit(self, i: int) -> float:
        """Steps on one example; returns the part of the gap that it has then."""
        problem, C = self.problem, self.problem.costs[i]
        a, b = problem.starts[i], problem.starts[i + 1]
        rows = np.asarray(problem.gram.block(slice(a, b), None), dtype=np.float64)
        scores = rows @ self.c + problem.losses[a:b]
        own = Marginals(self.m.nodes[a:b], self.m.edges[a:b])
        part = exchange(
            scores, self.W, np.ascontiguousarray(rows[:, a:b]), part_of(i, problem.forest, problem.starts), own, C
        )
        self.c[a:b] = C * ((1.0 - problem.losses[a:b]) - own.nodes)
        return float(part)

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        certificate, _ = self.problem.certificate(self.m)
        with_tables = replace(certificate, multipliers={"tables": self.problem.tables(self.m)})
        variables = np.concatenate([part.ravel() for part in self.m])
        return self.certified(stopped, with_tables, self.problem.coefficients(self.m), variables)


def _unpacked(problem: MarkovNetworks, variables: Array) -> Marginals:
    """Marginals from the variables of an earlier solution."""
    N, k = problem.N, problem.k
    if variables.shape != (N * k * (1 + k),):
        raise InvalidInput(f"start has shape {variables.shape}, this problem has {N * k * (1 + k)} variables")
    flat = np.array(variables, dtype=np.float64)
    return Marginals(flat[: N * k].reshape(N, k), flat[N * k :].reshape(N, k, k))


@loop
def exchange(scores: Array, W: Array, K: Array, tree: Tree, m: Marginals, C: float) -> float:
    """Steps on one example of T nodes: scores (T, k) with losses, K (T, T).

    Marginals, scores and the tables W (P, k, k) are changed in place.  Returns the last known part in the gap.
    """
    T = scores.shape[0]
    best, worst = np.empty(T, dtype=np.intp), np.empty(T, dtype=np.intp)
    apart = Tree(tree.order, tree.parent, tree.flipped, np.arange(T))  # each edge has a table of its own
    against, forbidding = np.empty_like(scores), np.empty_like(m.edges)
    first = part = -1.0
    for _ in range(STEPS):
        highest = sweep(scores, W, tree, best)
        part = C * (highest - mean_score(scores, W, tree, m))
        if first < 0.0:
            first = part
        if part <= FINER * first or part <= 0.0:
            break
        in_use(scores, W, tree, m, against, forbidding)
        lowest = -sweep(against, forbidding, apart, worst)
        if not highest > lowest:  # infinite where rounding left no labelling that has all its marginals
            break
        room, curvature = mass(m, tree, best, worst), C * square_norm(K, W, tree, best, worst)
        step = room if curvature * room <= highest - lowest else (highest - lowest) / curvature
        move(m, tree, best, worst, step)
        follow(scores, W, K, tree, best, worst, C * step)
    return part


@loop
def in_use(scores: Array, W: Array, tree: Tree, m: Marginals, against: Array, forbidding: Array) -> None:
    """The negative scores of nodes and of each edge, minus infinity where there is no mass to take away."""
    T, k = scores.shape
    for t in range(T):
        for i in range(k):
            against[t, i] = -scores[t, i] if m.nodes[t, i] > 0.0 else -np.inf
            if tree.parent[t] >= 0:
                for j in range(k):
                    forbidding[t, i, j] = -W[tree.table[t], i, j] if m.edges[t, i, j] > 0.0 else -np.inf


@loop
def ends(t: int, tree: Tree, labels: Labels) -> tuple[int, int]:
    """Labels of the first and second end of the edge above node t."""
    own, above = labels[t], labels[tree.parent[t]]
    return (own, above) if tree.flipped[t] else (above, own)


@loop
def differ(t: int, tree: Tree, best: Labels, worst: Labels) -> bool:
    """Whether two labellings differ on the edge above node t."""
    above = tree.parent[t]
    return bool(above >= 0 and (best[t] != worst[t] or best[above] != worst[above]))


@loop
def mass(m: Marginals, tree: Tree, best: Labels, worst: Labels) -> float:
    """The most that can be taken from the labelling `worst` where it differs from `best`."""
    room = np.inf
    for t in range(best.shape[0]):
        if best[t] != worst[t]:
            room = min(room, m.nodes[t, worst[t]])
        if differ(t, tree, best, worst):
            i, j = ends(t, tree, worst)
            room = min(room, m.edges[t, i, j])
    return room


@loop
def square_norm(K: Array, W: Array, tree: Tree, best: Labels, worst: Labels) -> float:
    """|F(x, best) - F(x, worst)|^2: kernel values between nodes that differ, and differences in the counts of edges."""
    total, counts = 0.0, np.zeros_like(W)
    for t in range(best.shape[0]):
        if best[t] != worst[t]:
            for s in range(best.shape[0]):
                if best[s] != worst[s]:
                    same = int(best[t] == best[s]) + int(worst[t] == worst[s])
                    total += K[t, s] * (same - int(best[t] == worst[s]) - int(worst[t] == best[s]))
        if differ(t, tree, best, worst):
            i, j = ends(t, tree, best)
            counts[tree.table[t], i, j] += 1.0
            i, j = ends(t, tree, worst)
            counts[tree.table[t], i, j] -= 1.0
    return float(total + (counts * counts).sum())


@loop
def take(values: Array, place: int, amount: float) -> None:
    """Take an amount away, and leave nothing where nearly nothing is left."""
    left = values[place] - amount
    values[place] = left if left > NOTHING else 0.0


@loop
def move(m: Marginals, tree: Tree, best: Labels, worst: Labels, step: float) -> None:
    """Move mass `step` from the labelling `worst` to `best`."""
    for t in range(best.shape[0]):
        if best[t] != worst[t]:
            take(m.nodes[t], worst[t], step)
            m.nodes[t, best[t]] += step
        if differ(t, tree, best, worst):
            i, j = ends(t, tree, worst)
            take(m.edges[t, i], j, step)
            i, j = ends(t, tree, best)
            m.edges[t, i, j] += step


@loop
def follow(scores: Array, W: Array, K: Array, tree: Tree, best: Labels, worst: Labels, weight: float) -> None:
    """Scores and tables after mass was moved from `worst` to `best`; `weight` is C times that mass."""
    for t in range(best.shape[0]):
        if best[t] != worst[t]:
            for s in range(best.shape[0]):
                scores[s, best[t]] -= weight * K[s, t]
                scores[s, worst[t]] += weight * K[s, t]
        if differ(t, tree, best, worst):
            i, j = ends(t, tree, best)
            W[tree.table[t], i, j] -= weight
            i, j = ends(t, tree, worst)
            W[tree.table[t], i, j] += weight
