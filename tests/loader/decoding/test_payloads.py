"""Payloads: where the values of every kind of binary lie."""

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.loader.decoding.payloads import Payloads

VALUES = [b"", b"a", None, b"x" * 12, b"y" * 13, b"z" * 5000, None, b"w" * 12, b"\0" * 20]
KINDS = [pa.binary(), pa.large_binary(), pa.binary_view()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "count"), [(0, 9), (2, 5), (3, 3), (4, 0), (8, 1)])
def test_values_lie_where_they_are_said_to(kind, first, count):
    column = pa.array(VALUES, kind).slice(first, count)
    want = VALUES[first : first + count]
    found = Payloads(column)
    assert len(found) == count
    assert found.valid.tolist() == [value is not None for value in want]
    assert found.sizes.tolist() == [len(value or b"") for value in want]
    assert [None if view is None else bytes(view) for view in found.views] == want
    for number, value in enumerate(want):
        start = found.starts[number]
        part = found.buffers[found.which[number]][start : start + found.sizes[number]]
        assert part.tobytes() == (value or b"")


def test_values_of_several_buffers():
    parts = [
        pa.array([b"a" * 20, b"b" * 30], pa.binary_view()),
        pa.array([None, b"c" * 40], pa.binary_view()),
    ]
    found = Payloads(pa.concat_arrays(parts))
    assert [view and bytes(view) for view in found.views] == [b"a" * 20, b"b" * 30, None, b"c" * 40]


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view()])
def test_nothing_is_copied(kind):
    column = pa.array([b"x" * 100, b"y" * 100], kind)
    (buffer,) = [b for b in column.buffers() if b is not None and b.size >= 200][-1:]
    view = np.frombuffer(Payloads(column).views[1], np.uint8)
    assert buffer.address <= view.ctypes.data < buffer.address + buffer.size
    assert (view.dtype, Payloads(column).views[0].format) == (np.uint8, "B")


def test_only_nulls():
    for kind in KINDS:
        assert Payloads(pa.nulls(3, kind)).views == [None, None, None]
