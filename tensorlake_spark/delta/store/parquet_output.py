"""A Parquet file that is being written, with a checksum for its footer: `files.footer_checksum` holds it against that.

Between the last page and the footer there are eight more bytes: `MAGIC` and the CRC-32 of all that follows, little
endian. No other reader looks there. Before them may be an index of the footer's row groups, see `footer_index`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.store.footer_index import Bounds, FooterIndex
from tensorlake_spark.delta.store.storage import Storage, reaching

MAGIC = b"TLFC"

END = struct.Struct("<I4s")
"""What ends a file: the length of the footer, and Parquet's own magic."""

SEAL = struct.Struct("<4sI")

_GATHERED = 256 << 10  # bytes


def _nothing(_: bytes) -> bytes:
    """Return what stands before the seal of most footers."""
    return b""


class ParquetOutput:
    """A new data file of a table, which no commit names yet.

    Parameters
    ----------
    storage : Storage
        The table.
    name : str
        The file's path in it.
    schema : pyarrow.Schema
        Its columns.
    data_page_size : int
        Bytes of a page, about.
    options
        For `pyarrow.parquet.ParquetWriter`.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        schema: pa.Schema,
        data_page_size: int = 1 << 20,
        **options: Any,
    ) -> None:
        self.storage = storage
        self.name = name
        with reaching(storage):
            sink = storage.open_output(name)
            # What a transaction writes stays in memory, also of a table on this machine.
            is_file = storage.is_local and isinstance(sink, pa.NativeFile)
            self._sink = (
                SealedFile(sink, f"{storage.place[1]}/{name}") if is_file else SealedOutput(sink)
            )
            self._writer = pq.ParquetWriter(
                self._sink.stream,
                schema,
                data_page_size=data_page_size,
                store_schema=False,
                **options,
            )

    def write(self, rows: pa.Table, group_rows: int | None = None) -> None:
        """Write rows as a row group, or as row groups of so many rows."""
        with reaching(self.storage):
            self._writer.write_table(rows, row_group_size=group_rows or rows.num_rows)

    def close(
        self,
        said: Mapping[str, str] | None = None,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> int:
        """Write the footer, with texts by keys in it, and its seal; return the bytes of the file.

        Parameters
        ----------
        said : mapping of str to str, optional
            The texts.
        bounds : mapping of str to (list, list), optional
            Those of the row groups, for an index of these; see `FooterIndex`.
        """
        with reaching(self.storage):
            if said:
                self._writer.add_key_value_metadata(dict(said))
            self._sink.keep_footer()
            self._writer.close()
            self._sink.close(lambda footer: _index(footer, bounds or {}))
        return self._sink.tell()

    def abort(self) -> None:
        """Close the file and delete it, as far as the store lets us: it may be why we are here."""
        for step in (self._writer.close, self._sink.close, self._delete):
            with suppress(OSError, pa.ArrowException):
                step()

    def _delete(self) -> None:
        self.storage.delete(self.name)


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

    def close(self, before: Callable[[bytes], bytes] = _nothing) -> None:
        """Write what stands before the seal of a footer, seal and footer, and close the stream."""
        if self.closed:
            return
        stream, self.closed = self.stream, True
        stream.flush()
        # The stream has this object in it: without this both would stay, with a buffer for every file.
        del self.stream
        sealed = _sealed(bytes(self._footer or b""), before)
        self._place += len(sealed) - len(self._footer or b"")
        self._sink.write(sealed)
        self._sink.close()


class SealedFile:
    """The same for a file of this machine: Arrow writes to it without Python, and its footer is sealed at the end.

    Parameters
    ----------
    sink : pyarrow.NativeFile
        Where the bytes go.
    path : str
        Of the file.
    """

    closed = False

    def __init__(self, sink: pa.NativeFile, path: str) -> None:
        self._path = path
        self._size = 0
        self.stream = pa.BufferedOutputStream(sink, _GATHERED)

    def tell(self) -> int:
        """Return after `close` how many bytes the file has."""
        return self._size

    def keep_footer(self) -> None:
        """Do nothing: the footer is found by its length."""

    def close(self, before: Callable[[bytes], bytes] = _nothing) -> None:
        """Close the stream, and write the footer again, behind its seal and what stands before that."""
        if self.closed:
            return
        self.closed = True
        self.stream.close()
        with open(self._path, "r+b") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - END.size))
            tail = file.read()
            length = END.unpack(tail)[0] + END.size if len(tail) == END.size else size
            start = file.seek(max(0, size - length))
            sealed = _sealed(file.read(), before)
            file.seek(start)
            file.write(sealed)
            self._size = start + len(sealed)


def _sealed(footer: bytes, before: Callable[[bytes], bytes]) -> bytes:
    """Return a footer behind its seal; without one if it is no footer, as of a file that was given up."""
    whole = len(footer) >= END.size and END.unpack(footer[-END.size :])[0] + END.size == len(footer)
    if not whole:
        return footer
    return before(footer[: -END.size]) + SEAL.pack(MAGIC, zlib.crc32(footer)) + footer


def _index(footer: bytes, bounds: Mapping[str, Bounds]) -> bytes:
    """Return the index of a footer as it stands in the file, nothing where it has none."""
    if not bounds:
        return b""
    whole = footer + END.pack(len(footer), b"PAR1")
    found = FooterIndex.of(footer, pq.read_metadata(pa.BufferReader(whole)), bounds)
    return b"" if found is None else found.packed()
