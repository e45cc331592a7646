"""Large results lie in memory of Arrow's pool, and are what small ones are."""

import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts import result_memory


@pytest.fixture
def small(monkeypatch):
    """Have a result of a kilobyte count as large."""
    monkeypatch.setattr(result_memory, "LEAST", 1 << 10)
    monkeypatch.setattr(result_memory, "MOST", 1 << 20)


@pytest.mark.parametrize(
    "dtype", ["u1", "f8", "c16", "M8[ns]", "S3", ml_dtypes.bfloat16, [("a", "i4"), ("b", "f8")]]
)
@pytest.mark.parametrize("shape", [(3,), (7, 300), (0, 2000), (2, 0), (), (3, 5, 700)])
def test_array_is_what_numpy_makes(small, shape, dtype):
    found, want = result_memory.empty(shape, np.dtype(dtype)), np.empty(shape, dtype)
    assert (found.shape, found.dtype, found.strides) == (want.shape, want.dtype, want.strides)
    assert found.flags.writeable
    assert found.flags.aligned
    found[...] = want
    back = pickle.loads(pickle.dumps(found))
    assert back.tobytes() == found.tobytes()


@pytest.mark.parametrize(
    ("nbytes", "pooled"), [(1023, 0), (1024, 1024), (1 << 20, 1 << 20), ((1 << 20) + 1, 0)]
)
def test_pool_has_a_large_result_as_long_as_it_is_held(small, nbytes, pooled):
    before = pa.total_allocated_bytes()
    held = result_memory.empty((nbytes,), np.dtype("u1"))
    part = held[5:]
    del held
    assert pa.total_allocated_bytes() - before == pooled
    del part
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("layout", ["ftsf", "window", "bsgs", "coo", "csr", "csc", "csf"])
def test_read_gives_the_same_in_memory_of_the_pool(small, tmp_path, layout):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((60, 70)) < 0.3, rng.integers(0, 9, (60, 70)), 0)
    lake = tl.open(tmp_path)
    lake.write("x", x, layout=layout)
    for key in (np.s_[:], np.s_[3:59, ::2], np.s_[::-1]):
        found = lake["x"][key]
        dense = found if isinstance(found, np.ndarray) else found.todense()
        np.testing.assert_array_equal(dense, x[key])
        dense[...] = 1
        held = pa.total_allocated_bytes()
        del found, dense
        lay = held - pa.total_allocated_bytes() >= 1 << 10
        assert lay or key == np.s_[::-1], "turned elements are copied, others lie in the pool"


@pytest.mark.parametrize(("nbytes", "pooled"), [(1023, 0), (1024, 1024), ((1 << 20) + 1, 0)])
def test_pool_has_what_an_operation_needs_for_a_moment(small, monkeypatch, nbytes, pooled):
    monkeypatch.setattr(result_memory, "LEAST", 1 << 20)
    monkeypatch.setattr(result_memory, "LEAST_SHORT", 1 << 10)
    before = pa.total_allocated_bytes()
    held = result_memory.scratch((nbytes,), np.dtype("u1"), 7)
    assert pa.total_allocated_bytes() - before == pooled
    assert (held == 7).all()


_READS = """
import resource
import sys
import tensorlake_spark as tl

ref = tl.open(sys.argv[1])["x"]
faults = []
for _ in range(20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    ref[3]
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults)[10])
"""


def test_slices_are_read_into_memory_that_the_process_has(tmp_path):
    """In a process that has freed no large array, half a slice's time went into new pages."""
    rng, count = np.random.default_rng(0), 1_500_000
    coords = np.stack([rng.integers(0, n, count) for n in (40, 600, 800)])
    some = tl.SparseTensor(
        coords, rng.integers(1, 9, count) * 1.0, (40, 600, 800), duplicates="last"
    )
    tl.open(tmp_path).write("x", some)
    done = subprocess.run(
        [sys.executable, "-c", _READS, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100
