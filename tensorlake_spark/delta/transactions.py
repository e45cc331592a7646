"""All application transactions of a version at once: deltalake looks one up by reading the log for it."""

from __future__ import annotations

import json
from contextlib import suppress

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
        None where the log is not of the plain kind that is read here: a checkpoint in one Parquet file,
        or none, and commits after it.
    """
    with reaching(storage), suppress(FileNotFoundError):  # the log was tidied up meanwhile
        (written,) = storage.modified([_CHECKPOINT])
        last = json.loads(storage.read_whole(_CHECKPOINT)) if written is not None else None
        start = -1 if last is None else int(last["version"])
        if last is not None and (start > version or last.get("parts") or last.get("v2Checkpoint")):
            return None
        commits = [f"_delta_log/{v:020}.json" for v in range(start + 1, version + 1)]
        checkpoints = [] if last is None else [f"_delta_log/{start:020}.checkpoint.parquet"]
        if None in storage.modified([*checkpoints, *commits]):
            return None
        found: dict[str, int] = {}
        for name in checkpoints:
            with storage.open_parquet(name) as file:
                actions = file.read(columns=["txn.appId", "txn.version"])["txn"].drop_null()
            found = {txn["appId"]: int(txn["version"]) for txn in actions.to_pylist()}
        for name in commits:
            for line in storage.read_whole(name).splitlines():
                if b'"txn"' in line and (txn := json.loads(line).get("txn")):
                    found[txn["appId"]] = int(txn["version"])
        return found
    return None
