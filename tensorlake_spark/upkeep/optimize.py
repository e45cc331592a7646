"""A table's files as reads want them: few instead of many, or rows in Morton order."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.compacting.compaction import (
    OptimizeReport,
    check_options,
    compact,
    target_of,
)
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts import LAYOUTS, Layout
from tensorlake_spark.tensor.spec import listed_ids
from tensorlake_spark.upkeep.zorder import arrange, axes_of, keeps_order

logger = logging.getLogger("tensorlake_spark")


def optimize(
    storage: Storage,
    ids: str | Sequence[str] | None = None,
    *,
    zorder: Sequence[str | int] | None = None,
    min_files: int = 2,
    target_bytes: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
    run: Run = run_here,
) -> OptimizeReport:
    """Compact a table's files, or bring rows of tensors into Morton order; see `TensorLake.optimize`.

    Parameters
    ----------
    run : callable
        Who writes the files; commits are made here.
    """
    snapshot = Snapshot.open(storage)
    snapshot.check_writable()
    target = target_of(snapshot, target_bytes)
    check_options(min_files, target, max_bytes)
    if zorder is not None and not isinstance(zorder, Sequence):
        raise InvalidOptionError(
            f"zorder={zorder!r} is no list of axes; name them, such as zorder=['y', 'x'] or zorder=[0, 1]"
        )
    names = None if ids is None else listed_ids(ids)
    for name in names or ():  # before the first is written anew
        spec = catalog.get(snapshot, name).spec
        if zorder is not None:
            axes_of(spec, zorder)
    if zorder is None:
        return compact(
            storage, names, row_group_bytes, min_files=min_files, target_bytes=target,
            max_bytes=max_bytes, dry_run=dry_run, run=run,
        )  # fmt: skip
    done = OptimizeReport(0, 0, 0, 0, 0, snapshot.version)
    for name in _orderable(snapshot, zorder) if names is None else names:
        left = None if max_bytes is None else max_bytes - done.bytes_before
        done += arrange(
            Snapshot.open(storage), name, zorder, target_bytes=target, max_bytes=left,
            dry_run=dry_run, run=run,
        )  # fmt: skip
    return done


def row_group_bytes(layout: str) -> int:
    """Return how large the row groups of a layout become, of one from a later release as well."""
    return LAYOUTS.get(layout, Layout).row_group_bytes


def _orderable(snapshot: Snapshot, zorder: Sequence[str | int]) -> list[str]:
    """Return the tensors that have these axes, and whose rows may change places.

    Raises
    ------
    InvalidOptionError
        If no tensor of the table has these axes.
    """
    out, wrong = [], []
    for meta in catalog.metas(snapshot):
        if keeps_order(meta.spec):
            logger.info("tensor %r combines duplicates; it stays as it is", meta.spec.id)
            continue
        try:
            axes_of(meta.spec, zorder)
        except InvalidOptionError as error:
            logger.info("%s; it stays as it is", error)
            wrong.append(error)
        else:
            out.append(meta.spec.id)
    if wrong and not out:
        raise wrong[0]
    return out
