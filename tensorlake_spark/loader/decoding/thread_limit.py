"""How many threads decode at once. A tiny image is decoded in the time that the interpreter needs to begin it.

Decoders let go of the interpreter's lock for each image, and take it again. Where images are tiny, threads wait for
each other more than they decode: two are then slower than one.
"""

from __future__ import annotations

import os
import threading

BYTES_A_THREAD = 600
"""Encoded bytes of an image for each thread that gains.

They are decoded in about 8 microseconds, and the interpreter's lock is held for 2 to 3 of these for each image.
Measured on two cores with JPEG of 32 x 32 (880 bytes), two threads decode 0.87 of what one does; with 64 x 64 (1,700),
1.2 of it; with 128 x 128 (4,800), 1.9.
"""

_MOST = 16  # from here on nobody waits

_limits: dict[int, threading.BoundedSemaphore] = {}


def threads_for(mean_bytes: float) -> int:
    """Return how many threads gain from decoding images at once; many where they are large.

    Parameters
    ----------
    mean_bytes : float
        Of an image as it is stored, encoded.

    Examples
    --------
    >>> threads_for(900), threads_for(3_000), threads_for(20_000)
    (1, 5, 33)
    """
    return max(1, int(min(1024, mean_bytes / BYTES_A_THREAD)))


class ThreadLimit:
    """Lets as many threads of this process decode at once as gain from it; a thread decodes a whole batch.

    Parameters
    ----------
    mean_bytes : float
        Of an image of the batch as it is stored, encoded.

    Examples
    --------
    >>> with ThreadLimit(900):
    ...     "decode a batch"
    'decode a batch'
    """

    def __init__(self, mean_bytes: float) -> None:
        count = threads_for(mean_bytes)
        self._limit = None
        if count < _MOST:
            count = 1 << (count.bit_length() - 1)  # batches of about the same size share a limit
            self._limit = _limits.setdefault(count, threading.BoundedSemaphore(count))

    def __enter__(self) -> None:
        if self._limit is not None:
            self._limit.acquire()

    def __exit__(self, *_: object) -> None:
        if self._limit is not None:
            self._limit.release()


if hasattr(os, "register_at_fork"):  # no thread of a child holds what a thread of its parent held
    os.register_at_fork(after_in_child=_limits.clear)
