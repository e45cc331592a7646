"""Who does a job's work on files: the executors of a session where there is one, else this process."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.jobs import job_progress

NOTE = """Under spark-submit, executors do the work. Otherwise this process does it.
"""
"""What the help of such a job says."""


@contextmanager
def execution(name: str, session: Any, args: argparse.Namespace) -> Iterator[Run]:
    """Yield who does the work: executors under spark-submit, or where a session is given; else `run_here`.

    Parameters
    ----------
    name : str
        The job, with which lines of progress begin.
    session : SparkSession or None
        Stands for the one that the job would start, and stop.
    args : argparse.Namespace
        Has ``progress``, seconds between two lines, and ``debug``, whether tracebacks of tasks are shown.

    Raises
    ------
    InvalidOptionError
        If ``progress`` is negative, or more than a day.
    """
    job_progress.check(args.progress)
    if session is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        yield run_here
        return
    from tensorlake_spark.spark.cluster.executor_runner import run_in
    from tensorlake_spark.spark.cluster.task_errors import plain_errors, quiet_tasks
    from tensorlake_spark.spark.ingest.ingestion import job_session
    from tensorlake_spark.spark.session import local_session

    used = session or job_session(local_session)
    try:
        with (
            quiet_tasks(used, not args.debug),
            job_progress.telling(name, used, args.progress),
            plain_errors(),
        ):
            yield run_in(used)
    finally:
        if session is None:
            used.stop()
