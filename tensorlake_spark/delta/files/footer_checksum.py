"""A checksum for the footer of a data file: Parquet has none, and Arrow aborts at some damaged footers.

A file of ours has it before its footer, see `store.parquet_output`. A file without one, as Spark writes it, is read
as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.store.footer_index import FooterIndex, IndexedFooter
from tensorlake_spark.delta.store.parquet_output import END, MAGIC, SEAL
from tensorlake_spark.delta.store.storage import Storage, open_here
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.checksum import crc32

_TAIL = 64 << 10  # read at once from the end of a file
_TAIL_HERE = 16 << 10  # of this machine: new memory costs more than to read a second time


def read_footer(
    storage: Storage,
    name: str,
    read_tail: Callable[[int], pa.Buffer] | None = None,
    records: int = -1,
) -> pq.FileMetaData:
    """Return the footer of a data file, held against its seal where it has one.

    Parameters
    ----------
    storage : Storage
        The table.
    name : str
        The file's path in the table.
    read_tail : callable, optional
        Returns so many of the file's last bytes, or more.
    records : int, optional
        How many rows the log says that the file has, below 0 where it does not.

    Raises
    ------
    CorruptDataError
        If it was changed, or the file was cut short, or has another number of rows.
    """
    tail, _ = _checked_tail(storage, name, read_tail)
    metadata = open_here(pa.BufferReader(tail)).metadata
    if 0 <= records != metadata.num_rows:
        raise CorruptDataError(
            f"it has {metadata.num_rows} rows, but the Delta log says {records}: one of the two was changed after the "
            "commit"
        )
    return metadata


def read_indexed(
    storage: Storage, name: str, read_tail: Callable[[int], pa.Buffer] | None = None
) -> pq.FileMetaData | IndexedFooter:
    """Return the footer of a data file, by its index where it has one; see `read_footer`."""
    tail, seal = _checked_tail(storage, name, read_tail)
    if seal is not None:
        footer = tail.slice(seal + SEAL.size)
        index = FooterIndex.unpacked(memoryview(tail)[:seal].cast("B"), footer.size - END.size)
        if index is not None:
            return IndexedFooter(footer, index)
    return open_here(pa.BufferReader(tail)).metadata


def _checked_tail(
    storage: Storage, name: str, read_tail: Callable[[int], pa.Buffer] | None
) -> tuple[pa.Buffer, int | None]:
    """Return the last bytes of a file with its footer, and where in them its seal is, None if it has none."""
    read_tail = read_tail or partial(storage.read_tail, name)
    nbytes = _TAIL_HERE if storage.is_local else _TAIL
    tail = read_tail(nbytes)
    start = _footer_start(tail)
    if start < 0:
        tail = read_tail(tail.size - start + (tail.size - start) // 8)
        start = _footer_start(tail)
    if start < 0:
        return tail, None
    magic, crc = SEAL.unpack(tail.slice(start, SEAL.size).to_pybytes())
    if magic != MAGIC:
        return tail, None
    if crc32(tail.slice(start + SEAL.size)) != crc:
        raise CorruptDataError("the footer of the file fails its checksum")
    return tail, start


def _footer_start(tail: pa.Buffer) -> int:
    """Return where in the last bytes of a file the seal begins; negative if before them."""
    if tail.size < END.size:
        raise CorruptDataError(f"the file has {tail.size} bytes, which is no Parquet file")
    length, _ = END.unpack(tail.slice(tail.size - END.size).to_pybytes())
    return int(tail.size) - END.size - int(length) - SEAL.size
