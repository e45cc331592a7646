"""Values are narrowed only where every bit of them comes back on any machine."""

import numpy as np
import pytest

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.buffers import (
    STORED,
    check_several,
    narrowest,
    pack_ints,
    pack_values,
    unpack_values,
)


@pytest.mark.parametrize(("dtype", "word", "quiet"), [("f8", "u8", 51), ("f4", "u4", 22)])
def test_a_signalling_nan_is_not_narrowed(dtype, word, quiet):
    nan = np.array([np.inf], dtype).view(word)[0]
    signalling = np.array([nan | np.dtype(word).type(1 << quiet - 1)]).view(dtype)
    quieted = np.array([nan | np.dtype(word).type(1 << quiet)]).view(dtype)
    assert np.isnan(signalling).all()
    assert STORED[narrowest(quieted)] == "f2"
    assert STORED[narrowest(signalling)] == ""
    for values in (signalling, quieted):
        got = unpack_values([pack_values(values)], [1], np.dtype(dtype))
        assert got.tobytes() == values.tobytes()


def test_several_different_integers_are_not_all_zero():
    none, some = pack_ints(np.zeros(3, np.int64)), pack_ints(np.array([0, 1, 2]))
    check_several([none, some, none], [1, 3, 0])
    with pytest.raises(CorruptDataError, match="2 different integers"):
        check_several([some, none], [3, 2])


@pytest.mark.parametrize("dtype", ["u1", "?", "i4", "f8"])
@pytest.mark.parametrize("compress", [True, False])
def test_values_of_many_buffers_follow_one_another(dtype, compress):
    rng = np.random.default_rng(2)
    runs = [rng.integers(0, 2, n).astype(dtype) for n in (300, 1, 40, 500)]
    for some in (runs, runs[:1], runs[1:2], runs[2:]):
        packed = [pack_values(run, compress) for run in some]
        found = unpack_values(packed, [len(run) for run in some], np.dtype(dtype))
        assert found.dtype == dtype
        assert found.tolist() == np.concatenate(some).tolist()
        found[...] = 0  # it is its own memory
    take = np.array([5, 839, 300])
    packed = [pack_values(run, compress) for run in runs]
    taken = unpack_values(packed, [len(run) for run in runs], np.dtype(dtype), take)
    assert taken.tolist() == np.concatenate(runs)[take].tolist()


@pytest.mark.parametrize(
    ("dtype", "stays"),
    [("f8", "u1"), ("f4", "u1"), ("i8", "u1"), ("u2", "u1"), ("u1", "u1"), ("?", "?"), ("c16", "c16"), ("M8[s]", "M8[s]")],
)  # fmt: skip
def test_values_keep_the_dtype_that_they_are_stored_in_where_nobody_wants_more(dtype, stays):
    runs = [np.arange(n).astype(dtype) for n in (200, 3, 1)]
    packed = [pack_values(run) for run in runs]
    take = np.array([202, 0, 203, 5])
    for taken in (None, take):
        found = unpack_values(packed, [200, 3, 1], np.dtype(dtype), taken, widened=False)
        assert found.dtype == stays
        wanted = np.concatenate(runs) if taken is None else np.concatenate(runs)[taken]
        assert found.astype(dtype).tolist() == wanted.tolist()


def test_halves_and_bytes_become_the_dtype_only_together():
    halves, whole = np.array([0.5, 2048]), np.array([3.0, 4.0])
    for runs, stays in (([halves], "f2"), ([halves, whole], "f8"), ([whole, whole], "u1")):
        packed, counts = [pack_values(run) for run in runs], [2] * len(runs)
        found = unpack_values(packed, counts, np.dtype("f8"), widened=False)
        assert found.dtype == stays
        assert found.tolist() == np.concatenate(runs).tolist()
