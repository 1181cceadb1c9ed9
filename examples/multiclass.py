"""Six codes and five decoders on satellite images: the differences are small, as Rifkin (2002) says they are."""

import numpy as np

from mercer import LSSVC, SVC, Gaussian
from mercer.data import Standardise, sample
from mercer.multiclass import OutputCode

train, test = sample("satimage", "train"), sample("satimage", "test")
scale = Standardise.learn(train.X[:1500])
X, y, Z, t = scale(train.X[:1500]), train.y[:1500], scale(test.X), test.y
bases = {"svc": SVC(C=10.0, kernel=Gaussian(3.0)), "lssvc": LSSVC(C=10.0, kernel=Gaussian(3.0))}

print("error by code         machines  distance     svc   lssvc")
for code in ("ova", "ava", "complete", "dense", "sparse", "bch"):
    found = {name: OutputCode(base, code, random_state=0).fit(X, y) for name, base in bases.items()}
    audit = found["svc"].audit_
    errors = [np.mean(machine.predict(Z) != t) for machine in found.values()]
    print(f"{code:<20} {audit.machines:>9} {audit.distance:>9} {errors[0]:>7.2%} {errors[1]:>7.2%}")

print("\nerror by decoder, all pairs of least-squares machines")
for decoder in ("hamming", "loss", "bradley-terry", "stacking", "continuous"):
    machine = OutputCode(bases["lssvc"], "ava", decoder, random_state=0).fit(X, y)
    print(f"{decoder:<20} {np.mean(machine.predict(Z) != t):.2%}")
