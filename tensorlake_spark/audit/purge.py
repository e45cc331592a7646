"""Purge: a tensor, or a part of it, leaves the newest version and every file of the old ones."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.audit.byte_search import Probes, sha256_of
from tensorlake_spark.audit.files_of_tensor import Traces
from tensorlake_spark.audit.purge_target import Target
from tensorlake_spark.audit.receipt import PurgeReceipt, WrittenFile, ranges_text
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.rewrite import in_file_order, rewrite
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log import actions
from tensorlake_spark.delta.log.commit import StaleChange, app_of, check_removable
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.tags import tags
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.paths import path_of
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    CorruptDataError,
    InvalidKeyError,
    InvalidOptionError,
    InvalidSliceError,
    UnsupportedFeatureError,
)
from tensorlake_spark.indexing import format_key, parse_key, select, select_points
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.writing.assignment import assign
from tensorlake_spark.writing.pipeline import commit_change, recomputed
from tensorlake_spark.writing.sparse_assignment import assign_elements


def purge(
    storage: Storage, tensor_id: str, region: Any, coords: Any, now: bool, dry_run: bool
) -> PurgeReceipt:
    """Remove a tensor, or a part of it, for good; see `TensorLake.purge`."""
    before = Snapshot.open(storage)
    before.check_writable()
    meta = catalog.find(before, tensor_id)
    target, text = _target(before, meta, tensor_id, region, coords)
    tagged: dict[str, int] = {}
    with suppress(UnsupportedFeatureError):  # a log that does not list them is no hindrance
        tagged = tags(before)
    traces = Traces(storage, target)
    traces.look()
    nowhere = meta is None and not traces.held and not traces.uncertified
    if nowhere and before.transaction(app_of(tensor_id)) is None:  # and never was there
        catalog.get(before, tensor_id)  # raises, with the nearest names
    replaced = traces.held_by(before)
    check_removable(before, replaced)
    _check_readable(before, traces)
    after = before
    written: tuple[WrittenFile, ...] = ()
    if replaced and not dry_run:
        after = _remove(before, meta, traces)
        written = _written(storage, tensor_id, before.version, after.version)
        traces.look()
        _check_gone(after, traces)
    due = traces.due(after, dt.timedelta(0) if now else after.retention)
    probes = Probes()
    records = [
        traces.record(path, when, None if when else probes, dry_run) for path, when in due.items()
    ]
    files = [record for record in records if record is not None]
    gone = {file.path for file in files if file.due is None}
    versions = traces.versions(gone, after.version)
    notes: tuple[str, ...] = ()
    searched: dict[str, int] = {}
    found: tuple[str, ...] = ()
    late: list[str] = []
    if not dry_run:
        traces.delete(gone)
        catalog.forget(after)
        notes = _forget_staging(storage, tensor_id)
        traces.look()
        kept = {file.path for file in files if file.due is not None}
        late = [path for path in traces.held if path not in kept]
        searched, found = traces.search(probes, kept)
    pending = len(files) - len(gone)
    reasons = {
        "this is a dry run, nothing was done": dry_run,
        f"{pending} files are kept by the retention": pending,
        f"{len(traces.uncertified)} files cannot be certified": traces.uncertified,
        f"{len(late)} files hold it that were written meanwhile, or could not be deleted": late,
        f"{len(found)} files have identical payloads": found,
    }
    reason = "; ".join(text for text, holds in reasons.items() if holds)
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
        deleted=tuple(file for file in files if file.due is None),
        pending=tuple(file for file in files if file.due is not None),
        uncertified=tuple(sorted(traces.uncertified.items())),
        staging=notes,
        versions_lost=ranges_text(versions),
        tags_lost=tuple(name for name, version in tagged.items() if version in versions),
        searched=searched,
        found_elsewhere=found,
        verified=not reason,
        reason=reason,
    )


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
        points = np.asarray(coords)
        if points.ndim != 2:
            raise InvalidKeyError(
                f"coords have shape {points.shape}; give integers, a row for every axis of {spec.ndim}"
            )
        selection = select_points(tuple(points), spec.shape)
        digest = hashlib.sha256(points.astype("<i8").tobytes()).hexdigest()
        return Target(tensor_id, spec, selection), f"{selection.size} elements, sha256 {digest}"
    key = parse_key(region, spec.axes) if isinstance(region, str) else region
    return Target(tensor_id, spec, select(key, spec.shape), key), format_key(key)


def _check_readable(snapshot: Snapshot, traces: Traces) -> None:
    """Raise if a live file cannot be read that may hold the target: nothing can be taken from it."""
    files, name = snapshot.files, traces.target.tensor_id
    held = files.may_hold(name, True) | files.may_hold(name, False)
    for i in np.flatnonzero(held).tolist():
        if files.path[i] in traces.uncertified:
            raise CorruptDataError(
                f"{traces.uncertified[files.path[i]]}; it may hold tensor {name!r}, and nothing was purged: "
                "bring the file back from a backup, then purge again"
            )


def _check_gone(snapshot: Snapshot, traces: Traces) -> None:
    left = traces.held_by(snapshot)
    if left:
        raise CorruptDataError(
            f"{len(left)} files of version {snapshot.version} still hold what should be purged of tensor "
            f"{traces.target.tensor_id!r}, such as {left[0]}: the statistics of the log hide them; run "
            "lake.check(repair=True), then purge again"
        )


def _written(storage: Storage, tensor_id: str, before: int, after: int) -> tuple[WrittenFile, ...]:
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
            paths = [path_of(action) for action in adds]
            with reaching(storage):
                return tuple(
                    WrittenFile(path, int(action["size"]), sha256_of(storage, path))
                    for path, action in zip(paths, adds, strict=True)
                )
    return ()


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


def _remove(snapshot: Snapshot, meta: Meta | None, traces: Traces) -> Snapshot:
    """Commit a version without the target; a writer of another tensor that moves files is no hindrance."""
    target = traces.target
    if target.selection is not None:
        assert meta is not None  # nosec B101 # for mypy
        sparse = layout_of(meta.spec.layout).is_sparse
        put = assign_elements if sparse else assign
        nothing = np.zeros((), meta.spec.dtype) if sparse else meta.spec.fill_value
        return put(snapshot, meta, target.selection, nothing)

    def rest(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.not_equal(batch.column("id"), target.tensor_id))

    def drop(now: Snapshot) -> Snapshot:
        removes = traces.held_by(now)  # no listing of the folder: whoever is slow here never wins
        with FileWriter.into(now) as writer:
            for path in in_file_order(now, removes):
                rewrite(now, path, writer, rest)
            return commit_change(now, target.tensor_id, writer, removes, "purge", None)

    try:
        return recomputed(snapshot, target.tensor_id, drop)
    except StaleChange as stale:
        raise ConcurrentWriteError(
            f"{stale}; nothing was purged, run it again if it still holds"
        ) from stale
