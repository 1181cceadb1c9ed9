"""How far from the optimum is a support vector machine? The duality gap knows."""

from mercer import SVC, Standardise
from mercer.data import sample

data = sample("german-numeric")
X = Standardise.learn(data.X)(data.X)
for tolerance in (1e-1, 1e-2, 1e-3):
    machine = SVC(C=1.0, tol=tolerance).fit(X, data.y)
    gap = (machine.objective_ - machine.dual_objective_) / machine.objective_
    print(f"tol {tolerance:g}: objective {machine.objective_:.4f}, relative gap {gap:.1e}, {machine.stopped_}")
