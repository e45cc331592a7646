"""Pages of mapped files that are given back."""

import os

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.store.memory_maps.mapped_pages import give_back_pages


def mapped_now():
    """Bytes of files that are mapped and count as memory of this process."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssFile"))
    return int(line.split()[1]) * 1024


def test_they_no_longer_count_and_stay_what_they_are(tmp_path):
    path = tmp_path / "a"
    data = np.random.default_rng(0).integers(0, 256, 32 << 20, np.uint8)
    path.write_bytes(data.tobytes())
    mapped = pa.memory_map(str(path)).read_buffer()
    view = np.frombuffer(mapped, np.uint8)
    total = int(view.sum())
    before = mapped_now()
    give_back_pages(mapped.address, mapped.size)
    assert mapped_now() < before - (24 << 20)
    assert int(view.sum()) == total


def test_pages_that_are_not_whole_are_left_alone(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(os.urandom(3 * 4096))
    mapped = pa.memory_map(str(path)).read_buffer()
    wanted = mapped.to_pybytes()
    for start, nbytes in ((0, 0), (1, 4094), (4095, 2), (100, 8000)):
        give_back_pages(mapped.address + start, nbytes)
    assert mapped.to_pybytes() == wanted
