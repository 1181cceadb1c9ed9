"""SVC and SVR with every loss, and with basis functions, against the primal problem written out for a conic solver."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC, LinearSVR

from mercer import LSSVR, SVC, SVR, Gaussian, Linear, OutputCode
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.losses import Hinge, SquaredHinge
from mercer.lowrank import Nystrom
from mercer.models import load, save, write_libsvm
from mercer.multiclass.decoders import natural_loss

REGRESSION = ["epsilon_insensitive", "squared_epsilon_insensitive", "huber", "quantile", "expectile"]
EPSILON, THRESHOLD, LEVEL = 0.1, 0.3, 0.8


def machine(loss, **options):
    return SVR(loss=loss, epsilon=EPSILON, threshold=THRESHOLD, quantile=LEVEL, tol=1e-8, **options)


def sample(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(3, size=n)
    return X, t, np.where(X[:, 1] + 0.4 * rng.normal(size=n) > 0, 1, -1), rng


def trend(X):
    """Basis functions outside the norm."""
    return np.column_stack((X[:, 0], X[:, 0] * X[:, 1]))


def written_out(loss, r):
    """The loss of residuals r = y - f, as the literature writes it."""
    return {
        "epsilon_insensitive": np.maximum(np.abs(r) - EPSILON, 0),
        "squared_epsilon_insensitive": np.maximum(np.abs(r) - EPSILON, 0) ** 2,
        "huber": np.where(np.abs(r) <= THRESHOLD, r**2 / (2 * THRESHOLD), np.abs(r) - THRESHOLD / 2),
        "quantile": np.where(r > 0, LEVEL * r, (LEVEL - 1) * r),
        "expectile": np.where(r > 0, LEVEL, 1 - LEVEL) * r**2,
    }[loss]


def conic(K, y, costs, loss, psi=None):
    """Solve min 1/2 ||z||^2 + sum_i costs_i l(y_i - (L z)_i - b - (psi beta)_i), K = L L'.

    A residual is e - E + p - m + u - v, all parts >= 0: the first two, up to epsilon, cost nothing, the next two their
    square, the last two their size, each with the factors of its loss.
    """
    n = len(y)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    q = 0 if psi is None else psi.shape[1]
    size = n + 1 + q + 6 * n
    at = {name: n + 1 + q + k * n + np.arange(n) for k, name in enumerate(("e", "E", "p", "m", "u", "v"))}
    P, c = np.zeros(size), np.zeros(size)
    P[:n] = 1.0
    tube = EPSILON if "epsilon" in loss else 0.0
    if loss == "huber":
        P[at["p"]] = P[at["m"]] = costs / THRESHOLD
        c[at["u"]] = c[at["v"]] = costs
    elif loss in ("squared_epsilon_insensitive", "expectile"):
        up, down = (LEVEL, 1 - LEVEL) if loss == "expectile" else (1.0, 1.0)
        P[at["p"]], P[at["m"]] = 2 * up * costs, 2 * down * costs
    else:
        up, down = (LEVEL, 1 - LEVEL) if loss == "quantile" else (1.0, 1.0)
        c[at["u"]], c[at["v"]] = up * costs, down * costs
    A = np.zeros((n, size))
    A[:, :n], A[:, n] = L, 1.0
    if psi is not None:
        A[:, n + 1 : n + 1 + q] = psi
    for name, sign in (("e", 1), ("E", -1), ("p", 1), ("m", -1), ("u", 1), ("v", -1)):
        A[np.arange(n), at[name]] = sign
    used = {"e": tube > 0, "E": tube > 0, "p": P[at["p"]].any(), "m": P[at["m"]].any(), "u": c[at["u"]].any()}
    used["v"] = used["u"]
    top = {name: tube if name in "eE" else np.inf for name in at}
    rows, right = [sp.csc_matrix(A)], [y]
    positive = np.concatenate([at[name] for name in at])
    rows.append(-sp.eye(size, format="csc")[positive])
    right.append(np.zeros(len(positive)))
    capped = [name for name in at if not used[name] or np.isfinite(top[name])]
    limits = np.concatenate([at[name] for name in capped])
    rows.append(sp.eye(size, format="csc")[limits])
    right.append(np.concatenate([np.full(n, top[name] if used[name] else 0.0) for name in capped]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(len(positive) + len(limits))]
    stacked = sp.vstack(rows, format="csc")
    return clarabel.DefaultSolver(sp.diags(P, format="csc"), c, stacked, np.concatenate(right), cones, settings).solve()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", REGRESSION)
def test_regression_reaches_the_optimum_of_the_primal_problem(loss, weighted):
    X, t, _, rng = sample()
    weights = rng.uniform(0.2, 3, size=len(t)) if weighted else None
    costs = 5.0 * (np.ones(len(t)) if weights is None else weights)
    K = Gaussian(sigma=0.7)(X)
    fitted = machine(loss, C=5.0, kernel=Gaussian(sigma=0.7)).fit(X, t, sample_weight=weights)
    optimum = conic(K, t, costs, loss).obj_val
    assert fitted.objective_ == pytest.approx(optimum, rel=1e-6)
    assert fitted.dual_objective_ <= optimum * (1 + 1e-7) + 1e-9
    c = np.zeros(len(t))
    c[fitted.support_] = fitted.dual_coef_[0]
    residual = t - fitted.predict(X)
    assert 0.5 * c @ K @ c + costs @ written_out(loss, residual) == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("loss", REGRESSION)
def test_basis_functions_are_outside_the_norm(loss):
    X, t, _, _ = sample()
    t = t + 3.0 * X[:, 0] - X[:, 0] * X[:, 1]
    K = Gaussian(sigma=0.5)(X)
    fitted = machine(loss, C=2.0, kernel=Gaussian(sigma=0.5), basis=trend).fit(X, t)
    found = conic(K, t, np.full(len(t), 2.0), loss, trend(X))
    assert fitted.objective_ == pytest.approx(found.obj_val, rel=1e-7)
    assert fitted.gap_ <= 1e-7 * fitted.objective_
    np.testing.assert_allclose(fitted.basis_coef_, found.x[len(t) + 1 : len(t) + 3], atol=2e-3)
    far = np.array([[50.0, 1.0]])
    expected = fitted.intercept_[0] + trend(far) @ fitted.basis_coef_
    np.testing.assert_allclose(fitted.predict(far), expected, rtol=1e-12)
    assert "basis" in fitted.solver_


@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_squared_hinge_is_that_of_linear_svc(bias):
    X, _, y, _ = sample(120, 1)
    reference = LinearSVC(loss="squared_hinge", C=0.7, fit_intercept=bias == "penalised", tol=1e-10, max_iter=10**6)
    reference.fit(X, y)
    fitted = SVC(kernel=Linear(), loss="squared_hinge", C=0.7, bias=bias, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(fitted.decision_function(X), reference.decision_function(X), atol=1e-5)


def test_squared_epsilon_insensitive_loss_is_that_of_linear_svr():
    X, t, _, _ = sample(120, 2)
    options = {"loss": "squared_epsilon_insensitive", "C": 0.7, "epsilon": 0.2}
    reference = LinearSVR(**options, fit_intercept=False, dual=True, tol=1e-10, max_iter=10**6).fit(X, t)
    fitted = SVR(kernel=Linear(), bias="none", tol=1e-8, **options).fit(X, t)
    np.testing.assert_allclose(fitted.predict(X), reference.predict(X), atol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_split_the_points_in_their_proportion(level):
    """With a free bias at most a share q lies below, at most 1 - q above (Takeuchi et al. 2006, lemma 3)."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(400, 1))
    t = X[:, 0] + (0.2 + 0.3 * np.abs(X[:, 0])) * rng.exponential(size=400)
    fitted = SVR(loss="quantile", quantile=level, C=1.0, gamma=1.0, tol=1e-6).fit(X, t)
    r = t - fitted.predict(X)
    assert (r < -1e-4).mean() <= level
    assert (r > 1e-4).mean() <= 1 - level
    constant = SVR(loss="quantile", quantile=level, C=1e-6).fit(X, t)
    assert constant.intercept_[0] == pytest.approx(np.quantile(t, level), abs=0.02)


def test_expectiles_balance_the_residuals_and_the_middle_one_is_least_squares():
    X, t, _, _ = sample(200, 4)
    fitted = SVR(loss="expectile", quantile=0.8, C=2.0, gamma=1.0, tol=1e-8).fit(X, t)
    r = t - fitted.predict(X)
    assert 0.8 * r[r > 0].sum() == pytest.approx(-0.2 * r[r < 0].sum(), rel=1e-5)
    middle = SVR(loss="expectile", C=2.0, gamma=1.0, tol=1e-8).fit(X, t)
    squares = LSSVR(C=2.0, kernel=Gaussian(sigma=np.sqrt(0.5))).fit(X, t)
    np.testing.assert_allclose(middle.predict(X), squares.predict(X), atol=1e-6)
    levels = [SVR(loss="expectile", quantile=q, C=2.0, gamma=1.0).fit(X, t).predict(X).mean() for q in (0.1, 0.5, 0.9)]
    assert levels == sorted(levels)


@pytest.mark.parametrize("loss", REGRESSION)
def test_integer_weights_are_repetitions_for_every_loss(loss):
    X, t, _, rng = sample()
    count = rng.integers(0, 4, size=len(t))
    weighted = machine(loss, C=3.0, gamma=1.0).fit(X, t, sample_weight=count)
    repeated = machine(loss, C=3.0, gamma=1.0).fit(np.repeat(X, count, axis=0), np.repeat(t, count))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-3)


@pytest.mark.parametrize("loss", [*REGRESSION, "squared_hinge"])
def test_a_warm_start_ends_where_a_cold_one_does(loss):
    X, t, y, _ = sample(100)

    def fresh(C, **options):
        return machine(loss, C=C, **options) if loss in REGRESSION else SVC(loss=loss, C=C, tol=1e-7, **options)

    target = t if loss in REGRESSION else y
    warm = fresh(1.0, warm_start=True).fit(X, target)
    warm.set_params(C=1.5).fit(X, target)
    assert warm.objective_ == pytest.approx(fresh(1.5).fit(X, target).objective_, rel=1e-6)
    based = fresh(1.0, warm_start=True, basis=trend).fit(X, target).set_params(C=1.5).fit(X, target)
    assert based.objective_ == pytest.approx(fresh(1.5, basis=trend).fit(X, target).objective_, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_classifiers_with_several_classes_and_probabilities_take_loss_and_basis(loss):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0] + 0.2 * rng.normal(size=90), [-0.5, 0.5])
    for multiclass in ("ovo", "ovr"):
        fitted = SVC(loss=loss, basis=trend, multiclass=multiclass, probability=True, random_state=0).fit(X, y)
        assert fitted.basis_coef_.shape == (2, 3)
        assert fitted.score(X, y) > 0.8
        assert fitted.predict_proba(X).shape == (90, 3)
        plain = SVC(loss=loss, multiclass=multiclass).fit(X, y)
        assert plain.basis_coef_.shape == (0, 3)
    two = SVC(loss=loss, basis=trend, gamma=50.0, C=0.1).fit(X, y > 0)
    # Far from all points the basis alone decides; its sign is that of classes_[1].
    far = np.array([[40.0, 0.0], [-40.0, 0.0]])
    np.testing.assert_allclose(two.decision_function(far), two.intercept_ + trend(far) @ two.basis_coef_)
    assert two.predict(far).tolist() == [True, False]


def test_output_codes_use_the_loss_of_their_base():
    X, _, _, rng = sample(80)
    y = rng.integers(0, 3, size=80)
    assert natural_loss(SVC(loss="squared_hinge")) == SquaredHinge()
    assert natural_loss(SVC()) == Hinge()
    for options in ({"loss": "squared_hinge"}, {"basis": trend}):
        assert OutputCode(SVC(**options), code="ova").fit(X, y).predict(X).shape == (80,)


@pytest.mark.parametrize("loss", REGRESSION)
def test_model_files_hold_losses_and_refuse_functions(loss, tmp_path):
    X, t, y, _ = sample()
    fitted = machine(loss).fit(X, t)
    save(fitted, tmp_path / "machine.mercer")
    back = load(tmp_path / "machine.mercer")
    assert back.get_params() == fitted.get_params()
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    write_libsvm(fitted, tmp_path / "machine.libsvm")  # holds the expansion, whatever the loss
    based = machine(loss, basis=trend).fit(X, t)
    for write in (save, write_libsvm):
        with pytest.raises(InvalidInput, match="basis"):
            write(based, tmp_path / "refused")
    squared = SVC(loss="squared_hinge").fit(X, y)
    save(squared, tmp_path / "classifier.mercer")
    np.testing.assert_array_equal(load(tmp_path / "classifier.mercer").predict(X), squared.predict(X))


def test_onnx_refuses_a_basis(tmp_path):
    pytest.importorskip("onnx")
    from mercer.models import write_onnx

    X, t, _, _ = sample()
    with pytest.raises(InvalidInput, match="basis"):
        write_onnx(SVR(basis=trend).fit(X, t), tmp_path / "refused.onnx")


def test_a_basis_works_on_landmarks_and_says_what_it_cannot_do():
    X, t, _, _ = sample(150)
    reduced = SVR(basis=trend, approximation=Nystrom(120), gamma=0.5).fit(X, t)
    np.testing.assert_allclose(reduced.predict(X), SVR(basis=trend, gamma=0.5).fit(X, t).predict(X), atol=1e-3)
    with pytest.raises(InvalidInput, match="interior_point"):
        SVR(basis=trend, solver="decomposition").fit(X, t)
    with pytest.raises(BudgetTooSmall, match="Nystrom"):
        SVR(basis=trend, memory="600 kB").fit(X, t)
    with pytest.raises(InvalidInput, match="basis"):
        SVC(C=np.inf, basis=trend).fit(X, X[:, 0] > 0)
    with pytest.raises(InvalidInput, match="huber"):
        SVR(C=np.inf, loss="huber").fit(X, t)
    with pytest.raises(InvalidInput, match="shape"):
        SVR(basis=lambda X: X[:3]).fit(X, t)
    hard = SVR(C=np.inf, loss="squared_epsilon_insensitive", epsilon=0.5, gamma=5.0).fit(X, t)
    assert np.abs(t - hard.predict(X)).max() <= 0.5 + 2e-3
