"""A tensor, or a part of it, taken out of the newest version: tasks write its files anew, one commit swaps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.compacting.rewrite import in_file_order, rewrite
from tensorlake_spark.delta.files.runner import Output, Run, run_here
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import StaleChange
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.editing import assignment, sparse_assignment
from tensorlake_spark.writing.pipeline import commit_change, recomputed, writer_of

_MOST_READ = 4  # what a task reads at the most, in files of the table's size
_TASK_ROWS = 32  # bits: so many places in a tensor's storage order are a task's own

_Share = tuple[int, tuple[str, ...]]
"""What a task writes anew: its number, and files that are neighbours."""


def remove_tensor(
    snapshot: Snapshot,
    tensor_id: str,
    holding: Callable[[Snapshot], list[str]],
    held: Mapping[str, int],
    run: Run = run_here,
) -> Snapshot:
    """Commit a version without a tensor; a writer of another one that moves files is no hindrance.

    Parameters
    ----------
    snapshot : Snapshot
        The version that the caller saw; the tensor must not have changed since.
    tensor_id : str
        Which tensor.
    holding : callable
        Takes a version, returns its files that hold rows of the tensor.
    held : mapping of str to int
        How many rows of it each of these files holds; read after `holding` was called.
    run : callable
        Who writes files anew.

    Raises
    ------
    ConcurrentWriteError
        If another writer changed the tensor since `snapshot`.
    """

    def drop(now: Snapshot) -> Snapshot:
        removes = holding(now)
        made: list[DataFile] = []
        try:
            work = partial(_rest, now, tensor_id)
            for _, output in run(work, _shares(now, removes, held)):
                made += output.files
            with FileWriter.into(now) as writer:
                return commit_change(now, tensor_id, writer, removes, "purge", None, made)
        except BaseException:
            discard(now.storage, [file.path for file in made])
            raise

    try:
        return recomputed(snapshot, tensor_id, drop)
    except StaleChange as stale:
        raise ConcurrentWriteError(
            f"{stale}; nothing was purged, run it again if it still holds"
        ) from stale


def clear_part(
    snapshot: Snapshot, meta: Meta, selection: AnySelection, run: Run = run_here
) -> Snapshot:
    """Commit a version in which a part of a tensor holds nothing: fill values, or no elements of a sparse one.

    Parameters
    ----------
    snapshot : Snapshot
        The version that the caller saw; the tensor must not have changed since.
    meta : Meta
        The tensor in it.
    selection : Selection, PointSelection or MixedSelection
        The part.
    run : callable
        Who writes files anew.

    Raises
    ------
    ConcurrentWriteError
        If another writer changed the tensor since `snapshot`.
    """
    spec = meta.spec
    kind = sparse_assignment if stored_layout(spec).is_sparse else assignment

    def clear(now: Snapshot) -> Snapshot:
        removes = kind.hit_files(now, spec, selection)
        made: list[DataFile] = []
        totals, place = meta.totals, meta.seq + 1
        try:
            shares = _cleared_shares(now, spec, removes)
            work = partial(_cleared, now, meta, selection, len(shares) == 1)
            for _, (output, last) in run(work, shares):
                made += output.files
                totals, place = totals + output.totals, max(place, last)
            with writer_of(now, spec) as writer:
                if len(shares) != 1:
                    writer.add_meta([spec], [place], [totals])
                return commit_change(now, spec.id, writer, removes, "assign", None, made)
        except BaseException:
            discard(now.storage, [file.path for file in made])
            raise

    return assignment.commit_assignment(snapshot, spec, selection, clear)


def _shares(snapshot: Snapshot, paths: Sequence[str], held: Mapping[str, int]) -> list[_Share]:
    """Cut files that are written anew into runs of neighbours: what is left of a run makes about a file.

    `held` says how many rows of each file go.
    """
    files, target = snapshot.files, snapshot.file_bytes
    out: list[list[str]] = []
    read = left = 0
    for path in in_file_order(snapshot, paths):
        place = snapshot.places[path]
        size, rows = int(files.size[place]), max(1, int(files.rows[place]))
        rest = size * max(0, rows - held.get(path, 0)) // rows
        if not out or read + size > target * _MOST_READ or left + rest > target:
            out.append([])
            read = left = 0
        out[-1].append(path)
        read, left = read + size, left + rest
    return [(number, tuple(share)) for number, share in enumerate(out)]


def _cleared_shares(snapshot: Snapshot, spec: TensorSpec, paths: Sequence[str]) -> list[_Share]:
    """Return the shares of a tensor's files; they are one where elements may be stored twice.

    Then the order of all rows says which of them counts.
    """
    if spec.params.get("duplicates", "error") != "error":
        return [(0, tuple(paths))] if paths else []
    return _shares(snapshot, paths, {})


def _rest(snapshot: Snapshot, tensor_id: str, share: _Share) -> Output:
    """Write the rows of some files anew that are not a tensor's."""

    def edit(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.not_equal(batch.column("id"), tensor_id))

    with FileWriter.into(snapshot) as writer:
        for path in share[1]:
            rewrite(snapshot, path, writer, edit)
        return Output(tuple(writer.finish()))


def _cleared(
    snapshot: Snapshot, meta: Meta, selection: AnySelection, is_alone: bool, share: _Share
) -> tuple[Output, int]:
    """Write some files anew, in which a part of a tensor holds nothing; return also the first place that is free.

    The totals are what came minus what went. A share that is alone ends with the tensor's metadata row.
    """
    number, paths = share
    spec, first = meta.spec, meta.seq + 1 + (number << _TASK_ROWS)
    kind = sparse_assignment if stored_layout(spec).is_sparse else assignment
    with writer_of(snapshot, spec) as writer:
        seqs: Iterator[int] = count(first)
        change = kind.clear_rows(snapshot, spec, selection, paths, writer, seqs)
        place = next(seqs)
        if is_alone:
            writer.add_meta([spec], [place], [meta.totals + change])
        return Output(tuple(writer.finish()), change), place if place > first else meta.seq + 1
