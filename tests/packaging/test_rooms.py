"""The house: rooms of few modules, each with a map that is complete and true."""

import ast
import re
from collections import defaultdict

import pytest
from places import ROOT

PACKAGE = ROOT / "tensorlake_spark"
TESTS = ROOT / "tests"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")

MOST = 12
LONGEST = 450  # lines
UNORDERED = 8  # a room of this many things needs a contract for the imports inside it

# The same name for two things, and why it is no mistake.
ALIKE = {
    "columns": "features of a wide table, and columns of a dataset on their way into a batch",
    "decoding": "of rows into Spark's columns, and of media into a batch",
    "loader": "the room and the class that it is about",
    "pipeline": "of blocks on their way into files, and of samples on their way into batches",
    "plain": "Delta tables that are not ours, and types of values that are nothing special",
    "queries": "the plan of a whole query, and queries that Spark runs",
    "sources": "of samples, read anywhere, and of tensors, read by executors",
    "changes": "lake/changes has the methods of TensorLake, datasets/changes those of a dataset and what they do",
    "check": "jobs/check is the command line of audit/check",
    "ingest": "jobs/ingest is the command line of spark/ingest",
    "optimize": "jobs/optimize is the command line of upkeep/optimize",
    "purge": "jobs/purge is the command line of audit/purge",
    "vacuum": "jobs/vacuum is the command line of upkeep/vacuum",
    "lake": "the room is the door, its first module TensorLake",
    "query": "the room is the door, its first module the function",
    "session": "the room has one thing, and what makes it",
    "upkeep": "lake/upkeep has the methods of TensorLake for the room upkeep",
    "products": "of tensors in memory, and of stored ones",
    "read": "reading/read in this process, spark/source/read by executors",
    "write": "writing/write in this process, spark/source/write by executors",
    "computing": "on stored tensors by this process, spark/computing by executors",
    "source": "what is written, and Spark's word for a data source",
    "sparse": "SparseTensor, and what the sparse layouts share",
    "interchange": "of SparseTensor with other libraries, and of datasets",
    "samples": "delta/samples are rows of a table, datasets/samples what users give and take of them",
    "functions": "of Spark for columns of tensors, and of queries",
}


def short(path):
    return path.relative_to(PACKAGE).as_posix().removesuffix(".py")


def map_of(room):
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""


def contents(room):
    """Return the names of what lies in a room: modules, and rooms in it."""
    modules = {path.stem for path in room.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in room.glob("*/__init__.py")}


def is_there(name, room):
    """Whether a dotted name is a module or a room, seen from `room`, the room around it, or the package."""
    for start in (room, room.parent, PACKAGE):
        place = start / name.replace(".", "/")
        if place.is_dir() or place.with_suffix(".py").exists():
            return True
    return False


def named_in(text):
    """Return the names between backticks that are written as modules are: lower case, no brackets."""
    quoted = {name for _, name in re.findall(r"(`+)([^`\n]+)\1", text)}
    return {name for name in quoted if re.fullmatch(r"[a-z0-9_.]+", name)}


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_a_room_has_few_modules(room):
    count = len([*room.glob("*.py")]) - 1
    assert count <= MOST, "part the room"


def test_the_top_has_few_modules_and_rooms():
    assert len([path for path in MODULES if path.parent == PACKAGE]) <= MOST


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_the_map_of_a_room_names_all_that_is_in_it(room):
    assert contents(room) - named_in(map_of(room)) == set()


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_the_map_of_a_room_names_nothing_that_is_not_there(room):
    # Names of the outside: of Spark's folder of settings, and of the one function of the first line.
    other = {"conf", "open", "write", "tensorlake_spark.spark"}
    gone = {name for name in named_in(map_of(room)) if not is_there(name, room)}
    assert gone - other == set()


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_the_map_of_a_room_says_what_it_may_import_and_where_to_begin(room):
    text = map_of(room)
    if room == PACKAGE:
        assert "Begin with `" in text
        assert "each importing only those below it" in text
    else:  # a line each, then the names of all that is in it
        assert re.match(r"[^\n]+[.?]\n\nBegin with `[^\n]+\.\nMay import [^\n]+\.(\n\n|$)", text)
    assert len(text.splitlines()) <= (22 if room.name == "indexing" else 12), "a map is short"
    assert max(map(len, text.splitlines())) <= 120, "a map is as narrow as the pages"


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_imports_go_one_way_inside_a_room_of_many_modules(room):
    """The linter's contract is exhaustive, and of all that is in the room."""
    dotted = ".".join(room.relative_to(ROOT).parts)
    contracts = (ROOT / "pyproject.toml").read_text().split("[[tool.importlinter.contracts]]")
    found = [text for text in contracts if f'containers = ["{dotted}"]' in text]
    assert len(found) == 1 or len(contents(room)) < UNORDERED
    assert all("exhaustive = true" in text for text in found)


def test_no_file_is_long():
    lines = {short(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_one_name_means_one_thing():
    found = defaultdict(set)
    for path in MODULES:
        found[path.stem].add(short(path))
    for room in ROOMS[1:]:
        found[room.name].add(f"{short(room)}/")
    assert {name for name, places in found.items() if len(places) > 1} == ALIKE.keys()


# Modules without a page at their own path, and the page that covers them most. The list may only become shorter.
COVERED = {
    "datasets/dataset_extensions": "loader/test_loader",
    "loader/columns/column_reading": "loader/columns/test_column_readings",
    "loader/columns/picture_reading": "loader/columns/test_column_readings",
    "loader/columns/scalar_reading": "loader/columns/test_column_readings",
    "loader/columns/stack_reading": "loader/columns/test_column_readings",
    "loader/columns/stored_column": "loader/columns/test_column_readings",
    "loader/columns/values": "loader/columns/test_column_readings",
    "loader/sources/loader_source": "loader/sources/test_dataset_samples",
    "datasets/changes/target_samples": "datasets/changes/test_change_methods",
    "datasets/changes/new_values": "datasets/changes/test_change_methods",
    "datasets/changes/rewriting": "datasets/changes/test_row_conflicts",
    "datasets/changes/sample_changes": "datasets/changes/test_change_methods",
    "datasets/samples/comparisons": "datasets/samples/test_where",
    "datasets/samples/operands": "datasets/samples/test_where",
    "datasets/sources/annotated/coco_survey": "datasets/sources/annotated/test_coco",
    "datasets/sources/annotated/yolo_layout": "datasets/sources/annotated/test_yolo",
    "datasets/sources/column_names": "datasets/sources/test_tar_shards",
    "datasets/sources/sample_source": "datasets/sources/test_image_folder",
    "datasets/sources/tables/arrow_columns": "datasets/sources/tables/test_hf_parquet",
    "datasets/sources/tables/hf_features": "datasets/sources/tables/test_hf_parquet",
    "lake/changes": "lake/test_lake",
    "spark/frames/frame_columns": "spark/frames/test_frame_writing",
    "spark/frames/image_columns": "spark/frames/test_image_functions",
    "spark/frames/partition_writing": "spark/frames/test_frame_writing",
    "spark/frames/sample_decoding": "spark/frames/test_sample_frame",
    "spark/ingest/ingest_options": "spark/ingest/test_ingestion",
    "spark/ingest/records/cell_preparation": "spark/ingest/test_ingestion",
    "spark/source/write/conversion": "spark/source/write/test_auto_layout",
    "writing/overlay": "properties/test_transactions",
    "writing/transaction_commit": "lake/test_transaction",
    "writing/uncommitted": "properties/test_transactions",
    "__main__": "jobs/test_optimize",
    "audit/check_tensor": "audit/test_check",
    "audit/files_of_tensor": "audit/test_purge",
    "audit/inventory": "audit/test_check",
    "audit/repair": "audit/test_check",
    "delta/files/inspection": "audit/test_check",
    "delta/files/compacting/merge": "delta/files/compacting/test_compaction",
    "jobs/check": "jobs/test_check_job",
    "jobs/config": "jobs/test_ingest_config",
    "jobs/purge": "jobs/test_purge_job",
    "jobs/vacuum": "jobs/test_check_job",
    "lake/table": "lake/test_versions",
    "lake/upkeep": "delta/files/compacting/test_compaction",
    "layouts/sparse/element_runs": "layouts/test_fuzz",
    "layouts/sparse/element_keys": "layouts/test_fuzz",
    "layouts/sparse/offsets": "layouts/test_bsgs",
    "layouts/testing/laws": "layouts/test_coo",
    "layouts/testing/oracle": "layouts/test_coo",
    "layouts/testing/strategies": "layouts/test_coo",
    "spark/cluster/table_versions": "spark/source/test_versions",
    "spark/functions/row_functions": "spark/functions/test_decoding",
    "spark/functions/tensor_stacks": "spark/functions/test_arithmetic",
    "spark/functions/udfs": "spark/functions/test_tensor_functions",
    "spark/ingest/arrays/array_discovery": "jobs/test_ingest_formats",
    "spark/ingest/arrays/array_files": "jobs/test_ingest_formats",
    "spark/ingest/arrays/array_job": "jobs/test_ingest_commits",
    "spark/ingest/arrays/array_plan": "jobs/test_ingest_config",
    "spark/ingest/arrays/array_slabs": "jobs/test_ingest_formats",
    "spark/ingest/arrays/zarr_store": "integration/test_s3_jobs",
    "spark/ingest/numbered_batches": "jobs/test_ingest_batches",
    "spark/ingest/records/cell_job": "jobs/test_ingest_cells",
    "spark/ingest/records/cell_options": "jobs/test_ingest_cells",
    "spark/ingest/records/coordinates": "jobs/test_ingest_cells",
    "spark/ingest/records/delta_tables": "jobs/test_ingest_batches",
    "spark/ingest/resume": "jobs/test_resume",
    "spark/ingest/samples/sample_notes": "spark/ingest/samples/test_sample_ingestion",
    "spark/ingest/samples/sample_tasks": "spark/ingest/samples/test_sample_ingestion",
    "spark/ingest/sources": "jobs/test_ingest_formats",
    "spark/ingest/text_lines": "security/test_files",
    "spark/source/sparse_blocks": "spark/source/read/test_sparse_reader",
    "spark/source/cell_columns": "spark/source/write/test_bad_cells",
    "spark/source/commit_message": "jobs/test_resume",
    "spark/source/task_notes": "jobs/test_resume",
    "spark/source/schemas": "spark/source/read/test_reader",
    "spark/source/write/direct_write": "jobs/test_ingest_faults",
    "spark/source/write/input_format": "spark/source/write/test_source_writer",
    "spark/source/write/slabs": "spark/source/write/test_source_writer",
    "spark/source/write/uniqueness": "spark/source/write/test_cells",
    "writing/editing/assignment": "lake/test_lake",
    "writing/lake_source": "lake/test_lake_sparse",
    "writing/write": "lake/test_lake",
}


def test_a_module_has_a_page_of_tests_at_its_path_or_is_named_with_the_one_that_covers_it():
    alone = {
        short(path)
        for path in MODULES
        if not (TESTS / path.relative_to(PACKAGE).parent / f"test_{path.name}").exists()
    }
    assert alone - COVERED.keys() == set(), "a new module comes with a page of tests"
    assert COVERED.keys() - alone == set(), "it has a page now"


@pytest.mark.parametrize("page", sorted({*COVERED.values()}))
def test_the_pages_that_cover_others_are_there(page):
    assert (TESTS / f"{page}.py").exists()
