"""Changes of a tensor: written anew, deleted, described, each by one commit."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.commit import StaleChange
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    TensorExistsError,
    did_you_mean,
)
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.spec import TensorSpec, check_id
from tensorlake_spark.writing.app_transaction import is_repeated
from tensorlake_spark.writing.append import append, unite
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.pipeline import (
    commit_change,
    drop_tensors,
    length_of,
    put,
    recomputed,
    writer_of,
)
from tensorlake_spark.writing.source import Source, suited

logger = logging.getLogger("tensorlake_spark")

MODES = ("error", "overwrite", "append")


def check_mode(mode: str) -> None:
    """Raise InvalidOptionError unless `mode` is one of `MODES`."""
    if not isinstance(mode, str) or mode not in MODES:
        raise InvalidOptionError(
            f"unknown mode {mode!r:.80}{did_you_mean(str(mode), MODES)}; known are {', '.join(MODES)}"
        )


def check_axis(axis: int | None) -> int | None:
    """Return an axis as an int, or None; raise InvalidOptionError if it is neither."""
    try:
        return None if axis is None else operator.index(axis)
    except TypeError:
        raise InvalidOptionError(
            f"axis={axis!r} is not a whole number; it counts axes from 0, or from the last one with -1"
        ) from None


def write(
    storage: Storage,
    tensor_id: str,
    source: Source,
    mode: str,
    axis: int | None,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    """Write a tensor and return the version that has it; see `TensorLake.write`."""
    check_id(tensor_id)

    def change(now: Snapshot) -> Snapshot:
        now.check_writable()
        if is_repeated(now, options.transaction, tensor_id):
            logger.info(
                "transaction %s is committed already; nothing is written", options.transaction
            )
            return now
        old = catalog.find(now, tensor_id)
        return write_to(now, tensor_id, old, source, mode, axis, options, progress)

    def again(stale: StaleChange) -> bool:
        return (mode == "append" or stale.moved) and hasattr(source, "data")

    try:
        return recomputed(Snapshot.newest(storage), tensor_id, change, again)
    except StaleChange as stale:
        raise ConcurrentWriteError(
            f"{stale} of {storage.uri}; nothing of this write was committed, run it again if it "
            "still holds"
        ) from stale


def write_to(
    snapshot: Snapshot,
    tensor_id: str,
    old: Meta | None,
    source: Source,
    mode: str,
    axis: int | None,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    """Write a tensor, which is `old` in a version, and return the version that has it.

    Raises
    ------
    TensorExistsError
        If it is there, and the mode is ``"error"``.
    StaleChange
        If another writer was faster.
    """
    if old is None or mode == "overwrite":
        return _write_new(snapshot, tensor_id, old, source, options, progress)
    if mode == "error":
        raise TensorExistsError(
            f"tensor {tensor_id!r} exists in {snapshot.storage.uri}; write with mode='overwrite' or "
            "mode='append', or under another id"
        )
    if axis is None:
        return unite(snapshot, old, source, options, progress)
    return append(snapshot, old, source, axis, options, progress)


def _write_new(
    snapshot: Snapshot,
    tensor_id: str,
    old: Meta | None,
    source: Source,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    spec = new_spec(tensor_id, source, options)
    layout = layout_of(spec.layout)
    source = suited(source, layout.is_sparse, layout.leading_axis(spec))
    with writer_of(snapshot, spec) as writer:
        seqs = count()
        totals = put(writer, spec, source, (0,) * spec.ndim, seqs, progress)
        spec = replace(spec, shape=length_of(source, spec.shape))
        removes = drop_tensors(snapshot, [tensor_id], writer) if old is not None else []
        writer.add_meta([spec], [next(seqs)], [totals])
        return commit_change(snapshot, tensor_id, writer, removes, "write", options.transaction)


def delete(storage: Storage, tensor_id: str) -> Snapshot:
    """Remove a tensor from the newest version; older versions keep it until VACUUM."""
    snapshot = Snapshot.newest(storage)
    snapshot.check_writable()
    catalog.get(snapshot, tensor_id)
    try:
        return recomputed(snapshot, tensor_id, lambda now: delete_from(now, tensor_id))
    except StaleChange as stale:
        raise ConcurrentWriteError(f"{stale}; it was not deleted") from stale


def delete_from(snapshot: Snapshot, tensor_id: str) -> Snapshot:
    """Remove a tensor that is in a version, and return the version without it."""
    with writer_of(snapshot) as writer:
        removes = drop_tensors(snapshot, [tensor_id], writer)
        return commit_change(snapshot, tensor_id, writer, removes, "delete", None)


def describe(
    storage: Storage, tensor_id: str, change: Callable[[TensorSpec], TensorSpec]
) -> Snapshot:
    """Change what the metadata row says; writes no data."""

    def described(now: Snapshot) -> Snapshot:
        now.check_writable()
        return describe_in(now, catalog.get(now, tensor_id), change)

    return recomputed(Snapshot.newest(storage), tensor_id, described, lambda _: True)


def describe_in(
    snapshot: Snapshot, meta: Meta, change: Callable[[TensorSpec], TensorSpec]
) -> Snapshot:
    """Change what the metadata row of a tensor says that is in a version; return the next version."""
    with writer_of(snapshot) as writer:
        writer.add_meta([change(meta.spec)], [meta.seq + 1], [meta.totals])
        return commit_change(snapshot, meta.spec.id, writer, [], "describe", None)
