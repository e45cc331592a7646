"""What may be written as features, and what is said of all else."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from feature_examples import ALL

import tensorlake_spark as tl
from tensorlake_spark.columns.feature_input import cast_to
from tensorlake_spark.errors import InvalidTensorError


def test_pandas_frames_are_taken(lake):
    frame = pd.DataFrame(
        {
            "a": np.array([1.0, np.nan], np.float32),
            "b": pd.array([1, None], "Int16"),
            "c": pd.to_datetime(["2024-01-01", None]),
            "d": [True, False],
        },
        index=[7, 9],
    )
    found = lake.features("p").write(frame).read()
    assert found.schema.types == [pa.float32(), pa.int16(), pa.timestamp("ns"), pa.bool_()]
    assert found["a"].null_count == 0  # a NaN stays one
    assert np.isnan(found["a"][1].as_py())
    assert found["b"].to_pylist() == [1, None]
    assert found["c"].null_count == 1


def test_integers_with_nulls_through_pandas(lake):
    table = pa.table({"a": pa.array([1, None, 3], pa.uint32())})
    features = lake.features("p").write(table)
    frame = features.read().to_pandas()  # of floats
    with pytest.raises(tl.InvalidTensorError, match=r"frame.astype\({'a': 'UInt32'}\)"):
        features.append(frame)
    found = features.append(frame.astype({"a": "UInt32"})).read()
    assert found.equals(pa.concat_tables([table, table]).combine_chunks())
    with pytest.raises(tl.InvalidTensorError, match=r"does so for all$"):
        features.append(pa.table({"a": [1]}))


def test_record_batches_and_chunks_are_taken(lake):
    chunked = pa.concat_tables([ALL, ALL.slice(1)])
    assert lake.features("c").write(chunked).read().equals(chunked.combine_chunks())
    batch = ALL.to_batches()[0]
    assert lake.features("b").write(batch).read().equals(ALL)
    assert lake.features("r").write(pa.RecordBatchReader.from_batches(ALL.schema, [batch])).read().equals(ALL)  # fmt: skip


def test_names_that_are_there_twice(ctr, lake):
    with pytest.raises(tl.InvalidOptionError, match="feature 'age' occurs 2 times"):
        ctr.read(["age", "score", "age"])
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    for write in (lake.features("t").write, ctr.append, ctr.add):
        with pytest.raises(tl.InvalidTensorError, match="column 'a' occurs 2 times"):
            write(twice)
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(tl.InvalidTensorError, match="column 'a' occurs 2 times"):
        lake.features("t").write(frame)
    assert [*lake] == [n for n in lake if n.startswith("ctr/")]


@pytest.mark.parametrize(
    ("array", "kind", "remedy"),
    [
        (pa.array(["a"]), "string", "write integer codes"),
        (pa.array([b"a"]), "binary", "write integer codes"),
        (pa.array(["a"]).dictionary_encode(), "dictionary<", "write its codes"),
        (pa.array([[1]]), "list<item: int64>", "a tensor of its own with lake.write"),
        (pa.array([None]), "null", "cast it"),
        (pa.array([1], pa.decimal128(5)), r"decimal128\(5, 0\)", "cast it to float64"),
    ],
)  # fmt: skip
def test_types_that_are_no_numbers(ctr, lake, array, kind, remedy):
    table = pa.table({"city": array})
    for write in (lake.features("new").write, ctr.append, ctr.add):
        with pytest.raises(
            tl.UnsupportedDtypeError, match=f"feature 'city' has the type {kind}.*{remedy}"
        ):
            write(table)
    assert "new/int64" not in lake


def test_objects_of_pandas(lake):
    for values in ([1, "x"], [2**70, 1]):
        frame = pd.DataFrame({"a": values}, dtype=object)
        with pytest.raises(tl.UnsupportedDtypeError, match="feature 'a' has the dtype object"):
            lake.features("o").write(frame)
    with pytest.raises(tl.InvalidTensorError, match="0 is not a name of a feature"):
        lake.features("o").write(pd.DataFrame([[1, 2]]))


@pytest.mark.parametrize("data", [[1, 2], {"a": [1]}, "table", np.zeros((2, 2)), None])
def test_what_is_no_table(lake, data):
    with pytest.raises(tl.InvalidTensorError, match=r"is not a table; pyarrow.table\(.* makes one"):
        lake.features("x").write(data)


def test_tables_without_columns_and_empty_names(lake):
    with pytest.raises(tl.InvalidTensorError, match="without columns"):
        lake.features("x").write(pa.table({}))
    with pytest.raises(tl.InvalidTensorError, match="'' is not a name of a feature"):
        lake.features("x").write(pa.table({"": [1]}))
    assert lake.version is None


def test_names_with_half_of_a_character(lake):
    frame = pd.DataFrame([[1]], columns=["a\ud800"], dtype="int64")
    with pytest.raises(tl.InvalidTensorError, match="has half of a character"):
        lake.features("t").write(frame)


def test_pandas_columns_of_the_other_byte_order_are_taken(lake):
    frame = pd.DataFrame({"a": np.array([1.5, -2.0], ">f8"), "b": np.array([3, 4], ">i2")})
    found = lake.features("t").write(frame).read()
    assert found.equals(pa.table({"a": [1.5, -2.0], "b": pa.array([3, 4], "int16")}))


@pytest.mark.parametrize(
    ("array", "kind", "said"),
    [
        (pa.array([1e6, 1.0], pa.float32()), pa.float16(), "1000000.0 is too large for halffloat"),
        (pa.array([None, -1e300]), pa.float32(), "-1e\\+300 is too large for float"),
        (pa.array([70_000, None]), pa.float16(), "70000 is too large for halffloat"),
        (pa.array([2**40]), pa.time32("s"), "not in range"),
    ],
)
def test_values_that_do_not_fit_a_feature(array, kind, said):
    with pytest.raises(InvalidTensorError, match=f"column 'x' of type .* does not fit .*{said}"):
        cast_to(pa.table({"x": array}), {"x": kind})


@pytest.mark.parametrize(
    ("array", "kind", "want"),
    [
        (pa.array([np.inf, None, 0.5]), pa.float16(), [np.inf, None, 0.5]),
        (pa.array([True, None]), pa.float32(), [1.0, None]),
        (pa.array([5, None]), pa.time32("s"), [dt.time(0, 0, 5), None]),
        (pa.array([5], pa.int32()), pa.duration("s"), [dt.timedelta(seconds=5)]),
    ],
)
def test_values_that_fit_a_feature(array, kind, want):
    assert cast_to(pa.table({"x": array}), {"x": kind})["x"].to_pylist() == want
