"""Overlaps of boxes against a loop, in each form, and boxes relative to a window."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlake_spark import types
from tensorlake_spark.query.functions.boxes import (
    FORMS,
    corners,
    iou,
    iou_matrix,
    normalize,
    with_forms,
)
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.row_values import Constant, RowError, expanded
from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.parsing import parse


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    areas = [(one[2] - one[0]) * (one[3] - one[1]) for one in (a, b)]
    union = sum(areas) - common
    return common / union if union else 0.0


def oracle(a, b):
    if not len(a):
        return np.nan
    return np.mean([max((overlap(x, y) for y in b), default=0.0) for x in a])


@st.composite
def boxes(draw):
    count = draw(st.integers(0, 4))
    numbers = st.integers(0, 20)
    found = [[draw(numbers), draw(numbers), draw(numbers), draw(numbers)] for _ in range(count)]
    return np.array([[x, y, x + w, y + h] for x, y, w, h in found], np.float32).reshape(-1, 4)


def in_form(array, form):
    """Corners in another form."""
    size = array[:, 2:] - array[:, :2]
    first = {"xyxy": array[:, :2], "xywh": array[:, :2], "cxcywh": array[:, :2] + size / 2}[form]
    return np.concatenate([first, array[:, 2:] if form == "xyxy" else size], axis=1)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(boxes(), boxes()), min_size=1, max_size=8), st.sampled_from(FORMS))
def test_iou_is_the_mean_of_the_best_matches(pairs, form):
    first = [in_form(a, form) for a, _ in pairs]
    second = [in_form(b, form) for _, b in pairs]
    found = expanded(find("iou")([first, second, Constant(form)], len(pairs)), len(pairs))
    wanted = [oracle(a, b) for a, b in pairs]
    np.testing.assert_allclose(np.array(found, float), wanted, rtol=1e-5, equal_nan=True)
    matrices = expanded(find("iou_matrix")([first, second, Constant(form)], len(pairs)), len(pairs))
    for matrix, (a, b) in zip(matrices, pairs, strict=True):
        assert matrix.shape == (len(a), len(b))
        loop = [[overlap(x, y) for y in b] for x in a]
        np.testing.assert_allclose(matrix, np.reshape(loop, matrix.shape), rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_corners_are_those_of_the_type(form):
    array = np.random.default_rng(2).random((5, 4)).astype(np.float32)
    assert np.allclose(corners(array, form), types.BoundingBox(form).corners(array))


def test_two_forms():
    a, b = [[0, 0, 2, 2]], [[1, 1, 2, 2]]
    assert float(iou(a, b, "xyxy", "cxcywh")) == 1.0
    assert iou_matrix(a, b, "xyxy", "xywh").shape == (1, 1)


@pytest.mark.parametrize("form", FORMS)
def test_normalized_boxes_are_relative_to_the_window(form):
    array = np.array([[150.0, 200, 350, 300], [100, 100, 500, 500]])
    window = [100, 100, 400, 200]
    wanted = (array - [100, 100, 100, 100]) / [400, 200, 400, 200]
    assert np.allclose(normalize(in_form(array, form), window, form), in_form(wanted, form))


def test_normalize_of_many_rows_is_that_of_each():
    rng = np.random.default_rng(4)
    stack = rng.random((6, 3, 4)).astype(np.float32)
    ragged = [rng.random((i % 3, 4)) for i in range(6)]
    windows = rng.random((6, 4)) + 1
    for values in (stack, ragged):
        for window in (Constant(np.array([1, 2, 3, 4])), windows):
            found = expanded(find("normalize")([values, window], 6), 6)
            given_ = [window.value] * 6 if isinstance(window, Constant) else window
            for got, one, frame in zip(found, values, given_, strict=True):
                wanted = normalize(one, frame)
                assert got.dtype == wanted.dtype
                np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_window_without_a_size_gives_infinity_and_nan():
    found = normalize([[0, 0, 1, 1]], [0, 0, 0, 0])
    assert np.isnan(found[0, 0])
    assert np.isinf(found[0, 2])


def test_one_box_may_be_four_numbers():
    assert float(iou([0, 0, 1, 1], [[0, 0, 1, 1]])) == 1.0


def test_no_boxes():
    assert np.isnan(iou(np.zeros((0, 4)), [[0, 0, 1, 1]]))
    assert float(iou([[0, 0, 1, 1]], np.zeros((0, 4)))) == 0.0
    assert float(iou([[0, 0, 1, 1]], np.zeros(0))) == 0.0
    assert normalize(np.zeros((0, 4)), [0, 0, 1, 1]).shape == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.zeros((2, 3)), np.zeros((1, 4))), r"boxes have the shape \(boxes, 4\), not \(2, 3\)"),
        ((np.zeros(5), np.zeros((1, 4))), "boxes have the shape"),
        ((np.zeros((1, 4)), np.zeros((1, 4)), "xyz"), "not a form of boxes"),
        ((np.array(["a"] * 4), np.zeros((1, 4))), "not numbers"),
        ((np.zeros((1, 4), complex), np.zeros((1, 4))), "complex numbers"),
    ],
)
def test_what_is_no_box(arguments, said):
    with pytest.raises((ValueError, TypeError), match=said):
        iou(*arguments)


def test_what_is_no_window():
    with pytest.raises(ValueError, match="a window is"):
        normalize(np.zeros((1, 4)), [1, 2, 3])


def test_the_row_with_a_wrong_shape_is_named():
    rows = [np.zeros((1, 4)), np.zeros((1, 4)), np.zeros((1, 5)), np.zeros((1, 4))]
    with pytest.raises(RowError, match="not \\(1, 5\\)") as caught:
        find("iou")([rows, rows], 4)
    assert caught.value.row == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("iou(a, b)", "IOU(a, b, 'xywh', 'cxcywh')"),
        ("iou(a, a)", "IOU(a, a, 'xywh')"),
        ("iou(a, :q)", "IOU(a, $q, 'xywh')"),
        ("iou([0, 0, 1, 1], a[1:])", "IOU([0, 0, 1, 1], a[1:], 'xywh')"),
        ("iou(c, c)", "IOU(c, c)"),
        ("iou(a, b, 'xyxy')", "IOU(a, b, 'xyxy')"),
        ("iou_matrix(c, b) + 1", "IOU_MATRIX(c, b, 'cxcywh') + 1"),
        ("NORMALIZE((a), b)", "NORMALIZE((a), b, 'xywh')"),
        ("normalize(c, b)", "NORMALIZE(c, b)"),
        ("array_mean(a)", "ARRAY_MEAN(a)"),
    ],
)
def test_forms_that_columns_declare(text, wanted):
    node = parse(f"SELECT {text} FROM t").selects[0]
    before = node.sql()
    found = with_forms(node, {"a": "xywh", "b": "cxcywh"}).sql(dialect=TensorDialect)
    assert found.replace("iou", "IOU").replace("normalize", "NORMALIZE") == wanted
    assert node.sql() == before


@pytest.mark.parametrize("forms", [(), ("xywh",), ("xywh", "cxcywh"), ("cxcywh", "xyxy")])
def test_boxes_of_whole_columns_are_as_those_of_each_row(forms):
    rng, corner = np.random.default_rng(8), np.array([0, 0, 1, 1])
    columns = {"a": rng.random((6, 3, 4)) + corner, "b": rng.random((6, 2, 4)) + corner}
    said = "".join(f", '{form}'" for form in forms)
    for name, one in (("iou", iou), ("iou_matrix", iou_matrix)):
        node = parse(f"SELECT {name}(a, b{said}) FROM t").selects[0]
        wanted = [one(a, b, *forms) for a, b in zip(*columns.values(), strict=True)]
        np.testing.assert_allclose(evaluate(node, columns, 6), wanted)
