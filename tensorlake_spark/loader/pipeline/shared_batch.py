"""A batch from one process to another: its arrays in memory that both map, which has no name and outlives nobody."""

from __future__ import annotations

import mmap
import os
import pickle  # nosec B403 # between processes of ours
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

_ALIGNED = 64
_LEAST = 64 << 10  # less is sent as it is
IS_SHARED = hasattr(os, "memfd_create")
"""Whether this system has memory without a name that can be handed to another process; others copy batches."""


def send_batch(connection: Connection, head: Any, batch: Any, shared: bool = IS_SHARED) -> int:
    """Send a batch.

    Parameters
    ----------
    connection : multiprocessing.connection.Connection
        To the other process, on this machine.
    head : object
        What comes with it.
    batch : object
        Anything that pickles; arrays in it are not copied more than once.
    shared : bool
        Whether arrays go by shared memory.

    Returns
    -------
    int
        The bytes of its arrays.
    """
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    raws = [buffer.raw() for buffer in buffers]
    spans, total = [], 0
    for raw in raws:
        spans.append((total, raw.nbytes))
        total += -(-raw.nbytes // _ALIGNED) * _ALIGNED
    shared = shared and total >= _LEAST
    connection.send((head, data, spans, total, shared))
    if not shared:
        for raw in raws:
            connection.send_bytes(raw)
        return total
    file = os.memfd_create("tensorlake-batch", os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, total)
        for (start, nbytes), raw in zip(spans, raws, strict=True):
            done = 0
            while done < nbytes:
                done += os.pwrite(file, raw[done:], start + done)
        send_handle(connection, file, None)  # type: ignore[arg-type]
    finally:
        os.close(file)
    return total


def receive_batch(connection: Connection) -> tuple[Any, Any, int]:
    """Return what came with a batch, the batch, and the bytes of its arrays. Its memory goes with the last array.

    Raises
    ------
    EOFError
        If the other process has ended.
    """
    head, data, spans, total, shared = connection.recv()
    if not shared:
        parts: list[Any] = [bytearray(connection.recv_bytes()) for _ in spans]
        return head, pickle.loads(data, buffers=parts), total  # nosec B301 # from a child of ours
    file = recv_handle(connection)
    try:
        mapped = memoryview(mmap.mmap(file, total))
    finally:
        os.close(file)
    parts = [mapped[start : start + nbytes] for start, nbytes in spans]
    return head, pickle.loads(data, buffers=parts), total  # nosec B301 # from a child of ours
