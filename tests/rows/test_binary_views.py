"""Views of bytes: Arrow's own columns are the oracle."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensorlake_spark.rows.binary_views import INLINE, VIEW, lengths_of, payloads, views_of

VALUES = st.lists(
    st.none() | st.binary(max_size=INLINE + 2) | st.binary(min_size=50, max_size=60), max_size=12
)


@given(VALUES, st.integers(0, 12))
@example([b"x" * INLINE, b"y" * (INLINE + 1), b""], 0)
def test_views_are_the_bytes(values, first):
    column = views_of(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.binary()).cast(pa.binary_view()))
    part = column.slice(min(first, len(values)))
    found = payloads(part, range(len(part)))
    assert [v if v is None else bytes(v) for v in found] == part.to_pylist()


def test_a_value_ends_where_no_offset_reaches(tmp_path):
    file = tmp_path / "holes"
    with file.open("wb") as out:
        out.seek((1 << 31) - 20)
        out.write(bytes(range(60)))
    view = np.zeros(1, VIEW)
    view["length"], view["offset"] = 60, (1 << 31) - 20
    mapped = pa.memory_map(str(file)).read_buffer()
    column = pa.Array.from_buffers(pa.binary_view(), 1, [None, pa.py_buffer(view), mapped])
    assert bytes(payloads(column, [0])[0]) == bytes(range(60))


@given(VALUES, st.integers(0, 12), st.sampled_from([0, -1]))
def test_lengths_are_those_of_the_bytes(values, first, null):
    first = min(first, len(values))
    found = lengths_of(views_of(values).slice(first), null)
    assert found.dtype == np.int64
    assert found.tolist() == [null if v is None else len(v) for v in values[first:]]


def test_long_bytes_are_not_copied():
    data = bytes(range(100))
    buffers = views_of([b"short", None, data]).buffers()
    assert buffers[2].address == np.frombuffer(data, np.uint8).ctypes.data


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view()])
def test_payloads_of_both_kinds(kind):
    column = pa.array([b"a", None, b"x" * 50], kind)
    found = payloads(column, [2, 0])
    assert [bytes(v) for v in found] == [b"x" * 50, b"a"]
