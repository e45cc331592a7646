"""Values that are read for rows."""

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types import as_type
from tensorlake_spark.query.engine.leaf_values import (
    ReadCounts,
    grouped,
    operand_values,
    payload_bytes,
    stored_values,
    tensor_values,
)
from tensorlake_spark.query.functions.row_values import for_functions
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


def test_operands_have_the_dtype_of_their_column_beside_nulls():
    found = operand_values(pa.chunked_array([[None, 7], [8]], pa.int16()))
    assert found == [None, 7, 8]
    assert {type(v) for v in found[1:]} == {np.int16}
    found = operand_values(pa.array([2**64 - 1, None], pa.decimal128(20, 0)), as_type("uint64"))
    assert (found, type(found[0])) == ([2**64 - 1, None], np.uint64)
    assert operand_values(pa.array([None], pa.int8())) == [None]
    assert operand_values(pa.array(["a", None])) == ["a", None]
    assert operand_values(pa.array([5], pa.int8())).dtype == np.int8
