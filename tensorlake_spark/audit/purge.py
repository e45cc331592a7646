"""Purge: a tensor, or a part of it, leaves the newest version and every file of the old ones."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.audit import hashing
from tensorlake_spark.audit.byte_search import Probes, sha256_of
from tensorlake_spark.audit.digest import Digest
from tensorlake_spark.audit.files_of_tensor import Traces
from tensorlake_spark.audit.purge_target import Target
from tensorlake_spark.audit.receipt import (
    PurgedFile,
    PurgeReceipt,
    WrittenFile,
    ranges_text,
)
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.log import actions
from tensorlake_spark.delta.log.commit import app_of, check_removable
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.tags import tags
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.paths import path_of
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidKeyError,
    InvalidOptionError,
    InvalidSliceError,
    UnsupportedFeatureError,
)
from tensorlake_spark.indexing import format_key, parse_key, select_points, select_simple
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.spec import listed_ids
from tensorlake_spark.writing.editing.removal import clear_part, remove_tensor


def purge(
    storage: Storage,
    tensor_id: str,
    region: Any,
    coords: Any,
    now: bool,
    dry_run: bool,
    run: Run = run_here,
) -> PurgeReceipt:
    """Remove a tensor, or a part of it, for good; see `TensorLake.purge`.

    `run` reads files, and writes anew those that are replaced. Commits are made here, and files deleted.
    """
    listed_ids([tensor_id])
    before = Snapshot.open(storage)
    before.check_writable()
    meta = catalog.find(before, tensor_id)
    target, text = _target(before, meta, tensor_id, region, coords)
    tagged = _tags(before)
    traces = Traces(storage, target, run)
    traces.look()
    _check_known(before, meta, traces)
    replaced = traces.held_by(before)
    check_removable(before, replaced)
    _check_readable(before, traces)
    first = None if dry_run else _digest_of(before, run)
    after, written = before, tuple[WrittenFile, ...]()
    if replaced and not dry_run:
        after = _remove(before, meta, traces)
        written = _written(storage, tensor_id, before.version, after.version, run)
        traces.look()
        _check_gone(after, traces)
    second = None if dry_run else _digest_of(after, run)
    probes = Probes()
    due = traces.due(after, dt.timedelta(0) if now else after.retention)
    files = traces.records(due, probes, dry_run)
    last = _LastLook() if dry_run else _delete(after, traces, files, probes)
    deleted = tuple(f for f in files if f.due is None and f.path not in last.late)
    versions = traces.versions((file.path for file in deleted), after.version)
    reason = doubts(files, len(traces.uncertified), last.late, last.found, dry_run)
    return PurgeReceipt(
        table=storage.uri,
        tensor_id=tensor_id,
        region=text,
        at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        dry_run=dry_run,
        version_before=before.version,
        version_after=after.version,
        rewritten=tuple(replaced),
        written=written,
        deleted=deleted,
        pending=tuple(file for file in files if file.due is not None),
        uncertified=tuple(sorted(traces.uncertified.items())),
        staging=last.staging,
        versions_lost=ranges_text(versions),
        tags_lost=tuple(name for name, version in tagged.items() if version in versions),
        searched=last.searched,
        found_elsewhere=last.found,
        verified=not reason,
        reason=reason,
        digest_before=None if first is None else first.hex,
        digest_after=None if second is None else second.hex,
        bytes_replaced=sum(int(before.files.size[before.places[path]]) for path in replaced),
        bytes_written=sum(file.nbytes for file in written),
        bytes_hashed=0 if second is None else second.hashed,
    )


def _digest_of(snapshot: Snapshot, run: Run) -> Digest | None:
    """Return the digest of a version, None where a file cannot be read."""
    try:
        return hashing.digest_of(snapshot, run=run)
    except CorruptDataError:
        return None


@dataclass(frozen=True, slots=True)
class _LastLook:
    """What was seen after files had been deleted; nothing in a dry run.

    Attributes
    ----------
    staging : tuple of str
        Notes of ingestions that were removed.
    late : tuple of str
        Files that hold something of the target all the same.
    searched, found : dict of str to int, tuple of str
        As `Traces.search` returned them.
    """

    staging: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    searched: dict[str, int] = field(default_factory=dict)
    found: tuple[str, ...] = ()


def _tags(snapshot: Snapshot) -> dict[str, int]:
    """Return the tags of the table; a log that does not list them is no hindrance."""
    try:
        return tags(snapshot)
    except UnsupportedFeatureError:
        return {}


def _check_known(snapshot: Snapshot, meta: Meta | None, traces: Traces[Target]) -> None:
    """Raise TensorNotFoundError if the tensor is nowhere, and never was in the table."""
    name = traces.target.tensor_id
    nowhere = meta is None and not traces.held and not traces.uncertified
    if nowhere and snapshot.transaction(app_of(name)) is None:
        catalog.get(snapshot, name)  # raises, with the nearest names


def _deleted(files: Sequence[PurgedFile]) -> set[str]:
    return {file.path for file in files if file.due is None}


def _delete(
    snapshot: Snapshot, traces: Traces[Target], files: Sequence[PurgedFile], probes: Probes
) -> _LastLook:
    """Delete the files that are due, and notes; then look for the target, and for its payloads, once more."""
    traces.delete(_deleted(files))
    catalog.forget(snapshot)
    hashing.forget(snapshot)
    notes = _forget_staging(traces.storage, traces.target.tensor_id)
    traces.look()
    kept = {file.path for file in files if file.due is not None}
    late = tuple(path for path in traces.held if path not in kept)
    return _LastLook(notes, late, *traces.search(probes, kept))


def doubts(
    files: Sequence[PurgedFile],
    uncertified: int,
    late: Sequence[str],
    found: Sequence[str],
    dry_run: bool,
) -> str:
    """Return why a purge is not verified, an empty text if it is."""
    pending = len(files) - len(_deleted(files))
    reasons = {
        "this is a dry run, nothing was done": dry_run,
        f"{pending} files are kept by the retention": pending,
        f"{uncertified} files cannot be certified": uncertified,
        f"{len(late)} files hold it that were written meanwhile, or could not be deleted": late,
        f"{len(found)} files have identical payloads": found,
    }
    return "; ".join(text for text, holds in reasons.items() if holds)


def _target(
    snapshot: Snapshot, meta: Meta | None, tensor_id: str, region: Any, coords: Any
) -> tuple[Target, str | None]:
    """Return what is purged, and its text for the receipt."""
    if region is not None and coords is not None:
        raise InvalidOptionError("region and coords exclude each other; give one of them")
    if region is None and coords is None:
        return Target(tensor_id), None
    if isinstance(region, str) and not region.strip():
        # Elsewhere it means everything; here it is a variable of a script that is not set.
        raise InvalidSliceError(
            "region is an empty text; name a part, as '3:5, :' or 'user=42', or leave it out to purge "
            f"all of tensor {tensor_id!r}"
        )
    spec = (meta or catalog.get(snapshot, tensor_id)).spec
    if coords is not None:
        points = _points(coords, spec.ndim)
        named = select_points(tuple(points), spec.shape).coords
        # Each once: a row is sought as a whole if as many of its elements are named as it has.
        _, first = np.unique(ravel(named, spec.shape), return_index=True)
        selection = select_points(tuple(named[:, first]), spec.shape)
        digest = hashlib.sha256(points.astype("<i8").tobytes()).hexdigest()
        return Target(tensor_id, spec, selection), f"{selection.size} elements, sha256 {digest}"
    key = parse_key(region, spec.axes) if isinstance(region, str) else region
    return Target(tensor_id, spec, select_simple(key, spec.shape), key), format_key(key)


def _points(coords: Any, ndim: int) -> np.ndarray[Any, Any]:
    """Return coordinates as an array with a row for every axis."""
    try:
        points = np.asarray(coords)
    except ValueError:  # its rows are not of one length
        points = np.empty(0)
    # An empty list has no integers, and np.asarray makes floats of it.
    if points.ndim != 2 or len(points) != ndim or (points.size and points.dtype.kind not in "iu"):
        raise InvalidKeyError(
            f"coords have shape {points.shape} and dtype {points.dtype}; give integers, a row for every axis of "
            f"{ndim}, all of one length"
        )
    return points if points.size else points.astype(np.int64)


def _check_readable(snapshot: Snapshot, traces: Traces[Target]) -> None:
    """Raise if a live file cannot be read that may hold the target: nothing can be taken from it."""
    files, name = snapshot.files, traces.target.tensor_id
    for i in files.places_of(name).tolist():
        if files.path[i] in traces.uncertified:
            raise CorruptDataError(
                f"{traces.uncertified[files.path[i]]}; it may hold tensor {name!r}, and nothing was purged: "
                "bring the file back from a backup, then purge again"
            )


def _check_gone(snapshot: Snapshot, traces: Traces[Target]) -> None:
    left = traces.held_by(snapshot)
    if left:
        raise CorruptDataError(
            f"{len(left)} files of version {snapshot.version} still hold what should be purged of tensor "
            f"{traces.target.tensor_id!r}, such as {left[0]}: the statistics of the log hide them; run "
            "lake.check(repair=True), then purge again"
        )


def _written(
    storage: Storage, tensor_id: str, before: int, after: int, run: Run
) -> tuple[WrittenFile, ...]:
    """Return what the purge's own commit added: the first since version `before` that changed the tensor."""
    app = app_of(tensor_id)
    for version in range(before + 1, after + 1):
        with reaching(storage):
            said = [
                *actions.read_actions(
                    storage, actions.commit_name(version), ("add.path", "txn.appId")
                )
            ]
        if any(kind == "txn" and action["appId"] == app for kind, action in said):
            adds = [action for kind, action in said if kind == "add"]
            sizes = {path_of(action): int(action["size"]) for action in adds}
            digests = run(partial(_sha256, storage), [*sizes], [*sizes.values()])
            return tuple(WrittenFile(path, sizes[path], digest) for path, digest in digests)
    return ()


def _sha256(storage: Storage, path: str) -> str:
    with reaching(storage):
        return sha256_of(storage, path)


def _forget_staging(storage: Storage, tensor_id: str) -> tuple[str, ...]:
    """Delete the notes of ingestions that write a tensor; return their folders."""
    out = []
    for folder in staging.folders(storage):
        notes = staging.Staging(storage, folder)
        if any(_writes(text, tensor_id) for text in notes.read().values()):
            notes.delete()
            out.append(f"{staging.ROOT}/{folder}")
    return tuple(out)


def _writes(text: str, tensor_id: str) -> bool:
    """Whether a note, JSON after a line with its checksum, has a tensor's id; a damaged one, its name."""
    first, _, rest = text.partition("\n")
    try:
        return _has_id(json.loads(rest or first), tensor_id)
    except (ValueError, RecursionError):
        return json.dumps(tensor_id) in text


def _has_id(said: Any, tensor_id: str) -> bool:
    if isinstance(said, dict):
        return said.get("id") == tensor_id or any(_has_id(v, tensor_id) for v in said.values())
    return isinstance(said, list) and any(_has_id(v, tensor_id) for v in said)


def _remove(snapshot: Snapshot, meta: Meta | None, traces: Traces[Target]) -> Snapshot:
    """Commit a version without the target."""
    target = traces.target
    if target.selection is None:
        # No listing of the folder: whoever is slow here never wins.
        return remove_tensor(snapshot, target.tensor_id, traces.held_by, traces.held, traces.run)
    assert meta is not None  # nosec B101 # for mypy
    return clear_part(snapshot, meta, target.selection, traces.run)
