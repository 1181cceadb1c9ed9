"""Between mercer's Monitor and scikit-learn's callbacks (1.9).

An estimator with callbacks opens a task "fit" when training begins; every record a solver hands to its Monitor
becomes a finished sub-task of it, and a callback that returns True from `on_fit_task_end` ends the training with the
best solution so far.

Hooks given to `observed` hear of every fit inside the `with` block, whichever machine it is of:

    with observed(hook):
        machine.fit(X, y)
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from mercer.solvers.monitor import Hook, Monitor, Snapshot
from mercer.solvers.solution import Record

OBSERVERS: ContextVar[tuple[Hook, ...]] = ContextVar("observers", default=())


@contextmanager
def observed(*hooks: Hook) -> Iterator[None]:
    """Hand these hooks to the Monitor of every fit that begins inside, on this thread."""
    token = OBSERVERS.set((*OBSERVERS.get(), *hooks))
    try:
        yield
    finally:
        OBSERVERS.reset(token)


def _forward(estimator: Any, context: Any, X: Any, y: Any) -> Hook:
    """A hook of the Monitor that runs the callbacks' hooks."""

    def hook(record: Record, snapshot: Snapshot | None) -> bool:
        facts = {"iteration": record.iteration, "objective": record.primal, "gap": record.gap}
        step = context.subcontext(task_name="iteration")
        step.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=facts)
        return bool(step.call_on_fit_task_end(estimator=estimator, X=X, y=y, metadata=facts))

    return hook


def _tell(name: str) -> Hook:
    """A hook of the Monitor that prints a line for every record."""

    def hook(record: Record, snapshot: Snapshot | None) -> None:
        numbers = {key: value for key, value in record.facts.items() if isinstance(value, (int, float))}
        facts = "".join(f"  {key} {value:.6g}" for key, value in numbers.items())
        print(
            f"[{name}] {record.seconds:8.1f} s  iteration {record.iteration}  objective {record.primal:.8g}  "
            f"gap {record.gap:.3g}{facts}",
            flush=True,
        )

    return hook


def watching(estimator: Any, X: Any, y: Any, max_time: float | None) -> AbstractContextManager[Monitor]:
    """A Monitor for one fit, with its time limit, its Ctrl-C, the callbacks set on the estimator, and its `verbose`."""
    hooks = [*OBSERVERS.get()]
    if getattr(estimator, "verbose", False):
        hooks.append(_tell(type(estimator).__name__))
    heard = "_skl_callbacks" in vars(estimator)
    return _heard(estimator, X, y, max_time, hooks) if heard else Monitor(time_limit=max_time, hooks=hooks)


@contextmanager
def _heard(estimator: Any, X: Any, y: Any, max_time: float | None, hooks: list[Hook]) -> Iterator[Monitor]:
    """The Monitor of an estimator that has callbacks."""
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    with Monitor(time_limit=max_time, hooks=[_forward(estimator, context, X, y), *hooks]) as monitor:
        yield monitor
    # The estimator itself is fitted by now: nothing has to be put back to use it.
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes={})
