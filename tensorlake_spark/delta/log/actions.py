"""The log of a table as the Delta protocol lays it out: names of its files, the actions in them, all transactions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.delta.store.paths import inside, is_plain
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import FormatError

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
COMMIT = re.compile(rf"{LOG}/(\d{{20}})\.json")
"""Path of a commit in its table; the group is the version."""
TXN = ("txn.appId", "txn.version")
"""What `read_actions` has to read for application transactions."""

_WHOLE = re.compile(rf"{LOG}/(\d{{20}})\.checkpoint(?:\.[0-9a-f-]{{36}})?\.(?:parquet|json)")
_PART = re.compile(rf"{LOG}/(\d{{20}})\.checkpoint\.\d{{10}}\.(\d{{10}})\.parquet")
_NEEDED: Mapping[str, Mapping[str, type]] = {
    "add": {"path": str},
    "remove": {"path": str},
    "cdc": {"path": str},
    "sidecar": {"path": str},
    "txn": {"appId": str, "version": int},
}
"""What an action has in any case, by its kind."""
_MOST_PARTS = 100_000  # a checkpoint in more is none that anybody wrote
_PAUSES_S = 0.05, 0.2  # before a store is asked again for the files of a log that it does not show


def commit_name(version: int) -> str:
    """Return the path of a commit in its table."""
    return f"{LOG}/{version:020}.json"


def commit_info(
    now: int, operation: str, parameters: Mapping[str, str], engine: str
) -> dict[str, Any]:
    """Return what the history of a table shows of a commit; `now` is in milliseconds since 1970.

    Examples
    --------
    >>> commit_info(0, "WRITE", {"mode": "Append"}, "tests")["commitInfo"]["operation"]
    'WRITE'
    """
    return {
        "commitInfo": {
            "timestamp": now,
            "operation": operation,
            "operationParameters": dict(parameters),
            "engineInfo": engine,
        }
    }


def table_description(
    table_id: str,
    schema: str,
    created: int | None,
    configuration: Mapping[str, str],
    partition_columns: Sequence[str] = (),
    **names: str | None,
) -> dict[str, Any]:
    """Return what a commit says of a table and its columns.

    Parameters
    ----------
    table_id : str
        The table's own number, which no commit changes.
    schema : str
        Its columns, in Delta's JSON.
    created : int or None
        When it was made, in milliseconds since 1970.
    configuration : mapping of str to str
        Its properties.
    partition_columns : sequence of str
        The columns by which its files are parted.
    **names : str or None
        Its ``name`` and ``description``; what is None is left out.

    Examples
    --------
    >>> table_description("7", "{}", 0, {}, name="rides", description=None)["metaData"]["name"]
    'rides'
    """
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partition_columns),
            "configuration": dict(configuration),
            "createdTime": created,
            **{key: value for key, value in names.items() if value is not None},
        }
    }


def log_files(storage: Storage) -> list[pafs.FileInfo]:
    """Return what the store says of the files of a log that is there.

    A store that keeps its objects in a file system may show none of a folder while one comes. It is asked again.

    Raises
    ------
    FileNotFoundError
        If there is no log.
    """
    filesystem, base = storage.place
    where = pafs.FileSelector(f"{base}/{LOG}")
    for pause in () if storage.is_local else _PAUSES_S:
        try:
            return list(filesystem.get_file_info(where))
        except FileNotFoundError:
            time.sleep(pause)
    return list(filesystem.get_file_info(where))


def commit_times(storage: Storage) -> dict[int, int]:
    """Return, by version, when each commit that the log still has was written, in milliseconds since 1970.

    That is what the store says when it is listed, which of an object store may be the second only.
    """
    return {
        int(match[1]): info.mtime_ns // 1_000_000
        for info in log_files(storage)
        if info.is_file and (match := COMMIT.fullmatch(f"{LOG}/{info.base_name}"))
    }


def read_actions(
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
    FormatError
        If it is JSON of another form than the protocol has.
    """
    if path.endswith(".json"):
        yield from json_actions(storage.read_whole(path), leaves, f"{storage.uri}/{path}")
        return
    with storage.open_parquet(path) as file:
        yield from parquet_actions(file, leaves)


def json_actions(
    text: bytes, leaves: Sequence[str], path: str = "a commit"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the actions of a commit as `read_actions` does; `path` is for messages.

    Examples
    --------
    >>> [*json_actions(b'{"txn": {"appId": "a", "version": 3}}', ("txn.appId",))]
    [('txn', {'appId': 'a', 'version': 3})]
    """
    kinds = {leaf.partition(".")[0] for leaf in leaves}
    for line in text.splitlines():
        # Every line is parsed: JSON has many spellings of one key.
        try:
            found = [*json.loads(line).items()] if line.strip() else []
        except (ValueError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"{path} of the Delta log has a line that is no action in JSON: {line!r:.200}; bring the file back "
                "from a backup"
            ) from error
        for kind, said in found:
            if kind not in kinds or not said:
                continue
            if kind == "commitInfo" and not isinstance(
                said, dict
            ):  # writers may put anything there
                continue
            _check_form(kind, said, path)
            yield kind, said


def _check_form(kind: str, said: Any, path: str) -> None:
    """Raise FormatError if an action lacks what its kind has in any case."""
    needed = _NEEDED.get(kind, {})
    if isinstance(said, dict) and all(_is(said.get(name), needed[name]) for name in needed):
        return
    names = " and ".join(f"{name} ({wanted.__name__})" for name, wanted in needed.items())
    raise FormatError(
        f"{path} of the Delta log has a {kind!r} without {names or 'fields'}, which the Delta protocol asks for: "
        f"{said!r:.200}; bring the file back from a backup"
    )


def _is(value: Any, wanted: type) -> bool:
    if wanted is str:
        return isinstance(value, str)
    return type(value) is int and value.bit_length() < 64


def parquet_actions(
    file: pq.ParquetFile, leaves: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the actions of a checkpoint as `read_actions` does."""
    columns = schema_of(file.metadata)
    there = [f"{columns.column(i).path}." for i in range(file.metadata.num_columns)]
    wanted = [leaf for leaf in leaves if any(name.startswith(f"{leaf}.") for name in there)]
    for batch in file.iter_batches(columns=wanted):
        for kind, column in zip(batch.schema.names, batch.columns, strict=True):
            for said in column.drop_null().to_pylist():
                yield kind, said


def adds_in(storage: Storage, path: str, leaves: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what one file of a log adds, and what the sidecars add that it names; `leaves` are of ``add``.

    Raises as `read_actions`.
    """
    for kind, said in read_actions(storage, path, [*leaves, "sidecar.path"]):
        if kind == "add":
            yield said
            continue
        sidecar = f"{LOG}/_sidecars/{inside(said['path'])}"
        for _, added in read_actions(storage, sidecar, leaves):
            yield added


@dataclass(frozen=True, slots=True)
class AddedRemoved:
    """What one commit does to files and transactions."""

    added: list[dict[str, Any]]
    removed: set[str]
    transactions: dict[str, int]


def added_removed(commit: bytes) -> AddedRemoved | None:
    """Return what a commit says, None if it does more than to add and remove files and to count transactions."""
    out = AddedRemoved([], set(), {})
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        for line in commit.splitlines():
            for kind, said in json.loads(line).items() if line.strip() else ():
                if kind in _NEEDED:
                    _check_form(kind, said, "a commit")
                if kind in ("add", "remove"):
                    if said.get("deletionVector") or not is_plain(said["path"]):
                        return None
                    if kind == "add":
                        out.added.append({**said, "size": int(said["size"])})
                    else:
                        out.removed.add(said["path"])
                elif kind == "txn":
                    out.transactions[str(said["appId"])] = int(said["version"])
                elif kind != "commitInfo":
                    return None
        # A file that leaves and comes back in one commit is no change that Delta knows.
        return None if any(said["path"] in out.removed for said in out.added) else out
    return None


def all_transactions(storage: Storage, version: int) -> dict[str, int] | None:
    """Return the last version of every application transaction in the log of a table.

    deltalake looks one up by reading the log for it; here the log is read once for all of them.

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
        start, files = _last_checkpoint(storage)
        if start > version:
            return None
        names = [*files, *map(commit_name, range(start + 1, version + 1))]
        if None in storage.modified(names):  # a log need not say which checkpoint is the last
            start, files = whole_checkpoint(log_paths(storage), version)
            names = [*files, *map(commit_name, range(start + 1, version + 1))]
            if None in storage.modified(names):
                return None
        found: dict[str, int] = {}
        for name in names:
            for _, txn in read_actions(storage, name, TXN):
                found[txn["appId"]] = int(txn["version"])
        return found
    return None


def log_paths(storage: Storage) -> list[str]:
    """Return the paths of the files of a log in its table; see `log_files`."""
    return [f"{LOG}/{info.base_name}" for info in log_files(storage) if info.is_file]


def up_to(version: int, paths: Sequence[str], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return the paths that match a pattern, whose group is a version, up to this one; with their versions."""
    found = ((pattern.fullmatch(path), path) for path in paths)
    return [(int(m[1]), path) for m, path in found if m and int(m[1]) <= version]


def whole_checkpoint(paths: Sequence[str], version: int) -> tuple[int, list[str]]:
    """Return the version of the last checkpoint that is whole, up to one, and its files; -1 if there is none.

    Examples
    --------
    >>> some = [f"{LOG}/{3:020}.checkpoint.parquet", f"{LOG}/{5:020}.checkpoint.{1:010}.{2:010}.parquet"]
    >>> whole_checkpoint(some, 7) == (3, some[:1]), whole_checkpoint(some, 2)
    (True, (-1, []))
    """
    found = up_to(version, paths, _WHOLE)
    found += [(v, path) for v, path in up_to(version, paths, _PART) if _is_complete(path, paths)]
    last = max((v for v, _ in found), default=-1)
    return last, [path for v, path in found if v == last]


def missing_commits(paths: Sequence[str]) -> list[str]:
    """Return the commits that are not there, between others after the last whole checkpoint.

    Examples
    --------
    >>> missing_commits([commit_name(0), commit_name(2)]) == [commit_name(1)]
    True
    """
    found = {int(match[1]) for path in paths if (match := COMMIT.fullmatch(path))}
    newest = max(found, default=0)
    start, _ = whole_checkpoint(paths, newest)
    found = {version for version in found if version >= start}
    wanted = range(min(found, default=0), newest)
    return [commit_name(version) for version in wanted if version not in found]


def _is_complete(path: str, paths: Sequence[str]) -> bool:
    """Whether all parts of a checkpoint are there: ``<version>.checkpoint.<part>.<count>.parquet``."""
    head, _, _part, count, _ = path.split(".")
    others = (other.split(".") for other in paths if other.startswith(f"{head}.checkpoint."))
    return sum(1 for other in others if len(other) == 5 and other[3] == count) == int(count)


def _last_checkpoint(storage: Storage) -> tuple[int, list[str]]:
    """Return what a log says of its last checkpoint, as `whole_checkpoint` does; -1 where it says nothing of use.

    Its writer may have been killed before it was done; the table is all there without it.
    """
    (written,) = storage.modified([LAST_CHECKPOINT])
    if written is not None:
        with suppress(ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            last: Any = json.loads(storage.read_whole(LAST_CHECKPOINT))
            return int(last["version"]), _files_of(last)
    return -1, []


def _files_of(last: Mapping[str, Any]) -> list[str]:
    """Return the files of a checkpoint that have its transactions; those of sidecars have none."""
    start = f"{LOG}/{int(last['version']):020}.checkpoint"
    if last.get("v2Checkpoint"):
        return [f"{LOG}/{last['v2Checkpoint']['path']}"]
    if last.get("parts"):
        count = int(last["parts"])
        if count > _MOST_PARTS:
            raise ValueError(f"a checkpoint of {count} parts")
        return [f"{start}.{k:010}.{count:010}.parquet" for k in range(1, count + 1)]
    return [f"{start}.parquet"]
