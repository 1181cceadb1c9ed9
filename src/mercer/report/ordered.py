"""The error estimate of ranks and orders: words, tables and pictures.

ranks    error in the rank (how many ranks lie between truth and answer), confusion, error by rank, and the utility
         of every rank with the thresholds between them
orders   pairs in order, Kendall's tau, NDCG and average precision, over all and by query
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.ordinal.by_query import ByQuery, by_query
from mercer.report import classification, orders
from mercer.report.estimates import HeldOut, bootstrap, wilson
from mercer.report.machine import inner, utility_of
from mercer.report.page import Key, Page, Section, Table
from mercer.report.pictures import FEWEST_CALIBRATED, Picture, calibration, picture

WORST = 8  # queries in the table
MOST_GRADES = 12  # relevances with a box of their own


def of_ranks(page: Page, held: HeldOut, machine: Any, X: Any, y: Any, told: str) -> None:
    """Add the estimate of a machine of ranks; X, y are points whose utility is drawn, `told` says which."""
    classes = machine.classes_
    truth, answer = (np.searchsorted(classes, labels) for labels in (held.y, held.predicted))
    away = np.abs(truth - answer)
    error = bootstrap(truth.astype(np.float64), answer.astype(np.float64))["mean absolute error"]
    share = wilson(int(np.sum(away == 0)), len(truth))
    middle = int(np.median(truth))
    rows = [
        ("mean error in ranks", f"{error.value:.4f}"),
        ("95 % interval (bootstrap)", f"{error.low:.4f} to {error.high:.4f}"),
        ("always saying the median rank", f"{np.abs(truth - middle).mean():.4f}"),
        ("accuracy", f"{share.value:.4f} (95 %: {share.low:.4f} to {share.high:.4f})"),
        ("at most one rank off", f"{np.mean(away <= 1):.4f}"),
        ("largest error in ranks", f"{away.max()}"),
    ]
    note = f"95 %: {error.low:.3f} to {error.high:.3f}; {held.how}"
    page.key += [Key("error in ranks", f"{error.value:.3f}", note), Key("accuracy", f"{share.value:.1%}", held.how)]
    each = []
    for k, label in enumerate(classes.tolist()):
        own = truth == k
        cells = [f"{away[own].mean():.3f}", f"{(answer - truth)[own].mean():+.3f}", f"{np.mean(away[own] == 0):.3f}"]
        each.append((str(label), *(cells if own.any() else ["", "", ""]), str(int(own.sum()))))
    table = Table("Each rank", each, ("true rank", "mean error", "answer less truth", "right", "points"))
    texts = [
        f"Everything here comes from {held.how}. The error is the number of ranks between answer and truth.",
        "A point gets the rank of the interval between two thresholds that its utility lies in.",
    ]
    section = Section("error", "Error estimate", texts, [Table("Ranks of held-out points", rows), table])
    page.add(section, *_rank_pictures(held, machine, X, y, told, (truth, answer)))


def _rank_pictures(
    held: HeldOut, machine: Any, X: Any, y: Any, told: str, codes: tuple[NDArray[Any], NDArray[Any]]
) -> list[Picture]:
    classes, thresholds = machine.classes_, inner(machine).thresholds_
    off = np.abs(codes[0] - codes[1])
    found = [
        picture(
            "confusion",
            "Rank confusion",
            f"{int(np.sum(off > 0))} of {len(off)} points get another rank, {int(np.sum(off > 1))} of them one that is "
            "no neighbour. Rows are true ranks, from low to high.",
            lambda ax: classification.plot_confusion(held.y, held.predicted, classes, ax),
            height=min(6.0, 3.3 + 0.12 * max(0, len(classes) - 4)),
        ),
        picture(
            "boundaries",
            "Utility and boundaries",
            f"Dashed: the thresholds {', '.join(f'{edge:.3g}' for edge in thresholds)}. Drawn for {told}; values past "
            "the central 99 % are in the ends.",
            lambda ax: orders.plot_boundaries(y, utility_of(machine, X), thresholds, classes, ax),
        ),
        picture(
            "rank-errors",
            "Error by rank",
            f"How often the answer lies below and above the true rank. From {held.how}.",
            lambda ax: orders.plot_rank_errors(*codes, classes, ax),
        ),
    ]
    if held.probabilities is not None and len(held.y) >= FEWEST_CALIBRATED:
        text = "Of the points given probability p of a rank, a share p should have it."
        found.append(calibration(held.y, held.probabilities, classes, text))
    return found


def of_order(page: Page, held: HeldOut, groups: Any) -> None:
    """Add the estimate of a ranking from its values at held-out points of the queries `groups`."""
    found = by_query(held.y, held.outputs, groups)
    means, intervals = found.means(), found.intervals()
    rows = []
    for name, value in means.items():
        between = f"{intervals[name][0]:.4f} to {intervals[name][1]:.4f}" if name in intervals else ""
        rows.append((name, f"{value:.4f}", between))
    ends = intervals.get("pairs in order")
    note = held.how if ends is None else f"95 %: {ends[0]:.1%} to {ends[1]:.1%}; {held.how}"
    page.key.append(Key("pairs in order", f"{means['pairs in order']:.1%}", note))
    if found.ndcg is not None:
        page.key.append(
            Key(f"NDCG@{found.k}", f"{means[f'ndcg@{found.k}']:.3f}", f"mean over {len(found.names)} queries")
        )
    headings = ("measure", "value", "95 % interval (bootstrap of queries)" if intervals else "")
    tables = [Table("The order of held-out points", rows, headings)]
    if len(found.names) > 1:
        tables.append(_worst(found))
    texts = [
        f"Everything here comes from {held.how}: no query was judged by a machine that had seen a document of it.",
        "A pair is in order where the point of higher rank has the higher utility; points of different queries are "
        "never compared, and ties of the utility count as wrong.",
    ]
    page.add(Section("error", "Error estimate", texts, tables), *_order_pictures(held, groups, found, means))


def _worst(found: ByQuery) -> Table:
    """The queries with the largest share of wrong pairs."""
    share = np.where(found.pairs > 0, found.wrong / np.maximum(found.pairs, 1.0), -1.0)
    rows = []
    for q in np.argsort(-share, kind="stable")[:WORST]:
        if found.pairs[q] > 0:
            gain = [] if found.ndcg is None else [f"{found.ndcg[q]:.3f}"]
            rows.append((str(found.names[q]), f"{1.0 - share[q]:.3f}", *gain, str(found.points[q])))
    headings = ("query", "pairs in order", *([] if found.ndcg is None else [f"NDCG@{found.k}"]), "points")
    return Table("The worst queries", rows, headings)


def _order_pictures(held: HeldOut, groups: Any, found: ByQuery, means: dict[str, float]) -> list[Picture]:
    drawn = []
    if len(found.names) > 1:
        if (gains := found.ndcg) is not None:
            name, mean = f"NDCG@{found.k}", means[f"ndcg@{found.k}"]
            text = (
                f"{int(np.sum(gains < 0.5))} of {len(found.names)} queries are below one half. Queries without a "
                "relevant document count as 0."
            )
            drawn.append(picture("ndcg", "NDCG by query", text, lambda ax: orders.plot_by_query(gains, name, mean, ax)))
        text = f"Each dot is a query. {int(np.sum(found.pairs == 0))} queries have no pair of different rank."
        drawn.append(picture("pairs", "Wrong pairs by query", text, lambda ax: orders.plot_pairs_by_query(found, ax)))
    if len(np.unique(held.y)) <= MOST_GRADES:
        text = (
            "Boxes: the middle half, with the median; lines: the central 90 %. The higher the relevance, the higher "
            "the box should be."
        )
        values = held.y, held.outputs, groups
        drawn.append(
            picture("relevance", "Utility by relevance", text, lambda ax: orders.plot_utility_by_relevance(*values, ax))
        )
    return drawn
