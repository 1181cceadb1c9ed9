"""Support vector machines with scikit-learn's interface: SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

from mercer.svm.classification import SVC
from mercer.svm.nu_classification import NuSVC
from mercer.svm.one_class import OneClassSVM
from mercer.svm.regression import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
