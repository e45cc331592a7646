"""A new dataset of samples of others, in an order: written by threads or executors, visible by one commit."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.datasets.apart.apart_writer import ApartWriter
from tensorlake_spark.datasets.apart.inner_tables import (
    COLUMNS_FOLDER,
    TENSORS_FOLDER,
    with_stored_names,
)
from tensorlake_spark.datasets.apart.large_samples import TILE_PROPERTY
from tensorlake_spark.datasets.apart.pinning import Written, pins
from tensorlake_spark.datasets.changes.workers import run_of, share_bytes
from tensorlake_spark.datasets.derived.column_digests import digests
from tensorlake_spark.datasets.derived.lineage import (
    FOLDER,
    PROPERTY,
    Lineage,
    Source,
    is_unfinished,
    package_version,
    write_rows,
)
from tensorlake_spark.datasets.derived.sample_copying import (
    Computed,
    Copied,
    Origin,
    SampleCopying,
    shares,
)
from tensorlake_spark.datasets.samples.appending import COUNTER
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import Change, StaleChange, commit
from tensorlake_spark.delta.log.properties import FILE_BYTES, ROW_GROUP_BYTES
from tensorlake_spark.delta.log.requirements import SAMPLES, check_folders
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import discard_marked
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import ConcurrentWriteError, InvalidOptionError, TensorLakeError

if TYPE_CHECKING:
    from tensorlake_spark.delta.files.runner import Run

Array = np.ndarray[Any, Any]

_DEAD = 3600
"""A copy that has written nothing for so many seconds was killed."""


@dataclass(frozen=True)
class Rows:
    """Which samples are copied, and what is computed beside them.

    Attributes
    ----------
    count : int
        How many rows there are.
    positions : sequence of int64 ndarray
        For each origin of a `Selection`, and for each row, the position of its sample there; -1 where it has none.
    computed : Computed, or None
        Gives the columns that no origin has.
    """

    count: int
    positions: Sequence[Array]
    computed: Computed | None = None


@dataclass(frozen=True)
class Selection:
    """What becomes a dataset: rows of other datasets, in order.

    Attributes
    ----------
    schema : SampleSchema
        The new columns.
    origins : sequence of (str, Origin)
        What is copied: the name of a source, the version and its columns.
    rows : callable
        Finds the rows; it is called once, while the table is made.
    query : str, or None
        The text of the query.
    others : sequence of Source
        What else was read.
    """

    schema: SampleSchema
    origins: Sequence[tuple[str, Origin]]
    rows: Callable[[], Rows]
    query: str | None = None
    others: Sequence[Source] = ()

    def lineage(self) -> Lineage:
        """Return what the new dataset says of its sources."""
        copied = {name for _, origin in self.origins for name in origin.columns}
        return Lineage(
            (*(_source(name, origin) for name, origin in self.origins), *self.others),
            self.query,
            package_version(),
            dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
            tuple(name for name in self.schema if name not in copied),
            f"{uuid.uuid4().hex}.arrow",
        )


def check_beside(storage: Storage, source: str) -> None:
    """Raise InvalidOptionError if the place of a copy lies in the dataset that is copied."""
    if storage.uri.startswith(f"{source}/"):
        raise InvalidOptionError(
            f"{storage.uri} lies in the dataset at {source}, whose VACUUM would delete the copy; choose a "
            "place beside it"
        )


def copy_dataset(
    storage: Storage,
    chosen: Selection,
    tile_bytes: int,
    workers: Any = None,
    row_group_bytes: int | None = None,
) -> Snapshot:
    """Make a dataset of a selection, and return its version that has the samples.

    Readers see no dataset before, and all samples after one commit. If something goes wrong, nothing is left; what a
    copy has left that was killed is deleted by the next one at the place, an hour after the last of it was written.

    Parameters
    ----------
    storage : Storage
        A place without a table.
    chosen : Selection
        Which samples, and columns.
    tile_bytes : int
        The bound above which arrays become tiles.
    workers : int, SparkSession, or None
        How many threads copy, or whose executors; a few threads by default.
    row_group_bytes : int, optional
        Target size of a row group.

    Raises
    ------
    InvalidOptionError
        If there is a table at the place, or a part of one; or `workers` is neither a number nor a session.
    ConcurrentWriteError
        If another writer adds samples there at the same time.
    """
    run = run_of(workers)
    _check_free(storage)
    lineage, mark = chosen.lineage(), f"{uuid.uuid4().hex[:16]}-"
    properties = {TILE_PROPERTY: str(tile_bytes), PROPERTY: lineage.to_json()}
    origins = tuple(origin for _, origin in chosen.origins)
    empty, rows = _begun(storage, chosen, properties, mark)
    try:
        work = SampleCopying(
            storage, chosen.schema, {name: name for name in chosen.schema},
            origins, rows.computed, 0,
            tile_bytes, FILE_BYTES, row_group_bytes or ROW_GROUP_BYTES, mark,
        )  # fmt: skip
        done = copied(work, rows.count, rows.positions, run, workers)
        files, written = committed_parts(work, done)
        sids = [
            _sids(origin.parts.stored, at)
            for origin, at in zip(origins, rows.positions, strict=True)
        ]
        write_rows(storage, lineage, sids, digests(one.digests for one in done), rows.count)
        counters = {COUNTER: (None, rows.count)} | pins(storage, empty, written)
        change = Change(
            {}, files, (), "materialize",
            counters=counters, columns=empty.schema, kind=SAMPLES,
        )  # fmt: skip
        return commit(storage, change)
    except StaleChange as stale:
        _clear(storage, mark, empty)
        raise ConcurrentWriteError(
            f"another writer added samples to {storage.uri}, which was made for this copy, in version "
            f"{stale.snapshot.version}; nothing was committed, choose another place"
        ) from stale
    except BaseException:
        _clear(storage, mark, empty)
        raise


def _begun(
    storage: Storage, chosen: Selection, properties: Mapping[str, str], mark: str
) -> tuple[Snapshot, Rows]:
    """Make an empty table, in a thread of its own, while the rows are found; return both."""
    with ThreadPoolExecutor(1, thread_name_prefix="tensorlake-create") as pool:
        schema = with_stored_names(chosen.schema.to_arrow())
        making = pool.submit(create_samples_table, storage, schema, properties, must_be_new=True)
        try:
            rows = chosen.rows()
        except BaseException:
            if making.exception() is None:
                _clear(storage, mark, making.result())
            raise
        return making.result(), rows


def copied(
    work: SampleCopying, count: int, positions: Sequence[Array], run: Run, workers: Any
) -> list[Copied]:
    """Have all rows copied in shares, and return what came of each, in order."""
    each = work.row_bytes(positions)
    parts = shares(count, positions, share_bytes(each * count, workers) // each)
    return [one for _, one in run(work, parts)]


def committed_parts(work: SampleCopying, done: Sequence[Copied]) -> tuple[list[Any], list[Written]]:
    """Commit what lies in inner tables; return the files of the samples, and the inner versions that they need."""
    versions: dict[str, int] = {}
    apart: dict[str, list[Any]] = {}
    for one in done:
        for part in one.tiles:
            versions[part.folder] = max(part.version, versions.get(part.folder, 0))
        for name, files in one.apart.items():
            apart.setdefault(name, []).extend(files)
    written = [Written(folder, version) for folder, version in versions.items()]
    for name, files in apart.items():
        writer = ApartWriter(work.storage, work.names[name], work.schema[name], mark=work.mark)
        written += writer.committed(files)
    return [file for one in done for file in one.files], written


def _sids(stored: StoredSamples, positions: Array) -> Array:
    """Return the numbers of some samples; -1 for those at position -1."""
    out = np.full(len(positions), -1, np.int64)
    out[positions >= 0] = stored.sids_of(positions[positions >= 0])
    return out


def _source(name: str, origin: Origin) -> Source:
    snapshot = origin.snapshot
    as_stored = {new: old for new, old in origin.columns.items() if new not in origin.fetched}
    fetched = {new: origin.columns[new] for new in sorted(origin.fetched)}
    return Source(
        name, snapshot.storage.uri, snapshot.version, as_stored, fetched, snapshot.table_id
    )


def _check_free(storage: Storage) -> None:
    """Raise InvalidOptionError if a place has a table; what a copy that was killed has left there is deleted."""
    with reaching(storage):
        log = storage.files_in("_delta_log")
        parts = [f for f in (TENSORS_FOLDER, COLUMNS_FOLDER) if storage.files_in(f, True)]
    if not log:
        check_folders(storage)
        if parts:
            raise InvalidOptionError(
                f"{storage.uri} has a folder {parts[0]} and no table; choose another place, or delete it"
            )
        return
    if not is_unfinished(Snapshot.open(storage, kind=None)):
        raise InvalidOptionError(
            f"there is a table at {storage.uri} already; choose another place, or delete it"
        )
    with reaching(storage):
        last = max((info.mtime_ns or 0) for info in storage.files_in("", recursive=True)) / 1e9
        if time.time() - last < _DEAD:
            raise InvalidOptionError(
                f"there is a copy at {storage.uri} already that is not complete: another process is at work on it, or "
                f"was killed; choose another place, delete it, or try again {_DEAD // 60} minutes after it was killed"
            )
        discard_marked(storage, "")
        _delete_folders(storage)


def _delete_folders(storage: Storage) -> None:
    """Delete the folders of a copy, its log last: without it nobody would know what the others are."""
    filesystem, base = storage.place
    for folder in (TENSORS_FOLDER, COLUMNS_FOLDER, FOLDER, "_delta_log"):
        for info in storage.files_in(folder, recursive=True):
            storage.delete(str(info.path)[len(base) :].lstrip("/"))
        if storage.is_local:
            with suppress(FileNotFoundError):
                filesystem.delete_dir(f"{base}/{folder}")


def _clear(storage: Storage, mark: str, empty: Snapshot) -> None:
    """Delete what a copy wrote that came to nothing; where others have written meanwhile only its own data files."""
    with suppress(TensorLakeError, OSError):
        discard_marked(storage, mark)
        now = Snapshot.open(storage, kind=None)
        if now.version != empty.version or now.table_id != empty.table_id:
            return
        _delete_folders(storage)
