"""Points surveyed by several threads: what the fit calls converged is converged on all of them."""

import numpy as np
import pytest

from mercer import CrammerSingerSVC, Gaussian, WestonWatkinsSVC

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")


@pytest.mark.parametrize("machine", [CrammerSingerSVC, WestonWatkinsSVC])
def test_a_converged_machine_has_the_gap_it_was_asked_for_on_the_points_of_all_threads(machine) -> None:
    rng = np.random.default_rng(0)
    n, k = 1200, 20  # more than 20,000 outputs are shared out among the threads, first to last
    y = np.arange(n) % k
    centres = 6.0 * rng.normal(size=(k, 3))
    X = centres[y] + rng.normal(size=(n, 3)) * np.where(np.arange(n) < n // 2, 0.01, 3.0)[:, None]
    kernel, cost = Gaussian(sigma=2.0), 1.0
    found = machine(C=cost, kernel=kernel, bias="none", tol=1e-3, n_jobs=2).fit(X, y)
    assert found.stopped_ == "converged"
    c = np.zeros((n, k))
    c[found.support_] = found.dual_coef_.T
    f = kernel(X) @ c
    margins = f[np.arange(n), y][:, None] - f
    margins[np.arange(n), y] = np.inf
    losses = (
        np.maximum(0.0, 1.0 - margins.min(axis=1))
        if machine is CrammerSingerSVC
        else np.maximum(0.0, 2.0 - margins).sum(axis=1)
    )
    primal = 0.5 * np.vdot(c, f) + cost * losses.sum()
    linear = c[np.arange(n), y].sum() * (1.0 if machine is CrammerSingerSVC else 2.0)
    dual = linear - 0.5 * np.vdot(c, f)
    assert primal - dual <= 1e-3 * 0.5 * (primal + dual) * (1.0 + 1e-6)
    assert found.gap_ == pytest.approx(primal - dual, rel=1e-6, abs=1e-9 * primal)
    assert found.objective_ == pytest.approx(primal, rel=1e-9)
