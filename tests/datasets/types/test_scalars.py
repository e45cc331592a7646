"""Scalars: NumPy and Arrow are the oracle."""

import datetime as dt
import decimal

import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Scalar, Type, as_type
from tensorlake_spark.datasets.types.scalars import STORAGE

NUMBERS = [name for name in STORAGE if name.startswith(("int", "uint", "float"))]
UTC = dt.timezone.utc
VALUES = {
    "bool": [True, False], "string": ["a", "", "\u00e9"], "bytes": [b"", b"\x00\xff"],
    "date": [dt.date(2024, 2, 29), dt.date(1, 1, 1)],
    "timestamp": [dt.datetime(2024, 2, 29, 1, 2, 3, 456789, UTC)],
    "timestamp_ntz": [dt.datetime(1969, 2, 28, 1, 2, 3, 4)],
    "decimal(10, 2)": [decimal.Decimal("1.25"), decimal.Decimal("-99999999.99")],
}  # fmt: skip


def ends(name):
    info = np.finfo(name) if name.startswith("float") else np.iinfo(name)
    kind = float if name.startswith("float") else int
    return [kind(info.min), 0, 1, kind(info.max)]


@pytest.mark.parametrize("name", [*NUMBERS, *VALUES])
def test_values_come_back(name):
    given = VALUES.get(name) or ends(name)
    kind = Scalar(name)
    column = kind.encode([*given, None], "x")
    assert column.type == kind.storage()
    assert kind.decode(column) == [*given, None]
    assert kind.decode(kind.encode(column, "x")) == [*given, None]
    assert kind.decode(kind.encode(pa.chunked_array([column]), "x").slice(1)) == [*given[1:], None]
    assert Type.from_json(kind.to_json()) == kind


@pytest.mark.parametrize("name", NUMBERS)
def test_arrays_come_back_with_their_dtype(name):
    array = np.array(ends(name), name)
    for given in (array, array.astype(array.dtype.newbyteorder(">")), array[::-1][::-1]):
        found = Scalar(name).stack(Scalar(name).encode(given, "x"))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


@hypothesis.given(
    st.sampled_from([n for n in NUMBERS if "int" in n]),
    st.lists(st.integers(-(2**65), 2**65), min_size=1),
)
def test_integers_are_kept_or_refused(name, numbers):
    bounds = np.iinfo(name)
    bad = [i for i, n in enumerate(numbers) if not bounds.min <= n <= bounds.max]
    if bad:
        with pytest.raises(tl.InvalidSampleError, match=r"column 'n', sample \d+: expected u?int"):
            Scalar(name).encode(numbers, "n")
    else:
        assert Scalar(name).decode(Scalar(name).encode(numbers, "n")) == numbers


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("int32", [1, 2.5], 1), ("int32", [1, None, True], 2), ("int32", ["1"], 0), ("uint8", [256], 0),
        ("uint8", np.array([1, -1]), 1), ("uint64", [-1], 0), ("int64", [2**63], 0), ("float16", [1, 65536.0], 1),
        ("float32", [1e300], 0), ("float64", ["x"], 0), ("float64", [2**53 + 1], 0), ("bool", [1], 0),
        ("string", [b"x"], 0), ("string", [5], 0), ("bytes", ["x"], 0),
        ("date", [dt.datetime(2024, 1, 1)], 0), ("timestamp", ["2024-01-01"], 0),
        ("decimal(4, 2)", [decimal.Decimal("1.234")], 0), ("decimal(4, 2)", [1000], 0),
        ("int32", np.zeros((2, 2), int), 0), ("int32", [np.zeros(2)], 0), ("int32", np.zeros(2), 0),
        ("int32", pa.array([1.5]), 0), ("string", pa.array([1]), 0), ("float32", [1.0, object()], 1),
        ("timestamp", np.array(["2024-01-01T00:00:00.000000001"], "M8[ns]"), 0),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_named(name, value, number):
    with pytest.raises(tl.InvalidSampleError) as error:
        Scalar(name).encode(value, "n", first=100)
    assert f"column 'n', sample {100 + number}: expected " in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("decimal(4, 2)", decimal.Decimal("1.005"), r"got Decimal\('1.005'\) .*round it"),
        ("decimal(4, 2)", decimal.Decimal("NaN"), r"got Decimal\('NaN'\)"),
        ("date", dt.datetime(2024, 1, 2, 3), r"got datetime.datetime\(2024, 1, 2, 3, 0\)"),
        ("int32", dt.date(2024, 1, 2), r"got datetime.date\(2024, 1, 2\) \(date\)"),
    ],
)
def test_decimals_and_times_that_do_not_fit_are_shown(name, value, says):
    with pytest.raises(tl.InvalidSampleError, match=says):
        Scalar(name).encode([value], "n")


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        (
            "timestamp",
            pa.array([0, 1500], pa.timestamp("ns")),
            "1970-01-01 00:00:00.000001500 of type",
        ),
        ("uint64", pa.array([0, decimal.Decimal(-1)], pa.decimal128(20, 0)), "-1 of type"),
        ("decimal(4, 2)", pa.array([1, 1000]), "1000 of type"),
        ("timestamp", pa.array([0, 1 << 62], pa.timestamp("s")), "4611686018427387904"),
    ],
)
def test_values_of_arrow_that_do_not_fit_are_shown(name, values, says):
    with pytest.raises(tl.InvalidSampleError, match=f"sample 1: expected .*{says}"):
        Scalar(name).encode(values, "n")


def test_values_of_another_kind_are_type_errors():
    with pytest.raises(tl.InvalidSampleTypeError, match="declare the dtype bool"):
        Scalar("int8").encode([True], "n")
    with pytest.raises(TypeError):
        Scalar("int8").encode([2.0], "n")


def test_scalars_of_numpy_and_arrays_without_axes_are_taken():
    assert Scalar("int16").encode([np.int64(5), np.array(6), np.uint8(7)], "n").to_pylist() == [
        5,
        6,
        7,
    ]
    assert Scalar("float32").encode([np.float64(0.5), 1], "n").to_pylist() == [0.5, 1.0]
    assert Scalar("bool").encode(np.array([True, False]), "n").to_pylist() == [True, False]
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert Scalar("int16").encode(masked, "n").to_pylist() == [1, None, 3]
    assert Scalar("string").encode(np.array(["a", "bc"]), "n").to_pylist() == ["a", "bc"]
    assert Scalar("string").encode(pa.array(["a"]).dictionary_encode(), "n").to_pylist() == ["a"]
    assert Scalar("int8").encode(pa.nulls(2), "n").to_pylist() == [None, None]
    assert Scalar("int8").encode([], "n").type == pa.int8()


def test_dates_and_times_of_numpy():
    days = np.array(["2024-02-29", "1900-01-01"], "M8[D]")
    np.testing.assert_array_equal(Scalar("date").stack(Scalar("date").encode(days, "d")), days)
    for name in ("timestamp", "timestamp_ntz"):
        times = np.array(["2024-02-29T01:02:03.000004", "1900-01-01"], "M8[us]")
        np.testing.assert_array_equal(Scalar(name).stack(Scalar(name).encode(times, "t")), times)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.int8()])
def test_whole_numbers_of_arrow_and_numpy_are_decimals(kind):
    for name, factor in (("decimal(4, 2)", 1), ("decimal(38, 30)", 1), ("decimal(38, 0)", 10**18)):
        number = 99 if kind == pa.int8() else min(99 * factor, 2**63 - 1)
        given = pa.array([number, None, 0], kind)
        assert Scalar(name).decode(Scalar(name).encode(given, "n")) == [number, None, 0]
        assert Scalar(name).decode(Scalar(name).encode(np.array([number, 0]), "n")) == [number, 0]


def test_nan_is_a_value_and_no_null():
    column = Scalar("float32").encode([float("nan"), None], "x")
    assert column.null_count == 1
    assert np.isnan(Scalar("float32").decode(column)[0])


def test_a_null_has_no_place_in_an_array_nor_in_a_column_that_has_none():
    with pytest.raises(
        tl.InvalidSampleError, match="1 of 3 samples are null, the first is number 1; fill"
    ):
        Scalar("int8").stack(pa.array([1, None, 2], pa.int8()))
    with pytest.raises(tl.InvalidSampleError, match=r"column 'n', sample 8: .* got null"):
        Scalar("int8", nullable=False).encode([1, None], "n", first=7)
    with pytest.raises(tl.InvalidSampleError, match="do not make one array"):
        Scalar("string").stack(pa.array(["a"]))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (int, "int64"), (float, "float64"), (bool, "bool"), (str, "string"), (bytes, "bytes"), (np.uint8, "uint8"),
        (np.dtype(">i4"), "int32"), ("f4", "float32"), (dt.date, "date"), (dt.datetime, "timestamp"),
        ("datetime64[ns]", "timestamp"), ("decimal(5,1)", "decimal(5, 1)"), ("timestamp_ntz", "timestamp_ntz"),
    ],
)  # fmt: skip
def test_names_of_types(given, name):
    assert as_type(given) == Scalar(name)


@pytest.mark.parametrize(
    "given", [None, "flaot32", object, "complex64", 5, "decimal(50, 2)", "decimal(2, 5)", "m8[s]"]
)
def test_what_is_no_type(given):
    with pytest.raises(tl.InvalidOptionError, match="is not a type of a column"):
        as_type(given)


@pytest.mark.parametrize(
    ("dtype", "value", "remedy"),
    [
        ("bool", 2, "compare"),
        ("string", 3, "str(value)"),
        ("string", float("nan"), "or None where there is no text"),  # as pandas has it
        ("string", b"text", "value.decode()"),
        ("bytes", "text", "encode"),
        ("date", "2024-02-29", "datetime.date"),
        ("timestamp", "2024-02-29", "datetime.datetime"),
        ("decimal(4, 2)", "1.25", "decimal.Decimal"),
        ("decimal(4, 2)", 1234, "round it, or declare more digits"),
        ("decimal(4, 2)", decimal.Decimal("1.255"), "round it, or declare more digits"),
    ],
)
def test_a_value_of_another_kind_is_told_with_what_may_be_given(dtype, value, remedy):
    with pytest.raises(tl.InvalidSampleError) as error:
        Scalar(dtype).encode([None, value], "n")
    assert str(error.value).startswith("column 'n', sample 1: expected ")
    assert remedy in str(error.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_numbers_of_numpy_are_not_taken_for_negative_ones(dtype):
    """`pyarrow.array([np.uint64(2**64 - 1)], "float64")` is -1."""
    assert as_type(dtype).encode([np.uint64(3), 1.5, None], "x").to_pylist() == [3, 1.5, None]
    with pytest.raises(tl.InvalidSampleError, match="sample 1"):
        as_type(dtype).encode([0, np.uint64(2**64 - 1)], "x")


@pytest.mark.parametrize("dtype", ["timestamp", "timestamp_ntz"])
def test_parts_of_a_microsecond_are_not_left_out(dtype):
    whole = pd.Timestamp("2024-02-29T01:02:03.456789")
    assert as_type(dtype).encode([whole, None], "x")[0].as_py().microsecond == 456789
    for value in (pd.Timestamp("2024-02-29T01:02:03.456789012"), np.datetime64(1, "ns")):
        with pytest.raises(tl.InvalidSampleError, match="sample 1"):
            as_type(dtype).encode([whole, value], "x")


def test_years_are_those_of_python_and_spark():
    for dtype, unit in (("date", "D"), ("timestamp", "us"), ("timestamp_ntz", "us")):
        kind = as_type(dtype)
        for year in ("0001-01-01", "9999-12-31"):
            value = np.datetime64(year, unit)
            assert kind.decode(kind.encode([value], "x"))[0].year == int(year[:4])
        for year in ("0000-12-31", "10000-01-01", "200000-01-01"):
            value = np.datetime64(year, unit)
            for values in ([None, value], np.array([np.datetime64("NaT", unit), value])):
                with pytest.raises(tl.InvalidSampleError, match=r"sample 1: .*years 1 to 9999"):
                    kind.encode(values, "x")
        stored = pa.array(np.array(["200000-01-01"], f"M8[{unit}]")).cast(kind.storage())
        with pytest.raises(tl.CorruptDataError, match="changed by others"):
            kind.decode(stored)


@pytest.mark.parametrize("dtype", ["date", "timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_numpy_are_taken_in_every_unit(dtype, unit):
    kind, midnight = as_type(dtype), np.datetime64("1999-12-30T00:00:00", "s")
    value = midnight.astype(f"M8[{unit}]")
    found = kind.decode(kind.encode([value, np.datetime64("NaT", unit), None, pd.NaT], "x"))
    assert found[1:] == [None] * 3
    assert np.datetime64(found[0].replace(tzinfo=None) if dtype != "date" else found[0]) == value
    array = np.array([value, "NaT"], f">M8[{unit}]")
    assert kind.decode(kind.encode(array, "x")) == found[:2]


def test_dates_come_back_from_pandas(tmp_path):
    ds = tl.dataset(str(tmp_path / "one"), {"day": "date"})
    ds.extend({"day": [dt.date(2024, 2, 29), dt.date(1969, 1, 2)]})
    again = tl.dataset(str(tmp_path / "other"), {"day": "date"})
    again.extend(ds.to_pandas())  # pandas has no dates, but times of them
    assert [*again["day"]] == [*ds["day"]]


def test_a_date_loses_no_time():
    for values in ([np.datetime64("2024-02-29T01")], np.array(["2024-02-29T01"], "M8[s]")):
        with pytest.raises(tl.InvalidSampleTypeError, match="expected a date"):
            as_type("date").encode(values, "x")


def test_what_is_missing_in_pandas_or_masked_is_null():
    masked = np.ma.array([1, 2], mask=[True, False])
    for dtype in ("int32", "float64"):
        for values in (masked, list(masked), [np.ma.masked, 2], [pd.NA, 2]):
            assert as_type(dtype).encode(values, "x").to_pylist() == [None, 2]


def test_half_of_a_character_is_told_with_its_place():
    for kind in (as_type("string"), tl.types.Text(), tl.types.Json()):
        with pytest.raises(
            tl.InvalidSampleError,
            match=r"sample 1: .*it has half of a character at character \d+; write",
        ):
            kind.encode(["gr\u00fcn", "gr\ud800n"], "x")
