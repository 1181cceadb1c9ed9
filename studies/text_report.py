"""Tables and conclusions of the study of text, from the predictions on every split; see `text_multiclass.py`.

Every sentence of the conclusions is put together from the numbers of the run.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays, table
from text_machines import GAP, RIDGES

from mercer.cli.paired import Corrected, corrected_t
from mercer.multiclass.agreement import compare

# documents a class: error of OVA by SVM, RLSC, of BCH-63 by SVM, RLSC.
PRINTED = {
    "news": {
        800: (0.131, 0.129, 0.125, 0.129),
        250: (0.167, 0.165, 0.164, 0.165),
        100: (0.214, 0.211, 0.213, 0.213),
        30: (0.311, 0.309, 0.312, 0.316),
    },
    "sector": {
        52: (0.072, 0.066, 0.067, 0.069),
        20: (0.176, 0.169, 0.176, 0.178),
        10: (0.341, 0.335, 0.343, 0.344),
        3: (0.650, 0.648, 0.653, 0.654),
    },
}
# Table 4.5: error in percent and lambda l.
SCHEMES = {"OVA": (12.8, 1.0), "AVA": (14.8, 0.5), "DEN": (14.2, 1.0), "SPA": (13.3, 0.5)}
TITLES = {"news": "20 newsgroups", "sector": "sector"}

BySize = dict[int, list[Arrays]]  # documents a class: a part for every split


@dataclass(frozen=True)
class Results:
    """All parts of a run; `least` and `machines` by corpus, of least squares and of support vector machines."""

    least: dict[str, BySize]
    machines: dict[str, BySize]
    everywhere: BySize
    schemes: list[Arrays]
    headers: list[Arrays]
    weightings: Arrays


def errors(parts: Sequence[Arrays], name: str) -> NDArray[np.float64]:
    """Error rate of a scheme on each split."""
    return np.array([np.mean(part[name] != part["truth"]) for part in parts])


def mean(parts: Sequence[Arrays], name: str) -> float:
    """Mean error rate of a scheme."""
    return float(errors(parts, name).mean())


def spread(values: NDArray[np.float64], digits: int = 4) -> str:
    """Mean, and standard deviation in brackets."""
    deviation = f" ({values.std(ddof=1):.{digits}f})" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{deviation}"


def share(parts: Sequence[Arrays]) -> float:
    """Documents of the test part for each of the training part."""
    return len(parts[0]["truth"]) / int(parts[0]["train"])


def tested(first: NDArray[np.float64], second: NDArray[np.float64], test_share: float) -> Corrected | None:
    """The paired test of two rows of errors; None for a single split."""
    return corrected_t(first - second, test_share) if len(first) > 1 else None


def clear(found: Corrected | None) -> bool:
    """Whether the interval of a difference keeps clear of zero."""
    return found is not None and (found.low > 0.0 or found.high < 0.0)


def told(found: Corrected | None, first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    """Difference, interval and p in a cell."""
    if found is None:
        return f"{np.mean(first - second):+.4f}"
    return f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}], p = {found.p:.2g}"


def paired(parts: Sequence[Arrays], first: str, second: str, test_share: float) -> str:
    """Mean difference first minus second, its corrected interval over splits, and McNemar's p on the first split."""
    a, b = errors(parts, first), errors(parts, second)
    one = compare(parts[0]["truth"], parts[0][first], parts[0][second])
    return f"{told(tested(a, b, test_share), a, b)}; {one.p:.2g} on split 1"


def between(svm: Sequence[Arrays], least: Sequence[Arrays]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """OVA errors of support vector machines and of least squares on the splits that have both."""
    return errors(svm, "OVA"), errors(least[: len(svm)], "OVA_fixed")


def chosen(parts: Iterable[Arrays]) -> Counter[float]:
    """How often each lambda l was chosen."""
    return Counter(float(part["ridge_chosen"]) for part in parts)


# Tables -------------------------------------------------------------------------------------------------------------


def size_table(results: Results, name: str) -> str:
    """Tables 3.1 and 3.2."""
    rows = []
    for size, parts in results.least[name].items():
        printed, svm = PRINTED[name][size], results.machines[name][size]
        mine, theirs = between(svm, parts)
        counted = sorted(chosen(parts).items())
        rows.append(
            [
                str(size),
                f"{printed[0]:.3f}, {printed[1]:.3f}",
                f"{printed[2]:.3f}, {printed[3]:.3f}",
                spread(errors(svm, "OVA")),
                spread(errors(svm, "BCH")),
                str(len(svm)),
                spread(errors(parts, "OVA_fixed")),
                spread(errors(parts, "BCH_fixed")),
                paired(parts, "BCH_fixed", "OVA_fixed", share(parts)),
                told(tested(mine, theirs, share(parts)), mine, theirs),
                spread(errors(parts, "OVA_chosen")),
                ", ".join(f"{ridge:g} ({times})" for ridge, times in counted),
            ]
        )
    head = ["a class", "printed OVA (SVM, RLSC)", "printed BCH (SVM, RLSC)", "SVM OVA", "SVM BCH", "splits of SVM"]
    head += ["RLSC OVA", "RLSC BCH", "RLSC: BCH minus OVA", "OVA: SVM minus RLSC", "RLSC OVA, lambda l chosen"]
    return table([*head, "chosen (splits)"], rows)


def scheme_table(results: Results) -> str:
    """The 20 newsgroups row of Table 4.5."""
    parts, test_share = results.schemes, share(first(results.least["news"]))
    rows = [
        [
            scheme,
            f"{printed}",
            spread(100 * errors(parts, scheme), 2),
            paired(parts, scheme, "OVA", test_share) if scheme != "OVA" else "",
            f"{ridge:g}",
        ]
        for scheme, (printed, ridge) in SCHEMES.items()
    ]
    return table(["scheme", "printed %", "here %", "minus OVA (fractions)", "lambda l"], rows)


def everywhere_table(results: Results) -> str:
    """The errors on sector with the weights of words from all documents, beside those from the training part."""
    rows = []
    for size, parts in results.everywhere.items():
        own = results.least["sector"][size]
        a, b = errors(parts, "OVA_fixed"), errors(own, "OVA_fixed")
        row = [str(size), f"{PRINTED['sector'][size][1]:.3f}", spread(b), spread(a)]
        rows.append([*row, told(tested(a, b, share(own)), a, b)])
    head = ["a class", "printed RLSC OVA", "weights from the training part", "weights from all documents", "difference"]
    return table(head, rows)


def first(sizes: BySize) -> list[Arrays]:
    """The parts of the largest size."""
    return sizes[max(sizes)]


# Text ---------------------------------------------------------------------------------------------------------------

HEAD = """# Text by linear machines

Rifkin 2002, Tables 3.1 and 3.2 and the 20 newsgroups row of Table 4.5, measured again by
`studies/text_multiclass.py`; Table 3.3, the seconds, is that of `studies/text_seconds.py`. {splits} random splits;
fractions of test documents in error, standard deviation over splits in brackets.  Differences are paired by split, with
the interval and p of the corrected resampled t test (Nadeau and Bengio 2003), and McNemar's exact p on the first split.

As printed: linear kernel, lambda l = 1 (0.5 for AVA and SPA), loss-based decoding.  Words are runs of letters in lower
case, in at least two training documents; log(1 + tf) log(n/df), rows of length one, all learnt on the training part.
RLSC has no bias; "chosen" takes lambda l from {low:g} to {high:g} by exact leave-one-out on the training part (up to
2,200 documents; a fifth of the training part held out beyond).  Its BCH-63 is computed from the one-versus-all
solutions.  SVM has C = 1 and a free bias, and is solved to a relative duality gap of {gap:g}.

"""

NEWS = """## 20 newsgroups (Table 3.1)

Not the same documents: the thesis has the 19,997 messages of the original collection, here are the 18,846 of the "by
date" version, without duplicates.  Training takes up to 800 documents of a class and at most four fifths of it, the
rest is the test part (about 15,070 and 3,775).  The lines before the first empty one of each message (sender,
subject, organisation) are removed.

"""

SECTOR = """## sector (Table 3.2)

Counts of 55,197 words in 9,619 documents of 105 classes.  Training takes up to 52 documents of a class and at most
half of it; the rest is the test part.

"""

GCM = "gcm (190 samples, 16,063 genes), the last set of Table 4.5, is not among the data here and is not measured.\n"


def report(results: Results, splits: int) -> str:
    """All tables, then what follows from them."""
    news, others = results.least["news"], results.weightings
    rows = [[name, f"{np.mean(others[name] != others['truth']):.4f}"] for name in others if name != "truth"]
    return (
        HEAD.format(splits=splits, low=min(RIDGES), high=max(RIDGES), gap=GAP)
        + fewer(results, splits)
        + NEWS
        + size_table(results, "news")
        + f"\n\nWith the header lines kept, {max(news)} a class, {len(results.headers)} splits: RLSC OVA "
        + f"{spread(errors(results.headers, 'OVA_fixed'))}, BCH-63 {spread(errors(results.headers, 'BCH_fixed'))}.\n\n"
        + f"Other weights of words, {max(news)} a class, RLSC OVA, lambda l = 1, first split:\n\n"
        + table(["weights", "error"], rows)
        + "\n\n## 20 newsgroups by scheme (Table 4.5)\n\n"
        + scheme_table(results)
        + "\n\n"
        + GCM
        + "\n"
        + SECTOR
        + size_table(results, "sector")
        + "\n\nThe weights of words learnt on all documents, those of the test part too (without their labels);"
        + " RLSC OVA, lambda l = 1:\n\n"
        + everywhere_table(results)
        + "\n\n"
        + conclusions(results)
    )


def fewer(results: Results, splits: int) -> str:
    """Where support vector machines ran on fewer splits, and why."""
    short = [
        f"{TITLES[name]} {size} ({len(parts)})"
        for name, sizes in results.machines.items()
        for size, parts in sizes.items()
        if len(parts) < splits
    ]
    return f"SVM ran on fewer splits, for want of time, at {listed(short)} documents a class.\n\n" if short else ""


def conclusions(results: Results) -> str:
    """What reproduces and what does not, in sentences made of the numbers of the run."""
    lines = [
        *(against_print(results, name) for name in results.least),
        words_everywhere(results),
        words_weighed(results),
        *(codes(results, name) for name in results.least),
        *(kinds(results, name) for name in results.least),
        schemes(results),
        *(ridges(results, name) for name in results.least),
    ]
    return "## What reproduces and what does not\n\n" + "\n".join(f"* {line}" for line in lines) + "\n"


def listed(values: Iterable[Any]) -> str:
    """Words in a row: a, b and c."""
    words = [str(value) for value in values]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else "none"


def against_print(results: Results, name: str) -> str:
    sizes = results.least[name]
    here = {size: mean(parts, "OVA_fixed") for size, parts in sizes.items()}
    off = [f"{here[size] - PRINTED[name][size][1]:+.3f}" for size in sizes]
    largest = max(sizes)
    falls = all(here[a] < here[b] for a, b in zip(sorted(here, reverse=True), sorted(here, reverse=True)[1:]))
    return (
        f"{TITLES[name]}, RLSC OVA: {here[largest]:.3f} with lambda l = 1 and {mean(sizes[largest], 'OVA_chosen'):.3f} "
        f"with lambda l chosen at {largest} documents a class, {PRINTED[name][largest][1]:.3f} printed.  Minus print "
        f"at {listed(sizes)} documents a class: {listed(off)}.  The error "
        + ("falls" if falls else "does not always fall")
        + " with more documents"
        + (", as in print." if falls else "; in print it does.")
    )


def words_everywhere(results: Results) -> str:
    gaps, closed = [], []
    for size, parts in results.everywhere.items():
        own, printed = mean(results.least["sector"][size], "OVA_fixed"), PRINTED["sector"][size][1]
        gaps.append(f"{own - printed:+.3f} to {mean(parts, 'OVA_fixed') - printed:+.3f} ({size})")
        closed.append(abs(mean(parts, "OVA_fixed") - printed) <= 0.5 * abs(own - printed))
    where = "no size"
    if any(closed):
        where = "every size" if all(closed) else listed(size for size, yes in zip(results.everywhere, closed) if yes)
    return (
        "Did the thesis weigh words on all documents?  On sector that takes the distance from print "
        + f"from {listed(gaps)}; it closes half of it or more at {where}."
    )


def words_weighed(results: Results) -> str:
    others = results.weightings
    error = {name: float(np.mean(others[name] != others["truth"])) for name in others if name != "truth"}
    printed = PRINTED["news"][max(results.least["news"])][1]
    return (
        f"The weights of words matter on 20 newsgroups: {error['log tf, idf']:.3f} with idf, {error['log tf']:.3f} "
        f"(log tf) and {error['tf']:.3f} (tf) without, {printed:.3f} printed; the header lines take the first to "
        f"{mean(results.headers, 'OVA_fixed'):.3f}."
    )


def codes(results: Results, name: str) -> str:
    said = []
    for kind, sizes, ova, bch in (
        ("RLSC", results.least[name], "OVA_fixed", "BCH_fixed"),
        ("SVM", results.machines[name], "OVA", "BCH"),
    ):
        found = {
            size: tested(errors(parts, bch), errors(parts, ova), share(results.least[name][size]))
            for size, parts in sizes.items()
        }
        apart = [size for size in found if clear(found[size])]
        means = [mean(parts, bch) - mean(parts, ova) for parts in sizes.values()]
        said.append(
            f"{kind} {min(means):+.4f} to {max(means):+.4f}, the interval clear of zero at "
            + (f"{listed(apart)} documents a class" if apart else "no size")
        )
    rows = [PRINTED[name][size] for size in results.least[name]]
    least, machines = [row[3] - row[1] for row in rows], [row[2] - row[0] for row in rows]
    return (
        f"BCH-63 minus OVA on {TITLES[name]}: {'; '.join(said)}.  Printed: RLSC {min(least):+.3f} to "
        f"{max(least):+.3f}, SVM {min(machines):+.3f} to {max(machines):+.3f}."
    )


def kinds(results: Results, name: str) -> str:
    apart, means = [], []
    for size, svm in results.machines[name].items():
        mine, theirs = between(svm, results.least[name][size])
        means.append(float(np.mean(mine - theirs)))
        if clear(tested(mine, theirs, share(results.least[name][size]))):
            apart.append(size)
    printed = [PRINTED[name][size][0] - PRINTED[name][size][1] for size in results.machines[name]]
    return (
        f"SVM minus RLSC, OVA, on {TITLES[name]}: {min(means):+.4f} to {max(means):+.4f} ({min(printed):+.3f} to "
        f"{max(printed):+.3f} printed), the interval clear of zero at "
        + (f"{listed(apart)} documents a class." if apart else "no size.")
    )


def schemes(results: Results) -> str:
    parts, test_share = results.schemes, share(first(results.least["news"]))
    here = sorted(SCHEMES, key=lambda scheme: mean(parts, scheme))
    there = sorted(SCHEMES, key=lambda scheme: SCHEMES[scheme][0])
    apart = [
        f"{scheme} ({100 * (mean(parts, scheme) - mean(parts, 'OVA')):+.1f} points)"
        for scheme in SCHEMES
        if scheme != "OVA" and clear(tested(errors(parts, scheme), errors(parts, "OVA"), test_share))
    ]
    return (
        f"Table 4.5, best to worst: {', '.join(here)} here, {', '.join(there)} printed.  Apart from OVA by more "
        f"than the interval: {listed(apart)}."
    )


def ridges(results: Results, name: str) -> str:
    sizes = results.least[name]
    total = sum((chosen(parts) for parts in sizes.values()), Counter())
    number = sum(total.values())
    gains = [mean(parts, "OVA_chosen") - mean(parts, "OVA_fixed") for parts in sizes.values()]
    apart = [
        size
        for size, parts in sizes.items()
        if clear(tested(errors(parts, "OVA_chosen"), errors(parts, "OVA_fixed"), share(parts)))
    ]
    most = max(total, key=lambda ridge: total[ridge])
    return (
        f"lambda l on {TITLES[name]}: {most:g} is chosen most often ({total[most]} of {number}), {min(RIDGES):g}, the "
        f"smallest tried, {total[min(RIDGES)]} times and {max(RIDGES):g}, the largest, {total[max(RIDGES)]} times.  "
        f"Chosen minus lambda l = 1: {min(gains):+.4f} to {max(gains):+.4f}, the interval clear of zero at "
        + (f"{listed(apart)} documents a class." if apart else "no size.")
    )
