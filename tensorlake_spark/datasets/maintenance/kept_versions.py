"""What the log of a dataset says of many versions at once: which inner versions each names, which files it has."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.inner_tables import (
    COLUMNS_FOLDER,
    TENSORS_FOLDER,
    folder_of,
    part_of,
    stored_names,
)
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.files.table_folder import Naming, StoredFile, listing, named
from tensorlake_spark.delta.log.actions import commit_name, commit_times, read_actions
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.tags import tags
from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError, UnsupportedFeatureError

Array = np.ndarray[Any, Any]


def kept_versions(newest: Snapshot, until: dt.datetime) -> set[int]:
    """Return the versions that are kept: the newest, those that are tagged, and those in use since a time.

    A version is in use until the next one is made.
    """
    with reaching(newest.storage):
        times = commit_times(newest.storage)
    least = until.timestamp() * 1000
    kept = {version for version in times if times.get(version + 1, float("inf")) >= least}
    return {newest.version} | {v for v in (*kept, *tags_of(newest).values()) if v <= newest.version}


def tags_of(snapshot: Snapshot) -> dict[str, int]:
    """Return the tags of a dataset; a log that does not list them is no hindrance."""
    try:
        return tags(snapshot)
    except UnsupportedFeatureError:
        return {}


def pins_of(
    storage: Storage, versions: Collection[int], folders: Collection[str]
) -> dict[int, dict[str, int]]:
    """Return for versions of a dataset the versions of inner tables that they name, by folder.

    The log is read once. A version that it does not have any more is left out.
    """
    apps = {part_of(folder): folder for folder in folders}
    out: dict[int, dict[str, int]] = {}
    state: dict[str, int] | None = None
    needed: set[str] = set()
    for version in range(min(versions), max(versions) + 1) if versions and folders else ():
        try:
            if state is None:
                snapshot = Snapshot.open(storage, version, kind=SAMPLES)
                found, needed = snapshot.transactions([*apps]), _needed(snapshot)
                state = {apps[app]: number for app, number in found.items() if number is not None}
            else:
                with reaching(storage):
                    name = commit_name(version)
                    said = [*read_actions(storage, name, ("txn.appId", "metaData.id"))]
                if any(kind == "metaData" for kind, _ in said):
                    needed = _needed(Snapshot.open(storage, version, kind=SAMPLES))
                news = {one["appId"]: int(one["version"]) for kind, one in said if kind == "txn"}
                state = state | {apps[app]: n for app, n in news.items() if app in apps}
        except (InvalidOptionError, FileNotFoundError):  # the log has it no more
            state = None
            continue
        if version in versions:
            out[version] = {folder: n for folder, n in state.items() if folder in needed}
    return out


def _needed(snapshot: Snapshot) -> set[str]:
    """Return the folders that the columns of a version may need."""
    names = stored_names(snapshot.schema)
    schema = SampleSchema.from_arrow(snapshot.schema)
    return {TENSORS_FOLDER} | {folder_of(names[c]) for c, kind in schema.items() if kind.apart}


def sids_of(storage: Storage, versions: Collection[int]) -> Array:
    """Return the numbers of all samples that some versions have, and perhaps of more that are in their files.

    Raises
    ------
    CorruptDataError
        If a file cannot be read.
    """
    files = {file.path: file for file in listing(storage)}
    ordered = sorted(versions)
    wanted = [
        path
        for path, naming in named(storage, [*files.values()]).items()
        if path in files and _is_in(naming, ordered)
    ]
    return sids_in(storage, wanted)


def sids_in(storage: Storage, paths: Iterable[str]) -> Array:
    """Return the numbers of the samples in some data files, each once; files that are no samples' have none."""
    found = [np.zeros(0, np.int64)]
    for path in paths:
        with reading(storage, path):
            footer = read_footer(storage, path)
            if SID not in schema_of(footer).to_arrow_schema().names:
                continue
            with storage.open_parquet(path, footer) as file:
                column = file.read(columns=[SID]).column(SID)
        if str(column.type) not in ("int64", "int32"):
            raise CorruptDataError(
                f"{path} has a column {SID} of type {column.type}, so it is not a file of samples"
            )
        found.append(column.drop_null().to_numpy().astype(np.int64))
    return np.unique(np.concatenate(found))


def _is_in(naming: Naming, versions: Sequence[int]) -> bool:
    """Whether one of some versions, in order, has a file."""
    for first, stop in naming.spans:
        at = bisect_left(versions, first or 0)
        if at < len(versions) and (stop is None or versions[at] < stop):
            return True
    return False


def inner_files(storage: Storage) -> dict[str, list[StoredFile]]:
    """Return the files of inner tables by their folders, whether these have a log or not; paths are the dataset's."""
    _, base = storage.place
    out: defaultdict[str, list[StoredFile]] = defaultdict(list)
    for top in (TENSORS_FOLDER, COLUMNS_FOLDER):
        with reaching(storage):
            found = storage.files_in(top, recursive=True)
        for info in found:
            path = str(info.path)[len(base) :].lstrip("/")
            folder = top if top == TENSORS_FOLDER else "/".join(path.split("/")[:2])
            out[folder].append(StoredFile(path, int(info.size), info.mtime))
    return dict(out)
