"""The libraries mercer is measured against, behind one way to call them.

Each adapter trains with the parameters it is given and answers with figures: seconds of the fit alone, accuracy or R2
on test points, objective where the library tells it, number of support vectors.  An adapter imports its library when it
is called, so that a machine without it can run the rest.
"""

import time
from collections.abc import Callable
from importlib import metadata, util
from typing import Any

import numpy as np

# Name -> (module that must be importable, distribution that names the version).
KNOWN = {
    "mercer": ("mercer", "mercer"),
    "scikit-learn": ("sklearn", "scikit-learn"),
    "scikit-learn-intelex": ("sklearnex", "scikit-learn-intelex"),
    "libsvm": ("libsvm", "libsvm-official"),
    "liblinear": ("liblinear", "liblinear-official"),
    "torchkm": ("torchkm", "torchkm"),
    "thundersvm": ("thundersvm", "thundersvm-cpu"),
    "liquidSVM": ("liquidSVM", "liquidSVM"),
}


def why_not(name: str) -> str | None:
    """Why a library cannot run here, None when it can; names may carry a variant: "mercer (float64)"."""
    base = name.split(" (")[0]
    if base not in KNOWN:
        return None
    if util.find_spec(KNOWN[base][0]) is None:
        return f"{KNOWN[base][1]} is not installed"
    return None


def versions() -> dict[str, str | None]:
    """Version of every peer that is installed."""
    found: dict[str, str | None] = {}
    for _, distribution in KNOWN.values():
        try:
            found[distribution] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            found[distribution] = None
    found.pop("mercer", None)
    return found


def estimator(library: str, name: str, **parameters: Any) -> Any:
    """An estimator of scikit-learn's kind by its class name, such as "SVC"."""
    if library == "mercer":
        import mercer

        return getattr(mercer, name)(**parameters)
    if library == "scikit-learn":
        from sklearn import kernel_ridge, svm

        return (getattr(svm, name, None) or getattr(kernel_ridge, name))(**parameters)
    if library == "scikit-learn-intelex":
        from sklearnex import svm as intelex

        return getattr(intelex, name)(**parameters)
    if library == "thundersvm":
        import thundersvm

        return getattr(thundersvm, name)(**parameters)
    raise ValueError(f"{library} has no estimators of scikit-learn's kind")


def fitted(library: str, name: str, X: Any, y: Any, Z: Any = None, t: Any = None, **parameters: Any) -> dict[str, Any]:
    """Train on (X, y), score on (Z, t): seconds of the fit, score, seconds of the prediction, certificate."""
    machine = estimator(library, name, **parameters)
    started = time.perf_counter()
    machine.fit(X, y)
    figures: dict[str, Any] = {"seconds": time.perf_counter() - started}
    if Z is not None:
        started = time.perf_counter()
        predicted = machine.predict(Z)
        figures["predict s"] = time.perf_counter() - started
        figures |= _score(predicted, t, is_classifier=hasattr(machine, "classes_"))
    if hasattr(machine, "support_"):
        figures["support vectors"] = len(machine.support_)
    if hasattr(machine, "objective_"):
        figures["objective"] = float(machine.objective_)
        figures["gap"] = float(machine.objective_ - machine.dual_objective_)
    return figures


def _score(predicted: Any, t: Any, is_classifier: bool) -> dict[str, float]:
    predicted, t = np.asarray(predicted), np.asarray(t)
    if is_classifier:
        return {"accuracy": float(np.mean(predicted == t))}
    return {"R2": float(1 - np.sum((t - predicted) ** 2) / np.sum((t - t.mean()) ** 2))}


def libsvm(X: Any, y: Any, Z: Any = None, t: Any = None, *, options: str) -> dict[str, Any]:
    """LIBSVM's own Python module, with its command-line options; reading the data into its form is not counted."""
    from libsvm.svm import svm_parameter, svm_problem
    from libsvm.svmutil import svm_predict, svm_train

    problem = svm_problem(list(map(float, y)), X)
    started = time.perf_counter()
    model = svm_train(problem, svm_parameter(options + " -q"))
    figures: dict[str, Any] = {"seconds": time.perf_counter() - started, "support vectors": int(model.l)}
    if Z is not None:
        predicted, _, _ = svm_predict([], Z, model, "-q")
        figures |= _score(predicted, t, is_classifier=model.param.svm_type in (0, 1))
    return figures


def liblinear(X: Any, y: Any, Z: Any = None, t: Any = None, *, options: str) -> dict[str, Any]:
    """LIBLINEAR's own Python module, with its command-line options."""
    from liblinear.liblinear import parameter, problem
    from liblinear.liblinearutil import predict, train

    data = problem(list(map(float, y)), X)
    started = time.perf_counter()
    model = train(data, parameter(options + " -q"))
    figures: dict[str, Any] = {"seconds": time.perf_counter() - started}
    if Z is not None:
        predicted, _, _ = predict([], Z, model, "-q")
        figures |= _score(predicted, t, is_classifier=model.param.solver_type < 11)
    return figures


def torchkm_svm(
    X: Any, y: Any, Z: Any = None, t: Any = None, *, C_values: Any, folds: int, sigma: float
) -> dict[str, Any]:
    """TorchKM's cross-validated kernel SVM on the CPU: one eigendecomposition for all C values and folds."""
    import torch
    from torchkm.cvksvm import cvksvm
    from torchkm.functions import kernelMult, rbf_kernel

    rng = np.random.default_rng(0)
    n = len(y)
    X, target = torch.as_tensor(np.asarray(X)), torch.as_tensor(np.asarray(y, dtype=float))
    ridge = torch.as_tensor(1.0 / (2.0 * n * np.sort(np.asarray(C_values, dtype=float))))  # descending penalty
    fold = torch.as_tensor(rng.permutation(np.arange(n) % folds + 1))
    width = 0.25 / sigma**2  # its kernel is exp(-2 width |x - z|^2)
    started = time.perf_counter()
    K = rbf_kernel(X, width)
    model = cvksvm(Kmat=K, y=target, nlam=len(ridge), ulam=ridge, foldid=fold, nfolds=folds, device="cpu")
    model.fit()
    figures: dict[str, Any] = {"seconds": time.perf_counter() - started}
    if Z is not None:
        errors = model.cv(model.pred, target)
        best = int(np.argmin(np.asarray(errors)))
        coefficients = model.alpmat[:, best].to("cpu")
        values = kernelMult(torch.as_tensor(np.asarray(Z)), X, width) @ coefficients[1:] + coefficients[0]
        figures |= _score(np.sign(values.numpy()), t, is_classifier=True)
    return figures


def liquid_svm(X: Any, y: Any, Z: Any, t: Any, *, folds: int, cells: bool = False) -> dict[str, Any]:
    """LiquidSVM's multiclass machine with its own 10 x 10 grid on two threads; training and choice are counted.

    With `cells` it cuts the space into cells (useCells).  The package asks for two things Python no longer has, neither
    of which matters here.
    """
    import sys
    import sysconfig
    from types import ModuleType

    sys.modules.setdefault("pkg_resources", ModuleType("pkg_resources"))
    sysconfig.get_config_vars().setdefault("SO", ".so")
    from liquidSVM import mcSVM

    classes, codes = np.unique(y, return_inverse=True)
    started = time.perf_counter()
    machine = mcSVM(np.ascontiguousarray(X, dtype=float), codes + 1.0, threads=2, folds=folds, useCells=cells)
    seconds = time.perf_counter() - started
    values, _ = machine.test(np.ascontiguousarray(Z, dtype=float), np.searchsorted(classes, t) + 1.0)
    predicted = classes[np.asarray(values)[:, 0].astype(int) - 1]
    return {"seconds": seconds, **_score(predicted, t, is_classifier=True)}


def rivals(name: str, names: tuple[str, ...], **parameters: Any) -> dict[str, Callable[[Any], dict[str, Any]]]:
    """Measures for one estimator of several libraries on data (X, y, Z, t): for `Task.measure`."""

    def measure(library: str) -> Callable[[Any], dict[str, Any]]:
        return lambda data: fitted(library, name, *data, **parameters)

    return {library: measure(library) for library in names}
