"""Stored values held against their types, type by type."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance.value_check import MOST, tiled_samples, value_faults
from tensorlake_spark.datasets.types.base import Tiled

T = tl.types

GOOD = [
    (T.ClassLabel(["a", "b"]), [0, None, 1]),
    (T.Text(), ["x", None]),
    (T.Json(), [{"a": [1]}, None, 3]),
    (T.Tensor("float32", (None, 2)), [np.zeros((3, 2), "f4"), None]),
    (T.Tensor("uint8"), [np.zeros((), "u1"), Tiled((5000, 5000), "uint8")]),
    (T.Embedding(4), [np.ones(4, "f4")] * 3),
    (T.Embedding(4, quantize="int8"), [np.arange(4).astype("f4")] * 3),
    (T.BoundingBox("xywh"), [np.array([[1, 2, 3, 4]], "f4"), None]),
    (T.Image("png"), [np.zeros((4, 5, 3), "u1"), None]),
    (T.Image("raw"), [np.zeros((4, 5, 3), "u1"), None, Tiled((9999, 9999, 3), "uint8")]),
    (T.SegmentMask(), [np.ones((4, 5), "u1"), None]),
    (T.BinaryMask(), [np.ones((4, 5), bool), None]),
    (T.Sequence(T.Image("png")), [[np.zeros((4, 5, 3), "u1")] * 2, [], None]),
    (T.Sequence("int64"), [[1, 2], None, []]),
    (T.Polygon(), [[np.ones((3, 2), "f4")], None]),
    (T.Keypoints(["eye"]), [np.ones((1, 1, 3), "f4"), None]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "values"), GOOD, ids=lambda x: str(x) if isinstance(x, T.Type) else ""
)
@pytest.mark.parametrize("deep", [False, True])
def test_what_was_written_is_good(kind, values, deep):
    array = kind.encode(values, "it")
    assert value_faults(kind, array, deep) == []
    # Also where Arrow has cut it out of a longer one.
    longer = pa.concat_arrays([array, array, array])
    assert value_faults(kind, longer.slice(len(array) - 1, len(array)), deep) == []


def test_nulls_where_there_may_be_none():
    kind = T.Sequence("int64", nullable=False)
    array = pa.array([[1], None], kind.storage())
    assert [row for row, _ in value_faults(kind, array, False)] == [1]


def test_an_item_is_named_with_its_place():
    kind = T.Sequence(T.Sequence(T.ClassLabel(["a"])))
    array = pa.array([None, [[0]], [[0], [], [0, 3]]], kind.storage())
    ((row, text),) = value_faults(kind, array, False)
    assert row == 2
    assert text.startswith("item 2: item 1: ")


def test_wrong_values_among_many_are_found_each():
    kind = T.ClassLabel(["a"])
    values = np.zeros(1000, np.int32)
    values[[3, 500, 999]] = 1
    assert [row for row, _ in value_faults(kind, pa.array(values), False)] == [3, 500, 999]
    assert len(value_faults(kind, pa.array(np.ones(1000, np.int32)), False)) == MOST


def test_tiles_are_told_by_their_rows():
    kind = T.Tensor("uint8")
    array = kind.encode([np.zeros(3, "u1"), None, Tiled((70, 80), "uint8")], "it")
    assert tiled_samples(kind, array) == [(2, Tiled((70, 80), "uint8"))]
    assert tiled_samples(T.Text(), pa.array(["x"])) == []


@pytest.mark.parametrize("wrap", [lambda kind: kind, T.Sequence])
def test_a_class_without_a_name_is_seen_in_the_pixels_of_a_mask(wrap):
    kind, other = T.SegmentMask(["sky", "road"], ignore=255), T.SegmentMask()
    masks = [np.full((4, 5), number, "u1") for number in (0, 1, 255, 2, 1, 7)]
    nested = wrap(kind) is not kind
    array = wrap(other).encode([[one] for one in masks] if nested else masks, "it")
    assert value_faults(wrap(kind), array, False) == [], "it has a look at headers only"
    found = value_faults(wrap(kind), array, True)
    assert [row for row, _ in found] == [3, 5]
    assert found[1][1].endswith("it has a pixel of class 7, but the column has 2 classes")
    assert value_faults(wrap(other), array, True) == []
