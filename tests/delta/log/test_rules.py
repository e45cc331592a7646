"""What a table asks of its writers beyond our format: kept, or refused with a reason."""

import json
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable, Field, convert_to_deltalake

import tensorlake_spark as tl


@pytest.fixture
def lake(tmp_path):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.arange(12.0).reshape(3, 4), block_shape=(1, 4))
    return lake


def test_rows_stay_in_a_table_that_only_grows(lake):
    DeltaTable(lake.uri).alter.set_table_properties({"delta.appendOnly": "true"})
    changes = {
        "delete": lambda: lake.delete("x"),
        "assign": lambda: lake["x"].__setitem__(0, 1),
        "write": lambda: lake.write("x", np.zeros(3), mode="overwrite"),
        "convert": lambda: lake.convert("x", layout="coo"),
    }
    for name, change in changes.items():
        with pytest.raises(
            tl.UnsupportedFeatureError, match=rf"appends only, and a {name}.*appendOnly"
        ):
            change()
    lake.write("x", np.ones((1, 4)), mode="append")
    lake.write("y", np.ones(2))
    assert lake["x"].shape == (4, 4)
    lake.optimize(min_files=2)  # the rows stay what they are
    np.testing.assert_array_equal(lake["x"][3], np.ones(4))


def test_constraints_that_we_cannot_evaluate_are_refused(lake):
    DeltaTable(lake.uri).alter.add_constraint({"few": "nnz < 1000"})
    with pytest.raises(tl.UnsupportedFeatureError, match=r"constraint 'few'.*ALTER TABLE"):
        lake.write("y", np.ones(2))
    np.testing.assert_array_equal(lake["x"][0], np.arange(4.0))


def test_columns_that_nulls_would_break_are_refused(lake):
    DeltaTable(lake.uri).alter.add_columns([Field("who", "string", nullable=False)])
    with pytest.raises(tl.UnsupportedFeatureError, match="'who' that must not be null"):
        lake.write("y", np.ones(2))
    np.testing.assert_array_equal(lake["x"][0], np.arange(4.0))


def test_columns_with_an_expression_are_refused(lake):
    """As Spark makes them: the metadata of the log says how the column is computed."""
    (first,) = Path(lake.uri, "_delta_log").glob("*0000.json")
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    (meta,) = (line["metaData"] for line in lines if "metaData" in line)
    schema = json.loads(meta["schemaString"])
    told = {"delta.generationExpression": "upper(id)"}
    schema["fields"].append({"name": "who", "type": "string", "nullable": True, "metadata": told})
    meta["schemaString"] = json.dumps(schema)
    later = first.with_name(f"{lake.version + 1:020}.json")
    later.write_text(json.dumps({"metaData": meta}))
    with pytest.raises(tl.UnsupportedFeatureError, match="'who' with an expression"):
        lake.write("y", np.ones(2))


def test_a_file_whose_name_has_several_spellings_is_refused(lake, tmp_path):
    """As CONVERT TO DELTA names it: an assignment wrote rows anew, and did not remove the ones before."""
    folder = tmp_path / "converted"
    folder.mkdir()
    for place, file in enumerate(sorted(Path(lake.uri).glob("*.parquet"))):
        (folder / f"grün {place}.parquet").write_bytes(file.read_bytes())
    convert_to_deltalake(folder)
    for use in (lambda: tl.open(folder)["x"], lambda: tl.open(folder).check()):
        with pytest.raises(tl.UnsupportedFeatureError, match=r"'gr.*n.*0\.parquet', in whose name"):
            use()


def test_identity_columns_are_refused_without_a_list_of_features(lake):
    """As Spark makes them. deltalake refused each commit, and we told of other writers who were faster."""
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}
    Path(lake.uri, f"_delta_log/{lake.version + 1:020}.json").write_text(json.dumps(protocol))
    with pytest.raises(tl.UnsupportedFeatureError, match="Delta feature identityColumns, which"):
        lake.write("y", np.ones(2))
    np.testing.assert_array_equal(lake["x"][0], np.arange(4.0))


def test_fields_that_others_add_inside_our_columns_are_refused(lake, tmp_path):
    """Each row that we wrote anew lost them."""
    ds = tl.dataset(tmp_path / "ds", {"g/image": tl.types.Image("raw"), "g/label": "int32"})
    ds.extend({"g/image": [np.zeros((2, 2), np.uint8)], "g/label": [3]})
    for uri, column, group in ((lake.uri, "lo", ""), (ds.uri, "image", "g")):
        log = Path(uri, "_delta_log")
        lines = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
        (meta,) = (line["metaData"] for line in lines if "metaData" in line)
        schema = json.loads(meta["schemaString"])
        fields = schema["fields"]
        for name in filter(None, (group, column)):
            fields = next(field["type"]["fields"] for field in fields if field["name"] == name)
        fields.append({"name": "extra", "type": "integer", "nullable": True, "metadata": {}})
        meta["schemaString"] = json.dumps(schema)
        newest = max(int(file.stem) for file in log.glob("*.json"))
        (log / f"{newest + 1:020}.json").write_text(json.dumps({"metaData": meta}))
    with pytest.raises(tl.UnsupportedFeatureError, match=r"field 'lo\.extra' of another program"):
        lake.write("y", np.ones(2))
    ds.refresh()
    with pytest.raises(tl.UnsupportedFeatureError, match=r"field 'g\.image\.extra' of another"):
        ds.update([0], {"g/label": 4})
    assert ds["g/label"][:].tolist() == [3]
    np.testing.assert_array_equal(ds["g/image"][0], np.zeros((2, 2)))


def name_features(lake, readers, writers):
    """Commit that a table has features, as Spark does."""
    said = {"readerFeatures": readers, "writerFeatures": [*readers, *writers]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **said}}
    Path(lake.uri, f"_delta_log/{lake.version + 1:020}.json").write_text(json.dumps(protocol))


def test_a_table_whose_vacuum_asks_for_all_features_is_read_alone(lake):
    """deltalake refused each commit, and we told of other writers. A vacuum deleted files all the same."""
    name_features(lake, ["vacuumProtocolCheck"], ["later"])
    orphan = Path(lake.uri, "part-orphan.parquet")
    orphan.write_bytes(b"x")
    for change in (lambda: lake.write("y", np.ones(2)), lambda: lake.vacuum(0)):
        with pytest.raises(tl.UnsupportedFeatureError, match=r"later, vacuumProtocolCheck, which"):
            change()
    assert orphan.exists()
    np.testing.assert_array_equal(lake["x"][0], np.arange(4.0))


def test_deletion_vectors_that_deltalake_does_not_read_are_told(lake):
    """It said that the store refused a request."""
    name_features(lake, ["deletionVectors", "vacuumProtocolCheck"], [])
    with pytest.raises(tl.UnsupportedFeatureError, match=r"vacuumProtocolCheck, which .* not read"):
        _ = lake["x"]
