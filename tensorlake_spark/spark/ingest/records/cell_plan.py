"""What an ingestion of cells would write: all records are looked at, as for writing, and none is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.ingest.outcome import Plan
from tensorlake_spark.spark.ingest.records.cell_job import prepared
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions
from tensorlake_spark.spark.source.options import SparkWriteOptions
from tensorlake_spark.spark.source.write.cells import Cells
from tensorlake_spark.tensor.labels import check_labels

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
    """Return what `ingest_cells` would write; parameters and errors are those."""
    with prepared(session, paths, family, choices, old=old, options=options) as ready:
        given = SparkWriteOptions.parse({**ready.options, "id": tensor_id, "path": storage.uri})
        spec = replace(Cells(given, ready.cells.schema, old).spec, shape=ready.shape, labels={})
        if old is None:
            check_labels(given.write.labels, spec.axes, ready.shape)
        tasks = int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        return Plan(tuple(paths), (spec,), (ready.shape,), tasks, ready.found.records)
