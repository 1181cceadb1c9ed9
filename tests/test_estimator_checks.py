"""scikit-learn's checks on every public estimator at its default parameters: all pass.

Tuned machines fit a hundred candidates for every fit of a check, in which nothing depends on their number: here a
default grid has four values where it has ten.  `make checks` runs the same with whole grids.
"""

import os

import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import scale
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer.selection import grid

ESTIMATORS = [
    kind()
    for kind in (getattr(mercer, name) for name in mercer.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]
VALUES = 4

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")


@pytest.fixture(autouse=True)
def coarser_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    if "MERCER_WHOLE_GRIDS" in os.environ:
        return
    widths, costs = grid.widths, grid.costs
    monkeypatch.setattr(grid, "widths", lambda found, count: widths(found, min(count, VALUES)))
    monkeypatch.setattr(grid, "costs", lambda found, count, unit=1.0: costs(found, min(count, VALUES), unit))


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_estimator_check(estimator, check) -> None:
    check(estimator)


def test_regression_on_a_stream_passes_where_points_come_often_enough() -> None:
    """The tag says that one pass over the 200 points of the check is too few; ten are enough."""
    X, y = estimator_checks._regression_dataset()
    y = scale(y)
    assert mercer.OnlineSVR(max_iter=10, rate=2.0, random_state=0).fit(X, y).score(X, y) > 0.5


def test_every_public_estimator_is_checked() -> None:
    names = {type(estimator).__name__ for estimator in ESTIMATORS}
    public = [getattr(mercer, name) for name in mercer.__all__]
    assert names == {kind.__name__ for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
