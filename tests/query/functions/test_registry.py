"""Every function that queries promise is there, under each of its names."""

import pytest

from tensorlake_spark.query.functions.registry import FUNCTIONS, find

PROMISED = [
    "array_mean", "array_sum", "array_min", "array_max", "array_std", "array_norm", "array_argmax", "shape", "dtype",
    "normalize", "iou", "iou_matrix", "l2_distance", "cosine_similarity", "dot", "contains", "any", "all", "nonzero",
    "clip", "resize", "histogram", "to_gray",
]  # fmt: skip


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_function_is_there(name):
    assert find(name) is find(name.upper())
    assert find(name).name == name
    assert not find(name).users


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("MEAN", "array_mean"),
        ("IOU", "iou"),
        ("NORMALIZE", "normalize"),
        ("SHAPE", "shape"),
        ("L2_NORM", "array_norm"),
    ],
)
def test_the_spellings_of_tql(spelling, name):
    assert find(spelling).name == name


def test_every_function_says_what_it_gives():
    for function in FUNCTIONS:
        assert function.result in ("number", "int", "bool", "text", "array")
        assert function.arity[0] <= function.arity[1]


@pytest.mark.parametrize("name", ["sum", "avg", "min", "max", "count", "stddev"])
def test_aggregates_of_sql_are_not_taken(name):
    assert find(name) is None
