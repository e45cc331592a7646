"""An Arrow table as the bytes of a file beside the table of tensors, with a checksum, so that damage is told.

The bytes are what the file holds (text), its format (``1``), a line feed, sixteen bytes of checksum, and an Arrow IPC
stream.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa

_FORMAT = b"1\n"
_CHECKSUM = 16


class LaterFormat(ValueError):
    """A later release wrote it."""


def pack(kind: bytes, table: pa.Table) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    kind : bytes
        What it holds, such as ``b"tensorlake rows "``.
    table : pyarrow.Table
        With the metadata of its schema.
    """
    sink = pa.BufferOutputStream()
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=packed) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return kind + _FORMAT + checksum(data) + data


def unpack(kind: bytes, schema: pa.Schema, whole: bytes) -> pa.Table:
    """Return what `pack` was given.

    Raises
    ------
    LaterFormat
        If the file is of another format.
    ValueError, pyarrow.ArrowException
        If it is none, has other columns, or is damaged.
    """
    head = len(kind) + len(_FORMAT)
    if not whole.startswith(kind):
        raise ValueError("it does not begin as one")
    if len(whole) < head + _CHECKSUM:
        raise ValueError("it is cut short")
    if whole[len(kind) : head] != _FORMAT:
        raise LaterFormat("it is of another format")
    said, data = whole[head : head + _CHECKSUM], memoryview(whole)[head + _CHECKSUM :]
    if said != checksum(data):
        raise ValueError("its checksum does not hold")
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all()
    if table.schema.remove_metadata() != schema:
        raise ValueError(f"it has the columns {', '.join(table.schema.names):.200}")
    return table


def checksum(data: bytes | memoryview) -> bytes:
    """Return the checksum of the stream: sixteen bytes of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=_CHECKSUM).digest()
