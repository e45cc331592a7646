"""Values that are read for rows."""

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.query.engine.leaf_values import (
    ReadCounts,
    box_of,
    for_functions,
    grouped,
    payload_bytes,
    stored_values,
    tensor_values,
)
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import TensorLeaf


def test_samples_come_in_the_order_of_their_sids_each_read_once(shapes):
    leaf = TensorLeaf(DatasetSource("s", shapes.ds), "emb", ("", "k"), "s")
    counts = ReadCounts()
    found = tensor_values(leaf, pa.array([7, 3, None, 7, 1000]), None, counts)
    assert found[2] is None
    assert found[4] is None
    assert np.array_equal([found[0], found[1], found[3]], shapes.vectors[[7, 3, 7]])
    assert counts.rows == {("s", "emb"): 2}


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


@pytest.mark.parametrize("key", [(None,), (9,), (0, 0, 0, 0), ([1, 2],)], ids=str)
def test_what_has_no_box(key):
    assert box_of(key, (5, 6, 7)) is None


def test_bytes_of_payloads():
    tensor = pa.array([{"data": b"1234", "dtype": "u1", "shape": [2, 2]}, None])
    assert payload_bytes(tensor) == 4 + 16
    view = pa.array([b"12", None, b"x" * 40], pa.binary_view())
    assert payload_bytes(view) == 42
    assert payload_bytes(view.slice(2)) == 40


def test_stored_values():
    assert stored_values(pa.array([1, 2], pa.int16())).dtype == np.int16
    assert stored_values(pa.array([1, None])) == [1, None]
    assert stored_values(pa.chunked_array([["a"], ["b"]])) == ["a", "b"]
    assert [v.tolist() for v in stored_values(pa.array([[1], [2, 3]]))] == [[1], [2, 3]]
    assert [type(v) for v in for_functions([[1, 2], None, "x"])] == [np.ndarray, type(None), str]


def test_groups_of_unlike_values_are_lists():
    found = grouped([np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(3)], np.array([0, 2, 4]))
    assert found[0].shape == (2, 2)
    assert [v.shape for v in found[1]] == [(2,), (3,)]
