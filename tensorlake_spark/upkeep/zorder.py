"""The rows of a tensor in Morton order, for slices on inner axes; rows move as they are, none is decoded.

A row group of rows in C order spans whole inner axes, so a box on these reads a part of every row group. In
Morton order a row group holds rows that are near each other on all chosen axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files import catalog, scan
from tensorlake_spark.delta.files.compacting.compaction import OptimizeReport
from tensorlake_spark.delta.files.compacting.rewrite import in_file_order, live_batches
from tensorlake_spark.delta.files.footer import footer_of
from tensorlake_spark.delta.files.runner import Output, Run, run_here
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing import morton_order
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.rows.row import corners, is_data, payload_sizes
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec
from tensorlake_spark.writing.pipeline import recomputed

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Where the data rows of a tensor are: a place in every array for each row."""

    file: Array
    group: Array
    seq: Array
    lo: Array
    nbytes: Array

    def take(self, places: Array) -> _Rows:
        return _Rows(*(getattr(self, name)[places] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class _Task:
    """One file to write: its rows by their old places, in the new order, and where to find them.

    The new places are the old ones sorted: no append that goes on meanwhile can have taken them. `step` says
    how far the curve goes to each row, as `_steps` has it.
    """

    old: Array
    new: Array
    step: Array
    groups: tuple[tuple[str, tuple[int, ...]], ...]


def keeps_order(spec: TensorSpec) -> bool:
    """Return whether the order of a tensor's rows means something, so that they may not change places."""
    return bool(spec.params.get("duplicates", "error") != "error")


def axes_of(spec: TensorSpec, names: Sequence[str | int]) -> tuple[int, ...]:
    """Return the numbers of the axes by which rows of a tensor can be put in order.

    Raises
    ------
    InvalidOptionError
        If the tensor has no such axis, if it is one of those whose corners are not compared, or if the order
        of the rows means something (duplicates).
    """
    if keeps_order(spec):
        raise InvalidOptionError(
            f"tensor {spec.id!r} combines duplicates by {spec.params['duplicates']!r} in the order of its rows, "
            "which must stay; to combine them now and lose the rule, write it over itself: "
            f"lake.write({spec.id!r}, lake[{spec.id!r}], mode='overwrite'), with its layout, axes, labels and attrs"
        )
    out = []
    for name in names:
        text = str(name)
        if spec.axes is not None and text in spec.axes:
            axis = spec.axes.index(text)
        elif text.lstrip("-").isdigit() and -spec.ndim <= int(text) < spec.ndim:
            axis = int(text) % spec.ndim
        else:
            known = (
                f"its axes are {', '.join(spec.axes)}" if spec.axes else f"it has {spec.ndim} axes"
            )
            raise InvalidOptionError(f"tensor {spec.id!r} has no axis {text!r}; {known}")
        if axis >= STORED_AXES:
            raise InvalidOptionError(
                f"axis {text} of tensor {spec.id!r} is past the first {STORED_AXES}, by which rows are found"
            )
        out.append(axis)
    if not out or len(set(out)) < len(out):
        raise InvalidOptionError(f"zorder {list(names)} should name axes, each of them once")
    return tuple(out)


def arrange(
    snapshot: Snapshot,
    tensor_id: str,
    names: Sequence[str | int],
    *,
    target_bytes: int,
    max_bytes: int | None = None,
    dry_run: bool = False,
    run: Run = run_here,
) -> OptimizeReport:
    """Write a tensor's rows anew in Morton order, in one commit; see `TensorLake.optimize`.

    Only files that are not in that order, and small ones, are written anew; one with a deletion vector stays.

    Raises
    ------
    InvalidOptionError
        As `axes_of`; also if rows share a place, as no writer of this package leaves them.
    ConcurrentWriteError
        If other writers removed files of it during every attempt.
    """

    def change(now: Snapshot) -> OptimizeReport:
        return _arranged(now, tensor_id, names, target_bytes, max_bytes, dry_run, run)

    return recomputed(snapshot, tensor_id, change)


def _arranged(
    snapshot: Snapshot,
    tensor_id: str,
    names: Sequence[str | int],
    target: int,
    max_bytes: int | None,
    dry_run: bool,
    run: Run,
) -> OptimizeReport:
    spec = catalog.get(snapshot, tensor_id).spec
    axes = axes_of(spec, names)
    files = snapshot.files
    rows = _rows_of(snapshot, spec)
    if len(np.unique(rows.seq)) < len(rows.seq):
        raise InvalidOptionError(
            f"rows of tensor {tensor_id!r} share a place (seq) in its order, so they cannot be told apart; "
            "lake.convert() writes them anew with places of their own"
        )
    # Corners become numbers of boxes along each axis, whatever their sizes.
    places = np.stack([np.unique(rows.lo[:, k], return_inverse=True)[1] for k in axes], axis=1)
    loose = np.array([snapshot.kept(path) is None for path in files.path], bool)  # may be removed
    chosen = _unordered(np.where(loose, files.size, -1), rows, places, target)
    size = int(files.size[chosen].sum())
    if not len(chosen) or (max_bytes is not None and size > max_bytes):
        return OptimizeReport(0, 0, 0, 0, 0, snapshot.version)
    mine = np.flatnonzero(np.isin(rows.file, chosen))
    rows = rows.take(mine)
    order = _order(rows, places[mine])
    tasks = _tasks(files.path, rows.take(order), _steps(places[mine][order]), target)
    if dry_run:
        count = len(rows.seq)
        return OptimizeReport(len(chosen), len(tasks), size, size, count, snapshot.version)
    return _swap(snapshot, spec, [files.path[i] for i in chosen.tolist()], size, tasks, run)


def _swap(
    snapshot: Snapshot,
    spec: TensorSpec,
    paths: Sequence[str],
    size: int,
    tasks: Sequence[_Task],
    run: Run,
) -> OptimizeReport:
    """Write the new files and swap them for the old ones."""
    made: list[DataFile] = []
    try:
        for _, output in run(partial(_gather, snapshot, spec), tasks):
            made += output.files
        with FileWriter.into(snapshot) as writer:
            for path in in_file_order(snapshot, paths):
                footer = footer_of(snapshot.storage, path)
                shared = [
                    g for g in range(len(footer.rows)) if not footer.holds_only(spec.id, g)
                ]  # the others were read already
                for batch in live_batches(snapshot, path, shared):
                    rest = batch.filter(pc.invert(is_data(batch, spec.id)))
                    if rest.num_rows:
                        writer.add_batch(rest)
            made += writer.finish()
        change = Change({}, made, paths, "zorder", data_change=False)
        after = commit(snapshot.storage, change)
    except BaseException:
        discard(snapshot.storage, [file.path for file in made])
        raise
    rows = sum(file.rows for file in made)
    nbytes = sum(file.size for file in made)
    return OptimizeReport(len(paths), len(made), size, nbytes, rows, after.version)


def _rows_of(snapshot: Snapshot, spec: TensorSpec) -> _Rows:
    """Return where all data rows of a tensor are; no payload is read."""
    files = snapshot.files
    columns = scan.leaves(("seq", "lo", "hi", "params"), spec.ndim)
    parts: list[_Rows] = []
    for place in files.places_of(spec.id, data=True).tolist():
        path = files.path[place]
        footer = footer_of(snapshot.storage, path)
        keep = snapshot.kept(path)
        for group in np.flatnonzero(footer.may_hold(spec.id, data=True)).tolist():
            piece = scan.ScanPiece(path, (group,), int(footer.nbytes[group]))
            for batch in scan.read_piece(snapshot.storage, piece, spec.id, columns, keep):
                n = batch.num_rows
                each = int(footer.nbytes[group]) // max(1, int(footer.rows[group]))
                lo, _ = corners(batch, spec.ndim)
                where = np.full(n, place), np.full(n, group), batch.column("seq").to_numpy()
                parts.append(_Rows(*where, lo, np.full(n, each)))
    if not parts:
        empty = np.zeros(0, np.int64)
        return _Rows(empty, empty, empty, np.zeros((0, spec.ndim), np.int64), empty)
    names = _Rows.__dataclass_fields__
    return _Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _order(rows: _Rows, places: Array) -> Array:
    """Return rows in Morton order of their places; where these are alike, in storage order."""
    stored = np.argsort(rows.seq, kind="stable")
    return stored[morton_order(places[stored])]


def _unordered(sizes: Array, rows: _Rows, places: Array, target: int) -> Array:
    """Return the files that are small or not in Morton order; none if that is one small file in order.

    A file whose size is negative stays.
    """
    chosen, in_order = [], True
    for file in np.unique(rows.file).tolist():
        if sizes[file] < 0:
            continue
        mine = np.flatnonzero(rows.file == file)
        some = rows.take(mine)
        ordered = bool((np.diff(some.seq[_order(some, places[mine])]) > 0).all())
        if not ordered or sizes[file] < target // 2:
            chosen.append(file)
            in_order &= ordered
    if len(chosen) == 1 and in_order:
        return np.zeros(0, np.int64)
    return np.array(chosen, np.int64)


def _steps(places: Array) -> Array:
    """Return for each row in Morton order the size, as a power of two, of the cube that it leaves behind."""
    steps = np.zeros(len(places), np.int8)
    changed = places[1:] ^ places[:-1]
    steps[1:] = np.frexp(changed.max(axis=1).astype(np.float64))[1]
    return steps


def _cuts(nbytes: Array, steps: Array, limit: int) -> list[int]:
    """Return where rows are cut into runs of at most `limit` bytes: where the curve makes its widest step.

    So a run is a cube, or few of them, where its last half has such a place.
    """
    ends = np.cumsum(nbytes)
    cuts = [0]
    while cuts[-1] < len(ends):
        first = cuts[-1]
        done = int(ends[first - 1]) if first else 0
        most = max(first + 1, int(np.searchsorted(ends, done + limit, side="right")))
        if most < len(ends):
            least = first + (most - first + 1) // 2
            most -= int(np.argmax(steps[least : most + 1][::-1]))
        cuts.append(most)
    return cuts


def _tasks(paths: Sequence[str], rows: _Rows, steps: Array, target: int) -> list[_Task]:
    """Cut rows in their new order into files of about `target` bytes."""
    cuts = _cuts(rows.nbytes, steps, target)
    new = np.sort(rows.seq)
    tasks = []
    for first, stop in pairwise(cuts):
        groups: dict[str, set[int]] = {}
        for place, group in {*zip(rows.file[first:stop].tolist(), rows.group[first:stop].tolist())}:
            groups.setdefault(paths[place], set()).add(group)
        found = tuple((path, tuple(sorted(groups[path]))) for path in sorted(groups))
        tasks.append(_Task(rows.seq[first:stop], new[first:stop], steps[first:stop], found))
    return tasks


def _gather(snapshot: Snapshot, spec: TensorSpec, task: _Task) -> Output:
    """Bring the rows of one new file together, and write them with their new places."""
    by_seq = np.argsort(task.old)
    seqs = task.old[by_seq]
    parts, places = [], []
    for path, groups in task.groups:
        for batch in live_batches(snapshot, path, groups):
            batch = batch.filter(is_data(batch, spec.id))
            seq = batch.column("seq").to_numpy()
            at = np.minimum(np.searchsorted(seqs, seq), len(seqs) - 1)
            ours = np.flatnonzero(seqs[at] == seq)
            if len(ours):
                parts.append(batch.take(pa.array(ours)))
                places.append(by_seq[at[ours]])
    rows = pa.concat_batches(parts)
    order = np.argsort(np.concatenate(places))
    del parts
    limit = stored_layout(spec).row_group_bytes
    with FileWriter(snapshot.storage, 1 << 62, schema=snapshot.schema) as writer:
        cuts = _cuts(payload_sizes(rows)[order], task.step, limit)
        for first, stop in pairwise(cuts):
            group = rows.take(pa.array(order[first:stop]))
            place = group.schema.get_field_index("seq")
            seq = pa.array(task.new[first:stop])
            writer.add_batch(group.set_column(place, group.schema.field(place), seq))
        return Output(tuple(writer.finish()))
