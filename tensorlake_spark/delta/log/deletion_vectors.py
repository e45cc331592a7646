"""Deletion vectors: which rows of the data files are still there. They are checked before deltalake reads them.

deltalake follows a vector wherever the log says that it is, and takes memory for every position up to its
last one, whatever that is.
"""

from __future__ import annotations

import base64
import re
import struct
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tensorlake_spark.delta.log.actions import (
    COMMIT,
    LOG,
    adds_in,
    log_paths,
    up_to,
    whole_checkpoint,
)
from tensorlake_spark.delta.log.time_travel import FILES_KEPT
from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import CorruptDataError, MissingDataError, UnsupportedFeatureError
from tensorlake_spark.threads import threads

Array = np.ndarray[Any, Any]

_COMPACTED = re.compile(rf"{LOG}/\d{{20}}\.(\d{{20}})\.compacted\.json")
_LEAVES = ("add.path", "add.deletionVector")

_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = bytes.maketrans(_Z85, _B85)

_PORTABLE, _NO_RUNS, _RUNS = 1681511377, 12346, 12347
_HEAD = (
    24 + (1 << 16) // 8 + 4 * (1 << 16)
)  # the longest head of a bitmap: each container and its key
_SPAN = 1 << 16  # positions of a container
_MOST_ROWS = 1 << 28  # of a file, whatever the log says, which may be nothing


def kept_rows(storage: Storage, table: DeltaTable, rows: Mapping[str, int]) -> dict[str, Array]:
    """Return for each file with a deletion vector a mask of its rows that are still there.

    Parameters
    ----------
    storage : Storage
        Where the table is.
    table : DeltaTable
        Opened at the version that is meant.
    rows : mapping of str to int
        Rows of every live file, -1 where the log does not say.

    Raises
    ------
    MissingDataError
        If a vector is named by the log, and not there.
    FormatError, CorruptDataError, UnsupportedFeatureError
        If a vector lies outside of the table, or marks rows that its file does not have.
    """
    version = table.version()
    with reaching(storage):
        check_vectors(storage, version, rows)
        try:
            vectors: Any = pa.table(table.deletion_vectors())
        except (DeltaError, OSError) as error:
            if "not found" not in str(error).lower():
                raise
            raise MissingDataError(
                f"a deletion vector of version {version} of {storage.uri} is in the Delta log "
                f"but not there: {error}. {FILES_KEPT}"
            ) from error
    paths = paths_of(vectors["filepath"].to_pylist(), list(rows))
    keeps = (keep.values.to_numpy(zero_copy_only=False) for keep in vectors.column(1))
    return {
        path: np.asarray(keep, bool)
        for path, keep in zip(paths, keeps, strict=True)
        if path is not None
    }


def check_vectors(storage: Storage, version: int, rows: Mapping[str, int]) -> None:
    """Look at every deletion vector that the log names up to a version.

    Parameters
    ----------
    storage : Storage
        The table.
    version : int
        Version of the table.
    rows : mapping of str to int
        Rows of every live file, -1 where the log does not say.

    Raises
    ------
    FormatError
        If a vector lies outside of the table.
    CorruptDataError
        If a vector marks rows that its file does not have.
    """
    found = {
        (action["path"], vector["storageType"], vector["pathOrInlineDv"], vector.get("offset"))
        for action in _adds(storage, version)
        if (vector := action.get("deletionVector"))
    }

    def check(one: tuple[str, str, str, int | None]) -> None:
        path, kind, text, offset = one
        place = None if kind == "i" else _place(storage, kind, text)
        if path not in rows:
            return
        count = rows[path] if 0 <= rows[path] < _MOST_ROWS else _MOST_ROWS
        with suppress(FileNotFoundError):  # one that is live is missed by deltalake, too
            if place is None:
                head = base64.b85decode(text.encode().translate(_TO_B85))[:_HEAD]
            else:
                head = _read(storage, place, int(offset or 0) + 4)
            if _last(head) >= count + _SPAN:
                raise CorruptDataError(
                    f"a deletion vector of {storage.file_uri(path)} marks rows that the file does not have"
                )

    list(threads().map(check, sorted(found, key=str)))


def vectors_of(storage: Storage, version: int, paths: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the deletion vectors of some live files as the log has them, by the paths of the files.

    Parameters
    ----------
    storage : Storage
        The table.
    version : int
        Version of the table, in which the files are live.
    paths : collection of str
        The files; those without a vector are left out.
    """
    wanted, found = {*paths}, dict[str, Any]()
    with reaching(storage):
        for action in _adds(storage, version):  # the last one of a file is the one that is live
            if action["path"] in wanted:
                found[action["path"]] = action.get("deletionVector")
    return {
        path: {key: value for key, value in vector.items() if value is not None}
        for path, vector in found.items()
        if vector
    }


def paths_of(uris: Sequence[str], paths: Sequence[str]) -> list[str | None]:
    """Return which of a table's files each URI stands for, None where it is none of them.

    Parameters
    ----------
    uris : sequence of str
        As deltalake names data files: where they lie, encoded or not.
    paths : sequence of str
        Paths in the table; in different folders there may be files of one name.

    Examples
    --------
    >>> paths_of(["file:///lake/b/p.parquet", "/lake/q.parquet"], ["p.parquet", "b/p.parquet"])
    ['b/p.parquet', None]
    """
    named: dict[str, list[str]] = {}
    for path in paths:
        named.setdefault(unquote(path).rsplit("/", 1)[-1], []).append(path)
    out = []
    for uri in map(unquote, uris):
        same = named.get(uri.rsplit("/", 1)[-1], [])
        fits = [path for path in same if f"/{uri}".endswith(f"/{unquote(path)}")]
        out.append(max(fits, key=len, default=None))
    return out


def _place(storage: Storage, kind: str, text: str) -> str:
    """Return the path of a vector's file in the table: a prefix, then a UUID in 20 characters of Z85."""
    if kind != "u":
        raise UnsupportedFeatureError(
            f"the table at {storage.uri} names the deletion vector {text!r:.300} outside of itself (a shallow "
            "clone); spark.read.format('delta') reads it"
        )
    folder = inside(text[:-20])
    name = uuid.UUID(bytes=base64.b85decode(text[-20:].encode().translate(_TO_B85)))
    return f"{folder}/deletion_vector_{name}.bin".lstrip("/")


def _read(storage: Storage, name: str, offset: int) -> bytes:
    with storage.open_input(name) as file:
        return bytes(file.read_at(max(0, min(_HEAD, file.size() - offset)), offset))


def _last(head: bytes) -> int:
    """Return a position that the last one of a bitmap does not pass by more than a container's span.

    Roaring bitmaps, portable form: buckets of 2**32 positions, in each containers of 2**16 with ascending keys.
    """
    try:
        magic, buckets = struct.unpack_from("<IQ", head)
        if magic != _PORTABLE:
            raise CorruptDataError(f"a deletion vector begins with {magic}, which is no bitmap")
        if not buckets:
            return 0
        (bucket, cookie) = struct.unpack_from("<II", head, 12)
        if buckets > 1 or bucket:
            return 1 << 32
        if cookie & 0xFFFF == _RUNS:
            count = (cookie >> 16) + 1
            start = 20 + (count + 7) // 8
        elif cookie == _NO_RUNS:
            (count,) = struct.unpack_from("<I", head, 20)
            start = 24
        else:
            raise CorruptDataError(f"a bitmap of a deletion vector begins with {cookie}")
        keys = [struct.unpack_from("<H", head, start + 4 * k)[0] for k in range(min(count, _SPAN))]
    except struct.error as error:
        raise CorruptDataError("a deletion vector was cut short") from error
    return max(keys, default=0) * _SPAN


def _adds(storage: Storage, version: int) -> Iterator[Mapping[str, Any]]:
    """Yield what the log adds, from its newest whole checkpoint on, and in the order of the versions."""
    paths = log_paths(storage)
    start, todo = whole_checkpoint(paths, version)
    commits = up_to(version, paths, COMMIT) + up_to(version, paths, _COMPACTED)
    todo += [path for v, path in sorted(commits) if v > start]
    for path in todo:
        with suppress(FileNotFoundError):  # the log was tidied up meanwhile
            yield from adds_in(storage, path, _LEAVES)
