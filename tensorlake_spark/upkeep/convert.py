"""A tensor written anew in another layout, other blocks or another codec: in one process, or by executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count, pairwise

import numpy as np

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.runner import Output, Run, run_here
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import StaleChange
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError, InvalidOptionError
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.reading.read import check_rows
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.lake_source import StoredSource
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.pipeline import (
    commit_change,
    drop_tensors,
    put,
    recomputed,
    writer_of,
)

_SEQ_BITS = 32  # the rows of a region are numbered from its own number on, shifted by so many bits


def convert(
    snapshot: Snapshot,
    tensor_id: str,
    options: WriteOptions,
    progress: Callable[[int], None],
    run: Run = run_here,
    pieces: int = 1,
    verify: bool = True,
) -> Snapshot:
    """Write a tensor anew, slab by slab, and return the version that has it; see `TensorLake.convert`.

    Parameters
    ----------
    snapshot : Snapshot
        A version with the tensor.
    tensor_id : str
        Which tensor.
    options : WriteOptions
        What it becomes.
    progress : callable
        Called with the bytes of every region that is done.
    run, pieces : callable, int
        Who does it, and in how many pieces at the most; the commit is made here.
    verify : bool
        Whether lost rows are an error. Else they become zeros for good.
    """
    snapshot.check_writable()
    old = catalog.get(snapshot, tensor_id)

    def write_anew(now: Snapshot) -> Snapshot:
        if verify:
            check_rows(now, old)
        return _written(now, old, options, progress, run, pieces)

    try:
        return recomputed(snapshot, tensor_id, write_anew)
    except StaleChange as stale:
        raise ConcurrentWriteError(f"{stale}; it was not converted, run it again") from stale


def convert_in(
    snapshot: Snapshot,
    old: Meta,
    options: WriteOptions,
    progress: Callable[[int], None],
    verify: bool = True,
) -> Snapshot:
    """Write a tensor of a version anew, by this process and in one go; return the version that has it.

    The parameters are those of `convert`.
    """
    if verify:
        check_rows(snapshot, old)
    spec = _new_spec(old, StoredSource(snapshot, old), options)
    source = StoredSource(snapshot, old, dense=not stored_layout(spec).is_sparse)
    with writer_of(snapshot, spec) as writer:
        seqs = count()
        totals = put(writer, spec, source, (0,) * spec.ndim, seqs, progress)
        removes = drop_tensors(snapshot, [spec.id], writer)
        writer.add_meta([spec], [next(seqs)], [totals])
        return commit_change(snapshot, spec.id, writer, removes, "convert", None)


def _new_spec(old: Meta, source: StoredSource, options: WriteOptions) -> TensorSpec:
    """Return the spec that a tensor gets."""
    spec = new_spec(old.spec.id, source, options)
    rule = old.spec.params.get("duplicates")
    if rule is not None and stored_layout(spec).is_sparse:  # later appends go by it
        spec = replace(spec, params={**spec.params, "duplicates": rule})
    return spec


def _written(
    snapshot: Snapshot,
    old: Meta,
    options: WriteOptions,
    progress: Callable[[int], None],
    run: Run,
    pieces: int,
) -> Snapshot:
    source = StoredSource(snapshot, old)
    spec = _new_spec(old, source, options)
    regions = source.count(spec.block_shape or ())
    cuts = np.linspace(0, regions, max(1, min(pieces, regions)) + 1).astype(int).tolist()
    made: list[DataFile] = []
    totals = Totals()
    try:
        work = partial(_encode, snapshot, old, spec, regions, progress)
        for _, output in run(work, [*pairwise(cuts)]):
            made += output.files
            totals += output.totals
        with FileWriter.into(snapshot) as writer:
            removes = drop_tensors(snapshot, [spec.id], writer)
            writer.add_meta([spec], [regions << _SEQ_BITS], [totals])
            return commit_change(snapshot, spec.id, writer, removes, "convert", None, made)
    except BaseException:
        discard(snapshot.storage, [file.path for file in made])
        raise


def _encode(
    snapshot: Snapshot,
    old: Meta,
    spec: TensorSpec,
    regions: int,
    progress: Callable[[int], None],
    part: tuple[int, int],
) -> Output:
    """Read some regions of the tensor as it is, and write them as it becomes."""
    first, stop = part
    source = StoredSource(snapshot, old, first, stop, not stored_layout(spec).is_sparse)
    if source.count(spec.block_shape or ()) != regions:
        raise InvalidOptionError(
            f"the driver cuts tensor {spec.id!r} into {regions} regions, an executor does not: they run "
            "different versions of tensorlake_spark; install the same one on all"
        )
    with writer_of(snapshot, spec) as writer:
        seqs = count(first << _SEQ_BITS)
        totals = put(writer, spec, source, (0,) * spec.ndim, seqs, progress)
        return Output(tuple(writer.finish()), totals)
