"""Logs with random histories, to compare readers of them; the data files are empty."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import commit_name


@contextmanager
def random_log(
    seed: int, tidied: bool, tags: Mapping[str, int] | None = None
) -> Iterator[tuple[str, int]]:
    """Make a table whose files come, go, and come back; yield its place and its newest version.

    Parameters
    ----------
    seed : int
        Of the history.
    tidied : bool
        Whether commits before a checkpoint have gone, as the protocol allows, or one or two as it does not.
    tags : mapping of str to int, optional
        Tags of the newest version.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as uri:
        lake = tl.open(uri)
        lake.write("x", np.arange(3))
        version = lake.version
        names = [f"part-{k}.parquet" for k in range(6)]
        live: set[str] = set()
        for _ in range(rng.integers(1, 16)):
            version += 1
            some = [str(name) for name in rng.choice(names, rng.integers(0, 4), replace=False)]
            commit(uri, version, [(removed if name in live else added)(name) for name in some])
            live ^= {*some}
            if rng.random() < 0.2:
                DeltaTable(uri, version).create_checkpoint()
        if tags is not None:
            version += 1
            lines = [{"txn": {"appId": f"tag/{k}", "version": v}} for k, v in tags.items()]
            commit(uri, version, lines)
        for name in names:
            Path(uri, name).touch()
        if tidied:
            checkpoints = sorted(Path(uri, "_delta_log").glob("*.checkpoint.parquet"))
            last = int(checkpoints[-1].name[:20]) if checkpoints else 0
            stop = int(rng.integers(0, last + 1))
            for old in range(0 if rng.random() < 0.7 else max(0, stop - 2), stop):
                Path(uri, commit_name(old)).unlink()
        yield uri, version


def commit(uri: str, version: int, lines: list[dict[str, object]]) -> None:
    """Write a commit of some actions."""
    info = {"commitInfo": {"timestamp": 0, "operation": "WRITE"}}
    text = "\n".join(json.dumps(line) for line in [info, *lines])
    Path(uri, commit_name(version)).write_text(text + "\n")


def added(name: str) -> dict[str, object]:
    """Return the action by which a file comes."""
    said = {"path": name, "partitionValues": {}, "size": 1, "modificationTime": 0}
    return {"add": {**said, "dataChange": True}}


def removed(name: str) -> dict[str, object]:
    """Return the action by which a file leaves."""
    return {"remove": {"path": name, "deletionTimestamp": 0, "dataChange": True}}
