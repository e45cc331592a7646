"""Statistics of rows: of parts they add up to those of the whole, and pandas finds the same."""

import json

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.delta.files.statistics import Statistics, flat
from tensorlake_spark.rows.row import Row, data_table
from tensorlake_spark.tensor.spec import TensorSpec


def rows(count, seed):
    rng = np.random.default_rng(seed)
    spec = TensorSpec("x", (99, 99), np.dtype("u1"), "ftsf", (1, 1), codec="raw")
    corners = rng.integers(0, 98, (count, 2)).tolist()
    made = [Row(tuple(lo), (lo[0] + 1, lo[1] + 1), 1, "raw", b"a") for lo in corners]
    return data_table([spec] * count, rng.permutation(count).tolist(), made)


@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 99))
def test_parts_add_up_and_bounds_are_those_of_the_columns(count, cut, seed):
    table = rows(count, seed)
    whole, added = Statistics.of(table), Statistics()
    for part in (table.slice(0, min(cut, count)), table.slice(min(cut, count))):
        added.add(Statistics.of(part))
    assert added == whole
    frame = pa.table({"seq": table["seq"], "d1": pa.compute.struct_field(table["lo"], "d1")})
    assert whole.records == count
    assert (whole.least["seq"], whole.most["lo.d1"]) == (min(frame["seq"].to_pylist()), max(frame["d1"].to_pylist()))  # fmt: skip
    assert (whole.nulls["lo.d2"], "lo.d2" in whole.least) == (count, False)
    assert whole.passed(whole.least, whole.most) == []
    said = json.loads(whole.to_json())
    assert (flat(said["minValues"]), flat(said["nullCount"])) == (whole.least, whole.nulls)


def test_what_encoded_rows_say_is_what_their_table_says():
    flat_spec = TensorSpec("a", (9,), np.dtype("u1"), "ftsf", (1,), codec="raw")
    deep_spec = TensorSpec("z\U0001f600", (2,) * 9, np.dtype("u1"), "ftsf", (1,) * 9, codec="raw")
    scalar_spec = TensorSpec("\uffee", (), np.dtype("u1"), "ftsf", (), codec="raw")
    specs = [flat_spec, flat_spec, scalar_spec, deep_spec]
    made = [
        Row((np.int64(4),), (np.int64(5),), np.int64(1), "raw", b"a"),
        Row((2,), (3,), 7, "raw", b"a"),
        Row((), (), 1, "raw", b"a"),
        Row((1,) * 9, (2,) * 9, 1, "raw", b"a"),
    ]
    for some in (slice(4), slice(2), slice(2, 3), slice(3, 4)):
        encoded = specs[some], [3, 0, 2, 1][some], made[some]
        told = Statistics.of_encoded(*encoded)
        assert told == Statistics.of(data_table(*encoded))
        assert json.loads(told.to_json())


def test_what_lies_outside_is_named():
    whole = Statistics(2, {"seq": 3}, {"seq": 9}, {})
    assert whole.passed({"seq": 4}, {"seq": 8}) == [
        "min of seq is 4, and a row has 3",
        "max of seq is 8, and a row has 9",
    ]
    assert whole.passed({}, {"seq": None}) == [], "what the log does not say is no mistake"
