"""From a bundled data set to a tuned machine with a promise and a certificate."""

from mercer import LSSVC, Gaussian, Standardise
from mercer.data import sample

heart = sample("heart-statlog")
train, test = heart.take(slice(0, 200)), heart.take(slice(200, None))
standardise = Standardise.learn(train.X)

machine = LSSVC(C="loo", kernel=Gaussian(sigma="loo")).fit(standardise(train.X), train.y)
print(f"chosen: C = {machine.C_:.3g}, {machine.kernel_}")
print(f"leave-one-out accuracy {1 - machine.loo_error_:.1%}")
print(f"held-out accuracy      {machine.score(standardise(test.X), test.y):.1%}")
