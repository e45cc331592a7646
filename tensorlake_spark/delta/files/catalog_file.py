"""Metadata rows of many data files in one file beside the table, so that a listing need not open each of them.

It lies in ``_tensorlake/catalog``, which readers of Delta and its VACUUM leave alone. It holds nothing of its
own: data files never change, so the rows of one follow from its path. Which files are live, the log says. A
file that is damaged, of a later format or not there costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import uuid
from contextlib import suppress

import pyarrow as pa
import pyarrow.fs as pafs

from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.rows.metadata import META_COLUMNS
from tensorlake_spark.rows.row import SCHEMA

logger = logging.getLogger("tensorlake_spark")

ROOT = "_tensorlake/catalog"

CATALOG = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("size", pa.int64()),
        *(SCHEMA.field(name) for name in META_COLUMNS),
        pa.field("row", pa.int64()),
    ]
)
"""Columns: the data file and its bytes, the metadata row, and its number in the file."""

_NAME = re.compile(r"(\d{20})\.rows")
_MAGIC = b"tensorlake rows "
_FORMAT = b"1\n"
_DIGEST = 16


def name_of(version: int) -> str:
    """Return the path in the table of what the commit of a version left."""
    return f"{ROOT}/{version:020}.rows"


def load(storage: Storage) -> pa.Table:
    """Return the rows of the newest catalog file, no rows where there is none that can be used."""
    for path in reversed(paths(storage)):
        try:
            with reaching(storage):
                return _parsed(storage.read_whole(path))
        except FileNotFoundError:  # a later one took its place
            continue
        except _FutureFormat:
            continue
        except (ValueError, pa.ArrowException) as error:
            logger.warning(
                "%s is damaged and left out; a later commit writes it anew: %s",
                storage.file_uri(path), error,
            )  # fmt: skip
    return CATALOG.empty_table()


def save(storage: Storage, version: int, rows: pa.Table) -> None:
    """Write the rows, which others see when all of the file is there, and delete older files."""
    sink = pa.BufferOutputStream()
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, CATALOG, options=packed) as writer:
        writer.write_table(rows.combine_chunks())
    data = sink.getvalue().to_pybytes()
    whole = _MAGIC + _FORMAT + _digest(data) + data
    filesystem, base = storage.place
    path = f"{base}/{name_of(version)}"
    if storage.is_local:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        unfinished = f"{os.path.dirname(path)}/.{uuid.uuid4()}"
        with open(unfinished, "wb") as file:
            file.write(whole)
        os.replace(unfinished, path)
    else:  # an object appears when its upload is complete
        with filesystem.open_output_stream(path) as stream:
            stream.write(whole)
    delete(storage, [older for older in paths(storage) if older < name_of(version)])


def paths(storage: Storage) -> list[str]:
    """Return the paths of all catalog files, by version."""
    filesystem, base = storage.place
    with reaching(storage):
        found = filesystem.get_file_info(pafs.FileSelector(f"{base}/{ROOT}", allow_not_found=True))
    return sorted(
        f"{ROOT}/{i.base_name}" for i in found if i.is_file and _NAME.fullmatch(i.base_name)
    )


def expire(storage: Storage, dry_run: bool) -> list[str]:
    """Delete catalog files that a later one has superseded, or only name them; returns their paths."""
    old = paths(storage)[:-1]
    if not dry_run:
        delete(storage, old)
    return old


def delete(storage: Storage, names: list[str]) -> None:
    """Delete catalog files; one that is gone already is fine."""
    with reaching(storage):
        for name in names:
            with suppress(FileNotFoundError):
                storage.delete(name)


class _FutureFormat(ValueError):
    """A later release wrote it."""


def _parsed(whole: bytes) -> pa.Table:
    head = len(_MAGIC) + len(_FORMAT)
    if not whole.startswith(_MAGIC):
        raise ValueError("it does not begin as one")
    if whole[len(_MAGIC) : head] != _FORMAT:
        raise _FutureFormat("it is of another format")
    digest, data = whole[head : head + _DIGEST], memoryview(whole)[head + _DIGEST :]
    if digest != _digest(data):
        raise ValueError("its checksum does not hold")
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all()
    if table.schema != CATALOG:
        raise ValueError(f"it has the columns {', '.join(table.schema.names):.200}")
    return table


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
