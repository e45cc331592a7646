"""Masks, beside ways to make them that are slow and plain, and Pillow's polygons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.path import Path
from PIL import Image, ImageDraw

from tensorlake_spark.datasets.sources.annotated.region_masks import (
    mask_of,
    polygons_of,
    runs_of_text,
)
from tensorlake_spark.errors import InvalidSampleError


def runs(mask):
    """Return COCO's run lengths of a mask: down the columns, zeros first."""
    flat = mask.T.ravel()
    ends = np.flatnonzero(np.diff(flat.astype(int))) + 1
    lengths = np.diff(np.concatenate([[0], ends, [len(flat)]])).tolist()
    return [0, *lengths] if flat[0] else lengths


def text(counts):
    """Return run lengths as COCO writes them."""
    out = []
    for place, count in enumerate(counts):
        value = count - (counts[place - 2] if place > 2 else 0)
        while True:
            six, value = value & 31, value >> 5
            more = value != (-1 if six & 16 else 0)
            out.append(chr(48 + (six | 32 if more else six)))
            if not more:
                break
    return "".join(out)


@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 12), st.floats(0, 1))
def test_run_lengths_give_the_mask_that_they_are_of(seed, height, width, share):
    mask = np.random.default_rng(seed).random((height, width)) < share
    counts = runs(mask)
    for given_as in (counts, text(counts), text(counts).encode()):
        found = mask_of({"size": [height, width], "counts": given_as}, height, width)
        np.testing.assert_array_equal(found, mask)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_run_lengths_as_text(counts):
    assert runs_of_text(text(counts)) == counts


def test_a_text_from_the_documents_of_coco():
    # 4 x 4, a square of 2 x 2 in the middle: 5 zeros, 2 ones, 2 zeros, 2 ones, 5 zeros.
    mask = np.zeros((4, 4), bool)
    mask[1:3, 1:3] = True
    np.testing.assert_array_equal(mask_of({"size": [4, 4], "counts": [5, 2, 2, 2, 5]}, 4, 4), mask)


@given(st.integers(0, 2**31), st.integers(3, 8))
def test_a_polygon_has_the_pixels_whose_centres_are_inside(seed, corners):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-3, 23, (corners, 2))
    angle = np.arctan2(*(points - points.mean(axis=0)).T)
    points = points[np.argsort(angle)]  # no side crosses another, so that all rules agree
    found = mask_of([points.ravel().tolist()], 20, 20)
    y, x = np.mgrid[:20, :20] + 0.5
    inside = Path(np.vstack([points, points[:1]]), closed=True).contains_points(
        np.column_stack([x.ravel(), y.ravel()])
    )
    np.testing.assert_array_equal(found, inside.reshape(20, 20))


def test_polygons_are_nearly_those_of_pillow():
    points = [(10.2, 5.1), (80.7, 20.3), (60.0, 90.9), (5.5, 70.2)]
    image = Image.new("1", (100, 100))
    ImageDraw.Draw(image).polygon(points, fill=1)
    ours = mask_of([np.ravel(points).tolist()], 100, 100)
    differ = (ours != np.asarray(image)).sum()
    assert differ < 300  # Pillow draws the outline too
    assert ours.sum() > 4000


def test_several_polygons_are_together_one_region():
    square = [0, 0, 2, 0, 2, 2, 0, 2]
    other = [1, 1, 3, 1, 3, 3, 1, 3]
    assert mask_of([square, other], 4, 4).sum() == 7


@pytest.mark.parametrize(
    ("region", "said"),
    [
        ("nonsense", "a list of polygons"),
        ([[1, 2, 3, 4]], "three points at least"),
        ([[1, 2, 3, 4, 5, 6, 7]], "three points at least"),
        ([[1, 2, 3, 4, 5, float("nan")]], "not a finite number"),
        ([[1, 2, 3, 4, 5, "x"]], "list of numbers"),
        ({"size": [2, 3], "counts": [6]}, r"the image is 2 x 2"),
        ({"size": [2, 2], "counts": [5]}, "of 5 pixels"),
        ({"size": [2, 2], "counts": [5, -1]}, "numbers from 0 on"),
        ({"size": [2, 2], "counts": [True] * 4}, "numbers from 0 on"),
        ({"size": [2, 2], "counts": "o"}, "damaged"),
        ({"size": [2, 2], "counts": "o" * 40}, "damaged"),
        ({"size": [2, 2], "counts": "\x7f"}, "damaged"),
        ({"size": [2, 2]}, "numbers from 0 on"),
        ({"counts": [4]}, "run lengths of size None"),
        ({"size": 2, "counts": [4]}, "run lengths of size 2"),
    ],
)
def test_what_is_no_region_is_told(region, said):
    with pytest.raises(InvalidSampleError, match=said):
        mask_of(region, 2, 2)


def test_bombs_are_refused():
    with pytest.raises(InvalidSampleError, match="at most"):
        mask_of([], 1 << 20, 1 << 20)
    zigzag = [c for n in range(100_000) for c in (n % 7, (n % 2) * 10_000)]
    with pytest.raises(InvalidSampleError, match="whose sides cross"):
        mask_of([zigzag], 10_000, 10)
    far = mask_of([[-1e30, -1e30, 1e30, -1e30, 1e30, 1e30, -1e30, 1e30]], 3, 3)
    assert far.all()


def test_polygons_are_arrays_of_points():
    (points,) = polygons_of([[1, 2, 3, 4, 5, 6]])
    np.testing.assert_array_equal(points, [[1, 2], [3, 4], [5, 6]])
