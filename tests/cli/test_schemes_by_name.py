"""Every machine with one problem for all classes takes part in a comparison under its own name."""

import numpy as np
import pytest

from mercer.cli import schemes
from mercer.cli.machines import Wish
from mercer.multiclass import single_problem as machines


@pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
@pytest.mark.parametrize("name", list(schemes.WHOLE))
def test_a_single_machine_is_trained_at_the_parameters_of_the_fold(name):
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = random.normal(size=(60, 3)) + 3 * np.eye(3)[y]
    wish = Wish(C=2.0, sigma=1.5)
    found = schemes.trained(name, wish, schemes.Fold(X, y))
    assert type(found) is getattr(machines, schemes.WHOLE[name])
    assert found.C == 2.0
    assert found.score(X, y) > 0.9


def test_the_group_of_all_schemes_holds_what_is_comparable_at_one_C():
    assert set(schemes.SCHEMES) - set(schemes.GROUPS["schemes"]) == set(schemes.ON_REQUEST)
