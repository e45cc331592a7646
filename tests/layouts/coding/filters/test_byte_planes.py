"""Byte planes: what is parted comes back, whole, of many blocks, and in parts."""

import numpy as np
import pytest

from tensorlake_spark.layouts.coding.filters import byte_planes


@pytest.mark.parametrize("dtype", ["u2", "f4", "i8"])
def test_planes_come_back(dtype):
    x = np.random.default_rng(0).integers(0, 99, (5, 6)).astype(dtype)
    planes = byte_planes.part(x)
    assert planes.shape == (x.itemsize, 30)
    assert byte_planes.join(planes).tobytes() == x.tobytes()
    assert byte_planes.join(np.stack([planes, planes])).tobytes() == x.tobytes() * 2


@pytest.mark.parametrize("src", [np.s_[1:4, ::2], np.ix_([4, 0], [5, 5]), np.s_[:0, :]])
def test_parts_are_those_of_numpy(src):
    x = np.random.default_rng(0).standard_normal((5, 6))
    planes = byte_planes.part(x).reshape(8, 5, 6)
    np.testing.assert_array_equal(byte_planes.pick(planes, x.dtype, src), x[src])
    apart = np.zeros((7, 9))[: x[src].shape[0], : x[src].shape[1]]
    byte_planes.put(planes, src, apart)
    np.testing.assert_array_equal(apart, x[src])
