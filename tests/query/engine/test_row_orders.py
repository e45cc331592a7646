"""Rows in an order."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.engine.row_orders import arranged, expanded, sampled, split


def test_rows_with_nulls_and_lists_lie_together():
    table = pa.table({"a": pa.array([None, 1, None, 2]), "b": [[1], [2], [1], [2]]})
    assert arranged(table, ["a"]).tolist() == [0, 2, 1, 3]
    assert arranged(table, ["b", "a"]).tolist() == [0, 2, 1, 3]
    assert arranged(table.slice(0, 0), ["a"]).tolist() == []


def test_rows_lie_together_where_all_keys_are_alike():
    rng = np.random.default_rng(4)
    keys = {"a": ["x", "y", None], "b": [0, 1, 2, None], "c": [[1], [2, 1], None]}
    for count in (1, 5, 40):
        columns = {
            n: [some[i] for i in rng.integers(0, len(some), count)] for n, some in keys.items()
        }
        table = pa.table(
            {
                **columns,
                "b": pa.array(columns["b"], pa.int64()),
                "c": pa.array(columns["c"], pa.list_(pa.int8())),
            }
        )
        groups = {}
        for place, row in enumerate(zip(*columns.values(), strict=True)):
            groups.setdefault(repr(row), []).append(place)
        assert arranged(table, list(keys)).tolist() == [
            place for group in groups.values() for place in group
        ]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_zeros_of_both_signs_and_all_nan_lie_together(kind):
    nan = float("nan")
    table = pa.table({"a": pa.array([0.0, 1.0, -0.0, nan, None, 0.0, nan, None], kind)})
    assert arranged(table, ["a"]).tolist() == [0, 2, 5, 1, 3, 6, 4, 7]


@pytest.mark.parametrize("unit", [1.0, 5e307, 1e-320])
def test_weights(unit):
    drawn = sampled(pa.array([0.0, unit, 3 * unit, None]), 8000, True, 5)
    assert np.allclose(np.bincount(drawn, minlength=4) / 8000, [0, 0.25, 0.75, 0], atol=0.02)
    firsts = [int(sampled(pa.array([unit, 3 * unit]), 1, False, seed)[0]) for seed in range(600)]
    assert np.mean(firsts) == pytest.approx(0.75, abs=0.06)
    assert sorted(sampled(pa.array([True, False, True]), 9, False, 0)) == [0, 2]
    assert sorted(sampled(pa.array([1.0, 5e-324]), 9, False, 0)) == [0, 1]
    assert len(sampled(pa.array([], pa.int32()), 5, True, 0)) == 0


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, -1.0], "-1.0 in row 1"),
        ([np.nan], "nan"),
        ([0.0], "no weight above 0"),
        (["a"], "a number as weight"),
    ],
)
def test_weights_that_are_none(weights, said):
    with pytest.raises(tl.InvalidQueryError, match=said):
        sampled(pa.array(weights), 1, True, 0)


def test_a_weight_may_be_an_integer_that_no_float_is():
    assert sampled(pa.array([0, 2**53 + 1]), 1, False, 0).tolist() == [1]


def test_neighbours_stay_inside():
    assert expanded(np.array([0, 9]), 2, 2, 10, False).tolist() == [0, 1, 2, 7, 8, 9]
    assert expanded(np.zeros(0, int), 2, 2, 10, True).tolist() == []


@pytest.mark.parametrize("overlap", [False, True])
def test_neighbours_are_those_of_a_loop(overlap):
    rng = np.random.default_rng(0)
    for _ in range(50):
        count, before, after = (int(n) for n in rng.integers([1, 0, 0], [30, 9, 9]))
        positions = np.flatnonzero(rng.random(count) < 0.3)
        wanted = [n for p in positions for n in range(p - before, p + after + 1) if 0 <= n < count]
        wanted = wanted if overlap else sorted(set(wanted))
        assert expanded(positions, before, after, count, overlap).tolist() == wanted


def test_clauses_do_not_make_more_rows_than_memory_takes():
    some = np.arange(20_000)
    assert expanded(some, 10**30, 10**30, 20_000, False).tolist() == some.tolist()
    with pytest.raises(tl.InvalidQueryError, match="EXPAND BY makes 400,000,000 rows, and at most"):
        expanded(some, 20_000, 20_000, 20_000, True)
    with pytest.raises(tl.InvalidQueryError, match="SAMPLE BY makes 1,000,000,000,000 rows"):
        sampled(pa.array([1.0]), 10**12, True, 0)
    assert sampled(pa.array([1.0]), 10**12, False, 0).tolist() == [0]


def test_rows_are_split_by_their_lengths():
    rows, items = split([pa.array([2, 0, 3]), pa.array([2, None, 3])])
    assert rows.tolist() == [0, 0, 2, 2, 2]
    assert items.tolist() == [0, 1, 0, 1, 2]
    assert [part.tolist() for part in split([pa.array([1, 2])])] == [[0, 1, 1], [0, 0, 1]]
    with pytest.raises(tl.InvalidQueryError, match="2 and 1 elements in row 0"):
        split([pa.array([2]), pa.array([1])])
