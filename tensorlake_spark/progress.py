"""A progress bar for long reads and writes, on a terminal that has somebody before it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LONG = 256 << 20


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the bytes that are done.

    A bar is drawn only if tqdm is installed, standard error is a terminal, and the work is long: a total
    of at least 256 MiB, or None for a stream whose end is not known.

    Parameters
    ----------
    label : str
        What is going on.
    total : int or None
        Bytes in all.

    Examples
    --------
    >>> with progress("read x", 10) as done:
    ...     done(10)
    """
    if not _is_terminal() or (total is not None and total < _LONG):
        yield lambda _: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield lambda _: None
        return
    lock = threading.Lock()
    with tqdm(total=total, unit="B", unit_scale=True, desc=label, leave=False) as bar:

        def done(count: int) -> None:
            with lock:  # several threads read, and tqdm itself only adds and prints
                bar.update(count)

        yield done


def _is_terminal() -> bool:
    """Whether somebody may be looking; a service may have no standard error at all, or a closed one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
