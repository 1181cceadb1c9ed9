"""Support vector machines with scikit-learn's interface, machines of linear programs, perceptrons and Bayes points."""

from mercer.svm.bayes_point import BayesPointMachine
from mercer.svm.classification import SVC
from mercer.svm.linear_programming import LinearProgrammingSVC, LinearProgrammingSVR
from mercer.svm.nu_classification import NuSVC
from mercer.svm.one_class import OneClassSVM
from mercer.svm.perceptron import KernelPerceptron
from mercer.svm.regression import SVR, NuSVR

__all__ = [
    "SVC", "SVR", "BayesPointMachine", "KernelPerceptron", "LinearProgrammingSVC", "LinearProgrammingSVR", "NuSVC",
    "NuSVR", "OneClassSVM",
]  # fmt: skip
