"""Support vector machines with scikit-learn's interface, machines of linear programs, perceptrons and Bayes points."""

from typing import TYPE_CHECKING

from mercer.loading import on_first_use

if TYPE_CHECKING:
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

__getattr__ = on_first_use(
    {
        "mercer.svm.bayes_point": "BayesPointMachine",
        "mercer.svm.classification": "SVC",
        "mercer.svm.linear_programming": "LinearProgrammingSVC LinearProgrammingSVR",
        "mercer.svm.nu_classification": "NuSVC",
        "mercer.svm.one_class": "OneClassSVM",
        "mercer.svm.perceptron": "KernelPerceptron",
        "mercer.svm.regression": "SVR NuSVR",
    }
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
