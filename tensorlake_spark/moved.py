"""Where modules moved: an old import path still works for one release, and warns.

``MODULES`` has the modules by their old paths, ``NAMES`` the names of old modules whose paths are folders now. An old
path gives the new module itself, so a class is the same class by both paths. Nothing is imported before it is asked
for.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

PACKAGE = "tensorlake_spark"
DROPPED_IN = "0.3.0"  # the release that no longer knows the old paths

# Below the package: old path -> new path.
MODULES = {
    "append": "writing.append",
    "arrange": "upkeep.zorder",
    "assign": "writing.editing.assignment",
    "assign_sparse": "writing.editing.sparse_assignment",
    "audit.held": "audit.purge_target",
    "audit.mend": "audit.repair",
    "audit.tensor_check": "audit.check_tensor",
    "audit.traces": "audit.files_of_tensor",
    "batch": "writing.app_transaction",
    "checksum": "rows.checksum",
    "choose": "writing.options",
    "convert": "upkeep.convert",
    "delta.catalog": "delta.files.catalog",
    "delta.commit": "delta.log.commit",
    "delta.compact": "delta.files.compacting.compaction",
    "delta.files.compaction": "delta.files.compacting.compaction",
    "delta.files.merge": "delta.files.compacting.merge",
    "delta.files.rewrite": "delta.files.compacting.rewrite",
    "delta.folder": "delta.files.table_folder",
    "delta.footer": "delta.files.footer",
    "delta.history": "delta.log.history",
    "delta.inside": "delta.store.paths",
    "delta.inspect": "delta.files.inspection",
    "delta.log.live_files": "delta.log.replaying.live_files",
    "delta.log.remote_log": "delta.log.replaying.remote_log",
    "delta.maintenance": "upkeep.vacuum",
    "delta.merge": "delta.files.compacting.merge",
    "delta.mirror": "delta.log.replaying.remote_log",
    "delta.output": "delta.files.runner",
    "delta.payload": "delta.files.payload",
    "delta.properties": "delta.log.properties",
    "delta.redaction": "delta.store.redaction",
    "delta.remote": "delta.store.ranges",
    "delta.residue": "audit.byte_search",
    "delta.rewrite": "delta.files.compacting.rewrite",
    "delta.scan": "delta.files.scan",
    "delta.seal": "delta.files.footer_checksum",
    "delta.snapshot": "delta.log.snapshot",
    "delta.staging": "delta.store.staging",
    "delta.statistics": "delta.files.statistics",
    "delta.storage": "delta.store.storage",
    "delta.store.options": "delta.store.store_options",
    "delta.store.sealed_table": "delta.store.checksummed_table",
    "delta.store_options": "delta.store.store_options",
    "delta.tags": "delta.log.tags",
    "delta.timeouts": "delta.store.timeouts",
    "delta.transactions": "delta.log.actions",
    "delta.travel": "delta.log.time_travel",
    "delta.uploads": "upkeep.stale_uploads",
    "delta.vectors": "delta.log.deletion_vectors",
    "delta.write": "delta.files.writer",
    "edit": "writing.write",
    "indexing.key": "indexing.keys.key",
    "indexing.key_text": "indexing.keys.key_text",
    "indexing.plan": "indexing.read_plan",
    "indexing.text": "indexing.keys.key_text",
    "jobs.frame": "jobs.command",
    "jobs.progress": "jobs.job_progress",
    "labels": "tensor.labels",
    "layouts.base": "layouts.layout",
    "layouts.blocks": "layouts.sparse.element_blocks",
    "layouts.buffers": "layouts.coding.buffers",
    "layouts.check": "layouts.verification",
    "layouts.codec": "layouts.coding.codec",
    "layouts.compressed": "layouts.sparse.compressed_axes",
    "layouts.draws": "layouts.testing.strategies",
    "layouts.inflate": "layouts.coding.decompression",
    "layouts.laws": "layouts.testing.laws",
    "layouts.offsets": "layouts.sparse.offsets",
    "layouts.oracle": "layouts.testing.oracle",
    "layouts.registry": "layouts.layout_registry",
    "layouts.runs": "layouts.sparse.element_runs",
    "layouts.sequences": "layouts.coding.integer_sequences",
    "layouts.sparse.blocks": "layouts.sparse.element_blocks",
    "layouts.sparse.elements": "layouts.sparse.element_keys",
    "meta": "rows.metadata",
    "optimize": "upkeep.optimize",
    "pool": "threads",
    "put": "writing.pipeline",
    "read": "reading.read",
    "ref": "lake.ref",
    "restore": "writing.editing.restore",
    "row": "rows.row",
    "sizes": "writing.estimate",
    "source": "writing.source",
    "spark.aggregates": "spark.functions.aggregates",
    "spark.arithmetic": "spark.functions.arithmetic",
    "spark.array_files": "spark.ingest.arrays.array_files",
    "spark.axis_rules": "spark.ingest.records.axis_rules",
    "spark.batches": "spark.ingest.numbered_batches",
    "spark.blocks": "spark.source.sparse_blocks",
    "spark.bounds": "spark.ingest.limits",
    "spark.buffer": "spark.source.write.cell_buffer",
    "spark.cells": "spark.source.write.cells",
    "spark.cluster.runner": "spark.cluster.executor_runner",
    "spark.collecting": "spark.functions.collect_tensor",
    "spark.columns": "spark.source.cell_columns",
    "spark.complaints": "spark.ingest.records.bad_records",
    "spark.coordinates": "spark.ingest.records.coordinates",
    "spark.decoding": "spark.functions.decoding",
    "spark.delta_tables": "spark.ingest.records.delta_tables",
    "spark.direct": "spark.source.write.direct_write",
    "spark.elements": "spark.source.read.sparse_reader",
    "spark.encoding": "spark.functions.encoding",
    "spark.extents": "spark.source.write.extents",
    "spark.files": "spark.ingest.source_files",
    "spark.form": "spark.source.write.input_format",
    "spark.grouping": "spark.source.write.grouping",
    "spark.ingest.batches": "spark.ingest.numbered_batches",
    "spark.ingest_arrays": "spark.ingest.arrays.array_slabs",
    "spark.ingest_cells": "spark.ingest.records.cell_job",
    "spark.inside": "spark.ingest.arrays.external_links",
    "spark.java": "spark.session.java",
    "spark.label_columns": "spark.source.label_columns",
    "spark.lines": "spark.ingest.text_lines",
    "spark.matrices": "spark.ingest.records.matrices",
    "spark.matrix_market": "spark.ingest.records.matrix_market",
    "spark.measures": "spark.ingest.records.bins",
    "spark.npy_objects": "spark.ingest.npy",
    "spark.options": "spark.source.source_options",
    "spark.outcome": "spark.ingest.outcome",
    "spark.overlap": "spark.source.read.overlapping_rows",
    "spark.parts": "spark.ingest.arrays.array_discovery",
    "spark.pieces": "spark.ingest.pieces",
    "spark.plain": "spark.functions.read_tensor",
    "spark.plan_arrays": "spark.ingest.arrays.array_plan",
    "spark.plan_cells": "spark.ingest.records.cell_job",
    "spark.pushdown": "spark.source.read.pushdown",
    "spark.reader": "spark.source.read.reader",
    "spark.receipts": "spark.source.task_notes",
    "spark.records": "spark.ingest.records.record_files",
    "spark.resume": "spark.ingest.resume",
    "spark.row_functions": "spark.functions.row_functions",
    "spark.runner": "spark.cluster.executor_runner",
    "spark.s3a": "spark.cluster.s3a",
    "spark.slabs": "spark.source.write.slabs",
    "spark.slice_sql": "spark.functions.slice_predicate",
    "spark.source.blocks": "spark.source.sparse_blocks",
    "spark.source.options": "spark.source.source_options",
    "spark.source.write.input_form": "spark.source.write.input_format",
    "spark.source.write.writer": "spark.source.write.source_writer",
    "spark.sources": "spark.ingest.sources",
    "spark.sparse_npz": "spark.ingest.records.sparse_npz",
    "spark.stacks": "spark.functions.tensor_stacks",
    "spark.tables": "spark.ingest.records.cell_options",
    "spark.tagged": "spark.cluster.table_versions",
    "spark.tasks": "spark.cluster.tasks",
    "spark.tensor_functions": "spark.functions.tensor_functions",
    "spark.tensor_udfs": "spark.functions.udfs",
    "spark.tiling": "spark.ingest.arrays.tiling",
    "spark.unique": "spark.source.write.uniqueness",
    "spark.views": "spark.source.schemas",
    "spark.write_arrays": "spark.ingest.arrays.array_job",
    "spark.writer": "spark.source.write.source_writer",
    "spark.zarr_objects": "spark.ingest.arrays.zarr_store",
    "sparse": "tensor.sparse",
    "spec": "tensor.spec",
    "stored": "writing.lake_source",
    "table": "lake.table",
    "tensor.sparse.arithmetic": "tensor.sparse.operator_methods",
    "versions": "lake.versions",
    "writing.assignment": "writing.editing.assignment",
    "writing.restore": "writing.editing.restore",
    "writing.sparse_assignment": "writing.editing.sparse_assignment",
    "writing.stored_source": "writing.lake_source",
    "writing.transaction": "writing.transaction_commit",
}

# The path of an old module that is a folder now -> its names -> the modules that have them.
NAMES = {
    "delta.files": {
        "Files": "delta.log.replaying.live_files",
        "numbers": "delta.log.replaying.live_files",
        "statistics_of": "delta.log.replaying.live_files",
    },
    "delta.log": {
        "COMMIT": "delta.log.actions",
        "LAST_CHECKPOINT": "delta.log.actions",
        "LOG": "delta.log.actions",
        "commit_name": "delta.log.actions",
        "commit_times": "delta.log.actions",
    },
    "layouts.sparse": {
        "CODECS": "layouts.sparse.element_keys",
        "Gathered": "layouts.sparse.element_keys",
        "Part": "layouts.sparse.element_keys",
        "Rows": "layouts.sparse.element_keys",
        "SparseLayout": "layouts.sparse.element_keys",
        "axis_order": "layouts.sparse.element_keys",
        "checked_axes": "layouts.sparse.element_keys",
        "checked_order": "layouts.sparse.element_keys",
        "sort_elements": "layouts.sparse.element_keys",
        "unite": "layouts.sparse.element_keys",
    },
    "spark.functions": {
        "dtype_column": "spark.functions.sql_registration",
        "shape_column": "spark.functions.sql_registration",
    },
    "spark.ingest": {
        "job_session": "spark.ingest.ingestion",
        "plain_errors": "spark.cluster.task_errors",
        "run": "spark.ingest.ingestion",
    },
    "spark.source": {
        "TensorDataSource": "spark.source.data_source",
        "register": "spark.source.data_source",
    },
    "upkeep": {"Upkeep": "lake.upkeep"},
}


def warn(old: str, new: str, stacklevel: int) -> None:
    """Warn that `old` is `new` now; both are whole dotted names."""
    warnings.warn(
        f"{old} is now {new}; the old path goes with release {DROPPED_IN}",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def below_package(name: str) -> str:
    """Return a dotted name without that of the package, which it need not have."""
    return name.removeprefix(f"{PACKAGE}.")


class MovedModules:
    """Finds modules by their old paths: the last in ``sys.meta_path``, so it costs what is there nothing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how the old path `name` is imported, None for any other name. Warns."""
        if not name.startswith(f"{PACKAGE}.") or below_package(name) not in MODULES:
            return None
        warn(name, f"{PACKAGE}.{MODULES[below_package(name)]}", stacklevel=2)
        return ModuleSpec(name, cast("Loader", self))

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the empty module to Python; `exec_module` puts the new one in its place."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the new module where the old path is looked up; later imports find it there and do not warn."""
        old = module.__name__
        sys.modules[old] = import_module(f"{PACKAGE}.{MODULES[below_package(old)]}")


def install() -> None:
    """Let Python find old paths. To call it again changes nothing."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def names_of(folder: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a folder whose path was that of a module; it warns once for each name."""
    moved = NAMES[below_package(folder)]

    def attribute(name: str) -> Any:
        if name not in moved:
            raise AttributeError(f"module {folder!r} has no attribute {name!r}")
        new = f"{PACKAGE}.{moved[name]}"
        warn(f"{folder}.{name}", f"{new}.{name}", stacklevel=2)
        value = getattr(import_module(new), name)
        setattr(sys.modules[folder], name, value)  # found at once from now on
        return value

    return attribute
