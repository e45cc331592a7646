"""Which bands are looked at: a bounded number, evenly over files and places in them."""

import numpy as np

from tensorlake_spark.spark.ingest.arrays.array_discovery import probe
from tensorlake_spark.spark.ingest.arrays.array_sample import BANDS, chosen_bands


def test_a_bounded_number_of_bands_is_read(tmp_path):
    np.save(tmp_path / "small.npy", np.zeros((3, 4)))
    np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.uint8, (1 << 10, 1 << 20))
    small, large = (
        probe(str(tmp_path / f"{name}.npy"), False, False)[0] for name in ("small", "large")
    )
    assert chosen_bands([small]) == [(small, 0)]
    assert len(chosen_bands([small] * 1000)) == BANDS
    bands = [number for _, number in chosen_bands([large])]
    assert len(bands) == BANDS
    assert bands == sorted(set(bands))
    assert max(bands) > large.tiling(()).count * 0.9
    assert [part for part, _ in chosen_bands([small, large])].count(large) == BANDS // 2
