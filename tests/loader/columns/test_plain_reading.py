"""Columns as the dataset itself decodes them."""

import mmap

import numpy as np
import pytest

import tensorlake_spark as tl


@pytest.mark.parametrize("tile_bytes", [1 << 20, 1 << 30], ids=["tiles", "in rows"])
def test_large_samples_lie_in_maps_that_go_back_to_the_system(tmp_path, tile_bytes):
    """What the C library and Arrow keep of freed samples would add up, as no two of them have one size."""
    arrays = [np.arange(n, dtype=np.uint8) for n in (9 << 20, 20 << 20)]
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("uint8", (None,))}, tile_bytes=tile_bytes)
    ds.extend({"x": array} for array in arrays)
    (batch,) = ds.loader(2)
    for found, array in zip(batch["x"], arrays, strict=True):
        assert np.array_equal(found, array)
        base = found
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base.obj, mmap.mmap)
