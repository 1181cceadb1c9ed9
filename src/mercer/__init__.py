"""mercer: kernel machines, each answer with a certificate of how far from optimal it is.

Everything here minimises a loss on the data plus a norm in the space of a kernel,

    min over f, b of   sum_i C_i loss(y_i, f(x_i) + b)  +  1/2 ||f||^2_K .

The names below are loaded when they are first used, so that `import mercer` itself stays light.
"""

from typing import TYPE_CHECKING, Any

from mercer.loading import load

if TYPE_CHECKING:
    from mercer import (
        data,
        ensembles,
        errors,
        gram,
        kernels,
        least_squares,
        losses,
        lowrank,
        models,
        multiclass,
        online,
        ordinal,
        problems,
        selection,
        solvers,
        structured,
        svm,
        transformers,
        tuned,
    )
    from mercer.data import Dataset, Standardise
    from mercer.ensembles import (
        AdaBoost,
        Bagging,
        Committee,
        CoupledEnsemble,
        LocalMachines,
        MixtureOfExperts,
        Stacking,
    )
    from mercer.gram import Gram
    from mercer.kernels import (
        ANOVA,
        AdditiveChiSquare,
        BSpline,
        ChiSquare,
        CompactGaussian,
        Constant,
        Cosine,
        Custom,
        Exponential,
        Gaussian,
        HistogramIntersection,
        Kernel,
        Laplacian,
        Linear,
        LocallyStationary,
        Log,
        Matern,
        Multiquadric,
        Normalised,
        Periodic,
        Polynomial,
        Power,
        Precomputed,
        RationalQuadratic,
        Restricted,
        Sigmoid,
        Spectrum,
        Spline,
        ThinPlate,
        Wendland,
    )
    from mercer.least_squares import LSSVC, LSSVR
    from mercer.lowrank import (
        FixedSize,
        IncompleteCholesky,
        KernelPCA,
        Nystrom,
        OrthogonalFourier,
        RandomFourier,
        ReducedBasis,
    )
    from mercer.multiclass import (
        BredensteinerBennettSVC,
        CrammerSingerSVC,
        KernelLogistic,
        LeeLinWahbaSVC,
        Multilabel,
        OutputCode,
        WestonWatkinsSVC,
    )
    from mercer.online import OnlineNovelty, OnlineSVC, OnlineSVR
    from mercer.ordinal import OrdinalSVC, ProportionalOdds, RankSVM
    from mercer.structured import StructuredPerceptron, StructuredSVM
    from mercer.svm import (
        SVC,
        SVR,
        BayesPointMachine,
        KernelPerceptron,
        LinearProgrammingSVC,
        LinearProgrammingSVR,
        NuSVC,
        NuSVR,
        OneClassSVM,
    )
    from mercer.transformers import KernelFeatures
    from mercer.tuned import (
        TunedLogistic,
        TunedOrdinalSVC,
        TunedProportionalOdds,
        TunedRankSVM,
        TunedSVC,
        TunedSVR,
        tune,
    )
    from mercer.versions import show_versions

__version__ = "0.1.0"

# Room -> the public names that are loaded from it.
_NAMES = {
    "data": "Dataset Standardise",
    "ensembles": "AdaBoost Bagging Committee CoupledEnsemble LocalMachines MixtureOfExperts Stacking",
    "gram": "Gram",
    "kernels": (
        "ANOVA AdditiveChiSquare BSpline ChiSquare CompactGaussian Constant Cosine Custom Exponential Gaussian "
        "HistogramIntersection Kernel Laplacian Linear LocallyStationary Log Matern Multiquadric Normalised Periodic "
        "Polynomial Power Precomputed RationalQuadratic Restricted Sigmoid Spectrum Spline ThinPlate Wendland"
    ),
    "least_squares": "LSSVC LSSVR",
    "lowrank": "FixedSize IncompleteCholesky KernelPCA Nystrom OrthogonalFourier RandomFourier ReducedBasis",
    "multiclass": (
        "BredensteinerBennettSVC CrammerSingerSVC KernelLogistic LeeLinWahbaSVC Multilabel OutputCode WestonWatkinsSVC"
    ),
    "online": "OnlineNovelty OnlineSVC OnlineSVR",
    "ordinal": "OrdinalSVC ProportionalOdds RankSVM",
    "structured": "StructuredPerceptron StructuredSVM",
    "svm": (
        "SVC SVR BayesPointMachine KernelPerceptron LinearProgrammingSVC LinearProgrammingSVR NuSVC NuSVR OneClassSVM"
    ),
    "transformers": "KernelFeatures",
    "tuned": "TunedLogistic TunedOrdinalSVC TunedProportionalOdds TunedRankSVM TunedSVC TunedSVR tune",
    "versions": "show_versions",
}
_HOME = {name: f"mercer.{room}" for room, names in _NAMES.items() for name in names.split()}

__all__ = [
    "ANOVA", "LSSVC", "LSSVR", "SVC", "SVR", "AdaBoost", "AdditiveChiSquare", "BSpline", "Bagging",
    "BayesPointMachine", "BredensteinerBennettSVC", "ChiSquare", "Committee", "CompactGaussian", "Constant",
    "Cosine", "CoupledEnsemble", "CrammerSingerSVC", "Custom", "Dataset", "Exponential", "FixedSize", "Gaussian",
    "Gram", "HistogramIntersection", "IncompleteCholesky", "Kernel", "KernelFeatures", "KernelLogistic",
    "KernelPCA", "KernelPerceptron", "Laplacian", "LeeLinWahbaSVC", "Linear", "LinearProgrammingSVC",
    "LinearProgrammingSVR", "LocalMachines", "LocallyStationary", "Log", "Matern", "MixtureOfExperts", "Multilabel",
    "Multiquadric", "Normalised", "NuSVC", "NuSVR", "Nystrom", "OneClassSVM", "OnlineNovelty", "OnlineSVC",
    "OnlineSVR", "OrdinalSVC", "OrthogonalFourier", "OutputCode", "Periodic", "Polynomial", "Power", "Precomputed",
    "ProportionalOdds", "RandomFourier", "RankSVM", "RationalQuadratic", "ReducedBasis", "Restricted", "Sigmoid",
    "Spectrum", "Spline", "Stacking", "Standardise", "StructuredPerceptron", "StructuredSVM", "ThinPlate",
    "TunedLogistic", "TunedOrdinalSVC", "TunedProportionalOdds", "TunedRankSVM", "TunedSVC", "TunedSVR", "Wendland",
    "WestonWatkinsSVC", "__version__", "data", "ensembles", "errors", "gram", "kernels", "least_squares", "losses",
    "lowrank", "models", "multiclass", "online", "ordinal", "problems", "selection", "show_versions", "solvers",
    "structured", "svm", "transformers", "tune", "tuned",
]  # fmt: skip
_ROOMS = frozenset(__all__) - _HOME.keys() - {"__version__"}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it, or a room of the package (PEP 562)."""
    if name in _HOME:
        value = getattr(load(_HOME[name]), name)
    elif name in _ROOMS:
        value = load(f"mercer.{name}")
    else:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
