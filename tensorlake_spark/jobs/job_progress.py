"""How far a job of Spark's is, a line at a time, for the log of whoever scheduled it."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorlake_spark.errors import InvalidOptionError

EVERY = 30.0
"""Seconds between two lines where nobody says otherwise."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--progress`` to the options of a job."""
    parser.add_argument(
        "--progress",
        type=float,
        metavar="SECONDS",
        help=f"print the number of finished tasks on standard error this often; default {EVERY:g}, 0 for never",
    )


def check(every: float) -> None:
    """Raise InvalidOptionError if so many seconds do not lie between two lines: less than none, or over a day."""
    if not 0 <= every <= 86400:
        raise InvalidOptionError(f"--progress {every:g} is not from 0 to 86400 seconds")


@contextmanager
def telling(name: str, session: Any, every: float = EVERY) -> Iterator[None]:
    """Say on standard error, every so often, how many tasks of the stages that run are done.

    Parameters
    ----------
    name : str
        The job, with which each line begins.
    session : SparkSession
        What runs it; one of Spark Connect tells nothing.
    every : float
        Seconds; with 0 nothing is said.

    Raises
    ------
    InvalidOptionError
        If `every` is negative, or more than a day.
    """
    check(every)
    context = None if every <= 0 else getattr(session, "_sc", None)
    if context is None:
        yield
        return
    start, over = time.monotonic(), threading.Event()
    tracker = context.statusTracker()

    def tell() -> None:
        while not over.wait(every):
            stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
            parts = [
                f"stage {s.stageId}: {s.numCompletedTasks} of {s.numTasks} tasks done, "
                f"{s.numActiveTasks} running"
                for s in stages
                if s is not None
            ]
            if parts:
                seconds = time.monotonic() - start
                print(f"{name}: {seconds:.0f} s: {'; '.join(parts)}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
