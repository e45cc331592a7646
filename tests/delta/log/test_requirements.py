"""What a table has to be, before it is read or written."""

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.delta.log.requirements import (
    DATASET,
    SAMPLES,
    TENSORS,
    check_kind,
    check_readable,
    check_writable,
    schema_of,
)
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA

OUR_TEXT = Schema.from_arrow(SCHEMA).to_json()
COLUMNS = pa.schema([pa.field("sid", pa.int64(), nullable=False), pa.field("label", pa.int32())])


@pytest.fixture
def samples(tmp_path):
    storage = Storage(str(tmp_path / "samples"))
    create_samples_table(storage, COLUMNS)
    return storage


@pytest.fixture
def tensors(tmp_path):
    tl.open(tmp_path / "tensors").write("x", np.arange(3))
    return Storage(str(tmp_path / "tensors"))


def test_a_table_says_what_it_is(samples, tensors):
    assert Snapshot.open(samples, kind=None).kind == SAMPLES
    assert Snapshot.open(tensors, kind=None).kind == TENSORS


def test_a_dataset_is_no_lake(samples):
    with pytest.raises(
        tl.FormatError, match=r"is a dataset of samples.*tl\.dataset\(uri\) opens it"
    ):
        tl.open(samples.uri)


def test_a_lake_is_no_dataset(tensors):
    with pytest.raises(tl.FormatError, match=r"is a lake of tensors.*tl\.open\(uri\)"):
        Snapshot.open(tensors, kind=SAMPLES)


def test_any_other_delta_table_is_neither(tmp_path):
    write_deltalake(str(tmp_path), pa.table({"a": [1]}))
    with pytest.raises(
        tl.FormatError, match=f"not a dataset of samples: it has no property {DATASET}"
    ):
        Snapshot.open(Storage(str(tmp_path)), kind=SAMPLES)
    with pytest.raises(tl.FormatError, match="it has no column id"):
        Snapshot.open(Storage(str(tmp_path)))


@pytest.mark.parametrize("written", ["2", "1.5", "one"])
def test_a_later_format_of_samples_is_refused(tmp_path, written):
    DeltaTable.create(
        str(tmp_path), COLUMNS, configuration={DATASET: written}, raise_if_key_not_exists=False
    )
    with pytest.raises(tl.FormatError, match=f"has format '{written}'.*up to 1; install a newer"):
        Snapshot.open(Storage(str(tmp_path)), kind=SAMPLES)


def test_a_dataset_without_numbers_is_refused(tmp_path):
    DeltaTable.create(
        str(tmp_path),
        pa.schema([pa.field("label", pa.int32())]),
        configuration={DATASET: "1"},
        raise_if_key_not_exists=False,
    )
    with pytest.raises(tl.FormatError, match="no column sid of type bigint"):
        Snapshot.open(Storage(str(tmp_path)), kind=SAMPLES)


def test_a_constraint_on_samples_forbids_writing(samples):
    DeltaTable(samples.uri).alter.add_constraint({"small": "label < 5"})
    with pytest.raises(tl.UnsupportedFeatureError, match="the constraint 'small'"):
        Snapshot.open(samples, kind=SAMPLES).check_writable()


def test_columns_that_are_like_a_tensors_are_a_samples_own(tmp_path):
    """A dataset may have columns id, lo, hi and nnz of any type."""
    storage = Storage(str(tmp_path))
    columns = pa.schema(
        [pa.field("sid", pa.int64()), pa.field("id", pa.int32()), pa.field("lo", pa.string())]
    )
    create_samples_table(storage, columns)
    write_deltalake(
        str(tmp_path),
        pa.table({"sid": [0], "id": pa.array([7], pa.int32()), "lo": ["a"]}),
        mode="append",
    )
    assert Snapshot.open(storage, kind=SAMPLES).files.rows.tolist() == [1]


def test_columns_are_those_that_a_log_tells_of(tensors, samples):
    for storage in (tensors, samples):
        said = DeltaTable(storage.uri).schema()
        assert schema_of(said.to_json()) == said
    assert schema_of(DeltaTable(tensors.uri).schema().to_json()) is schema_of(OUR_TEXT)
    other = OUR_TEXT.replace('"name":"crc","type":"long"', '"name":"crc","type":"string"')
    assert schema_of(other) == Schema.from_json(other) != Schema.from_json(OUR_TEXT)
    with pytest.raises(tl.FormatError, match="column 'crc' is of type"):
        check_kind("u", TENSORS, schema_of(other), {})
    with pytest.raises(tl.FormatError, match="is a lake of tensors"):
        check_kind("u", SAMPLES, schema_of(OUR_TEXT), {})


def test_a_feature_that_cannot_be_dropped_at_once_is_told_with_how(samples):
    """Spark adds it when it drops column mapping."""
    table = Snapshot.open(samples, kind=SAMPLES).table
    said = r"checkpointProtection, .*DROP FEATURE \.\.\. TRUNCATE HISTORY, which Spark does a day after"
    with pytest.raises(tl.UnsupportedFeatureError, match=said):
        check_writable(samples.uri, SAMPLES, table, ["checkpointProtection"], {})
    with pytest.raises(tl.UnsupportedFeatureError, match=r"DROP FEATURE, or write to another"):
        check_writable(samples.uri, SAMPLES, table, ["rowTracking"], {})


@pytest.mark.parametrize("feature", ["clustering", "allowColumnDefaults", "identityColumns"])
def test_a_feature_that_spark_never_drops_has_another_remedy(samples, feature):
    table = Snapshot.open(samples, kind=SAMPLES).table
    said = f"{feature}, which .* cannot write; no program can drop it, so write to another table"
    with pytest.raises(tl.UnsupportedFeatureError, match=said):
        check_writable(samples.uri, SAMPLES, table, [feature], {})
    with pytest.raises(tl.UnsupportedFeatureError, match="or write its rows to another table"):
        check_readable("u", ["variantType"])


def test_a_partitioned_table_is_refused(samples, tensors):
    """deltalake leaves its columns out of the files, and others look for them only in the log."""
    for storage, column, kind in ((samples, "label", SAMPLES), (tensors, "owner", TENSORS)):
        rows = DeltaTable(storage.uri).to_pyarrow_table()
        if column not in rows.column_names:
            rows = rows.append_column(column, pa.array(["me"] * len(rows)))
        how = {"mode": "overwrite", "schema_mode": "overwrite"}
        write_deltalake(storage.uri, rows, partition_by=[column], **how)
        said = rf"partitioned by {column}, .*mode 'overwrite'.*overwriteSchema='true'"
        with pytest.raises(tl.UnsupportedFeatureError, match=said):
            _ = Snapshot.open(storage, kind=kind).files
        assert len(Snapshot.open(storage, version=0, kind=kind).files.path) == 0
