"""The loops over vectors give NumPy's products, at whatever address; run as a program, compiled by numba."""

import sys

import numpy as np

from tensorlake_spark.query.nearest import vector_loops

SIZES = (1, 3, 8, 128, 131)


def check(size, seed=0):
    """Compare products and squares of some vectors with NumPy's; return how many were compared."""
    rng = np.random.default_rng(seed)
    rows, count = 9, 0
    x = rng.normal(size=(rows, size)).astype("f4")
    q = rng.normal(size=size).astype("f4")
    x[3, 0], x[5, -1] = np.nan, np.inf
    for shift in range(4):
        raw = np.zeros(shift + 4 * rows * (size + 1), np.uint8)
        lying = np.ndarray((rows, size), "<f4", raw, shift + 4, (4 * size + 4, 4))
        lying[...] = x
        raw.flags.writeable = False
        words = np.ndarray((rows * (size + 1) - 1,), "<f4", raw, shift + 4)
        out = np.zeros(rows, np.float32)
        vector_loops.products(words, size + 1, q, out)
        assert np.allclose(out, x @ q, rtol=1e-4, atol=1e-4, equal_nan=True), (size, shift)
        vector_loops.squares(words, size + 1, size, out)
        assert np.allclose(out, (x * x).sum(1), rtol=1e-4, equal_nan=True), (size, shift)
        count += 2
    return count


if __name__ == "__main__":
    assert hasattr(vector_loops.products, "signatures"), "numba is off"
    vector_loops.warm()
    assert len(vector_loops.products.signatures) == 1
    sys.stdout.write(f"{sum(check(size) for size in SIZES)}\n")
    assert len(vector_loops.products.signatures) == 1, "a kind of array was compiled anew"
