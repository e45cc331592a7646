"""A version of the table with the files of a write that is not committed yet: the driver reads what tasks wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.live_files import Files
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.tensor.spec import STORED_AXES

Array = np.ndarray[Any, Any]


class Uncommitted(Snapshot):
    """A version of the table with files that no commit names yet, and without or with those it has."""

    def __init__(self, snapshot: Snapshot, files: Sequence[DataFile], alone: bool) -> None:
        super().__init__(snapshot.storage, snapshot._opened)
        self.reader_features = frozenset() if alone else snapshot.reader_features
        new = _entries(files)
        self.files = new if alone else _joined(snapshot.files, new)


def _entries(files: Sequence[DataFile]) -> Files:
    """Return data files as the log would have them."""
    stats = [json.loads(file.stats) for file in files]
    least, most = [s["minValues"] for s in stats], [s["maxValues"] for s in stats]

    def corner(bounds: list[dict[str, Any]], side: str, unknown: int) -> Array:
        rows = [[b.get(side, {}).get(f"d{k}", unknown) for k in range(STORED_AXES)] for b in bounds]
        return np.array(rows, np.int64).reshape(len(files), STORED_AXES)

    def objects(values: list[Any]) -> Array:
        out = np.empty(len(values), object)
        out[:] = values
        return out

    bounds = np.iinfo(np.int64)
    return Files(
        path=[file.path for file in files],
        size=np.array([file.size for file in files], np.int64),
        rows=np.array([s["numRecords"] for s in stats], np.int64),
        first_id=objects([b["id"] for b in least]),
        last_id=objects([b["id"] for b in most]),
        least_nnz=np.array([b["nnz"] for b in least], np.int64),
        most_nnz=np.array([b["nnz"] for b in most], np.int64),
        last_seq=np.array([b["seq"] for b in most], np.int64),
        lo=corner(least, "lo", int(bounds.min)),
        hi=corner(most, "hi", int(bounds.max)),
    )


def _joined(one: Files, two: Files) -> Files:
    names = [name for name in Files.__dataclass_fields__ if name != "path"]
    arrays = {n: np.concatenate([getattr(one, n), getattr(two, n)]) for n in names}
    return Files(path=[*one.path, *two.path], **arrays)
