"""Columns of sources, and expressions over them."""

import pytest
from sqlglot import exp

from tensorlake_spark.query.sources.source_columns import (
    BranchLeaf,
    CollectedLeaf,
    ItemLeaf,
    Lazy,
    ScalarLeaf,
    TensorLeaf,
    folded,
    refs_of,
)

A, B, C = ("t", "a"), ("t", "b"), ("t", "c")


def lazy(leaf):
    return Lazy.of(exp.column("x"), {"x": leaf})


@pytest.mark.parametrize(
    ("leaf", "refs"),
    [
        (TensorLeaf(None, "image", A), [A]),
        (ScalarLeaf(B), [B]),
        (CollectedLeaf(lazy(TensorLeaf(None, "image", A))), [A]),
        (ItemLeaf(lazy(TensorLeaf(None, "image", A)), C), [A, C]),
        (BranchLeaf((lazy(ScalarLeaf(A)), lazy(ScalarLeaf(B))), C), [C, A, B]),
    ],
)
def test_leaves_are_moved_with_all_that_they_need(leaf, refs):
    assert refs_of(leaf) == refs
    places = {ref: ("u", ref[1] * 2) for ref in refs}
    moved = lazy(leaf).moved(places)
    assert moved.refs() == [places[ref] for ref in refs]
    assert [one.column for one in moved.tensors()] == [one.column for one in lazy(leaf).tensors()]


def test_expressions_are_equal_if_they_compute_the_same():
    assert lazy(ScalarLeaf(A)) == lazy(ScalarLeaf(A))
    assert lazy(ScalarLeaf(A)) != lazy(ScalarLeaf(B))
    assert lazy(ScalarLeaf(A)).bare is None
    assert lazy(TensorLeaf(None, "image", A)).bare.column == "image"


def test_names_are_compared_by_their_parts():
    assert folded("A/b") == folded("a/B") != folded("a.b")
