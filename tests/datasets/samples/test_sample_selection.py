"""Which samples a key means: NumPy is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples.sample_selection import select_samples
from tensorlake_spark.errors import InvalidKeyError

COLUMNS = {
    "size": "int32",
    "scan": tl.types.Tensor("uint8", (None, None)),
    "small": tl.types.Tensor("uint8", (None, None)),
    "raw": tl.types.Image("raw"),
    "image": tl.types.Image("png"),
    "apart": tl.types.Tensor("int16", apart=True),
}
SAMPLE = {
    "size": 7,
    "scan": np.zeros((90, 90), "u1"),
    "small": np.zeros((4, 5), "u1"),
    "raw": np.zeros((40, 50, 3), "u1"),
    "image": np.zeros((4, 5, 3), "u1"),
    "apart": np.zeros(3, "i2"),
}
BOUND = st.none() | st.integers(-12, 12)


@given(st.integers(0, 9), BOUND, BOUND, BOUND.filter(lambda step: step != 0))
def test_slices(count, start, stop, step):
    key = slice(start, stop, step)
    assert select_samples(key, count, "it").tolist() == [*range(count)][key]


@given(st.integers(1, 9), st.lists(st.integers(-12, 12)))
def test_lists_and_ints(count, key):
    numbers = np.arange(count)
    try:
        wanted = numbers[np.array(key, np.int64)].tolist()
    except IndexError:
        with pytest.raises(InvalidKeyError, match="out of bounds"):
            select_samples(key, count, "it")
        return
    assert select_samples(key, count, "it").tolist() == wanted
    if key:
        assert select_samples(key[0], count, "it") == wanted[0]


@pytest.mark.parametrize(
    "key", [True, None, "a", 1.0, [[0]], [0.5], {0}, slice("a", None), slice(0, 1, 0)]
)
def test_what_is_no_key(key):
    with pytest.raises(TypeError):
        select_samples(key, 5, "it")


HUGE = [2**70, -(2**70), 2**63, -(2**63) - 1, 2**64 - 1, np.uint64(2**64 - 1)]


@pytest.mark.parametrize("number", HUGE)
def test_numbers_that_no_int64_holds(tmp_path, number):
    """One of them was taken for -1, and others were an OverflowError or said that they are objects."""
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=1000)
    ds.extend({name: [value] * 3 for name, value in SAMPLE.items()})
    before = ds.version
    out = f"sample {int(number)} is out of bounds for .*it has 3, from -3 to 2"
    for key in (number, [number], [0, number], [-1, number]):
        for door in (ds, ds["size"], ds["scan"], ds["scan"].padded):
            with pytest.raises(InvalidKeyError, match=out):
                door(key) if callable(door) else door[key]
        with pytest.raises(InvalidKeyError, match=out):
            ds["size"][key] = 3
        if np.ndim(key) and key[0] == -1:
            continue
        missing = (
            rf"has no sample with sid {int(number)}\b|never had a sample with sid {int(number)};"
        )
        doors = [ds.delete, ds.purge, lambda key: ds.update(key, {"size": 1})]
        doors += (
            [lambda key: ds.copy(tmp_path / "few", key)] if isinstance(key, list) else [ds.sample]
        )
        for change in doors:
            with pytest.raises(tl.SampleNotFoundError, match=missing):
                change(key)
    with pytest.raises(tl.InvalidOptionError, match="name each of the 3 samples once"):
        ds.rechunk([0, 1, number])
    for name in ("scan", "raw", "small", "image", "apart"):
        with pytest.raises(InvalidKeyError, match=rf"index {int(number)} is out of bounds for"):
            ds[name][0, number]
    assert ds.version == before
    ds.strict = False
    for key in (number, [0, number]):
        with pytest.raises(InvalidKeyError, match=r"out of bounds|grows by at most"):
            ds["size"][key] = 3
    assert tl.dataset(ds.uri).version == before
    assert ds[:number]["size"].tolist() == [7] * (3 if number > 0 else 0)


def test_truth_values_and_uneven_lists_name_no_sample(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"size": "int32"})
    ds.extend({"size": [1, 2, 3]})
    for wrong in (True, np.True_):
        with pytest.raises(tl.InvalidKeyTypeError, match="a sid is a whole number"):
            ds.sample(wrong)
    for door in (ds, ds["size"]):
        with pytest.raises(tl.InvalidKeyTypeError, match="one axis of ints or bools"):
            door[[[1], [1, 2]]]
    with pytest.raises(tl.InvalidKeyTypeError, match="names no samples"):
        ds.delete([[1], [1, 2]])
    with pytest.raises(tl.InvalidKeyTypeError, match=r"a mask names no samples; .*ds.sids\[mask\]"):
        ds.delete(np.array([True, False, True]))
    with pytest.raises(tl.InvalidOptionError, match="are not sids"):
        ds.purge([[1], [1, 2]])
    assert len(ds) == 3
