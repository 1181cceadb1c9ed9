"""One table for every public estimator: the same parameter and the same fitted attribute have the same name everywhere.

Each claim runs over all estimators: parameters, fitted attributes, copies, files, weights, approximations, plan.
"""

import pickle
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector, is_regressor

import mercer
from mercer import Gaussian, Nystrom
from mercer.errors import Advice, BudgetTooSmall, ModelFileError, NotConverged
from mercer.models import container, load, save

PARAMETERS = {
    "memory": None,
    "precision": "auto",
    "tol": ...,
    "max_iter": -1,
    "max_time": None,
    "warm_start": False,
    "verbose": False,
    "n_jobs": None,
    "random_state": None,
    "approximation": None,
}
ATTRIBUTES = (
    "kernel_", "solver_", "solution_", "objective_", "dual_objective_", "gap_", "history_", "stopped_", "n_iter_",
    "plan_",
)  # fmt: skip

ENSEMBLES = ("AdaBoost", "Bagging", "Committee", "CoupledEnsemble", "MixtureOfExperts", "Stacking")

# The machines a search or a code is made of have the parameters that are not named here.
OF_THE_PARTS = {
    "TunedSVC": {"warm_start", "approximation"},
    "TunedSVR": {"warm_start", "approximation"},
    "TunedLogistic": {"warm_start", "approximation"},
    "TunedOrdinalSVC": {"warm_start", "approximation"},
    "TunedProportionalOdds": {"warm_start", "approximation"},
    "TunedRankSVM": {"warm_start", "approximation"},
    "OutputCode": set(PARAMETERS) - {"n_jobs", "random_state"},
    "Multilabel": set(PARAMETERS) - {"n_jobs"},
    **dict.fromkeys(ENSEMBLES, set(PARAMETERS) - {"n_jobs", "random_state", "verbose"}),
    "LocalMachines": set(PARAMETERS) - {"n_jobs", "random_state", "verbose", "max_time"},
}
# Each point of a stream is seen once: no certificate, and no set of points to reduce.  What holds of them is in
# tests/online.
STREAMS = {"OnlineSVC", "OnlineSVR", "OnlineNovelty"}
DEFAULTS = {name: {"random_state": 0} for name in OF_THE_PARTS if name.startswith("Tuned")}
# They separate the classes and minimise nothing: no certificate, and a weight is the length of a step.  What holds of
# them is in tests/svm/test_separators.py.
SEPARATORS = {"KernelPerceptron", "BayesPointMachine"}
# Inputs are what their model says, and there is no kernel of their own.  What holds of them is in tests/structured and
# tests/models/test_structured_files.py.
STRUCTURED = {"StructuredPerceptron", "StructuredSVM"}

KERNEL = Gaussian(sigma=1.5)


@dataclass(frozen=True)
class Case:
    """An estimator with the parameters of these tests; those with `exact` weights count w as w copies exactly."""

    estimator: Any
    exact: bool = True

    @property
    def name(self) -> str:
        return type(self.estimator).__name__


def machine(kind: Any, **parameters: Any) -> Case:
    return Case(kind(kernel=KERNEL, tol=1e-7, **parameters))


CASES = [
    machine(mercer.SVC),
    machine(mercer.NuSVC, nu=0.3),
    machine(mercer.SVR, C=2.0),
    machine(mercer.NuSVR, nu=0.4),
    machine(mercer.OneClassSVM, nu=0.3),
    machine(mercer.LSSVC, C=2.0),
    machine(mercer.LSSVR, C=2.0),
    machine(mercer.CrammerSingerSVC),
    machine(mercer.WestonWatkinsSVC),
    machine(mercer.LeeLinWahbaSVC),
    machine(mercer.BredensteinerBennettSVC),
    machine(mercer.KernelLogistic),
    machine(mercer.RankSVM, C=0.01),
    machine(mercer.OrdinalSVC),
    machine(mercer.ProportionalOdds),
    machine(mercer.LinearProgrammingSVC),
    machine(mercer.LinearProgrammingSVR, C=2.0),
    # The folds of a search are dealt out to points, not to copies.
    Case(mercer.TunedSVC(C=[0.1, 1.0, 10.0], sigma=[1.5], folds=2, tol=1e-7), exact=False),
    Case(mercer.TunedSVR(C=[0.1, 1.0, 10.0], sigma=[1.5], folds=2, tol=1e-7), exact=False),
    Case(mercer.TunedLogistic(C=[0.1, 1.0, 10.0], sigma=[1.5], folds=2, tol=1e-7), exact=False),
    Case(mercer.TunedOrdinalSVC(C=[0.1, 1.0, 10.0], sigma=[1.5], folds=2, tol=1e-7), exact=False),
    Case(mercer.TunedProportionalOdds(C=[0.1, 1.0, 10.0], sigma=[1.5], folds=2, tol=1e-7), exact=False),
    Case(mercer.TunedRankSVM(C=[0.001, 0.01, 0.1], sigma=[1.5], folds=2, tol=1e-7), exact=False),
    Case(mercer.OutputCode(mercer.SVC(kernel=KERNEL, tol=1e-7))),
    Case(mercer.OutputCode(mercer.LSSVC(kernel=KERNEL), code="ava")),
    Case(mercer.Multilabel(mercer.SVC(kernel=KERNEL, tol=1e-7))),
    Case(mercer.Multilabel(mercer.LSSVC(kernel=KERNEL))),
    Case(mercer.Bagging(mercer.SVC(kernel=KERNEL, tol=1e-7), members=4, random_state=0)),
    Case(mercer.Bagging(mercer.LSSVR(kernel=KERNEL), members=4, random_state=0)),
    Case(mercer.Committee(mercer.LSSVC(kernel=KERNEL), members=3, random_state=0)),
    Case(mercer.Committee(mercer.SVR(kernel=KERNEL, tol=1e-7), members=3, random_state=0)),
    Case(mercer.Stacking(mercer.LSSVC(kernel=KERNEL), members=3, random_state=0)),
    Case(mercer.Stacking(mercer.LSSVR(kernel=KERNEL), members=3, random_state=0)),
    Case(mercer.AdaBoost(mercer.SVC(C=0.05, kernel=KERNEL, tol=1e-7), rounds=4)),
    Case(mercer.MixtureOfExperts(mercer.LSSVC(kernel=KERNEL), experts=2, random_state=0)),
    Case(mercer.MixtureOfExperts(mercer.LSSVR(kernel=KERNEL), experts=2, random_state=0)),
    # Copies move the planes between cells, and so the cells of other points.
    Case(mercer.LocalMachines(mercer.SVC(kernel=KERNEL, tol=1e-7), size=40, random_state=0), exact=False),
    Case(mercer.LocalMachines(mercer.LSSVR(kernel=KERNEL), size=40, random_state=0), exact=False),
    Case(mercer.CoupledEnsemble(mercer.LSSVC(kernel=KERNEL), members=4, random_state=0)),
    Case(mercer.CoupledEnsemble(mercer.LSSVR(kernel=KERNEL), members=4, random_state=0)),
]
MACHINES = [case for case in CASES if case.name not in OF_THE_PARTS]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_machine = pytest.mark.parametrize("case", MACHINES, ids=lambda case: case.name)


def data(case: Case, n: int = 90, seed: int = 0) -> tuple[Any, Any]:
    """Points (n, 3) with the targets the estimator takes: three classes, real numbers, or three labels at once."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    scores = np.column_stack([X[:, 0], -X[:, 0] + X[:, 1], np.full(n, 0.3)]) + 0.3 * random.standard_normal((n, 3))
    if case.name == "Multilabel":
        return X, (scores > 0.2).astype(int)
    return X, np.sin(X[:, 0]) + 0.1 * X[:, 1] if is_regressor(case.estimator) else scores.argmax(axis=1)


def fitted(case: Case, X: Any, y: Any, weights: Any = None, **parameters: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Advice)
        return clone(case.estimator).set_params(**parameters).fit(X, y, sample_weight=weights)


def answers(estimator: Any, X: Any) -> Any:
    return estimator.predict(X) if is_regressor(estimator) else estimator.decision_function(X)


def test_every_public_estimator_is_here():
    public = [getattr(mercer, name) for name in mercer.__all__]
    estimators = {kind.__name__ for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
    named = {case.name for case in CASES} | STREAMS | SEPARATORS | STRUCTURED
    assert estimators - {"KernelFeatures", "Standardise"} == named


# Parameters and attributes -----------------------------------------------------------------------------------------


@every
def test_the_same_parameters_with_the_same_defaults(case):
    own = type(case.estimator)().get_params(deep=False)
    wanted = {name: value for name, value in PARAMETERS.items() if name not in OF_THE_PARTS.get(case.name, ())}
    assert set(wanted) <= set(own)
    for name, value in (wanted | DEFAULTS.get(case.name, {})).items():
        assert own[name] > 0 if value is ... else own[name] == value


@every
def test_the_same_fitted_attributes(case):
    found = fitted(case, *data(case))
    for name in ATTRIBUTES:
        assert hasattr(found, name), name
    assert isinstance(found.solver_, str)
    assert ": " in found.solver_  # a name, and why
    assert found.stopped_ == "converged"
    rounding = 1e-9 * abs(found.objective_)
    assert found.objective_ >= found.dual_objective_ - rounding
    assert found.gap_ == pytest.approx(found.objective_ - found.dual_objective_, abs=rounding)
    assert 0.0 <= found.gap_ <= 1e-3 * abs(found.objective_)
    assert np.sum(found.n_iter_) > 0
    solutions = found.solution_ if isinstance(found.solution_, list) else [found.solution_]
    assert found.objective_ == pytest.approx(sum(solution.primal for solution in solutions))
    histories = found.history_ if isinstance(found.solution_, list) else [found.history_]
    assert [list(history) for history in histories] == [list(solution.history) for solution in solutions]
    assert found.kernel_ == KERNEL


@every
def test_before_fit_there_is_none_of_them(case):
    for name in ATTRIBUTES:
        assert not hasattr(clone(case.estimator), name)


@every
def test_the_plan_says_storage_memory_precision_and_solver(case):
    X, y = data(case)
    base = hasattr(case.estimator, "base")
    found = fitted(case, X, y, **{("base__" if base else "") + "memory": "64 MiB"})
    text = str(found.plan_)
    for word in ("solver", "memory", "precision", "float64", found.solver_, "64 MiB"):
        assert word in text
    assert "kernel matrix" in text


@every
def test_a_float32_fit_is_one_all_the_way(case):
    """Precision and memory are part of one statement that nobody on the way may take apart."""
    X, y = data(case)
    base = "base__" if hasattr(case.estimator, "base") else ""
    if case.name in ("SVC", "TunedSVC"):  # small pairs read the points themselves
        assert fitted(case, X, y, precision="float32").plan_.precision == "float32"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        found = fitted(case, X, y, **{f"{base}precision": "float32", f"{base}tol": 1e-3})
    assert found.plan_.precision == "float32"


@every_machine
def test_a_budget_that_holds_nothing_is_refused(case):
    X, y = data(case, 400)
    with pytest.raises(BudgetTooSmall):
        fitted(case, X, y, memory=1000)


@every_machine
def test_limits_end_the_fit_with_a_certificate(case):
    X, y = data(case)
    options: dict[str, Any] = {"max_iter": 1}
    if case.name.startswith("LSSV"):
        options["solver"] = "conjugate_gradient"
    if case.name in ("SVC", "NuSVC"):
        options["solver"] = "decomposition"
    with pytest.warns(NotConverged):
        found = clone(case.estimator).set_params(**options).fit(X, y)
    assert found.stopped_ == "iterations"
    assert found.gap_ > 0.0


@every_machine
def test_a_warm_start_goes_on_from_the_last_fit(case):
    X, y = data(case)
    options: dict[str, Any] = {"warm_start": True}
    if case.name.startswith("LSSV"):
        options["solver"] = "conjugate_gradient"
    found = fitted(case, X, y, **options)
    first, before = np.sum(found.n_iter_), answers(found, X)
    found.fit(X, y)
    assert np.sum(found.n_iter_) < first
    np.testing.assert_allclose(answers(found, X), before, atol=1e-3)


@every
def test_verbose_prints_what_the_solver_does(case, capsys):
    X, y = data(case)
    base = "base__" if hasattr(case.estimator, "base") else ""
    if getattr(case.estimator, "code", None) == "ava":
        pytest.skip("systems on parts of one matrix are factorised without a word")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted(case, X, y, **{f"{base}verbose": True})
    assert "objective" in capsys.readouterr().out


# Copies ------------------------------------------------------------------------------------------------------------


@every
def test_clone_takes_the_parameters_and_nothing_else(case):
    copy = clone(fitted(case, *data(case)))
    assert repr(copy.get_params()) == repr(case.estimator.get_params())
    assert not any(name.endswith("_") for name in vars(copy))


@every
def test_a_pickled_machine_answers_the_same_to_the_bit(case):
    X, y = data(case)
    found = fitted(case, X, y)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(answers(again, X), answers(found, X))
    assert again.gap_ == found.gap_
    assert str(again.plan_) == str(found.plan_)


# Saving and loading ------------------------------------------------------------------------------------------------


@every
def test_a_machine_from_a_file_answers_the_same_to_the_bit(case, tmp_path):
    X, y = data(case)
    found = fitted(case, X, y)
    save(found, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is type(found)
    for method in ("predict", "decision_function", "predict_proba", "outputs"):
        if hasattr(found, method):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(found, method)(X))
    assert repr(again.get_params()) == repr(found.get_params())
    for name in ("objective_", "dual_objective_", "gap_", "stopped_", "solver_", "kernel_", "plan_"):
        assert getattr(again, name) == getattr(found, name), name
    np.testing.assert_array_equal(again.n_iter_, found.n_iter_)
    save(found, tmp_path / "m", solution=True)
    assert np.ndim(load(tmp_path / "m").solution_) == np.ndim(found.solution_)


@every
def test_a_file_of_another_version_is_refused(case, tmp_path, monkeypatch):
    found = fitted(case, *data(case))
    for version, remedy in (
        (container.VERSION - 1, "train the machine again"),
        (container.VERSION + 1, "update mercer"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(container, "VERSION", version)
            save(found, tmp_path / "m")
        with pytest.raises(ModelFileError, match=f"version is '{version}' and .*; {remedy}$"):
            load(tmp_path / "m")


# Weights -----------------------------------------------------------------------------------------------------------


@every
def test_weight_two_is_two_copies(case):
    if not case.exact:
        pytest.skip("folds are dealt out to points")
    X, y = data(case)
    twice = np.random.default_rng(1).integers(1, 3, len(X))
    weighted = fitted(case, X, y, twice.astype(float))
    copied = fitted(case, np.repeat(X, twice, axis=0), np.repeat(y, twice, axis=0))
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-4)
    np.testing.assert_allclose(answers(weighted, X), answers(copied, X), atol=2e-3)


@every
def test_weight_zero_is_left_out(case):
    X, y = data(case)
    weights = np.ones(len(X))
    weights[::4] = 0.0
    X[::4] += 100.0  # where such a point was seen, it would show
    kept = weights > 0.0
    weighted, without = fitted(case, X, y, weights), fitted(case, X[kept], y[kept], weights[kept])
    assert weighted.objective_ == pytest.approx(without.objective_, rel=1e-6)
    np.testing.assert_allclose(answers(weighted, X[kept]), answers(without, X[kept]), atol=1e-4)


@every
def test_the_width_of_a_named_kernel_counts_sample_weights_and_no_class_weights(case):
    if case.name == "LocalMachines":
        pytest.skip("every cell has a width of its own")
    X, y = data(case)
    X[:30] *= 3.0  # where a class were counted more, it would show
    twice = np.random.default_rng(1).integers(1, 3, len(X))
    base = "base__" if hasattr(case.estimator, "base") else ""
    named: dict[str, Any] = {f"{base}kernel": "rbf"}
    if case.name.startswith("Tuned"):  # a search chooses the width of "rbf" itself, and takes that of others as it is
        named = {"kernel": "poly", "sigma": None}
    weighted = fitted(case, X, y, twice.astype(float), **named).kernel_
    copied = fitted(case, np.repeat(X, twice, axis=0), np.repeat(y, twice, axis=0), **named).kernel_
    assert weighted.gamma == pytest.approx(copied.gamma)
    assert weighted.gamma != pytest.approx(fitted(case, X, y, **named).kernel_.gamma, rel=1e-3)
    if "class_weight" in case.estimator.get_params(deep=False):
        classes = fitted(case, X, y, twice.astype(float), **named, class_weight={0: 1.3})
        assert classes.kernel_ == weighted


# Approximations ----------------------------------------------------------------------------------------------------


@every_machine
def test_an_approximation_is_the_linear_machine_on_its_features(case):
    """The certificate is that of the low-rank problem, and the answer an expansion on the landmarks."""
    X, y = data(case, 150)
    found = fitted(case, X, y, approximation=Nystrom(25), random_state=3)
    assert found.approximation_ == Nystrom(25)
    assert found.support_vectors_.shape == (25, 3)
    np.testing.assert_array_equal(found.support_vectors_, X[found.support_])
    Z = found.feature_map_.features(X)
    linear = fitted(case, Z, y, kernel="linear")
    assert found.objective_ == pytest.approx(linear.objective_, rel=1e-4)
    np.testing.assert_allclose(answers(found, X), answers(linear, Z), atol=5e-3)
    assert "Nystrom" in str(found.plan_)


@every_machine
def test_as_many_landmarks_as_points_are_the_exact_machine(case):
    X, y = data(case, 60)
    exact, found = fitted(case, X, y), fitted(case, X, y, approximation=Nystrom(60))
    assert found.objective_ == pytest.approx(exact.objective_, rel=1e-3)
    if not is_outlier_detector(found):
        np.testing.assert_allclose(answers(found, X), answers(exact, X), atol=0.02)
