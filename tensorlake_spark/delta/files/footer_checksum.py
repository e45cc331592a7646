"""A checksum for the footer of a data file: Parquet has none, and Arrow aborts at some damaged footers.

Between the last page and the footer a file of ours has eight more bytes: `MAGIC` and the CRC-32 of all
that follows, little endian. No other reader looks there. A file without them, as Spark writes it, is
read as it is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError

MAGIC = b"TLFC"

_END = struct.Struct("<I4s")  # length of the footer, and Parquet's own magic
_SEAL = struct.Struct("<4sI")
_GATHERED = 256 << 10  # bytes
_TAIL = 64 << 10  # read at once from the end of a file that cannot be mapped


class SealedOutput:
    """What `pyarrow.parquet.ParquetWriter` writes into, which keeps the footer back to seal it.

    Parameters
    ----------
    sink : file-like
        Where the bytes go.

    Attributes
    ----------
    stream : pyarrow.NativeFile
        What the writer takes; it gathers small writes, for each is a call of Python.
    """

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._place = 0
        self._footer: bytearray | None = None
        self.stream = pa.BufferedOutputStream(pa.PythonFile(self, mode="w"), _GATHERED)

    def write(self, data: Any) -> int:
        """Write some bytes."""
        size = memoryview(data).nbytes
        self._place += size
        if self._footer is None:
            self._sink.write(data)
        else:
            self._footer += bytes(data)
        return size

    def tell(self) -> int:
        """Return how many bytes the writer wrote, and after `close` how many the file has."""
        return self._place

    def flush(self) -> None:
        """Do nothing: what is written is on its way."""

    def keep_footer(self) -> None:
        """Take what is written from now on for the footer."""
        self.stream.flush()
        self._footer = bytearray()

    def close(self) -> None:
        """Write seal and footer, and close the stream."""
        if self.closed:
            return
        stream, self.closed = self.stream, True
        stream.flush()
        # The stream has this object in it: without this both would stay, with a buffer for every file.
        del self.stream
        footer = bytes(self._footer or b"")
        if len(footer) >= _END.size and _END.unpack(footer[-_END.size :])[0] + _END.size == len(
            footer
        ):
            self._sink.write(_SEAL.pack(MAGIC, zlib.crc32(footer)))
            self._place += _SEAL.size
        self._sink.write(footer)
        self._sink.close()


def read_footer(
    storage: Storage, name: str, read_tail: Callable[[int], pa.Buffer] | None = None
) -> pq.FileMetaData:
    """Return the footer of a data file, held against its seal where it has one.

    Parameters
    ----------
    storage : Storage
        The table.
    name : str
        The file's path in the table.
    read_tail : callable, optional
        Returns so many of the file's last bytes, or more, for a file that cannot be mapped.

    Raises
    ------
    CorruptDataError
        If it was changed, or the file was cut short.
    """
    read_tail = read_tail or partial(storage.read_tail, name)
    whole = storage.map_file(name)
    tail = whole if whole is not None else read_tail(_TAIL)
    needed = _footer_start(tail)
    if whole is None and needed < 0:
        tail = read_tail(tail.size - needed)
        needed = _footer_start(tail)
    if needed >= 0:
        magic, crc = _SEAL.unpack(tail.slice(needed, _SEAL.size).to_pybytes())
        if magic == MAGIC and zlib.crc32(tail.slice(needed + _SEAL.size)) != crc:
            raise CorruptDataError("the footer of the file fails its checksum")
    return pq.ParquetFile(pa.BufferReader(tail)).metadata


def _footer_start(tail: pa.Buffer) -> int:
    """Return where in the last bytes of a file the seal begins; negative if before them."""
    if tail.size < _END.size:
        raise CorruptDataError(f"the file has {tail.size} bytes, which is no Parquet file")
    length, _ = _END.unpack(tail.slice(tail.size - _END.size).to_pybytes())
    return int(tail.size) - _END.size - int(length) - _SEAL.size
