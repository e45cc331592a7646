"""A gate for the threads of loaders, and for the one that loads compiled loops. It is shut while the process forks."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 # first: a fork takes its lock after the gate is shut
import os
import threading
from types import TracebackType

from tensorlake_spark.errors import LoaderClosedError

PATIENCE = 30.0
"""Seconds for which a fork waits until the work that has begun is done."""


class ForkGate:
    """Lets a process fork only while no thread is at work.

    A forked child has none of its parent's threads. A lock that one of them holds at that moment stays locked in the
    child for ever: locks of ours, those of imports, and those of libraries. So threads enter the gate for each piece
    of work, and a fork waits until all have left it. Other threads that want to enter wait until the fork is done.

    A fork does not wait for longer than `patience`, nor if a thread forks that is at work itself. The child is told:
    its `is_safe` is False.

    Parameters
    ----------
    patience : float
        Seconds for which a fork waits.

    Attributes
    ----------
    patience : float
        As it was given.
    is_safe : bool
        Whether threads were at rest each time that this process, or a parent of it, was forked.

    Examples
    --------
    >>> gate = ForkGate(1.0)
    >>> with gate:
    ...     "work"
    'work'
    >>> gate.is_safe
    True
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.is_safe = True
        self._change = threading.Condition(threading.Lock())
        self._inside: set[int] = set()
        self._forks = 0  # that wait, or are under way
        self._is_quiet = False

    def __enter__(self) -> None:
        with self._change:
            while self._forks:
                self._change.wait()
            self._inside.add(threading.get_ident())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._change:
            self._inside.discard(threading.get_ident())
            if self._forks:
                self._change.notify_all()

    def shut(self) -> None:
        """Let nobody in, and wait until all are out; before a fork."""
        self._change.acquire()
        self._forks += 1
        self._is_quiet = False
        if threading.get_ident() not in self._inside:  # it would wait for itself
            self._is_quiet = self._change.wait_for(lambda: not self._inside, self.patience)

    def open(self) -> None:
        """Let threads in again; after a fork, in the parent."""
        self._forks -= 1
        self._change.notify_all()
        self._change.release()

    def begin_anew(self) -> None:
        """Forget the threads of the parent; after a fork, in the child."""
        self.is_safe = self.is_safe and self._is_quiet
        self._change = threading.Condition(threading.Lock())
        self._inside = set()
        self._forks = 0


FORK_GATE = ForkGate(PATIENCE)
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=FORK_GATE.shut,
        after_in_parent=FORK_GATE.open,
        after_in_child=FORK_GATE.begin_anew,
    )


def check_process(pid: int) -> None:
    """Raise LoaderClosedError if an iteration began in another process: this one was forked since.

    Parameters
    ----------
    pid : int
        The process in which it began.
    """
    if os.getpid() != pid:
        raise LoaderClosedError(
            "this process was forked after the iteration began, and does not have its threads; iterate over the loader "
            "anew"
        )
