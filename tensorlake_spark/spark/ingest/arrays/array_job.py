"""Arrays of files to tensors: looked at, planned, and written in pieces that a later run need not repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import tensorlake_spark
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark.ingest.arrays.array_discovery import Part, find_good_parts, find_parts
from tensorlake_spark.spark.ingest.arrays.array_plan import check_distinct, plan_slabs, plan_tensors
from tensorlake_spark.spark.ingest.arrays.array_sample import sample_density
from tensorlake_spark.spark.ingest.arrays.array_slabs import (
    Work,
    bands_of,
    fitting,
    joined_shape,
    slab_frame,
    tensor_frame,
)
from tensorlake_spark.spark.ingest.numbered_batches import (
    check_free,
    last_change,
    state,
    target_bytes,
    there,
)
from tensorlake_spark.spark.ingest.outcome import DONE, PLANNED, REPEATED, Outcome, Plan, Skipped
from tensorlake_spark.spark.ingest.pieces import Bands, Whole
from tensorlake_spark.spark.ingest.resume import Resumed, committed, name_of, resumed
from tensorlake_spark.spark.source.source_options import SparkWriteOptions, transaction_of
from tensorlake_spark.spark.source.write.direct_write import save
from tensorlake_spark.tensor.spec import dtype_of, fill_bytes
from tensorlake_spark.writing.options import auto_layout, tell_layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class ArrayJob:
    """What is to be done with arrays; see `tensorlake_spark.spark.ingest.ingestion.run`."""

    storage: Storage
    tensor_id: str
    how: str = "stack"
    axis: int = 0
    mode: str = "error"
    channels_first: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    resume: bool = False
    skip_bad: bool = False

    @property
    def join(self) -> int | None:
        """Along which axis parts are concatenated, None if they are stacked or stay apart."""
        return self.axis if self.how == "concat" else None


@dataclass(frozen=True, eq=False)
class _Ready:
    """A job that is looked at: what Spark reads and how it is written."""

    plan: Plan
    work: Work
    settings: Mapping[str, str]
    resumed: Resumed | None


def write_arrays(
    session: SparkSession, job: ArrayJob, paths: Sequence[str], gone: Sequence[Skipped] = ()
) -> Outcome:
    """Write the arrays of some files, or plan it; `gone` are sources that were left out before."""
    parts, skipped = _parts(session, job, paths)
    skipped = (*gone, *skipped)
    if not parts:
        reason = f": {skipped[0].reason}" if skipped else ""
        raise InvalidTensorError(
            f"none of {len(skipped)} sources is good{reason}"
            if skipped
            else "the sources hold no array"
        )
    if job.resume:
        earlier = _committed(job, parts)
        if earlier is not None:
            return replace(earlier, skipped=skipped)
    ready = (_tensors if job.how == "each" else _slabs)(session, job, parts)
    if not job.dry_run:
        work, settings = ready.work, {**ready.settings, "path": job.storage.uri}
        if ready.resumed is not None:
            ready.resumed.begin()
        try:
            save(work.tasks, work.make, work.schema, settings, job.mode == "overwrite")
        except BaseException:
            if ready.resumed is not None:
                ready.resumed.give_up()
            raise
    outcome = _outcome(job.storage, ready.plan, job.dry_run)
    if ready.resumed is not None:
        done, pieces = len(ready.resumed.done), ready.resumed.pieces
        outcome = replace(outcome, pieces=pieces, reused=done)
    return replace(outcome, skipped=skipped)


def _parts(
    session: SparkSession, job: ArrayJob, paths: Sequence[str]
) -> tuple[list[Part], tuple[Skipped, ...]]:
    """Return the arrays to be written and, if bad ones are to be skipped, those."""
    is_each = job.how == "each"
    if not job.skip_bad:
        return find_parts(session, paths, job.channels_first, is_each), ()
    if not paths:
        return [], ()
    parts, skipped = find_good_parts(session, paths, job.channels_first, is_each)
    if parts and not is_each:
        parts, misfits = fitting(parts, job.join)
        skipped = [*skipped, *misfits]
    return parts, tuple(skipped)


def _settings(job: ArrayJob) -> dict[str, str]:
    return {
        **job.options,
        **{f"storage.{name}": value for name, value in job.storage.options.items()},
    }


def _slabs(session: SparkSession, job: ArrayJob, parts: Sequence[Part]) -> _Ready:
    """Return how parts become one tensor."""
    old, number = state(job.storage, job.tensor_id)
    if job.mode == "error":
        check_free(job.storage, [] if old is None else [job.tensor_id])
    shape = joined_shape(parts, job.join)
    join = None if job.join is None else job.join % len(shape)
    settings = _settings(job)
    settings |= {"id": job.tensor_id, "axis": str(join or 0), "shape": ",".join(map(str, shape))}
    settings |= last_change(number)
    if job.mode != "append" or old is None:
        settings["layout"] = _layout(session, job, parts)
    plan = plan_slabs(job.storage, parts, settings, old if job.mode == "append" else None)
    block = plan.tensors[0].block_shape
    earlier = None
    if job.resume:
        earlier = _resumed(
            job, parts, bands_of(parts, join, block), [job.tensor_id], settings.get("layout", "")
        )
        settings["resumption"] = earlier.option.to_json()
    done = earlier.done if earlier is not None else ()
    target = target_bytes(job.storage)
    work = slab_frame(session, parts, join, block, job.channels_first, target, done)
    return _Ready(replace(plan, partitions=work.partitions), work, settings, earlier)


def _layout(session: SparkSession, job: ArrayJob, parts: Sequence[Part]) -> str:
    """Return the layout of a new tensor: the one that is asked for, or by how full a sample of the parts is."""
    given = SparkWriteOptions.parse({**job.options, "path": job.storage.uri}).write
    if given.layout != "auto":
        return given.layout
    is_filled = any(fill_bytes(given.fill_value, dtype_of(parts[0].dtype)))
    name, reason = auto_layout(0.0, given, is_filled)
    if name == "bsgs":  # for zeros alone, so it goes by the elements
        density = sample_density(session, parts, job.channels_first)
        name, reason = auto_layout(density, given, is_filled)
        reason = f"in a sample of it {reason}"
    tell_layout(job.tensor_id, name, reason)
    return name


def _tensors(session: SparkSession, job: ArrayJob, parts: Sequence[Part]) -> _Ready:
    """Return how each part becomes a tensor."""
    ids = _ids(job, parts)
    if job.mode != "overwrite":
        check_free(job.storage, there(job.storage, ids))
    check_distinct(ids)
    settings = _settings(job)
    plan = plan_tensors(job.storage, parts, ids, settings)
    earlier = None
    if job.resume:
        earlier = _resumed(job, parts, Whole({i: k for k, i in enumerate(ids)}), ids)
        settings["resumption"] = earlier.option.to_json()
    done = earlier.done if earlier is not None else ()
    target = target_bytes(job.storage)
    work = tensor_frame(session, parts, ids, job.channels_first, target, done)
    return _Ready(replace(plan, partitions=work.partitions), work, settings, earlier)


def _resumed(
    job: ArrayJob,
    parts: Sequence[Part],
    pieces: Bands | Whole,
    ids: Sequence[str],
    layout: str = "",
) -> Resumed:
    """Return what earlier runs have written of a job that is the same in everything that matters."""
    return resumed(job.storage, _name_of(job, parts), parts, pieces, ids, layout)


def _name_of(job: ArrayJob, parts: Sequence[Part]) -> str:
    """Return what the notes of a job are known by."""
    options = dict(job.options)
    same = [
        tensorlake_spark.__version__, job.tensor_id, job.how, job.axis, job.mode, job.channels_first, options,
    ]  # fmt: skip
    return name_of(job.tensor_id, transaction_of(options), same, parts)


def _committed(job: ArrayJob, parts: Sequence[Part]) -> Outcome | None:
    """Return what is there if an earlier run of a job was killed between its commit and its end, else None."""
    if not committed(job.storage, _name_of(job, parts), parts, job.dry_run):
        return None
    snapshot = Snapshot.open(job.storage)
    ids = set(_ids(job, parts) if job.how == "each" else [job.tensor_id])
    metas = tuple(meta for meta in catalog.metas(snapshot) if meta.spec.id in ids)
    return Outcome(REPEATED, metas, version=snapshot.version)


def _ids(job: ArrayJob, parts: Sequence[Part]) -> list[str]:
    """Return the tensors that parts become which stay apart."""
    return [f"{job.tensor_id}/{p.name}" for p in parts]


def _outcome(storage: Storage, plan: Plan, dry_run: bool) -> Outcome:
    if dry_run:
        return Outcome(PLANNED, plan=plan, files=plan.files)
    snapshot = Snapshot.open(storage)
    ids = [spec.id for spec in plan.tensors]
    if len(ids) == 1:
        return Outcome(DONE, (catalog.get(snapshot, ids[0]),), plan, snapshot.version, plan.files)
    found = {meta.spec.id: meta for meta in catalog.metas(snapshot)}
    return Outcome(DONE, tuple(found[i] for i in ids), plan, snapshot.version, plan.files)
