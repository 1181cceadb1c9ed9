"""Label sequences: a chain learns which labels follow one another, which labels one by one cannot.

Run:  python examples/structured_chains.py
"""

import numpy as np

from mercer.structured import Chain, StructuredPerceptron, StructuredSVM

random = np.random.default_rng(0)
FOLLOWS = np.array([[0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.0, 0.5]])  # from row to column
NAMES, PLACES = np.array(["B", "I", "O"]), random.standard_normal((3, 4))


def sequence():
    """Points and labels of one sequence: labels follow the table, points scatter around the place of their label."""
    y = [0]
    for _ in range(random.integers(1, 12)):
        y.append(random.choice(3, p=FOLLOWS[y[-1]]))
    return PLACES[y] + 1.2 * random.standard_normal((len(y), 4)), NAMES[y]


X, Y = zip(*(sequence() for _ in range(400)))
train, test = slice(0, 300), slice(300, None)

alone = StructuredSVM(C=0.1).fit(np.vstack(X[train]), np.concatenate(Y[train]))
print(f"labels one by one     {alone.score(np.vstack(X[test]), np.concatenate(Y[test])):.3f} right")

chain = StructuredSVM(Chain(), C=0.1).fit(X[train], Y[train])
print(f"labels of chains      {chain.score(X[test], Y[test]):.3f} right, {chain.solution_!r}")

perceptron = StructuredPerceptron(Chain(), random_state=0).fit(X[train], Y[train])
print(f"averaged perceptron   {perceptron.score(X[test], Y[test]):.3f} right")

_, transitions = chain.model_.weights(chain.coef_)
print("weights of neighbours, from row to column:")
for name, row in zip(NAMES, transitions):
    print(f"  {name}  " + "  ".join(f"{other} {weight:+.2f}" for other, weight in zip(NAMES, row)))
