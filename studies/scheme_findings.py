"""What the study of five multiclass schemes found, in sentences computed from its numbers."""

import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays
from schemes import AGREEMENT, PAIRS, PARAMETERS, PRINTED, SCHEMES, code_of, percent

from mercer.multiclass.agreement import agreement, compare, siding_with_the_error

Array = NDArray[np.float64]


def sides(y: NDArray[np.intp], parts: dict[str, Arrays]) -> dict[str, Array]:
    """For every code but one-versus-all, the shares of separating machines that side with its errors."""
    classes = int(y.max()) + 1
    chosen_class = parts["OVA"]["predicted"]
    wrong = np.flatnonzero(chosen_class != y)
    return {
        scheme: siding_with_the_error(code_of(scheme, classes), part["outputs"][wrong], y[wrong], chosen_class[wrong])
        for scheme, part in parts.items()
        if scheme != "OVA"
    }


def findings(y_new: NDArray[np.intp], y: NDArray[np.intp], found: dict[str, Any]) -> str:
    """What the numbers say, computed from them."""
    labels = {"satimage": y_new, "yeast": y}
    lines = [printed_line(y_new, found["satimage"]), nested_line(y, found["yeast"])]
    tests = {
        f"{scheme} on {name}": compare(labels[name], part["predicted"], found[name]["OVA"]["predicted"]).p
        for name in labels
        for scheme, part in found[name].items()
        if scheme != "OVA"
    }
    nearest = min(tests, key=lambda case: tests[case])
    below = sum(p < 0.05 for p in tests.values())
    lines.append(
        f"Of the {len(tests)} paired tests against OVA above {below} have p < 0.05; the smallest is "
        f"{tests[nearest]:.2g} ({nearest}), and {len(tests)} tests at once ask for {0.05 / len(tests):.4f}."
    )
    spread = {scheme: 100.0 * float(np.ptp(errors)) for scheme, errors in found["draws"].items()}
    lines.append(
        "The draw of a random code matters: over ten seeds the errors on satimage differ by "
        + " and ".join(f"{points:.2f} points ({scheme})" for scheme, points in spread.items())
        + ", beside intervals of about 1.2 points to either side."
    )
    for name in labels:
        shares = agreement({scheme: part["predicted"] for scheme, part in found[name].items()})
        off = {pair: shares.between(*pair) - float(at) for pair, at in zip(PAIRS, AGREEMENT[name], strict=True)}
        worst = max(off, key=lambda pair: abs(off[pair]))
        lines.append(
            f"Shares of identical predictions on {name}: {sum(abs(d) <= 0.02 for d in off.values())} of {len(off)} are "
            f"within 0.02 of print; farthest is {worst[0]}-{worst[1]} ({off[worst]:+.3f}).  The random codes are other "
            "draws than those of the thesis."
        )
    together = [np.nanmean(e) for name in labels for e in sides(labels[name], found[name]).values()]
    lines.append(
        f"Where OVA errs, on average {min(together):.0%} to {max(together):.0%} of the separating machines of another "
        "code err with it, as in Figures 4-2 and 4-3."
    )
    lines.append(kernel_line(y_new, found["bad"], found["steps"]))
    return "## What reproduces and what does not\n\n" + "".join(
        textwrap.fill(line, 118, initial_indent="* ", subsequent_indent="  ") + "\n" for line in lines
    )


def printed_line(y: NDArray[np.intp], parts: dict[str, Arrays]) -> str:
    errors = {scheme: 100.0 * float(np.mean(part["as_printed"] != y)) for scheme, part in parts.items()}
    same = [s for s, e in errors.items() if abs(e - PRINTED["satimage"][s]) < 1e-6]
    rest = max((abs(e - PRINTED["satimage"][s]) for s, e in errors.items()), default=0.0)
    chosen_alike = [s for s, part in parts.items() if tuple(part["parameters"]) == PARAMETERS["satimage"][s]]
    return (
        "satimage: with the printed error to the last point, at the printed parameters: "
        f"{', '.join(same) or 'no scheme'}; none is more than {rest:.2f} points off.  Cross-validation on the training "
        "part finds the printed "
        f"parameters for {', '.join(chosen_alike) or 'no scheme'}; so found, OVA errs on "
        f"{percent(float(np.mean(parts['OVA']['predicted'] != y)))} % beside the printed {PRINTED['satimage']['OVA']}."
    )


def nested_line(y: NDArray[np.intp], parts: dict[str, Arrays]) -> str:
    paid = [float(np.mean(p["predicted"] != y) - np.mean(p["as_printed"] != y)) for p in parts.values()]
    return (
        f"yeast: choosing the parameters inside the folds instead of taking the printed ones changes the error by "
        f"{100 * min(paid):+.2f} to {100 * max(paid):+.2f} points.  The printed errors are leave-one-out; "
        "[yeast_leave_one_out](yeast_leave_one_out.md) has that of all five schemes, at the printed parameters and "
        "with the choice inside."
    )


def kernel_line(y: NDArray[np.intp], bad: Arrays, taken: Arrays) -> str:
    errors = {scheme: float(np.mean(bad[scheme] != y)) for scheme in SCHEMES}
    codes = [errors[s] for s in ("COMP", "DEN", "SPA")]
    longest = float(taken[f"error_{max(taken['limits'])}"])
    text = (
        f"With the kernel of Allwein et al. OVA errs on {percent(errors['OVA'])} % and the codes COMP, DEN and SPA on "
        f"{percent(min(codes))} to {percent(max(codes))} % (printed 40.9 and about 14).  With "
        f"{max(taken['limits']) // min(taken['limits'])} times the steps the same OVA machines err on "
        f"{percent(longest)} %"
    )
    closed = (errors["OVA"] - longest) / max(errors["OVA"] - min(codes), 1e-12)
    return text + (
        f", which closes {closed:.0%} of its distance from the best of them.  Machines stopped far from their optimum "
        "thus look like a kernel that fits badly, a cause that neither source considers."
    )
