"""Digests of rows in one file beside the table, so that what did not change is not hashed again.

It lies in ``_tensorlake/digest``, which readers of Delta and its VACUUM leave alone. It holds nothing of its
own: data files never change, so the digests of one follow from its path. Which files are live, the log says. A
file that is damaged, of another table, of a later format or not there costs time and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import checksummed_table
from tensorlake_spark.delta.store.checksummed_table import LaterFormat
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.rows.row_digest import SIZE

logger = logging.getLogger("tensorlake_spark")

ROOT = "_tensorlake/digest"
NAME = f"{ROOT}/rows"

LEAVES = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("group", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("id", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("lo", pa.list_(pa.int64())),
        pa.field("hi", pa.list_(pa.int64())),
        pa.field("digest", pa.binary(SIZE)),
    ]
)
"""Columns: the data file and its bytes, the row group, `DATA` or what kind of metadata row, the row, its digest."""

DATA, METADATA, ORDERED = 0, 1, 2
"""Kinds of rows; `ORDERED` is the metadata of a tensor the order of whose rows counts."""

_KIND = b"tensorlake digests "


def pack(leaves: pa.Table, about: Mapping[str, str]) -> bytes:
    """Return the bytes of a file with digests.

    Parameters
    ----------
    leaves : pyarrow.Table
        With the columns `LEAVES`.
    about : mapping of str to str
        What else to say.
    """
    return checksummed_table.pack(_KIND, leaves.replace_schema_metadata(dict(about)))


def unpack(whole: bytes) -> tuple[pa.Table, dict[str, str]]:
    """Return what `pack` was given.

    Raises
    ------
    LaterFormat
        If the file is of another format.
    ValueError, pyarrow.ArrowException
        If it is none, or is damaged.
    """
    table = checksummed_table.unpack(_KIND, LEAVES, whole)
    if any(column.null_count for column in table.columns):
        raise ValueError("it has nulls")
    about = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    return table.replace_schema_metadata(None), about


def load(snapshot: Snapshot) -> pa.Table:
    """Return the digests that are kept of a version's files, no rows where none can be used."""
    storage = snapshot.storage
    try:
        with reaching(storage):
            whole = storage.find_whole(NAME)
        if whole is None:
            return LEAVES.empty_table()
        leaves, about = unpack(whole)
    except LaterFormat:
        return LEAVES.empty_table()
    except TensorLakeError as error:
        logger.warning("%s cannot be read: %s", storage.file_uri(NAME), error)
        return LEAVES.empty_table()
    except (ValueError, pa.ArrowException) as error:
        logger.warning(
            "%s is damaged and left out; the next digest writes it anew: %s",
            storage.file_uri(NAME), error,
        )  # fmt: skip
        return LEAVES.empty_table()
    if about.get("table") != snapshot.table_id:
        return LEAVES.empty_table()
    return live(snapshot, leaves)


def live(snapshot: Snapshot, leaves: pa.Table) -> pa.Table:
    """Return the digests of files that a version has: of the path, the size and the number of rows of its log."""
    if not leaves.num_rows:
        return leaves
    files, places = snapshot.files, snapshot.places
    paths = leaves["path"].combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy()
    counts = np.bincount(codes, minlength=len(paths.dictionary)).tolist()
    sizes, fits = [], []
    for path, count in zip(paths.dictionary.to_pylist(), counts, strict=True):
        place = places.get(path)
        fits.append(place is not None and int(files.rows[place]) in (-1, count))
        sizes.append(-1 if place is None else int(files.size[place]))
    said = leaves["size"].to_numpy() == np.array(sizes)[codes]
    whole = np.array(fits)
    np.logical_and.at(whole, codes, said)
    return leaves if whole.all() else leaves.filter(pa.array(whole[codes]))


def save(snapshot: Snapshot, leaves: pa.Table) -> None:
    """Keep digests for the next one.

    A table that cannot be written to is no error: the next digest takes as long.
    """
    try:
        _write(snapshot, leaves)
    except (TensorLakeError, OSError, pa.ArrowException) as error:
        logger.warning("%s was not written: %s", snapshot.storage.file_uri(NAME), error)


def forget(snapshot: Snapshot) -> None:
    """Keep digests of a version's files alone, and delete what else is in the folder."""
    storage = snapshot.storage
    with reaching(storage):
        names = sorted(f"{ROOT}/{info.base_name}" for info in storage.files_in(ROOT))
    if NAME in names:
        leaves = load(snapshot)
        if leaves.num_rows:
            _write(snapshot, leaves)
            names.remove(NAME)
    with reaching(storage):
        for name in names:
            storage.delete(name)


def _write(snapshot: Snapshot, leaves: pa.Table) -> None:
    with reaching(snapshot.storage):
        snapshot.storage.put_whole(NAME, pack(leaves, {"table": snapshot.table_id}))
