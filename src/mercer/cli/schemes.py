"""Multiclass schemes for `mercer compare`: codes of binary machines, and machines with one problem for all classes.

C and sigma are chosen once for every kind of binary machine in a fold and shared by all its schemes, so that schemes
are compared and not the luck of a search: by exact leave-one-out for least squares, by cross-validation for support
vector machines, on at most `LEAST_SQUARES_POINTS` points of the training part, and on all where there are no more.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli import machines
from mercer.cli.machines import Wish
from mercer.planning.machines import LEAST_SQUARES_POINTS

CODES = ("ova", "ava", "complete", "dense", "sparse", "bch")
WHOLE = {
    "weston-watkins": "WestonWatkinsSVC",
    "crammer-singer": "CrammerSingerSVC",
    "lee-lin-wahba": "LeeLinWahbaSVC",
    "bredensteiner-bennett": "BredensteinerBennettSVC",
    "kernel-logistic": "KernelLogistic",
}
# By name only: the first is the machine of Weston and Watkins at another C, the second has another loss.
ON_REQUEST = ("bredensteiner-bennett", "kernel-logistic")
# Name on the command line: the binary machine, and the code or the single machine.
SCHEMES: dict[str, tuple[str, str]] = {
    **{f"svc-{code}": ("svc", code) for code in CODES},
    **{f"lssvc-{code}": ("lssvc", code) for code in CODES},
    **{name: ("svc", name) for name in WHOLE},
}
# Words that stand for several schemes.
GROUPS = {
    "schemes": tuple(name for name in SCHEMES if name not in ON_REQUEST),
    "svc-codes": tuple(f"svc-{code}" for code in CODES),
    "lssvc-codes": tuple(f"lssvc-{code}" for code in CODES),
}


@dataclass
class Fold:
    """One training fold: its points, and the parameters found so far for each kind of binary machine."""

    X: Any
    y: NDArray[Any]
    found: dict[tuple[str, str], Wish] = field(default_factory=dict)

    def settled(self, wish: Wish, machine: str) -> Wish:
        """The wish with C and sigma of this fold."""
        key = (machine, wish.kernel)
        if key not in self.found:
            self.found[key] = self._search(replace(wish, machine=machine))
        chosen = self.found[key]
        return replace(wish, machine=machine, C=chosen.C, sigma=chosen.sigma, epsilon=chosen.epsilon)

    def _search(self, wish: Wish) -> Wish:
        X, y, task = self.X, self.y, machines.TASKS[wish.machine]
        if len(y) > LEAST_SQUARES_POINTS:
            random = np.random.default_rng(wish.seed)
            order = random.permutation(len(y))
            if task == "classification":  # no class is left out of the sample
                firsts = np.unique(y[order], return_index=True)[1]
                order = order[np.concatenate([firsts, np.setdiff1d(np.arange(len(y)), firsts)])]
            some = np.sort(order[:LEAST_SQUARES_POINTS])
            X, y = X[some], y[some]
        choice = machines.choose(wish, task, len(y))
        machine = machines.train(machines.build(wish, choice, X, y), X, y)
        if choice.tuning == "cv":
            machine = machine.best_estimator_
        facts = machines.parameters(machine)
        epsilon = facts.get("epsilon", wish.epsilon)
        return replace(wish, C=facts["C"], sigma=facts.get("sigma", wish.sigma), epsilon=epsilon)


def trained(name: str, wish: Wish, fold: Fold) -> Any:
    """The scheme of a name, trained on a fold."""
    from mercer.multiclass import OutputCode
    from mercer.multiclass import single_problem as single

    base, kind = SCHEMES[name]
    wish = fold.settled(wish, base)
    known = machines.Choice(base, "given")
    machine = machines.build(wish, known, fold.X, fold.y)
    if kind in WHOLE:
        machine = getattr(single, WHOLE[kind])(C=machine.C, kernel=machine.kernel, memory=wish.memory)
    else:
        machine = OutputCode(machine, kind, random_state=wish.seed)
    return machines.train(machine, fold.X, fold.y)
