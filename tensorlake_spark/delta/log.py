"""The log of a table as the Delta protocol lays it out: names of its files, and the actions in one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.fs as pafs

from tensorlake_spark.delta.storage import Storage

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
COMMIT = re.compile(rf"{LOG}/(\d{{20}})\.json")
"""Path of a commit in its table; the group is the version."""


def commit_name(version: int) -> str:
    """Return the path of a commit in its table."""
    return f"{LOG}/{version:020}.json"


def commit_times(storage: Storage) -> dict[int, int]:
    """Return, by version, when each commit that the log still has was written, in milliseconds since 1970.

    That is what the store says when it is listed, which of an object store may be the second only.
    """
    filesystem, base = storage.place
    found = filesystem.get_file_info(pafs.FileSelector(f"{base}/{LOG}"))
    return {
        int(match[1]): info.mtime_ns // 1_000_000
        for info in found
        if info.is_file and (match := COMMIT.fullmatch(f"{LOG}/{info.base_name}"))
    }


def actions(
    storage: Storage, path: str, leaves: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the actions of one file of a log, each with its kind.

    Parameters
    ----------
    storage : Storage
        The table.
    path : str
        A commit or a checkpoint, in the table; the end of its name says whether it is JSON or Parquet.
    leaves : sequence of str
        What is wanted, such as ``"add.path"``. An action of JSON has all that it says; one of Parquet has these,
        and none of the kinds that the file has no columns for.

    Raises
    ------
    FileNotFoundError
        If the file is not there (any more).
    """
    kinds = {leaf.partition(".")[0] for leaf in leaves}
    if path.endswith(".json"):
        for line in storage.read_whole(path).splitlines():
            # Every line is parsed: JSON has many spellings of one key.
            for kind, said in json.loads(line).items() if line.strip() else ():
                if kind in kinds and said:
                    yield kind, said
        return
    with storage.open_parquet(path) as file:
        columns = file.metadata.schema
        there = [f"{columns.column(i).path}." for i in range(file.metadata.num_columns)]
        wanted = [leaf for leaf in leaves if any(name.startswith(f"{leaf}.") for name in there)]
        for batch in file.iter_batches(columns=wanted):
            for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                for said in column.drop_null().to_pylist():
                    yield kind, said
