"""What part of a tensor an expression needs."""

import numpy as np
import pytest

from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.needed_parts import (
    box_of,
    boxes_needed,
    is_tensor_work,
    without_brackets,
)
from tensorlake_spark.query.language.parsing import parse


def nodes(*texts):
    return parse(f"SELECT {', '.join(texts)} FROM t").selects


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["x[100:500, 100:500, 0:2]"], {"x": (slice(100, 500), slice(100, 500), slice(0, 2))}),
        (
            ["x[-5:, ::2, ..., newaxis, 3]"],
            {"x": (slice(-5, None), slice(None, None, 2), ..., None, 3)},
        ),
        (["array_mean(x[1:2]) > 3", "x[1:2]"], {"x": (slice(1, 2),)}),
        (["x[1:2]", "x[1:3]"], {"x": None}),
        (["x[1:2]", "x"], {"x": None}),
        (["x[1:2]", "shape(x)"], {"x": None}),
        (["shape(x)", "dtype(x)", "SHAPE(x, 0)[0]"], {"x": "shape"}),
        (["shape(x[1:2])"], {"x": (slice(1, 2),)}),
        (["x[n:n + 2]"], {"x": None, "n": None}),
        (["x[1 + 2:]"], {"x": (slice(3, None),)}),
        (["x[$a:$b]"], {"x": (slice(2, 4),)}),
        (["x[$nothing:]"], {"x": None}),
        (["x[[1, 2]]"], {"x": None}),
        (["x[:2][0]"], {"x": (slice(None, 2),)}),
        (["y[x[0]:]"], {"y": None, "x": (0,)}),
        (["(x + 1)[0]"], {"x": None}),
        (["x[1.5:]"], {"x": None}),
        (["x[:2] + d.x[:3]"], {"x": (slice(None, 2),), "d.x": (slice(None, 3),)}),
        (["1 + 2"], {}),
    ],
)
def test_the_part_that_is_needed(texts, wanted):
    assert boxes_needed(nodes(*texts), {"a": 2, "b": 4}) == wanted


def test_one_expression_may_be_given():
    assert boxes_needed(nodes("array_mean(x[0])")[0]) == {"x": (0,)}


def test_an_expression_without_brackets_gives_the_same_of_a_crop():
    x = np.random.default_rng(1).random((3, 8, 8))
    for text in ("array_mean(x[2:5, ::-1]) + n", "x[2:5, ::-1]", "x[2:5, ::-1][0] AS y"):
        node = nodes(text)[0]
        key = boxes_needed(node)["x"]
        crop = np.stack([one[key] for one in x])
        n = np.arange(3)
        found = evaluate(without_brackets(node, {"x"}), {"x": crop, "n": n}, 3)
        assert np.array_equal(found, evaluate(node, {"x": x, "n": n}, 3))
        assert node.find(type(node)) is node  # the tree that was given is not changed
    assert without_brackets(nodes("x[0] + y[0]")[0], {"y"}).sql() == nodes("x[0] + y")[0].sql()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("label", False), ("label + 1", False), ("lower(label)", False), ("sum(label)", False),
        ("mean(label)", False), ("MEAN(X)", True), ("x", True), ("x[0]", True), ("label[0]", True),
        ("iou(boxes, boxes)", True), ("shape(label)", True), ("[1, 2]", True), ("avg(array_mean(x))", True),
        ("d.x", False), ("CASE WHEN label = 1 THEN x END", True), ("mean(label) + shape(x)[0]", True),
    ],
)  # fmt: skip
def test_what_is_work_on_tensors(text, wanted):
    assert is_tensor_work(nodes(text)[0], {"x"}) is wanted


@pytest.mark.parametrize(
    "key",
    [
        (slice(1, 4),),
        (slice(None, None, -2), 3),
        (..., slice(-3, None)),
        (0, ..., 1),
        (slice(9, 2),),
        (slice(2, 100, 3),),
    ],
    ids=str,
)
def test_a_box_has_all_that_a_key_takes(key):
    array = np.arange(5 * 6 * 7).reshape(5, 6, 7)
    box = box_of(key, array.shape)
    out = np.full_like(array, -1)
    out[box] = array[box]
    assert np.array_equal(out[key], array[key])
    assert out.size == array.size


@pytest.mark.parametrize(
    "key", [(None,), (9,), (0, 0, 0, 0), ([1, 2],), (slice(1, 0, 0),)], ids=str
)
def test_what_has_no_box(key):
    assert box_of(key, (5, 6, 7)) is None
