"""Features are read by name, as they were written."""

import numpy as np
import pyarrow as pa
import pytest
from feature_examples import ALL, wide

import tensorlake_spark as tl


def test_what_is_read_is_what_was_written(ctr, lake):
    found = ctr.read()
    found.validate(full=True)
    assert found.equals(ALL)
    assert ctr.schema == ALL.schema
    assert ctr.names == ALL.column_names
    assert len(ctr) == 3
    assert lake.features("ctr").read().equals(ALL)


@pytest.mark.parametrize(
    "rows",
    [slice(1, 2), slice(None, None, 2), slice(None, None, -1), slice(5, 9), slice(-1, None), None],
)
def test_columns_and_rows_come_as_asked(ctr, rows):
    names = ["price", "age", "clicked", "seen", "score"]
    places = range(*(rows or slice(None)).indices(3))
    want = ALL.select(names).take(pa.array([*places], pa.int64())).combine_chunks()
    found = ctr.read(names, rows=rows)
    found.validate(full=True)
    assert found.equals(want)


def test_bits_of_floats_are_kept(lake):
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x7F800000], np.uint32)
    table = pa.table({"x": bits.view(np.float32)})
    found = lake.features("t").write(table).read()["x"].to_numpy()
    assert found.view(np.uint32).tolist() == bits.tolist()


def test_many_features_in_any_order(lake):
    table = wide(100, rows=9)
    features = lake.features("w").write(table)
    names = [f"f{k}" for k in np.random.default_rng(1).permutation(100)]
    assert features.read(names).equals(table.select(names))
    assert features.read(names[:1]).equals(table.select(names[:1]))
    assert features.read(table.column_names[20:60]).equals(table.select(range(20, 60)))


def test_no_columns_are_rows_alone(ctr):
    found = ctr.read([], rows=slice(1, None))
    assert found.num_columns == 0
    assert found.num_rows == 2


def test_old_versions_stay_readable(ctr, lake):
    ctr.drop(["age"])
    old = tl.open(lake.uri, version=1).features("ctr")
    assert old.read(["age"]).equals(ALL.select(["age"]))
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        old.append(ALL)


def test_names_that_are_not_there(ctr):
    with pytest.raises(
        tl.UnknownLabelError, match="there is no feature 'scor' in 'ctr'; did you mean 'score'"
    ):
        ctr.read(["age", "scor"])
    with pytest.raises(tl.UnknownLabelError, match="there is no feature 'scor' in"):
        ctr.read(np.array(["age", "scor"]))
    for change in (ctr.drop, ctr.deprecate):
        with pytest.raises(KeyError, match="nor 1 others of these names; did you mean 'age'"):
            change(["agee", "price", "nothing"])
    assert "score" in ctr
    assert "scor" not in ctr


def test_a_hundred_thousand_names(lake):
    count = 100_000
    names = [f"feature {k}" for k in range(count)]
    table = pa.Table.from_arrays(
        [pa.array([k % 100], pa.int8()) for k in range(count)], names=names
    )
    features = lake.features("huge").write(table)
    assert features.read(names[::-1]).equals(table.select(names[::-1]))
    with pytest.raises(tl.UnknownLabelError, match="nor 99999 others of these names") as caught:
        lake.features("huge").read([f"other {k}" for k in range(count)])
    assert len(str(caught.value)) < 300


def test_keys_of_other_types(ctr):
    for columns in ("age", 3, b"age"):
        with pytest.raises(tl.InvalidOptionError, match="is not a list of names of features"):
            ctr.read(columns)
    with pytest.raises(tl.InvalidOptionError, match="3 is not a name of a feature"):
        ctr.read(["age", 3])
    for rows in (3, [1, 2], "1:2"):
        with pytest.raises(tl.InvalidKeyTypeError, match="is not a slice"):
            ctr.read(["age"], rows=rows)
    for columns in (["age"], []):
        with pytest.raises(tl.InvalidKeyTypeError):
            ctr.read(columns, rows=slice("a", None))
        with pytest.raises(tl.InvalidSliceError):
            ctr.read(columns, rows=slice(None, None, 0))
