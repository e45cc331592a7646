"""All application transactions of a version at once: deltalake looks one up by reading the log for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tensorlake_spark.delta.log import LAST_CHECKPOINT, LOG, actions, commit_name
from tensorlake_spark.delta.storage import Storage, reaching


def all_transactions(storage: Storage, version: int) -> dict[str, int] | None:
    """Return the last version of every application transaction in the log of a table.

    Parameters
    ----------
    storage : Storage
        The table.
    version : int
        Version of the table.

    Returns
    -------
    dict of str to int, or None
        None where the last checkpoint is later than that version, or files that should follow from it are
        not there.
    """
    with reaching(storage), suppress(FileNotFoundError):  # the log was tidied up meanwhile
        (written,) = storage.modified([LAST_CHECKPOINT])
        last = json.loads(storage.read_whole(LAST_CHECKPOINT)) if written is not None else None
        start = -1 if last is None else int(last["version"])
        if start > version:
            return None
        commits = [commit_name(v) for v in range(start + 1, version + 1)]
        names = [*([] if last is None else _files_of(last)), *commits]
        if None in storage.modified(names):
            return None
        found: dict[str, int] = {}
        for name in names:
            for _, txn in actions(storage, name, ("txn.appId", "txn.version")):
                found[txn["appId"]] = int(txn["version"])
        return found
    return None


def _files_of(last: Mapping[str, Any]) -> list[str]:
    """Return the files of a checkpoint that have its transactions; those of sidecars have none."""
    start = f"{LOG}/{int(last['version']):020}.checkpoint"
    if last.get("v2Checkpoint"):
        return [f"{LOG}/{last['v2Checkpoint']['path']}"]
    if last.get("parts"):
        count = int(last["parts"])
        return [f"{start}.{k:010}.{count:010}.parquet" for k in range(1, count + 1)]
    return [f"{start}.parquet"]
