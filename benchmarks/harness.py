"""Runs mercer and its peers on the same data, side by side, and writes what came out.

A benchmark is a file with tasks:

    from benchmarks import harness, peers

    def load(smoke):                     # the same data for all, loaded once in each process
        return mercer.data.sample("satimage", "train")

    def fit_mercer(data):                # timed as a whole; returns figures to show beside the time
        machine = mercer.SVC(C=10).fit(data.X, data.y)
        return {"accuracy": machine.score(data.X, data.y), "objective": machine.objective_}

    TASKS = [harness.Task("satimage", load, {"mercer": fit_mercer, "scikit-learn": fit_sklearn})]

    if __name__ == "__main__":
        harness.main("svm", TASKS)

Every measurement runs in a process of its own (or in one process with `--in-process`), one after the other and
interleaved: mercer, peer, peer, mercer, ...  so that a slow minute of the machine hits all alike.  A callable may
return `seconds` among its figures where only a part is to be timed.  The first call in a process is a warm-up on the
smoke data: compiled code is loaded, not counted.  Peers that are not installed are left out, and the table says so.
Reported are medians, and their ratio to mercer's.
"""

import argparse
import contextlib
import importlib.util
import json
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import peers
from mercer import versions

RESULTS = Path(__file__).parent / "results"
OURS = "mercer"

Figures = dict[str, Any]
Measure = Callable[[Any], Figures | None]


@dataclass(frozen=True)
class Task:
    """One comparison: data, and for each library a callable that does the work on them.

    - `load(smoke)` returns the data; with `smoke` true a few hundred bundled points, so that it runs anywhere;
    - `measure[name](data)` does the work and returns figures (accuracy, objective, ...) or None;
    - `needs_data`: `load(False)` reads benchmark sets from MERCER_DATA;
    - `warm_up`: run the callable on the smoke data first, uncounted.
    """

    name: str
    load: Callable[[bool], Any]
    measure: Mapping[str, Measure]
    needs_data: bool = False
    warm_up: bool = True
    note: str = ""


@dataclass
class Outcome:
    """Measurements of one library on one task."""

    seconds: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)
    figures: Figures = field(default_factory=dict)
    skipped: str | None = None

    @property
    def median(self) -> float | None:
        """Median time, None without measurements."""
        return statistics.median(self.seconds) if self.seconds else None


def resident_memory() -> int:
    """Resident memory in KiB, from which the peak is counted anew where the system lets it (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak_memory() -> int:
    """Largest resident memory in KiB since `resident_memory` was asked."""
    try:
        return _status("VmHWM")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _status(name: str) -> int:
    """A line of /proc/self/status, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def measure_once(task: Task, name: str, smoke: bool) -> dict[str, Any]:
    """Warm up, load, do the work once: seconds, growth of the peak memory, figures."""
    work = task.measure[name]
    if task.warm_up and not smoke:
        work(task.load(True))
    data = task.load(smoke)
    before = resident_memory()
    started = time.perf_counter()
    figures = dict(work(data) or {})
    seconds = time.perf_counter() - started
    peak = (peak_memory() - before) / 1024
    return {"seconds": float(figures.pop("seconds", seconds)), "peak_mib": peak, "figures": figures}


def _in_child(task: Task, name: str, smoke: bool, answer: Any) -> None:
    """Body of a measuring process."""
    try:
        answer.send(measure_once(task, name, smoke))
    except BaseException as error:
        traceback.print_exc()
        answer.send({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
    # Worker processes that a library keeps for later would hold up an orderly exit for minutes.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _in_fresh_child(module: str, task: str, name: str, smoke: bool, answer: Any) -> None:
    """Body of a measuring process that knows its task by name only."""
    found = next(known for known in import_module(module).TASKS if known.name == task)
    _in_child(found, name, smoke, answer)


def measure_apart(task: Task, name: str, smoke: bool, limit: float | None, module: str | None = None) -> dict[str, Any]:
    """One measurement in a process of its own, stopped when it passes the time limit.

    A task that stands in the TASKS of `module` is run by a new interpreter: thread pools of BLAS survive a fork badly,
    and libraries suffer from that unequally.  Other tasks are run by a fork, since they may be closures.
    """
    context: Any = multiprocessing.get_context("spawn" if module else "fork")
    receiver, sender = context.Pipe(duplex=False)
    if module:
        child = context.Process(target=_in_fresh_child, args=(module, task.name, name, smoke, sender))
    else:
        child = context.Process(target=_in_child, args=(task, name, smoke, sender))
    child.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            child.terminate()
            return {"error": f"took more than {limit:.0f} s"}
        return dict(receiver.recv())
    except EOFError:
        child.join()
        return {"error": f"the process died (exit code {child.exitcode})"}
    finally:
        child.join()


def _holding(name: str, tasks: Sequence[Task]) -> str | None:
    """The module benchmarks.<name> where it states these tasks, else None."""
    module = f"benchmarks.{name}"
    if importlib.util.find_spec(module) is None:
        return None
    stated = {task.name for task in getattr(import_module(module), "TASKS", ())}
    return module if stated.issuperset(task.name for task in tasks) else None


def _usable(task: Task, smoke: bool) -> dict[str, Outcome]:
    """An empty outcome for every library, with the reason where it cannot run."""
    outcomes = {name: Outcome() for name in task.measure}
    for name, outcome in outcomes.items():
        reason = peers.why_not(name)
        if reason:
            outcome.skipped = reason
        elif task.needs_data and not smoke and not os.environ.get("MERCER_DATA"):
            outcome.skipped = "MERCER_DATA is not set"
    return outcomes


def run(
    tasks: Sequence[Task],
    *,
    repeats: int = 3,
    budget_seconds: float | None = None,
    smoke: bool = False,
    in_process: bool = False,
    module: str | None = None,
    report: Callable[[str], None] = print,
) -> dict[str, dict[str, Outcome]]:
    """Measure all tasks, interleaved; a library that fails or passes the budget is not tried again on that task.

    `budget_seconds` bounds each single measurement; `module` states the tasks (see `measure_apart`).
    """
    results: dict[str, dict[str, Outcome]] = {}
    for task in tasks:
        outcomes = results[task.name] = _usable(task, smoke)
        for turn in range(1 if smoke else repeats):
            # Every second round runs the other way about, so that no library always follows the same one.
            names = list(outcomes) if turn % 2 == 0 else list(outcomes)[::-1]
            for name in names:
                outcome = outcomes[name]
                if outcome.skipped:
                    continue
                if in_process or smoke:
                    answer = measure_once(task, name, smoke)
                else:
                    answer = measure_apart(task, name, smoke, budget_seconds, module)
                if "error" in answer:
                    outcome.skipped = answer["error"]
                    report(f"{task.name:24} {name:22} {outcome.skipped}")
                    continue
                outcome.seconds.append(answer["seconds"])
                outcome.peak_mib.append(answer["peak_mib"])
                outcome.figures.update(answer["figures"])
                shown = "  ".join(f"{key} {_number(value)}" for key, value in answer["figures"].items())
                report(f"{task.name:24} {name:22} {answer['seconds']:9.3f} s  {shown}")
    return results


def machine() -> dict[str, str]:
    """What the measurements were made on."""
    facts = versions.facts()
    packages = {**facts["packages"], **{name: version for name, version in peers.versions().items() if version}}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": facts["machine"]["processor"],
        "cores": facts["machine"]["cores"],
        "threads": facts["machine"]["threads"],
        "BLAS": "; ".join(facts["linear algebra"].values()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "mercer": facts["mercer"]["version"],
        "packages": ", ".join(
            f"{name} {version}" for name, version in packages.items() if "not installed" not in version
        ),
    }


def _number(value: Any) -> str:
    """Six digits of a number, texts as they are."""
    return f"{value:.6g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def table(results: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Markdown table: time, ratio to mercer's time (above 1: mercer is faster), and the figures beside it."""
    figures = list(dict.fromkeys(key for task in results.values() for o in task.values() for key in o.figures))
    header = ["task", "library", "median s", "time / mercer's", "runs", "peak MiB", *figures]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for task, outcomes in results.items():
        ours = outcomes[OURS].median if OURS in outcomes else None
        for name, outcome in outcomes.items():
            middle = outcome.median
            if middle is None:
                cells = [task, name, f"left out: {outcome.skipped}", *[""] * (len(header) - 3)]
            else:
                ratio = "" if not ours else f"{middle / ours:.2f}"
                peak = f"{statistics.median(outcome.peak_mib):.0f}"
                values = [_number(outcome.figures[key]) if key in outcome.figures else "" for key in figures]
                cells = [task, name, f"{middle:.4g}", ratio, str(len(outcome.seconds)), peak, *values]
            lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write(name: str, tasks: Sequence[Task], results: Mapping[str, Mapping[str, Outcome]], folder: Path) -> None:
    """Write <folder>/<name>.json and .md; each file is replaced only when it is complete.

    Tasks that were not run this time (--only) keep the rows they had, with the day these were measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    file = folder / f"{name}.json"
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"results": {}, "machine": about}
    dates = earlier.get("measured", dict.fromkeys(earlier["results"], earlier["machine"]["date"]))
    dates = {task: date for task, date in dates.items() if any(task == known.name for known in tasks)}
    kept = {task: earlier["results"][task] for task in dates if task in earlier["results"]}
    measured = {
        task: {library: {"median": o.median, **asdict(o)} for library, o in outcomes.items()}
        for task, outcomes in results.items()
    }
    order = [task.name for task in tasks if task.name in kept or task.name in measured]
    content = {
        "benchmark": name,
        "machine": about,
        "measured": {task: about["date"] if task in measured else dates[task] for task in order},
        "results": {task: measured.get(task, kept.get(task)) for task in order},
    }
    shown = {task: results.get(task) or _outcomes(kept[task]) for task in order}
    notes = "".join(f"- {task.name}: {task.note}\n" for task in tasks if task.note and task.name in order)
    old = "".join(f"- {task}: measured {dates[task]}\n" for task in order if task not in measured)
    facts = "".join(f"- {key}: {value}\n" for key, value in about.items())
    text = f"# {name}\n\n{table(shown)}\n{notes}{old}\nMeasured on\n\n{facts}"
    for ending, body in (("json", json.dumps(content, indent=1) + "\n"), ("md", text)):
        beside = folder / f".{name}.{ending}.tmp"
        beside.write_text(body, encoding="utf-8")
        os.replace(beside, folder / f"{name}.{ending}")


def _outcomes(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    """Outcomes as `write` stored them."""
    return {
        library: Outcome(**{key: value for key, value in fields.items() if key != "median"})
        for library, fields in stored.items()
    }


def main(name: str, tasks: Sequence[Task], arguments: Sequence[str] | None = None) -> dict[str, dict[str, Outcome]]:
    """The command line of a benchmark file."""
    parser = argparse.ArgumentParser(description=f"Benchmark {name}: mercer and its peers on the same data.")
    parser.add_argument("--smoke", action="store_true", help="tiny bundled data, once each, nothing written")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="tasks whose name holds TEXT")
    parser.add_argument("--peers", action="append", default=[], metavar="NAME", help="mercer and these libraries only")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each, interleaved (3)")
    parser.add_argument("--budget", type=float, default=None, metavar="SECONDS", help="longest single measurement")
    parser.add_argument("--in-process", action="store_true", help="all in one process instead of one for each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(arguments)
    chosen = [task for task in tasks if not options.only or any(text in task.name for text in options.only)]
    if not chosen:
        parser.error(f"no task matches; there are {', '.join(task.name for task in tasks)}")
    if options.peers:
        wanted = {OURS, *options.peers}
        chosen = [
            Task(t.name, t.load, {k: m for k, m in t.measure.items() if k in wanted}, t.needs_data, t.warm_up, t.note)
            for t in chosen
        ]
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    results = run(
        chosen,
        repeats=options.repeats,
        budget_seconds=options.budget,
        smoke=options.smoke,
        in_process=options.in_process,
        module=None if options.smoke or options.in_process else _holding(name, chosen),
    )
    if not options.smoke:
        write(name, tasks, results, options.out)
    print(table(results))
    return results
