"""Read a table with categories and missing values, and write it as svmlight text."""

from pathlib import Path

from mercer.data import read, write

Path("patients.csv").write_text("age,blood,ill\n31,A,no\n,B,yes\n58,AB,yes\n44,A,no\n")
patients = read("patients.csv", target="ill", missing="impute")
print(patients.feature_names)
print(patients.X)
coded = read("patients.csv", target=False, ignore=["ill"], missing="impute")
write("patients.svm", coded)
print(Path("patients.svm").read_text())
