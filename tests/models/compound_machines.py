"""Machines for all classes, coded, multilabel and tuned ones on small data, for the tests of model files."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import (
    LSSVC,
    LSSVR,
    SVC,
    AdaBoost,
    Bagging,
    BredensteinerBennettSVC,
    Committee,
    CoupledEnsemble,
    CrammerSingerSVC,
    Gaussian,
    KernelLogistic,
    LeeLinWahbaSVC,
    Linear,
    LocalMachines,
    MixtureOfExperts,
    Multilabel,
    NuSVC,
    NuSVR,
    Nystrom,
    OneClassSVM,
    OrdinalSVC,
    OutputCode,
    ProportionalOdds,
    RandomFourier,
    RankSVM,
    Stacking,
    TunedLogistic,
    TunedOrdinalSVC,
    TunedProportionalOdds,
    TunedRankSVM,
    TunedSVC,
    TunedSVR,
    WestonWatkinsSVC,
)
from mercer.losses import Huber

from .machines import points

GRID: dict[str, Any] = {"C": [0.5, 2.0, 8.0], "sigma": [1.0, 3.0], "folds": 3}
LABELS = np.array(["red", "green", "blue"])


def labels(n: int = 90) -> np.ndarray:
    return LABELS[points(n)[1]]


def classes(n: int = 90) -> np.ndarray:
    return points(n)[1]


def both(n: int = 90) -> np.ndarray:
    """Two labels that any point may have."""
    X, y = points(n)
    return np.column_stack([y > 0, X[:, 0] > 0.5]).astype(np.int64)


def one_always(n: int = 90) -> np.ndarray:
    return np.column_stack([both(n), np.ones(n, dtype=np.int64)])


def values(n: int = 90) -> np.ndarray:
    return np.asarray(np.sin(points(n)[0][:, 0]))


Recipe = tuple[Callable[[], Any], Callable[[int], Any]]
COMPOUND: dict[str, Recipe] = {
    "CrammerSingerSVC": (lambda: CrammerSingerSVC(C=2.0, bias="free"), labels),
    "CrammerSingerSVC on weight vectors": (lambda: CrammerSingerSVC(kernel="linear"), labels),
    "CrammerSingerSVC on landmarks": (lambda: CrammerSingerSVC(approximation=Nystrom(15)), labels),
    "WestonWatkinsSVC": (lambda: WestonWatkinsSVC(kernel=Gaussian("median")), classes),
    "LeeLinWahbaSVC": (lambda: LeeLinWahbaSVC(class_weight={0: 2.0}), classes),
    "BredensteinerBennettSVC": (lambda: BredensteinerBennettSVC(), classes),
    "RankSVM": (lambda: RankSVM(C=0.01), labels),
    "RankSVM of a linear kernel": (lambda: RankSVM(kernel="linear", loss="hinge"), labels),
    "OrdinalSVC": (lambda: OrdinalSVC(thresholds="explicit"), labels),
    "OrdinalSVC from pairs": (lambda: OrdinalSVC(C=0.01, thresholds="pairs", class_weight="balanced"), labels),
    "ProportionalOdds": (lambda: ProportionalOdds(link="probit"), labels),
    "KernelLogistic": (lambda: KernelLogistic(C=3.0), labels),
    "KernelLogistic on features": (lambda: KernelLogistic(approximation=RandomFourier(20, seed=0)), labels),
    "NuSVC on landmarks": (lambda: NuSVC(nu=0.3, approximation=Nystrom(15)), labels),
    "NuSVR on landmarks": (lambda: NuSVR(approximation=Nystrom(15)), values),
    "OneClassSVM on landmarks": (lambda: OneClassSVM(nu=0.3, approximation=Nystrom(15)), values),
    "OutputCode": (lambda: OutputCode(), labels),
    "OutputCode of two classes": (lambda: OutputCode(code=[[1, -1], [-1, 1]]), lambda n: classes(n) > 0),
    "OutputCode of all pairs": (lambda: OutputCode(SVC(C=3.0), "ava", "hamming"), labels),
    "OutputCode with probabilities": (lambda: OutputCode(SVC(), "ava", "bradley-terry", random_state=0), labels),
    "OutputCode that stacks": (lambda: OutputCode(SVC(kernel=Linear()), "ova", "stacking", random_state=0), classes),
    "OutputCode of least squares": (
        lambda: OutputCode(LSSVC(C=4.0), "complete", "continuous", loss=Huber(0.5)),
        labels,
    ),
    "OutputCode of systems": (lambda: OutputCode(LSSVC(C="loo"), "ava", "loss"), labels),
    "OutputCode of clones": (lambda: OutputCode(KernelLogistic(), "ava", "loss", random_state=0), labels),
    "OutputCode of coded ones": (lambda: OutputCode(OutputCode(LSSVC()), "ova", "hamming"), labels),
    "Multilabel": (lambda: Multilabel(), both),
    "Multilabel of least squares": (lambda: Multilabel(LSSVC(C=2.0)), both),
    "Multilabel of clones": (lambda: Multilabel(LSSVC(C="loo")), one_always),
    "Multilabel of one column": (lambda: Multilabel(), lambda n: both(n)[:, :1]),
    "Multilabel of classes": (lambda: Multilabel(), labels),
    "Multilabel of two classes": (lambda: Multilabel(LSSVC()), lambda n: classes(n) > 0),
    "CoupledEnsemble": (lambda: CoupledEnsemble(members=3, weights="convex", random_state=0), labels),
    "CoupledEnsemble of values": (
        lambda: CoupledEnsemble([LSSVR(C) for C in (1.0, 2.0, 3.0)], members=3, random_state=0),
        values,
    ),
    "LocalMachines": (lambda: LocalMachines(SVC(), size=20, random_state=0), labels),
    "LocalMachines in one cell": (lambda: LocalMachines(LSSVR()), values),
    "Bagging": (lambda: Bagging(members=3, random_state=0), labels),
    "Bagging of some features": (lambda: Bagging(LSSVC(), members=3, features=2, random_state=0), labels),
    "Bagging of values": (lambda: Bagging(LSSVR(), members=3, combine="trimmed", random_state=0), values),
    "Committee": (lambda: Committee(members=3, random_state=0), labels),
    "Committee of votes": (lambda: Committee(SVC(), members=2, summed="decisions", random_state=0), labels),
    "Committee of posteriors": (
        lambda: Committee(LSSVR(bias="none"), members=3, weights="bayesian", random_state=0),
        values,
    ),
    "Stacking": (lambda: Stacking(random_state=0), labels),
    "Stacking of values": (lambda: Stacking([LSSVR(), NuSVR()], random_state=0), values),
    "AdaBoost": (lambda: AdaBoost(SVC(C=0.1), rounds=3), labels),
    "AdaBoost of regressions": (
        lambda: AdaBoost(LSSVR(C=0.1), rounds=3, method="logitboost"),
        lambda n: classes(n) > 0,
    ),
    "MixtureOfExperts": (lambda: MixtureOfExperts(experts=2, random_state=0), labels),
    "MixtureOfExperts with another gate": (
        lambda: MixtureOfExperts(LSSVR(), experts=2, gate=SVC(), random_state=0),
        values,
    ),
    "TunedLogistic": (lambda: TunedLogistic(**GRID), labels),
    "TunedSVC": (lambda: TunedSVC(**GRID, probability=True), labels),
    "TunedSVC of a kernel": (lambda: TunedSVC(kernel=Linear(), C=[0.1, 1.0, 10.0], folds=3), classes),
    "TunedSVR": (lambda: TunedSVR(**GRID, epsilon=[0.05, 0.2]), values),
    "TunedOrdinalSVC": (lambda: TunedOrdinalSVC(**GRID, thresholds="explicit", scoring="accuracy"), labels),
    "TunedProportionalOdds": (lambda: TunedProportionalOdds(**GRID, link="probit"), labels),
    "TunedRankSVM": (lambda: TunedRankSVM(**GRID, scoring="ndcg@5"), classes),
}
