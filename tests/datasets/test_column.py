"""A column: batches, and one sample's bytes."""

import numpy as np
import pyarrow as pa

import tensorlake_spark as tl


def test_batches_are_the_column_as_it_is_stored(tmp_path, jpegs):
    ds = tl.dataset(tmp_path, {"image": tl.types.Image("jpeg")})
    ds.extend({"image": [*jpegs, None]})
    for views in (True, False):
        arrays = [*ds["image"].batches(views)]
        assert {array.type.field("data").type for array in arrays} == {
            pa.binary_view() if views else pa.binary()
        }
        found = [one for array in arrays for one in array.field("data").to_pylist()]
        assert found == [*jpegs, None]


def test_a_null_has_no_bytes(tmp_path, jpegs):
    ds = tl.dataset(tmp_path, {"a": tl.types.Image("jpeg"), "b": tl.types.Tensor("int8")})
    ds.extend([{"a": jpegs[0]}, {"b": np.arange(3, dtype=np.int8)}])
    assert ds["a"].encoded(1) is None
    assert ds["b"].encoded(-1) == bytes([0, 1, 2])
