"""Search results in order: queries in a file, a tuned ranking, its scores inside queries, and its report."""

import numpy as np

from mercer import Linear, TunedRankSVM
from mercer.data import Dataset, read, write
from mercer.models import load, save
from mercer.ordinal.by_query import by_query
from mercer.report import write_report

# Thirty queries of twenty documents; what makes a whole query easy (the last feature) says nothing about an order.
random = np.random.default_rng(0)
query = np.repeat(np.arange(30), 20)
X = np.column_stack([random.normal(size=(600, 4)), query % 5])
relevance = np.digitize(X @ [1.0, -0.5, 0.3, 0.0, 2.0] + random.normal(0.0, 0.5, 600), [2.0, 5.0, 8.0])
write("queries.svm", Dataset(X, relevance, query=query))

data = read("queries.svm")  # every line has its qid:
train, test = data.take(data.query < 20), data.take(data.query >= 20)
tuned = TunedRankSVM(kernel=Linear(), n_C=5, folds=4, scoring="ndcg@10").fit(train.X, train.y, groups=train.query)
print("C", tuned.best_params_["C"], "NDCG@10 of held-out queries", round(tuned.best_score_, 3))

found = by_query(test.y, tuned.predict(test.X), test.query)
for name, value in found.means().items():
    print(f"{name:15s} {value:.3f}  95 %: {found.intervals()[name][0]:.3f} to {found.intervals()[name][1]:.3f}")

save(tuned, "ranking.mercer")
print("same order from the file:", np.array_equal(load("ranking.mercer").predict(test.X), tuned.predict(test.X)))
print(write_report(
    "ranking.html", tuned, train.X, train.y, test.X, test.y, groups=train.query, groups_test=test.query, tuned=tuned
))  # fmt: skip
