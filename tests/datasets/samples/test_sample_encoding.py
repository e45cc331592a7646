"""Columns as they are stored: all of them, numbered."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples.sample_encoding import encoded, numbered


def test_a_column_that_is_not_given_is_null():
    schema = tl.types.SampleSchema({"a": "int32", "g/b": tl.types.Text()})
    table = numbered(encoded({"a": np.arange(2)}, schema, 0), schema, 7)
    assert table.to_pylist() == [
        {"sid": 7, "a": 0, "g": {"b": None}},
        {"sid": 8, "a": 1, "g": {"b": None}},
    ]
    assert table.schema.equals(schema.to_arrow())


def test_a_column_that_takes_no_null_has_to_be_given():
    schema = tl.types.SampleSchema({"a": "int32", "b": tl.types.Text(nullable=False)})
    with pytest.raises(tl.InvalidSampleError, match="column 'b', sample 5: expected a value"):
        encoded({"a": [1]}, schema, 5)
