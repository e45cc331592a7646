"""All application transactions of a version at once: deltalake looks one up by reading the log for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tensorlake_spark.delta.storage import Storage, reaching

_CHECKPOINT = "_delta_log/_last_checkpoint"


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
        (written,) = storage.modified([_CHECKPOINT])
        last = json.loads(storage.read_whole(_CHECKPOINT)) if written is not None else None
        start = -1 if last is None else int(last["version"])
        if start > version:
            return None
        commits = [f"_delta_log/{v:020}.json" for v in range(start + 1, version + 1)]
        names = [*([] if last is None else _files_of(last)), *commits]
        if None in storage.modified(names):
            return None
        found: dict[str, int] = {}
        for name in names:
            for txn in _transactions_in(storage, name):
                found[txn["appId"]] = int(txn["version"])
        return found
    return None


def _files_of(last: Mapping[str, Any]) -> list[str]:
    """Return the files of a checkpoint that have its transactions; those of sidecars have none."""
    start = f"_delta_log/{int(last['version']):020}.checkpoint"
    if last.get("v2Checkpoint"):
        return [f"_delta_log/{last['v2Checkpoint']['path']}"]
    if last.get("parts"):
        count = int(last["parts"])
        return [f"{start}.{k:010}.{count:010}.parquet" for k in range(1, count + 1)]
    return [f"{start}.parquet"]


def _transactions_in(storage: Storage, name: str) -> Iterator[Mapping[str, Any]]:
    if name.endswith(".parquet"):
        with storage.open_parquet(name) as file:
            actions = file.read(columns=["txn.appId", "txn.version"])["txn"].drop_null()
        yield from actions.to_pylist()
        return
    for line in storage.read_whole(name).splitlines():
        if b'"txn"' in line and (txn := json.loads(line).get("txn")):
            yield txn
