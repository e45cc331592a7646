"""What an ingestion of cells would write: all records are looked at, as for writing, and none is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.labels import Labels, Listed, check_labels
from tensorlake_spark.row import Meta
from tensorlake_spark.spark.cells import Cells
from tensorlake_spark.spark.coordinates import Measured, bounded, listed, look
from tensorlake_spark.spark.grouping import group_cells
from tensorlake_spark.spark.ingest_cells import _block, _integers, _Job, _job, _mapped, _settings
from tensorlake_spark.spark.options import SparkWriteOptions
from tensorlake_spark.spark.outcome import Plan
from tensorlake_spark.spark.tables import CellOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plan_cells(
    session: SparkSession,
    storage: Storage,
    tensor_id: str,
    paths: Sequence[str],
    family: str,
    choices: CellOptions,
    *,
    old: Meta | None = None,
    options: Mapping[str, str] | None = None,
) -> Plan:
    """Return what `ingest_cells` would write; parameters and errors are those.

    The steps are those of ``ingest_cells._write`` up to the write; a change there belongs here, too.
    """
    given = dict(options or {})
    asked = _integers(given.pop("shape", None))
    conf = {
        "spark.sql.session.timeZone": choices.timezone,
        "spark.sql.parquet.columnarReaderBatchSize": "4096",
    }
    with _settings(session, conf):
        job = _job(session, paths, family, choices, old, given)
        if asked is not None and len(asked) != len(job.axes):
            raise InvalidOptionError(f"--shape {asked} has {len(asked)} axes, not {len(job.axes)}")
        measured = Measured.of(job.records, job.axes, job.value, job.dtype)
        try:
            return _plan(session, measured.decided(), asked, job, storage, tensor_id, given, paths)
        finally:
            measured.frame.unpersist()


def _plan(
    session: SparkSession,
    measured: Measured,
    asked: tuple[int, ...] | None,
    job: _Job,
    storage: Storage,
    tensor_id: str,
    given: dict[str, str],
    paths: Sequence[str],
) -> Plan:
    old = None if job.old is None else job.old.spec
    found = look(measured)
    measured, lengths = bounded(measured, found, asked)
    numbered = listed(measured, {} if old is None else dict(old.labels))
    labels: dict[str, Labels] = {}
    for k, axis in enumerate(measured.axes):
        kept = axis.settled.labels() if axis.settled.is_regular else Listed(numbered[k][0])
        labels |= {} if kept is None else {axis.name: kept}
        lengths[k] = len(numbered[k][0]) if k in numbered else lengths[k]
    floors = [job.least_shape or lengths, lengths if old is None else old.shape]
    shape = asked or tuple(max(sides) for sides in zip(lengths, *floors, strict=True))
    cells = _mapped(session, measured, {k: places for k, (_, places) in numbered.items()})
    block = old.block_shape if old is not None else _block(shape, job.dtype, found.cells, given)
    names = [axis.name for axis in measured.axes]
    group_cells(cells, shape, block or (1,) * len(shape), names)  # raises if the block will not do
    given["shape"] = ",".join(map(str, shape))
    options = SparkWriteOptions.parse({**given, "id": tensor_id, "path": storage.uri})
    spec = replace(Cells(options, cells.schema, job.old).spec, shape=shape, labels={})
    if old is None:
        check_labels(labels, spec.axes, shape)
    tasks = int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    return Plan(tuple(paths), (spec,), (shape,), tasks, found.cells)
