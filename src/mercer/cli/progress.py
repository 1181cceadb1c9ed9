"""The progress of a fit on the error stream, where that is a terminal.

A solver reports objective, gap and support vectors through its Monitor.  The time left is what remains if the
violation of the optimality conditions (or the gap, where there is none) goes on falling at its mean rate so far.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mercer.estimation.callbacks import observed
from mercer.solvers.monitor import Hook, Snapshot
from mercer.solvers.solution import Record

VIOLATION, GAP = 1e-3, 1e-8  # what counts as the end


class Bar:
    """A line that follows whatever is trained."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[facts]}"),
            console=console,
            transient=True,
        )
        self.line = self.progress.add_task("", total=None, facts="")
        self.first: tuple[float, float] | None = None
        self.total = 0

    def expect(self, total: int) -> None:
        """A search that comes will report so many times."""
        self.total = total

    def say(self, stage: str) -> None:
        """Begin a stage."""
        self.first = None
        self.progress.update(self.line, description=stage, total=None, completed=0, facts="")

    def _search(self, record: Record) -> None:
        """One more fold of a row of candidates is done."""
        total = max(self.total, record.iteration)
        left = record.seconds * (total - record.iteration) / record.iteration
        text = f"best score {record.facts['best_fold_score']:.4g}, about {left:.0f} s left"
        self.progress.update(self.line, total=total, completed=record.iteration, facts=text)

    def hook(self, record: Record, snapshot: Snapshot | None) -> None:
        """Take a record of a solver, or of a search."""
        if "best_fold_score" in record.facts:
            self._search(record)
            return
        level, end = self._level(record)
        if self.first is None or level > self.first[1]:
            self.first = (record.seconds, level)
        since, start = self.first
        fallen = math.log(start / level) if 0 < level < start else 0.0
        texts = [f"objective {record.primal:.6g}", f"gap {record.gap:.1e}"]
        if "support" in record.facts:
            texts.append(f"{record.facts['support']} support vectors")
        if fallen > 0:
            left = max(0.0, math.log(level / end)) * (record.seconds - since) / fallen
            texts.append(f"about {left:.0f} s left")
            self.progress.update(self.line, total=math.log(start / end), completed=fallen)
        self.progress.update(self.line, facts=", ".join(texts))

    @staticmethod
    def _level(record: Record) -> tuple[float, float]:
        """What falls to its end while a solver works, and the end."""
        if "violation" in record.facts:
            return float(record.facts["violation"]), VIOLATION
        return record.gap / max(abs(record.primal), 1e-300), GAP


class Quiet(Bar):
    """No line at all."""

    def __init__(self) -> None:
        pass

    def say(self, stage: str) -> None:
        """Nothing."""

    def expect(self, total: int) -> None:
        """Nothing."""

    def hook(self, record: Record, snapshot: Snapshot | None) -> None:
        """Nothing."""


@contextmanager
def following(*hooks: Hook) -> Iterator[Bar]:
    """A progress line for all that is trained inside; other hooks hear the same records."""
    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_terminal):
        with observed(*hooks):
            yield Quiet()
        return
    bar = Bar(console)
    with bar.progress, observed(bar.hook, *hooks):
        yield bar
