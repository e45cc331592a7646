"""Boxes, polygons and keypoints."""

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import BoundingBox, Keypoints, Polygon, Type

CORNERS = st.tuples(*[st.integers(0, 200)] * 4)


@hypothesis.given(
    st.lists(st.none() | st.lists(CORNERS, max_size=4), max_size=5),
    st.sampled_from(["xyxy", "xywh", "cxcywh"]),
)
def test_boxes_come_back_and_have_the_corners_they_had(samples, form):
    kind = BoundingBox(form)
    given = []
    for boxes in samples:
        if boxes is None:
            given.append(None)
            continue
        corners = np.array(boxes, float).reshape(-1, 2, 2)
        corners.sort(axis=1)
        low, high = corners[:, 0], corners[:, 1]
        parts = {
            "xyxy": (low, high),
            "xywh": (low, high - low),
            "cxcywh": ((low + high) / 2, high - low),
        }
        given.append((np.hstack(parts[form]), np.hstack([low, high])))
    found = kind.decode(kind.encode([None if g is None else g[0] for g in given], "b"))
    for boxes, wanted in zip(found, given, strict=True):
        if wanted is None:
            assert boxes is None
        else:
            assert boxes.dtype == np.float32
            np.testing.assert_array_equal(boxes, wanted[0])
            np.testing.assert_array_equal(kind.corners(boxes), wanted[1])


@pytest.mark.parametrize(
    ("kind", "box", "says"),
    [
        (BoundingBox("xyxy"), [5, 5, 4, 6], "x1 <= x2 and y1 <= y2"),
        (BoundingBox("xywh"), [5, 5, 4, -1], "at least 0"),
        (BoundingBox("cxcywh"), [5, 5, -4, 1], "at least 0"),
        (BoundingBox("xyxy"), [5, 5, np.nan, 6], "finite"),
        (BoundingBox("xyxy", normalized=True), [0.5, 0.5, 0.9, 1.1], "inside 0 ... 1"),
        (BoundingBox("xywh", normalized=True), [0.5, 0.5, 0.6, 0.1], "inside 0 ... 1"),
        (BoundingBox("cxcywh", normalized=True), [0.1, 0.5, 0.6, 0.1], "divide pixels"),
        (BoundingBox("xyxy"), [1, 2, 3], "shape (None, 4)"),
    ],
)
def test_boxes_that_are_none_are_refused_and_named(kind, box, says):
    good = [0.1, 0.1, 0.1, 0.1]
    for given in ([[good] * 2, None, [], [good, box]], [None, [good], [good], [box]]):
        with pytest.raises(tl.InvalidSampleError) as error:
            kind.encode(given, "b", first=6)
        assert "column 'b', sample 9: expected " in str(error.value) or len(box) == 3
        assert says in str(error.value) or len(box) == 3
    if len(box) == 4:
        with pytest.raises(tl.InvalidSampleError, match="sample 1: expected "):
            kind.encode(np.array([[good, good], [good, box]]), "b")


def test_centres_of_six_digits_are_not_outside():
    kind = BoundingBox("cxcywh", normalized=True)
    assert len(kind.encode([[[0.333333, 0.5, 0.666667, 1.0]]], "b")) == 1


@pytest.mark.parametrize(
    ("kind", "value", "remedy"),
    [
        (BoundingBox(), [1, 2, 3, 4], "list of boxes of four numbers each (x1, y1, x2, y2), also if it has one"),
        (BoundingBox("xywh"), np.arange(4.0), "(x, y, width, height), also if it has one"),
        (BoundingBox("cxcywh"), 5, "(x and y of the centre, width, height), also if it has one"),
        (BoundingBox(), [[1, 2], [3, 4]], "(x1, y1, x2, y2)"),
        (BoundingBox(), [[1, 2, 3, 4, 0.9]], "(x1, y1, x2, y2)"),
        (Keypoints(["a", "b"]), [[1, 2, 2], [3, 4, 2]], "a list of objects, each with x, y and 0, 1 or 2 for 2 points"),
        (Keypoints(["a", "b"]), [[[1, 2], [3, 4]]], "x, y and 0, 1 or 2 for 2 points, also if it has one"),
        (Polygon(), [[1, 2], [3, 4], [5, 6]], "a sample is a list of polygons, also if it has one"),
        (Polygon(), [1, 2, 3, 4, 5, 6], "a sample is a list of polygons, also if it has one"),
        (Polygon(), [[[1, 2], [3, 4]]], "got shape (2, 2); leave out a polygon of fewer corners"),
        (Polygon(), [[1, 2, 3, 4]], "got shape (4,); leave out a polygon of fewer corners"),
        (Polygon(), [[]], "leave out a polygon of fewer corners"),
        (Polygon(), [[1, 2, 3, 4, 5, 6, 7]], "give x and y of each corner, one after the other"),
        (Polygon(), [[[1, 2, 0], [3, 4, 0], [5, 6, 0]]], "give x and y of each corner; a sample"),
        (Polygon(), [[[[1, 2], [3, 4], [5, 6]]]], "give x and y of each corner; a sample"),
    ],
)  # fmt: skip
def test_the_remedy_fits_what_is_given(kind, value, remedy):
    with pytest.raises(tl.InvalidSampleError) as error:
        kind.encode([None, value], "b")
    assert "column 'b', sample 1: expected " in str(error.value)
    assert remedy in str(error.value)


def test_keypoints_come_back_also_from_rows_of_coco():
    kind = Keypoints(["eye", "nose"])
    array = np.array([[[1, 2, 2], [3, 4, 0]]], "f4")
    for given in (array, array.tolist(), array.reshape(1, 6), array.reshape(1, 6).tolist()):
        np.testing.assert_array_equal(kind.decode(kind.encode([given], "k"))[0], array)
    assert kind.decode(kind.encode([[], None], "k"))[0].shape == (0, 2, 3)
    for bad in ([[[1, 2, 3], [3, 4, 0]]], [[[np.nan, 2, 2], [3, 4, 0]]], [[[1, 2, 2]]], 5):
        with pytest.raises(tl.InvalidSampleError, match="column 'k', sample 1: "):
            kind.encode([array, bad], "k")
    assert Type.from_json(kind.to_json()) == kind


RINGS = st.lists(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=5), max_size=3
)


@hypothesis.given(st.lists(st.none() | RINGS, max_size=5), st.integers(0, 2), st.booleans())
def test_polygons_come_back(samples, start, flat):
    kind = Polygon()
    given = [
        s if s is None else [np.array(r).reshape(-1) if flat else np.array(r) for r in s]
        for s in samples
    ]
    column = kind.encode(given, "p")
    column.validate(full=True)
    assert column.type == kind.storage()
    found = kind.decode(column.slice(start))
    assert [None if s is None else [[tuple(p) for p in r] for r in s] for s in found] == samples[
        start:
    ]
    assert kind.encode(column, "p") == column


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([[0, 0, 1, 1]], "at least 3 corners"),
        ([[0, 0, 1, 1, 2]], "at least 3 corners"),
        (np.zeros((4, 2)), "a list of polygons, also if it has one"),
        ([[0, 0, 1, 1, 2, np.inf]], "finite"),
        ([[0, 0, 1, 1, 2, 2]], "inside 0 ... 1"),
        (5, "a list of polygons"),
        ("text", "a list of polygons"),
    ],
)
def test_polygons_that_are_none_are_refused(value, says):
    with pytest.raises(tl.InvalidSampleError, match=says):
        Polygon(normalized=True).encode([None, value], "p")


def test_half_a_point_in_a_changed_table_is_found():
    with pytest.raises(tl.CorruptDataError, match="odd count"):
        Polygon().decode(pa.array([[[1.0, 2.0, 3.0]]], pa.list_(pa.list_(pa.float32()))))
    for options in ({"form": "yxyx"}, {"normalized": 1}, {"dtype": "int8"}):
        with pytest.raises(tl.InvalidOptionError):
            BoundingBox(**options)
    with pytest.raises(tl.InvalidOptionError):
        Keypoints([])
    with pytest.raises(tl.InvalidOptionError):
        Polygon(normalized="yes")


@pytest.mark.parametrize("kind", [Polygon(), Keypoints(["a"]), BoundingBox()])
@pytest.mark.parametrize("value", [np.array(3.0), np.ma.masked, {}, {"a": 1}, "ab"])
def test_what_has_no_parts_is_refused(kind, value):
    with pytest.raises(tl.InvalidSampleError, match="sample 1"):
        kind.encode([None, value], "x")
