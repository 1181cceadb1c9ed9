"""Ensembles for `mercer compare`: members with the C and sigma that one machine of their kind has in the fold.

So the ensemble is compared with the machine, and not two searches.
"""

from typing import Any

from mercer.cli import machines
from mercer.cli.machines import TASKS, Wish
from mercer.cli.schemes import Fold

KINDS: dict[str, dict[str, Any]] = {
    "bagged": {"machine": "Bagging"},
    "committee": {"machine": "Committee"},
    "stacked": {"machine": "Stacking", "members": 5},
    "boosted": {"machine": "AdaBoost", "rounds": 15, "size": 0.2},
    "experts": {"machine": "MixtureOfExperts"},
    "local": {"machine": "LocalMachines"},
    "coupled": {"machine": "CoupledEnsemble"},
}
LEAST_SQUARES = ("lssvc", "lssvr")
# Name on the command line: the machine of the members, and the kind of ensemble.
ENSEMBLES: dict[str, tuple[str, str]] = {
    f"{kind}-{base}": (base, kind)
    for kind in KINDS
    for base, task in TASKS.items()
    if (kind != "boosted" or task == "classification") and (kind != "coupled" or base in LEAST_SQUARES)
}
# Words that stand for several ensembles, and the machine they are made of.
GROUPS = {f"{base}-ensembles": (base, *(name for name, (own, _) in ENSEMBLES.items() if own == base)) for base in TASKS}


def trained(name: str, wish: Wish, fold: Fold) -> Any:
    """The ensemble of a name, trained on a fold."""
    from mercer import ensembles

    base, kind = ENSEMBLES[name]
    wish = fold.settled(wish, base)
    machine = machines.build(wish, machines.Choice(base, "given"), fold.X, fold.y)
    options = dict(KINDS[kind])
    ensemble = getattr(ensembles, options.pop("machine"))
    return machines.train(ensemble(machine, random_state=wish.seed, **options), fold.X, fold.y)
