"""A structured model of one's own: learn what it costs to align two sequences, from pairs whose alignment is known.

An alignment is a list of matches (i, j), rising in both; letters without a match stand against gaps.  Its score is the
sum of the scores of the pairs of letters that it matches, and a cost for every gap.  The best alignment is found by the
dynamic programme of Needleman and Wunsch (1970).  The loss is the number of right matches that are missing, so that
loss-augmented inference is the same programme with a reward of one less for each of them (Joachims 2003; Yu, Joachims,
Elber and Pillardy 2007).
"""

import numpy as np

from mercer.structured import Found, StructuredModel, StructuredSVM

LETTERS = "ACGT"


class Alignment(StructuredModel):
    """Inputs are pairs of texts over LETTERS, structures are tuples of matches (i, j)."""

    name = "alignment"

    def __init__(self):
        k = len(LETTERS)
        self.pair = np.zeros((k, k), dtype=int)  # the number of the score of a pair of letters, whatever their order
        self.pair[np.triu_indices(k)] = np.arange(k * (k + 1) // 2)
        self.pair = np.maximum(self.pair, self.pair.T)
        self.gap = k * (k + 1) // 2

    def size(self):
        """One score for each pair of letters, and one for gaps."""
        return self.gap + 1

    def matched(self, x):
        """The numbers of the scores of all possible matches (len a, len b)."""
        first, second = ([LETTERS.index(letter) for letter in text] for text in x)
        return self.pair[np.ix_(first, second)]

    def joint_features(self, x, y):
        """How often each pair of letters is matched, and the number of gaps."""
        features, scores = np.zeros(self.size()), self.matched(x)
        for i, j in y:
            features[scores[i, j]] += 1.0
        features[self.gap] = len(x[0]) + len(x[1]) - 2 * len(y)
        return features

    def loss(self, y, other):
        """The number of right matches that are missing."""
        return float(len(set(y) - set(other)))

    def largest_loss(self, y):
        """The number of right matches."""
        return float(len(y))

    def infer(self, w, x):
        """The best alignment."""
        return best_alignment(w[self.matched(x)], w[self.gap])

    def loss_augmented(self, w, x, y, rescaling):
        """The best alignment where right matches are worth less."""
        scores = w[self.matched(x)]
        for i, j in y:
            scores[i, j] -= 1.0  # a right match is a loss that does not occur
        return Found(best_alignment(scores, w[self.gap]))


def best_alignment(scores, gap):
    """The matches of the largest sum of scores (n, m), with `gap` for every letter that has none."""
    n, m = scores.shape
    best = np.zeros((n + 1, m + 1))
    best[:, 0], best[0] = gap * np.arange(n + 1), gap * np.arange(m + 1)
    for i in range(n):
        for j in range(m):
            best[i + 1, j + 1] = max(best[i, j] + scores[i, j], best[i, j + 1] + gap, best[i + 1, j] + gap)
    matches, i, j = [], n, m
    while i and j:
        if best[i, j] == best[i - 1, j - 1] + scores[i - 1, j - 1]:
            i, j = i - 1, j - 1
            matches.append((i, j))
        elif best[i, j] == best[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return tuple(reversed(matches))


def related(random, length):
    """A text and a descendant: letters are lost, and A often becomes G, C often T and back."""
    ancestor = random.integers(4, size=length)
    change = np.where(random.random(length) < 0.35, 2, np.where(random.random(length) < 0.05, 1, 0))
    descendant = (ancestor + change) % 4
    kept, left = random.random(length) < 0.85, random.random(length) < 0.85
    places = [(t, sum(kept[:t]), sum(left[:t])) for t in range(length)]
    matches = tuple((int(i), int(j)) for t, i, j in places if kept[t] and left[t])
    texts = ("".join(LETTERS[c] for c in word) for word in (ancestor[kept], descendant[left]))
    return tuple(texts), matches


def main():
    random = np.random.default_rng(0)
    pairs = [related(random, 12) for _ in range(120)]
    (X, Y), (Z, V) = (zip(*part, strict=True) for part in (pairs[:60], pairs[60:]))
    machine = StructuredSVM(Alignment(), C=1.0, tol=0.05).fit(X, Y)
    print(f"objective {machine.objective_:.2f}, gap {machine.gap_:.2f}, {machine.stopped_}")
    model = machine.model_
    plain = np.where(np.isin(np.arange(model.size()), np.diag(model.pair)), 1.0, -1.0)
    print(f"right matches with one for equal letters, minus one else: {model.score(V, model.predict(plain, Z)):.3f}")
    print(f"right matches with learnt scores: {machine.score(Z, V):.3f}")
    for letter, row in zip(LETTERS, machine.coef_[model.pair], strict=True):
        print(letter, " ".join(f"{value:6.2f}" for value in row))
    print(f"gap {machine.coef_[model.gap]:.2f}")


if __name__ == "__main__":
    main()
