"""Section 2.5.2 of Herbrich, Graepel and Obermayer 2000 (Figures 2.4 and 2.5) on a stand-in for its text collection.

The source takes the 107 documents of one OHSUMED query with three grades of relevance, about 1700 terms, TFIDF vectors
of length one, trains on m = 6 to 24 of them and orders the rest.  That collection is not to be had.  The stand-in is
made up: words of a Zipf vocabulary, a theme of its own for every document, and words of the query, a share of the text
that grows with the grade, twice as much from the second to the third as from the first to the second.  What holds on it
is a statement about sparse text of this kind, and not about OHSUMED.
"""

from collections.abc import Callable, Sequence

import numpy as np
import ordinal_printed as printed
from numpy.typing import NDArray
from parts import table

from mercer.ordinal.metrics import scaled_pair_loss

Array = NDArray[np.float64]

SIZES = (6, 9, 12, 15, 18, 21, 24)
GRADES = (55, 30, 22)  # documents that are irrelevant, partially relevant, relevant
QUERY_SHARE = (0.02, 0.10, 0.26)
THEME_SHARE = 0.3
VOCABULARY, QUERY_WORDS, THEME_WORDS, THEMES = 8000, 30, 150, 15
LENGTH = 160  # words of a document, in the mean
LEAST = 3  # occurrences of a term that is kept
KINDS = ("inversions", "inversions of utilities", "wrong grades")
METHODS: dict[str, Callable[[Array, Array, Array], printed.Answer]] = {
    "ordinal": printed.ordinal,
    "one versus one": printed.votes,
    "regression": printed.regression,
}


def documents(seed: int = 0) -> tuple[Array, Array]:
    """TFIDF vectors of length one and grades 1 to 3 of the stand-in."""
    random = np.random.default_rng(seed)
    common = 1.0 / np.arange(1.0, VOCABULARY + 1.0)
    common /= common.sum()
    query = random.choice(VOCABULARY, QUERY_WORDS, replace=False)
    themes = [random.choice(VOCABULARY, THEME_WORDS, replace=False) for _ in range(THEMES)]
    y = np.repeat([1.0, 2.0, 3.0], GRADES)
    counts = np.zeros((len(y), VOCABULARY))
    for row, grade in enumerate(y.astype(int)):
        length = max(30, int(random.lognormal(np.log(LENGTH), 0.4)))
        special = random.multinomial(length, [QUERY_SHARE[grade - 1], THEME_SHARE, 0.0])
        words = np.concatenate(
            (
                random.choice(query, special[0]),
                random.choice(themes[random.integers(THEMES)], special[1]),
                random.choice(VOCABULARY, length - special[0] - special[1], p=common),
            )
        )
        counts[row] = np.bincount(words, minlength=VOCABULARY)
    counts = counts[:, counts.sum(axis=0) >= LEAST]
    weighted = counts * np.log(len(y) / (counts > 0).sum(axis=0))
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True), y


def curves(draws: int, sizes: Sequence[int]) -> dict[str, dict[str, Array]]:
    """Inversions and wrong grades (sizes, draws) of every method, on the documents that were not trained on."""
    X, y = documents()
    found = {kind: {name: np.empty((len(sizes), draws)) for name in METHODS} for kind in KINDS}
    for place, m in enumerate(sizes):
        random = np.random.default_rng(7)
        for draw in range(draws):
            chosen = random.choice(len(y), m, replace=False)
            while len(np.unique(y[chosen])) < len(GRADES):
                chosen = random.choice(len(y), m, replace=False)
            rest = np.setdiff1d(np.arange(len(y)), chosen)
            for name, run in METHODS.items():
                answer = run(X[chosen], y[chosen], X[rest])
                found["inversions"][name][place, draw] = scaled_pair_loss(y[rest], answer.ranks)
                found["inversions of utilities"][name][place, draw] = scaled_pair_loss(y[rest], answer.utility)
                found["wrong grades"][name][place, draw] = float(np.mean(answer.ranks != y[rest]))
    return found


def report(found: dict[str, dict[str, Array]], draws: int) -> list[str]:
    """Tables of the curves and what became of the claims."""
    X, y = documents()
    rows = []
    sizes = SIZES[: len(next(iter(found["inversions"].values())))]
    for place, m in enumerate(sizes):
        cells = [
            f"{values[place].mean():.3f} ± {1.96 * values[place].std() / np.sqrt(draws):.3f}"
            for kind in found.values()
            for values in kind.values()
        ]
        rows.append([str(m), *cells])
    head = ["m", *(f"{kind}: {name}" for kind, methods in found.items() for name in methods)]
    answers, utilities, wrong = ({name: float(values.mean()) for name, values in found[kind].items()} for kind in KINDS)
    claims = [
        ("2.4(a)", "ordinal has fewer inversions than one versus one", answers, "ordinal", "one versus one"),
        ("2.4(a)", "the same of the utilities", utilities, "ordinal", "one versus one"),
        ("2.4(b)", "one versus one has fewer wrong grades than ordinal", wrong, "one versus one", "ordinal"),
        ("2.5(a)", "ordinal has fewer inversions than regression", answers, "ordinal", "regression"),
        ("2.5(a)", "the same of the utilities", utilities, "ordinal", "regression"),
        ("2.5(b)", "ordinal has fewer wrong grades than regression", wrong, "ordinal", "regression"),
    ]
    verdicts = [
        [figure, claim, f"{mean[a]:.3f}", f"{mean[b]:.3f}", "holds" if mean[a] < mean[b] else "does not hold"]
        for figure, claim, mean, a, b in claims
    ]
    return [
        f"## Documents that are made up, in the place of the source's collection ({draws} draws)\n",
        f"{len(y)} documents of {X.shape[1]} terms, three grades.  Share of the pairs of different grade that the\n"
        "answers tie or put in the wrong order, the same of the utilities, and share of wrong grades, among the\n"
        "documents that were not trained on (Figures 2.4 and 2.5).\n",
        table(head, rows),
        "",
        table(["figure", "claim of the source", "first", "second", "on the stand-in, mean over m"], verdicts),
    ]
