"""The rows with the least values."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.engine.neighbours import kept
from tensorlake_spark.query.planning.plan import Best


@pytest.mark.parametrize("nulls", [0, 0.1])
@pytest.mark.parametrize("dtype", ["f8", "u1", "i1"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 88, 99, 200])
def test_the_kept_have_all_the_best(count, descending, dtype, nulls):
    rng = np.random.default_rng(count)
    values = rng.integers(0, 9, 100).astype(dtype)
    if dtype == "f8":
        values[::11], values[5::11] = np.nan, rng.choice([-np.inf, np.inf], 9)
    elif dtype == "i1":
        values[::11] = -128
    array = pa.array(values, mask=rng.random(100) < nulls)
    found = kept(array, Best(count, descending))
    assert (np.diff(found) > 0).all()

    def rank(value):
        if value is None:
            return 2, 0
        if np.isnan(value):
            return (0, -np.inf) if descending else (1, 0)
        return 0, -value if descending else value

    listed = array.to_pylist()
    order = sorted(range(100), key=lambda i: (rank(listed[i]), i))
    best = order[:count]
    worst = [rank(listed[i]) for i in best][-1:] or [None]
    missing = set(best) - set(found.tolist())
    assert not missing, (worst, missing)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_that_are_one_float_keep_their_order(dtype, descending):
    """Of 2**53 and 2**53 + 1, which round to one float, the first row had been taken for the best."""
    first = 2**53 if dtype == "int64" else 2**64 - 9
    values = np.array([first + k for k in (1, 0, 4, 2)], dtype)
    best = int(values.argmax() if descending else values.argmin())
    assert best in kept(pa.array(values), Best(1, descending))


def test_large_integers_are_ordered_as_integers(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("int64", (1,))})
    ds.extend([{"x": np.array([2**53 + k])} for k in (1, 0, 3, 2)])
    view = ds.query("SELECT sid FROM dataset ORDER BY x[0] LIMIT 2")
    assert [row["sid"] for row in view] == [1, 0]


def test_texts_have_an_order_too(shapes):
    view = shapes.ds.query(
        "SELECT note FROM dataset ORDER BY upper(dtype(emb)) || note DESC, sid LIMIT 2"
    )
    assert len(view) == 2
    found = kept(pa.array(["b", "a", None, "c"]), Best(2, True))
    assert found.tolist() == [0, 3]
