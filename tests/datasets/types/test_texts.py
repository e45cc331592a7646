"""Texts and JSON."""

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Json, Text, as_type

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
)  # fmt: skip


@hypothesis.given(st.lists(VALUES))
def test_json_comes_back(values):
    column = Json().encode(values, "x")
    assert column.type == pa.string()
    assert Json().decode(column) == values
    assert Json().encode(column, "x") == column


def test_texts_come_back():
    assert Text().decode(Text().encode(["a", None, ""], "x")) == ["a", None, ""]
    with pytest.raises(
        tl.InvalidSampleTypeError, match="column 'x', sample 1: expected a text, got 5"
    ):
        Text().encode(["a", 5], "x")


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}, b"x"])
def test_what_is_no_json_is_refused(value):
    with pytest.raises(tl.InvalidSampleTypeError, match="sample 1: expected a value of JSON"):
        Json().encode([{}, {"a": value}], "x")


def test_a_circle_is_no_json():
    value = []
    value.append(value)
    with pytest.raises(tl.InvalidSampleError, match="sample 0"):
        Json().encode([value], "x")


def test_text_of_arrow_is_checked_and_structs_are_turned_into_json():
    with pytest.raises(tl.InvalidSampleError, match="sample 1: expected JSON"):
        Json().encode(pa.array(["1", "{"]), "x")
    assert Json().encode(pa.array([{"a": 1}]), "x").to_pylist() == ['{"a": 1}']
    with pytest.raises(tl.CorruptDataError, match="not JSON"):
        Json().decode(pa.array(["{"]))
    assert Json().decode(pa.array(["{"]), native=True) == ["{"]


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, [{"x": {None: 1}}], {"x": ({2.5: 1},)}])
def test_keys_that_are_no_texts_are_refused(value):
    """They would become texts, and one could take the place of another."""
    with pytest.raises(tl.InvalidSampleTypeError, match=r"sample 1: .*give str\(key\)"):
        Json().encode([{}, value], "x")


def test_bytes_that_are_no_text_are_refused():
    """Arrow does not look whether they are; what reads them does."""
    ends = pa.py_buffer(np.array([0, 1, 3], np.int32))
    broken = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"a\xff\xfe")])
    for kind in (Text(), Json(), as_type("string")):
        with pytest.raises(tl.InvalidSampleError, match=r"sample 1: .*UTF-8"):
            kind.encode(broken, "x")


@pytest.mark.parametrize("text", ["NaN", '{"a": [1, -Infinity]}'])
def test_numbers_that_json_does_not_have_are_refused_as_texts_too(text):
    with pytest.raises(tl.InvalidSampleError, match=r"sample 1: expected JSON, .* is no JSON"):
        Json().encode(pa.array(["1", text]), "extra")
