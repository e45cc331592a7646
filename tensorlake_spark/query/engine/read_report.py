"""What a query reads, in files and bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import read_column
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.query.engine.leaf_values import payload_bytes, tile_bytes
from tensorlake_spark.query.engine.row_batches import is_beside, parts_needed
from tensorlake_spark.query.engine.running import PlanRun
from tensorlake_spark.query.engine.shape_values import stand_ins
from tensorlake_spark.query.functions.expressions import text_of
from tensorlake_spark.query.functions.needed_parts import Key
from tensorlake_spark.query.planning.plan import Plan
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import Lazy, TensorLeaf


@dataclass(frozen=True)
class ScalarRead:
    """What DuckDB may read of a source.

    Attributes
    ----------
    name, uri : str
        What the query calls it, and where it is.
    version : int, or None
        Its version.
    columns : tuple of str
        The columns.
    files, rows : int
        All that it has.
    bytes : int
        Of these columns in the row groups that are needed.
    row_groups, row_groups_needed : int
        All of a dataset, and those that conditions on stored columns do not rule out.
    """

    name: str
    uri: str
    version: int | None
    columns: tuple[str, ...]
    files: int
    rows: int
    bytes: int
    row_groups: int = 0
    row_groups_needed: int = 0


@dataclass(frozen=True)
class TensorRead:
    """What is read of a column of tensors.

    Attributes
    ----------
    name, column : str
        What the query calls the source, and the column.
    rows, bytes : int
        Samples, and their bytes as they are stored; of large ones those of the tiles that are needed.
    """

    name: str
    column: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class ReadReport:
    """What a query reads.

    Attributes
    ----------
    text : str
        The query.
    statements : tuple of str
        The SQL that DuckDB ran.
    scalars : tuple of ScalarRead
        What it read that from.
    computed : tuple of str
        Expressions on tensors that clauses needed, and those that are selected.
    conditions : tuple of TensorRead
        What was read of tensors so far.
    selected : tuple of TensorRead
        What a full read of the selected tensors takes.
    """

    text: str
    statements: tuple[str, ...]
    scalars: tuple[ScalarRead, ...]
    computed: tuple[str, ...]
    conditions: tuple[TensorRead, ...]
    selected: tuple[TensorRead, ...]

    @property
    def scalar_bytes(self) -> int:
        """Bytes of the stored columns, in the row groups that are needed."""
        return sum(one.bytes for one in self.scalars)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of tensors that were read so far."""
        return sum(one.bytes for one in self.conditions)

    @property
    def selected_bytes(self) -> int:
        """Bytes of the tensors that a full read of the view takes."""
        return sum(one.bytes for one in self.selected)

    def __str__(self) -> str:
        lines = [f"query      {self.text}"]
        for one in self.scalars:
            version = "" if one.version is None else f", version {one.version}"
            lines.append(f"source     {one.name}: {one.uri}{version}")
            groups = f"{one.row_groups_needed} of {one.row_groups} row groups, " * bool(
                one.row_groups
            )
            lines.append(
                f"  scalars  {', '.join(one.columns) or 'none'}: {one.files} files, {one.rows} rows, {groups}"
                f"{size_text(one.bytes)}"
            )
        lines += [f"SQL        {sql}" for sql in self.statements]
        lines += [f"tensors    {text}" for text in self.computed]
        lines += [
            f"read       {r.name}.{r.column}: {r.rows} samples, {size_text(r.bytes)}"
            for r in self.conditions
        ]
        lines += [
            f"to read    {r.name}.{r.column}: {r.rows} samples, {size_text(r.bytes)}"
            for r in self.selected
        ]
        return "\n".join(lines)


def report_of(plan: Plan, run: PlanRun, table: pa.Table) -> ReadReport:
    """Return what a plan that was run reads.

    Parameters
    ----------
    plan : Plan
        The query.
    run : PlanRun
        Its rows.
    table : pyarrow.Table
        The rows of the view, which may be some of these.
    """
    counts = run.evaluation.counts
    read = [
        TensorRead(plan.names.get(source, source), column, counts.rows[source, column], nbytes)
        for (source, column), nbytes in sorted(counts.bytes.items())
    ]
    computed = [one.what for step in plan.steps for one in step.computed]
    selected: dict[tuple[str, str, str], tuple[TensorLeaf, list[Key | str | None]]] = {}
    for name, output in plan.result.outputs.items():
        if isinstance(output, Lazy):
            if output.bare is None:
                computed.append(f"{text_of(output.node)} AS {name}")
            for leaf, key in parts_needed(output, plan.parameters):
                place = leaf.source_name, leaf.column, leaf.key[1]
                keys = selected.setdefault(place, (leaf, []))[1]
                if not (is_beside(leaf, key) or key in keys):
                    keys.append(key)
    to_read = [_to_read(plan, leaf, table, keys) for leaf, keys in selected.values()]
    return ReadReport(
        plan.text, tuple(run.statements), tuple(_scalars(plan)), tuple(computed), tuple(read),
        tuple(to_read),
    )  # fmt: skip


def _scalars(plan: Plan) -> list[ScalarRead]:
    out = []
    for name, source in plan.sources.items():
        files, nbytes, groups, needed = len(source.files()), 0, 0, 0
        if isinstance(source, DatasetSource) and source.stored is not None:
            leaves = [leaf.path for leaf in source.leaves(source.stored)]
            kept = source.groups(source.stored)
            for number, file in enumerate(source.stored.files):
                every = range(file.metadata.num_row_groups)
                here = every if kept is None else kept.get(number, [])
                nbytes += file.bytes_of(here, leaves)
                groups, needed = groups + len(every), needed + len(here)
            files = len(source.stored.files)
        out.append(
            ScalarRead(
                plan.names[name],
                source.uri,
                source.version,
                tuple(sorted(source.used)),
                files,
                len(source),
                nbytes,
                groups,
                needed,
            )
        )
    return out


def _to_read(
    plan: Plan, leaf: TensorLeaf, table: pa.Table, keys: list[Key | str | None]
) -> TensorRead:
    """Return what a read of a column takes: of large samples what each key needs; without keys only shapes."""
    column = (
        table.column(leaf.key[1]).combine_chunks() if leaf.key[1] in table.column_names else None
    )
    name = plan.names.get(leaf.source_name, leaf.source_name)
    if column is None or leaf.source.stored is None:
        return TensorRead(name, leaf.column, 0, 0)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.int64())
    if pa.types.is_list(column.type):
        column = column.flatten()
    sids = np.unique(np.asarray(column.drop_null().to_numpy(zero_copy_only=False), np.int64))
    positions = leaf.source.stored.positions_of(sids)
    parts, nbytes = leaf.source.dataset.parts, 0
    for start in range(0, len(positions), 4096):
        some = positions[start : start + 4096]
        known = None if keys else stand_ins(parts, leaf.column, some)
        if known is not None:
            nbytes += known[1]
            continue
        array = read_column(parts, leaf.column, some)
        nbytes += payload_bytes(array) + tile_bytes(parts, leaf.column, array, some, keys)
    return TensorRead(name, leaf.column, len(positions), nbytes)
