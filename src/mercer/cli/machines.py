"""From wishes on the command line to a machine, with the reasons for every choice.

Where the machine is left to mercer, `mercer.planning` chooses it by the size of the data.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.targets import Task
from mercer.errors import InvalidInput
from mercer.planning import machine_for
from mercer.problems.certificate import relative_gap

TASKS: dict[str, Task] = {
    "svc": "classification", "lssvc": "classification", "logistic": "classification",
    "svr": "regression", "lssvr": "regression", "ordinal": "ordinal", "odds": "ordinal", "rank": "rank",
}  # fmt: skip
CROSS_VALIDATED: dict[Task, str] = {
    "classification": "accuracy", "regression": "r2", "ordinal": "rank error", "rank": "pairs in order",
}  # fmt: skip
BY_LOSS = ("logistic", "odds")  # machines whose parameters are chosen by the log loss of their probabilities
CUSTOMARY = 10.0  # C where it is neither given nor chosen
TARGETS: dict[Task, str] = {
    "classification": "a class", "regression": "a measurement", "ordinal": "a rank", "rank": "an order",
}  # fmt: skip
WIDE = ("gaussian", "laplacian", "exponential", "matern")  # kernels with a width


@dataclass(frozen=True)
class Wish:
    """What the user asked for; None where he leaves the choice."""

    machine: str = "auto"
    kernel: str = "gaussian"
    C: float | None = None
    sigma: float | None = None
    degree: int = 3
    epsilon: float | None = None
    tune: bool = True
    multiclass: str = "ovo"
    probability: bool = False
    memory: str | None = None
    time: float | None = None
    seed: int = 0
    folds: int = 5
    asked: Task | None = None
    """The task, where --task names it."""

    def __post_init__(self) -> None:
        if self.asked is not None and TASKS.get(self.machine, self.asked) != self.asked:
            fitting = ", ".join(name for name, task in TASKS.items() if task == self.asked)
            raise InvalidInput(f"--task {self.asked}: --machine {self.machine} does not do it; take one of {fitting}")
        for name in ("C", "sigma", "time"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInput(f"--{name} must be a positive number, got {value:g}")
        if self.epsilon is not None and not self.epsilon >= 0:
            raise InvalidInput(f"--epsilon must not be negative, got {self.epsilon:g}")
        if self.folds < 2:
            raise InvalidInput(f"--folds must be at least 2, got {self.folds}")
        if self.degree < 1:
            raise InvalidInput(f"--degree must be at least 1, got {self.degree}")

    @property
    def task(self) -> Task | None:
        """The task that was asked for, or that the machine asked for implies."""
        return self.asked or TASKS.get(self.machine)


@dataclass(frozen=True)
class Choice:
    """The machine, how its parameters are found ("loo", "cv" or "given"), and why."""

    machine: str
    tuning: str
    reasons: tuple[str, ...] = field(default=())


def width_of(sigma: float | None, gamma: float | None) -> float | None:
    """The width from either of the two options."""
    if gamma is None:
        return sigma
    if sigma is not None:
        raise InvalidInput("give --sigma or --gamma, not both: gamma = 1/(2 sigma^2)")
    if not gamma > 0:
        raise InvalidInput(f"--gamma must be a positive number, got {gamma:g}")
    return float(np.sqrt(0.5 / gamma))


def choose(wish: Wish, task: Task, n: int, outputs: int = 1) -> Choice:
    """The machine for n points, and how its parameters will be found."""
    reasons = [f"the target is {TARGETS[task]}"]
    if wish.machine != "auto":
        name = wish.machine
        reasons.append(f"--machine {name} was asked for")
    elif task == "ordinal":
        name = "odds" if wish.probability else "ordinal"
        reasons.append(
            "probabilities come from the cumulative model"
            if wish.probability
            else "thresholds on one function, squared hinge"
        )
    elif task == "rank":
        name = "rank"
        reasons.append("one function, learnt from pairs")
    else:
        name, why = machine_for(task, n, outputs=outputs, probability=wish.probability)
        reasons.append(why)
    if outputs > 1 and name != "lssvr":
        raise InvalidInput(f"--machine {name}: has several targets; only lssvr takes them")
    if wish.probability and name not in ("svc", "logistic", "odds"):
        raise InvalidInput("--probability needs a machine that has them: use --machine svc or logistic, for ranks odds")
    known = wish.C is not None and (wish.sigma is not None or wish.kernel not in WIDE)
    if not wish.tune or known:
        reasons.append("its parameters are given" if known else "--no-tune: customary parameters are taken")
        return Choice(name, "given", tuple(reasons))
    return Choice(name, "loo" if name.startswith("ls") else "cv", tuple(reasons))


def kernel_of(wish: Wish, X: Any, rule: str | None) -> Any:
    """The kernel; a width that was left out follows `rule` ("loo"), else it is the median distance of the points."""
    from mercer import kernels

    if wish.kernel == "linear":
        return kernels.Linear()
    if wish.kernel == "polynomial":
        return kernels.Polynomial(degree=wish.degree, gamma=1.0 / max(1, X.shape[1]))
    kind = {name: getattr(kernels, name.capitalize()) for name in WIDE}[wish.kernel]
    if wish.sigma is not None:
        return kind(sigma=wish.sigma)
    return kind(sigma=rule if rule is not None else kernels.median_sigma(X))


def build(
    wish: Wish, choice: Choice, X: Any, y: NDArray[Any], search_file: Path | None = None, groups: Any = None
) -> Any:
    """The estimator, not yet trained; one that finds its own parameters where the choice says so.

    A cross-validation keeps what it has finished in the file `search_file`.
    """
    from mercer.least_squares import LSSVC, LSSVR
    from mercer.multiclass import KernelLogistic
    from mercer.ordinal import OrdinalSVC, ProportionalOdds, RankSVM
    from mercer.svm import SVC, SVR

    if choice.tuning == "cv":
        return _searching(wish, choice, X, search_file)
    rule = "loo" if choice.tuning == "loo" else None
    common: dict[str, Any] = {"kernel": kernel_of(wish, X, rule), "memory": wish.memory, "max_time": wish.time}
    cost: Any = wish.C if wish.C is not None else rule or CUSTOMARY
    if choice.machine in ("lssvc", "lssvr"):
        return (LSSVC if choice.machine == "lssvc" else LSSVR)(C=cost, **common)
    if choice.machine in ("logistic", "ordinal", "odds"):
        kinds: dict[str, Any] = {
            "logistic": KernelLogistic,
            "ordinal": partial(OrdinalSVC, loss="squared_hinge"),
            "odds": ProportionalOdds,
        }
        return kinds[choice.machine](C=cost, **common)
    if choice.machine == "rank":
        return RankSVM(C=cost if wish.C is not None else cost * points_over_pairs(y, groups), **common)
    if choice.machine == "svc":
        return SVC(C=cost, multiclass=wish.multiclass, probability=wish.probability, random_state=wish.seed, **common)
    spread = float(np.std(y)) or 1.0
    tube = 0.1 * spread if wish.epsilon is None else wish.epsilon
    return SVR(C=cost if wish.C is not None else cost * spread, epsilon=tube, **common)


def points_over_pairs(y: NDArray[Any], groups: Any) -> float:
    """What C of a ranking is counted in where it is not given: it multiplies the loss of every pair."""
    from mercer.ordinal.metrics import pair_counts

    pairs = pair_counts(y, np.zeros(len(y)), groups=groups)[1]
    return len(y) / pairs if pairs else 1.0


def _searching(wish: Wish, choice: Choice, X: Any, search_file: Path | None) -> Any:
    """A machine that is tuned by cross-validation; parameters that are given stay."""
    from mercer.tuned.tuning import SEARCHES

    options: dict[str, Any] = {
        "kernel": kernel_of(wish, X, "median"),
        "C": wish.C,
        "folds": wish.folds,
        "random_state": wish.seed,
        "memory": wish.memory,
        "max_time": wish.time,
        "checkpoint": search_file,
    }
    kind: Any = SEARCHES[choice.machine]
    if choice.machine == "svc":
        return kind(probability=wish.probability, **options)
    return kind(epsilon=wish.epsilon, **options) if choice.machine == "svr" else kind(**options)


def train(machine: Any, X: Any, y: NDArray[Any], **groups: Any) -> Any:
    """Fit; what scikit-learn's checks refuse is an error in the input like any other."""
    from mercer.errors import MercerError

    try:
        return machine.fit(X, y, **groups)
    except MercerError:
        raise
    except ValueError as error:
        raise InvalidInput(str(error)) from error


def parameters(machine: Any) -> dict[str, Any]:
    """C, kernel, width and epsilon of a trained machine."""
    kernel = getattr(machine, "kernel_", None) or getattr(machine, "_kernel", None)
    facts: dict[str, Any] = {"kernel": repr(kernel)}
    for name in ("C_", "C", "nu"):
        value = getattr(machine, name, None)
        if isinstance(value, (int, float)):
            facts.setdefault(name.rstrip("_"), float(value))
    sigma = getattr(kernel, "sigma", None)
    if isinstance(sigma, float):
        facts |= {"sigma": sigma, "gamma": 0.5 / sigma**2}
    if hasattr(machine, "epsilon"):
        facts["epsilon"] = float(machine.epsilon)
    return facts


def made_of(machine: Any) -> dict[str, Any]:
    """The search, or the code and the base, behind a machine that is made of machines."""
    facts: dict[str, Any] = {}
    if hasattr(machine, "search_"):
        facts |= {"score of the search": machine.best_score_, "candidates": len(machine.search_.candidates)}
    if hasattr(machine, "base"):
        facts["base"] = repr(machine._base)
    if hasattr(machine, "code_"):
        name = machine.code if isinstance(machine.code, str) else "given"
        facts |= {"code": f"{name}, {machine.code_.shape[1]} columns", "decoder": machine.decoder}
    return facts


def certificate(machine: Any) -> dict[str, Any]:
    """How far the objective is from its optimum, and what the machine keeps."""
    primal, dual = float(machine.objective_), float(machine.dual_objective_)
    facts: dict[str, Any] = {
        "objective": primal,
        "dual objective": dual,
        "gap": float(machine.gap_),
        "relative gap": relative_gap(primal, dual, float(machine.gap_)),
        "stopped": machine.stopped_,
    }
    if hasattr(machine, "n_support_"):
        facts["support vectors"] = int(np.sum(machine.n_support_))
    return facts


def cross_validation(search: Any, task: Task, by_loss: bool = False) -> dict[str, Any] | None:
    """Mean score of the best candidate of a search, with the interval of its standard error over the folds.

    by_loss : whether the score is minus the log loss of probabilities.
    """
    from mercer.cli.scores import Z

    if search is None or not search.evaluated:
        return None
    name = "log loss" if by_loss else CROSS_VALIDATED[task]
    score, half = search.best_score, Z * search.standard_error
    interval = [score - half, min(1.0, score + half)]
    if by_loss or task == "ordinal":
        score, interval = -score, [max(0.0, -score - half), -score + half]
    return {
        "points": search.facts["points"],
        "folds": int(search.facts["folds"]),
        "candidates": len(search.candidates),
        "evaluated": search.evaluated,
        "resumed": search.resumed,
        name: score,
        f"{name} interval": interval if np.isfinite(half) else None,
    }


def leave_one_out(machine: Any, task: Task, y: NDArray[Any]) -> dict[str, Any] | None:
    """Scores of the exact leave-one-out predictions, where choosing the parameters has computed them."""
    from mercer.cli.scores import of_classes, of_numbers

    if getattr(machine, "_loo", None) is None:
        return None
    outputs = machine.loo_predictions_
    if task == "regression":
        return of_numbers(y, outputs)
    if outputs.ndim == 1:
        return of_classes(y, machine.classes_[(outputs > 0).astype(int)], machine.classes_, outputs)
    return of_classes(y, machine.classes_[np.argmax(outputs, axis=1)], machine.classes_)
