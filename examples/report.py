"""A support vector machine and its report: one HTML file with certificate, error estimate and pictures."""

import numpy as np

from mercer import LSSVC, SVC, Gaussian, Standardise
from mercer.data import sample
from mercer.report import write_report

data = sample("heart-statlog")
order = np.random.default_rng(0).permutation(data.n)
train, test = data.take(order[:190]), data.take(order[190:])
standardise = Standardise.learn(train.X)
X, X_test = standardise(train.X), standardise(test.X)

machine = SVC(C=1.0, kernel=Gaussian(sigma=4.0)).fit(X, train.y)
other = LSSVC(C="loo", kernel=Gaussian(sigma=4.0)).fit(X, train.y)
path = write_report(
    "report.html",
    machine,
    X,
    train.y,
    X_test,
    test.y,
    other_machine=other,
    data_name="Statlog (Heart)",
    command="python examples/report.py",
)
print(f"{path}: {path.stat().st_size // 1024} KiB, open it in a browser")
