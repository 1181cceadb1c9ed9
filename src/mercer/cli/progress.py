"""The progress of a fit on the error stream, where that is a terminal.

A solver reports objective, gap and support vectors through its Monitor.  The time left is what remains if the
violation of the optimality conditions (or the gap, where there is none) goes on falling at its mean rate so far.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from mercer.cli.interruption import Listener
from mercer.cli.output import say
from mercer.machine.callbacks import observed
from mercer.problems.certificate import relative_gap
from mercer.solvers.monitor import Hook, Snapshot
from mercer.solvers.solution import Record

VIOLATION, GAP = 1e-3, 1e-8  # what counts as the end


class Quiet:
    """Follows what is trained without showing it: the stage, and the best outcome so far."""

    def __init__(self) -> None:
        self.stage = "working"
        self.searching = False
        self.reached: Any = None
        self.listener: Listener | None = None

    @property
    def hurried(self) -> bool:
        """Whether Ctrl-C was pressed more than once."""
        return self.listener is not None and self.listener.count > 1

    def expect(self, total: int) -> None:
        """A search comes that will report so many times."""
        self.searching = True

    def say(self, stage: str) -> None:
        """Begin a stage."""
        self.stage, self.searching = stage, False

    def hook(self, record: Record, snapshot: Snapshot | None) -> None:
        """Take a record of a solver, or of a search."""
        if self.searching and "best_fold_score" not in record.facts:
            self.searching = False
            if self.listener is not None and self.listener.count == 1:
                say(
                    "the search has ended; a machine is trained with the best parameters so far, for there is none "
                    "yet. Ctrl-C again keeps what it has reached."
                )

    def doing(self) -> str:
        """What is being done, and what will come of it."""
        if self.searching:
            return f"{self.stage}: the candidates in work end first, then one machine is trained with the best so far"
        return f"{self.stage}: the solver ends its present step, and what it has reached is kept"


class Bar(Quiet):
    """Two lines that follow whatever is trained: what, how far and how long; and its numbers.

    They never pass the width of the terminal: what does not fit is cut off.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        whole = Column(no_wrap=True, overflow="ellipsis")
        self.progress = Lines(
            SpinnerColumn(),
            TextColumn("{task.description}", table_column=whole, markup=False),
            BarColumn(bar_width=max(4, min(20, console.width - 50))),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self.line = self.progress.add_task("", total=None, facts="")
        self.first: tuple[float, float] | None = None
        self.total = 0

    def expect(self, total: int) -> None:
        """A search comes that will report so many times."""
        super().expect(total)
        self.total = total

    def say(self, stage: str) -> None:
        """Begin a stage."""
        super().say(stage)
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
        super().hook(record, snapshot)
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
        return relative_gap(record.primal, record.dual, record.gap), GAP


class Lines(Progress):
    """The line of a task with its numbers on a line below."""

    def get_renderables(self) -> Iterator[RenderableType]:
        """The two lines."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if task.fields["facts"]:
                yield Text(f"  {task.fields['facts']}", no_wrap=True, overflow="ellipsis")


@contextmanager
def following(*hooks: Hook, keep: Callable[[Any], str] | None = None) -> Iterator[Quiet]:
    """A progress line for all that is trained inside; other hooks hear the same records.

    `keep` writes the outcome that the bar has reached when a second Ctrl-C ends the process at once, and says so.
    """
    console = Console(stderr=True)
    shown = sys.stderr.isatty() and console.is_terminal
    bar = Bar(console) if shown else Quiet()
    with ExitStack() as stack:
        if isinstance(bar, Bar):
            stack.enter_context(bar.progress)
        if threading.current_thread() is threading.main_thread():
            bar.listener = stack.enter_context(
                Listener(
                    bar.doing,
                    lambda: keep is not None and bar.reached is not None,
                    lambda: "" if keep is None else keep(bar.reached),
                )
            )
        stack.enter_context(observed(bar.hook, *hooks))
        yield bar
