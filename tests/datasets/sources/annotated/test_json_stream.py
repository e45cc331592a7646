"""JSON a part at a time, beside json.loads."""

import io
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlake_spark.datasets.sources.annotated import json_stream
from tensorlake_spark.datasets.sources.annotated.json_stream import items_of
from tensorlake_spark.errors import InvalidSampleError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


class Slow(io.BytesIO):
    """Gives few bytes at once, as a stream may."""

    def __init__(self, data, step):
        super().__init__(data)
        self.step = step

    def read(self, size=-1):
        return super().read(min(size, self.step) if size >= 0 else size)


@settings(deadline=None)
@given(
    st.dictionaries(st.text(), VALUES, max_size=5), st.integers(1, 7), st.sampled_from([None, 2])
)
def test_items_are_those_of_the_whole(found, step, indent):
    data = json.dumps(found, indent=indent, ensure_ascii=step % 2 == 0).encode(
        "utf-8", "surrogatepass"
    )
    expected = []
    for key, value in found.items():
        expected += [(key, one) for one in value] if isinstance(value, list) else [(key, value)]
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    assert list(items_of(Slow(data, step), "x")) == expected


@pytest.mark.parametrize("text", ['{"a": 0}', '{"a": [1, 0]}', '{"b": "c", "a": 0 }'])
@pytest.mark.parametrize("step", [1, 3, 5, 100])
def test_a_number_may_be_the_last_value(text, step):
    """It was taken for a file that breaks off: whether the number goes on was asked at the end of the file."""
    assert list(items_of(Slow(text.encode(), step), "x"))[-1] == ("a", 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        '{"a"',
        '{"a":',
        '{"a": [1',
        '{"a": [1,]}',
        '{"a": [1 2]}',
        '{"a": 1,}',
        '{"a": 1} {"a": 2}',
        '{"a": [1]}]',
        "{}x",
        "{1: 2}",
        "nul",
    ],
)
def test_what_is_no_object_is_told(text):
    with pytest.raises(InvalidSampleError, match=r"x: this is not a JSON object"):
        list(items_of(io.BytesIO(text.encode()), "x"))


def test_values_in_values_end_in_an_error():
    with pytest.raises(InvalidSampleError, match="too deep"):
        list(items_of(io.BytesIO(b'{"a": ' + b"[" * 100 + b'{"b":' * 200_000), "x"))


def test_bytes_that_are_no_text_are_told():
    with pytest.raises(InvalidSampleError, match="this is not JSON"):
        list(items_of(io.BytesIO(b'{"a": "\xff"}'), "x"))


def test_an_item_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr(json_stream, "_MOST", 1 << 12)
    monkeypatch.setattr(json_stream, "_STEP", 1 << 10)
    endless = io.BytesIO(b'{"a": ["' + b"x" * (1 << 20))
    with pytest.raises(InvalidSampleError):
        list(items_of(endless, "x"))
    assert endless.tell() < 1 << 16


def test_a_long_list_takes_little_memory():
    data = io.BytesIO(
        json.dumps({"a": [{"n": n, "text": "x" * 50} for n in range(200_000)]}).encode()
    )
    tracemalloc.start()
    try:
        assert sum(item["n"] for _, item in items_of(data, "x")) == 200_000 * 199_999 // 2
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


def test_blanks_may_follow_the_object():
    text = '{"a": [1]}' + " \r\n\t" * (1 << 20)
    assert list(items_of(io.BytesIO(text.encode()), "x")) == [("a", 1)]
