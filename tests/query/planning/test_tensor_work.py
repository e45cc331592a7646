"""Which parts of a tree NumPy computes."""

import numpy as np
import pytest

from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.planning.tensor_work import (
    ARRAY,
    NUMBER,
    SCALAR,
    has_tensors,
    kind_of,
    lazy_of,
    tensor_parts,
    with_parts,
)
from tensorlake_spark.query.sources.source_columns import ScalarLeaf, TensorLeaf


def node(text):
    found = parse(f"SELECT {text} FROM t").selects[0]
    return getattr(found, "this", found) if found.key == "alias" else found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("t.a + 1", SCALAR), ("x", ARRAY), ("x[0]", ARRAY), ("t.a[0]", ARRAY), ("x * t.a", ARRAY),
        ("array_mean(x)", NUMBER), ("array_mean(x, 0)", ARRAY), ("mean(t.a)", SCALAR), ("MEAN(x)", NUMBER),
        ("any(x > 3)", NUMBER), ("array_mean(x) / t.a", NUMBER), ("abs(x)", ARRAY), (":v + t.a", ARRAY),
        ("sum(array_mean(x))", SCALAR), ("upper(dtype(x))", SCALAR), ("NOT any(x)", SCALAR),
        ("CAST(array_mean(x) AS INT)", NUMBER), ("array_mean(x) + count(*)", SCALAR),
        ("x[0] - min(t.a)", SCALAR), ("x[0] IN (SELECT 1)", SCALAR), ("x[0] > 1 OR t.a IN (SELECT 1)", SCALAR),
        ("-((x[0] + 1) * (SELECT 1))", SCALAR), ("x[0] > row_number() OVER ()", SCALAR),
    ],
)  # fmt: skip
def test_kinds(text, kind):
    assert kind_of(node(text), {"v": np.zeros(3)}) == kind


def test_the_largest_parts_are_taken_out():
    tree = parse("SELECT 1 FROM t WHERE upper(dtype(x)) = 'A' OR (array_mean(x) > 2 AND t.a < 3)")
    where = tree.args["where"]
    assert [str(p) for p in tensor_parts(where, {})] == ["DTYPE(x)", "ARRAY_MEAN(x) > 2"]
    made = with_parts(where, {}, lambda part: node("t.n"))
    assert not has_tensors(made, {})
    assert str(made).startswith("WHERE UPPER(t.n) = 'A' OR (t.n AND t.a < 3)")


def test_parts_of_long_chains_are_taken_out():
    terms = [f"(t.a = {number} OR array_mean(x) > {number})" for number in range(1500)]
    tree = node(" AND ".join(terms))
    assert kind_of(tree, {}) == "scalar"
    parts = [*tensor_parts(tree, {})]
    assert [part.sql() for part in parts[::1499]] == [
        "ARRAY_MEAN(x) > 0",
        "ARRAY_MEAN(x) > 1499",
    ]
    taken = with_parts(tree, {}, lambda part: node("t.p"))
    assert not has_tensors(taken, {})
    assert taken.sql().count("t.p") == 1500


def test_leaves_are_named_after_columns():
    leaves = {
        "x": TensorLeaf(None, "image", ("t", "k")),
        "y": TensorLeaf(None, "image", ("u", "k")),
    }
    lazy = lazy_of(node("x[:2] + y * t.a AS s"), leaves, {})
    assert lazy.text == "image[:2] + image_1 * a"
    assert lazy.leaves["a"] == ScalarLeaf(("t", "a"))
    assert lazy.refs() == [("t", "k"), ("u", "k"), ("t", "a")]
