"""Whether bytes that were deleted are still anywhere in a table's folder.

What to look for are payloads: the values and indices of rows as they were stored, or the bytes of samples. Parquet
files are read by columns, whatever their compression, and every payload in them is compared by its digest. All files,
the log included, are also searched byte by byte for a window from the middle of each payload, if all that it holds was
deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.delta.store.storage import Storage, is_refusal, refusal
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.row import PAYLOAD

WINDOW = 32
"""Bytes that are looked for; a payload with fewer identifies nothing."""

MOST_WINDOWS = 4096
"""Windows that files are searched for; of more payloads a sample, evenly spaced."""

_DISTINCT = 12  # a window with fewer different bytes is a pattern that any file may have
_CHUNK = 4 << 20
_BLOCK = 16
_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)  # they mix the bits of words

Array = np.ndarray[Any, Any]


class Probes:
    """Payloads to look for, as digests and windows; none is kept.

    Attributes
    ----------
    skipped : int
        Payloads that are too short to identify anything.
    marks : set of tuple of int and bytes
        Of each payload its length and a few bytes of its middle: one without them need not be hashed.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self.marks: set[tuple[int, bytes]] = set()
        self._windows: dict[bytes, bytes | None] = {}  # by digest; None where none is looked for

    @property
    def digests(self) -> Set[bytes]:
        """What payloads are compared with."""
        return self._windows.keys()

    def add(self, payload: Any, whole: bool = True) -> None:
        """Take in a payload, a buffer; `whole` if no part of it may be left either."""
        data = memoryview(payload).cast("B")
        if len(data) < WINDOW:
            self.skipped += 1
            return
        digest = _digest(data)
        if digest in self._windows:
            return
        self.marks.add(_mark(data))
        first, last = _own_part(data)
        middle = (first + last - WINDOW) // 2
        window = bytes(data[middle : middle + WINDOW])
        telling = whole and last - first >= WINDOW and len(set(window)) >= _DISTINCT
        self._windows[digest] = window if telling else None

    def update(self, later: Probes) -> None:
        """Take in what others were added to, as if all had been added here, one after the other."""
        self.skipped += later.skipped
        self.marks |= later.marks
        for digest, window in later._windows.items():
            self._windows.setdefault(digest, window)

    @property
    def windows(self) -> list[bytes]:
        """What files are searched for."""
        every = list(dict.fromkeys(w for w in self._windows.values() if w is not None))
        step = -(-len(every) // MOST_WINDOWS) or 1
        return every[::step]


def _own_part(data: memoryview) -> tuple[int, int]:
    """Return where that lies in a payload which no other has: of pictures not the tables that many begin with."""
    head = bytes(data[:8])
    if head.startswith(_JPEG):
        return max(0, bytes(data).rfind(_SCAN)) + _SCAN_HEADER, len(data) - 2
    if head == _PNG:
        return max(0, bytes(data).find(b"IDAT")) + 8, len(data) - 16
    return 0, len(data)


_JPEG, _SCAN, _SCAN_HEADER = b"\xff\xd8\xff", b"\xff\xda", 14
_PNG = b"\x89PNG\r\n\x1a\n"


class Search:
    """Looks for probes in files; several threads may, and executors to which it is sent."""

    def __init__(self, probes: Probes) -> None:
        self._digests, self._marks = set(probes.digests), set(probes.marks)
        self.windows = probes.windows
        self._prepare()

    def _prepare(self) -> None:
        """Make what blocks are looked up in.

        Wherever a window lies in a file, it covers a block of 16 bytes at a multiple of 16. So every sixteenth byte
        is looked at, and each window has 16 such blocks, one for every place where it may begin.
        """
        self._set = set(self.windows)
        every = np.frombuffer(b"".join(self.windows), np.uint8).reshape(-1, WINDOW)
        blocks = np.lib.stride_tricks.sliding_window_view(every, _BLOCK, axis=1)[:, :_BLOCK]
        self._keys = np.unique(_keys_of(np.ascontiguousarray(blocks).reshape(-1)))
        bits = min(22, max(16, (64 * len(self._keys)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, bool)
        self._table[self._keys >> self._shift] = True

    def __getstate__(self) -> tuple[Any, ...]:
        return self._digests, self._marks, self.windows  # the rest is larger, and quickly made

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._digests, self._marks, self.windows = state
        self._prepare()

    def in_columns(self, storage: Storage, path: str) -> bool:
        """Whether a Parquet file has one of the payloads in its payload columns.

        A file that is no Parquet file, or is damaged, has no columns: the search of its bytes is left.
        """
        if not self._digests:
            return False
        try:
            metadata = read_footer(storage, path)
            names = payload_columns(schema_of(metadata).to_arrow_schema())
            with storage.open_parquet(path, metadata) as file:
                return bool(names) and self._in_groups(file, names)
        except FileNotFoundError:
            return False
        except (pa.ArrowException, CorruptDataError, OSError) as error:
            if isinstance(error, OSError) and is_refusal(error):
                raise refusal(storage, error) from error
            return False

    def _in_groups(self, file: pq.ParquetFile, names: list[str]) -> bool:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=names, use_threads=False)
            for column in (part for chunk in table.to_batches() for part in chunk.columns):
                for value in (one for part in byte_arrays(column) for one in part):
                    data = value.as_buffer()
                    if data is not None and data.size >= WINDOW and self._is_sought(data):
                        return True
        return False

    def _is_sought(self, data: Any) -> bool:
        return _mark(memoryview(data)) in self._marks and _digest(data) in self._digests

    def in_bytes(self, storage: Storage, path: str) -> bool:
        """Whether a file has one of the windows anywhere in its bytes."""
        if not self.windows:
            return False
        rest = b""
        try:
            for chunk in read_chunks(storage, path):
                if self._in_chunk(rest + chunk):
                    return True
                rest = (
                    chunk[-(WINDOW - 1) :] if len(chunk) >= WINDOW else (rest + chunk)[1 - WINDOW :]
                )
        except FileNotFoundError:
            return False
        return False

    def _in_chunk(self, data: bytes) -> bool:
        keys = _keys_of(np.frombuffer(data, np.uint8, len(data) // _BLOCK * _BLOCK))
        places = np.flatnonzero(self._table[keys >> self._shift])
        keys = keys[places]
        near = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        starts = (places[self._keys[near] == keys] * _BLOCK).tolist()
        # A block of zeros may be everywhere: what is around it is looked at once.
        around = {data[max(0, start - _BLOCK + 1) : start + WINDOW] for start in starts}
        return any(
            part[first : first + WINDOW] in self._set for part in around for first in range(_BLOCK)
        )


def _keys_of(data: Array) -> Array:
    """Return for each block of 16 bytes a number, in which every byte counts."""
    words = data.view("<u8").reshape(-1, 2)
    keys: Array = words[:, 0] * _ODD[0] ^ words[:, 1] * _ODD[1]
    return keys


def payload_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of a data file that hold payloads: two of tensors, of samples all with bytes or texts."""
    found = [name for name in PAYLOAD if name in schema.names]
    if found and "sid" not in schema.names:
        return found
    return [field.name for field in schema if _has_bytes(field.type)]


def _has_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):  # as pandas writes its categories
        return _has_bytes(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_has_bytes(kind.field(place).type) for place in range(kind.num_fields))
    return any(is_kind(kind) for is_kind in _BYTES)


_BYTES = (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_fixed_size_binary,
)  # fmt: skip


def byte_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """Yield all bytes and texts of a column, also those inside of structs and lists, as arrays of them."""
    kind = array.type
    if pa.types.is_struct(kind):
        for part in array.flatten():
            yield from byte_arrays(part)
    elif pa.types.is_map(kind):
        yield from byte_arrays(array.keys)
        yield from byte_arrays(array.items)
    elif pa.types.is_nested(kind):
        yield from byte_arrays(array.flatten())
    elif pa.types.is_dictionary(kind):
        yield from byte_arrays(array.dictionary_decode())
    elif any(is_kind(kind) for is_kind in _BYTES):
        yield array


def read_chunks(storage: Storage, path: str) -> Iterator[bytes]:
    """Yield the bytes of a file in order, a few MiB at a time."""
    filesystem, base = storage.place
    with filesystem.open_input_file(f"{base}/{path}") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def sha256_of(storage: Storage, path: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    for chunk in read_chunks(storage, path):
        digest.update(chunk)
    return digest.hexdigest()


def _mark(data: memoryview) -> tuple[int, bytes]:
    """Return what payloads are told apart by without a digest."""
    middle = len(data) // 2
    return len(data), bytes(data[middle : middle + _BLOCK])


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
