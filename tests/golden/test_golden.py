"""Law 6: what version 1 wrote is read for ever, bit by bit."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.tensor.spec import dtype_of

HERE = Path(__file__).resolve().parent / "v1" / "ftsf"
EXPECTED = json.loads((HERE / "expected.json").read_text())


def elements_of(want):
    """Return the array that `expected.json` has of a tensor."""
    elements = np.frombuffer(bytes.fromhex(want["bytes"]), dtype_of(want["dtype"]))
    return elements.reshape(want["shape"])


def test_the_table_holds_just_what_is_expected():
    assert list(tl.open(HERE / "table", create=False)) == sorted(EXPECTED)
    assert len(EXPECTED) >= 30


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden(name):
    ref = tl.open(HERE / "table", create=False)[name]
    want = EXPECTED[name]
    x = elements_of(want)
    assert bits(ref[...]) == bits(x)
    if x.ndim > 1 and x.size:
        assert bits(ref[::-1, 1:]) == bits(x[::-1, 1:])


def test_attributes_axes_and_fill_of_golden_tensors():
    lake = tl.open(HERE / "table", create=False)
    assert lake["fill"].attrs == {"unit": "K"}
    assert lake["fill"].fill_value == 2.5
    assert lake["fill"].nnz == 16
    assert lake["codec/raw"].axes == ("a", "b", "c")
    assert {lake[n].codec for n in lake if n.startswith("codec/")} == {
        n.removeprefix("codec/") for n in lake if n.startswith("codec/")
    }


def opened(where, told, name):
    """Return a tensor of a golden table and the elements that it has to have, after it was read whole."""
    lake = tl.open(where / "table", create=False)
    assert list(lake) == sorted(told)
    ref, x = lake[name], elements_of(told[name])
    assert bits(ref[...]) == bits(x)
    return ref, x


CODECS = HERE.parent / "codecs"
LATER = json.loads((CODECS / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(LATER))
def test_golden_tensors_of_later_steps(name):
    ref, x = opened(CODECS, LATER, name)
    assert ref.codec == name.rpartition("/")[0] or name.startswith("decimals/")
    assert bits(ref[::-1, ..., 1:] if x.ndim > 1 else ref[::-1]) == bits(
        x[::-1, ..., 1:] if x.ndim > 1 else x[::-1]
    )


PACKED = HERE.parent / "packed"
BITS = json.loads((PACKED / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(BITS))
def test_golden_packed_tensors(name):
    ref, x = opened(PACKED, BITS, name)
    assert ref.codec == name.rpartition("/")[0]
    assert bits(ref[..., 1:3] if x.ndim else ref[()]) == bits(x[..., 1:3] if x.ndim else x[()])
    assert bits(MAKE["packed_tensors"]()[name][0]) == bits(x)


COLUMNS = HERE.parent / "columns"
TURNED = json.loads((COLUMNS / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(TURNED))
def test_golden_tensors_of_columns(name):
    ref, x = opened(COLUMNS, TURNED, name)
    assert ref.codec.startswith("transpose+")
    assert bits(ref[..., 1:] if x.ndim else ref[()]) == bits(x[..., 1:] if x.ndim else x[()])
    tensors = MAKE["column_tensors"]()
    assert (name in tensors and bits(tensors[name][0]) == bits(x)) or name.startswith("ctr/")


def test_golden_features():
    features = tl.open(COLUMNS / "table", create=False).features("ctr")
    want = MAKE["feature_columns"]()
    assert features.read().equals(want)
    assert features.read(["new", "score"], slice(5, 20)).equals(want.select(["new", "score"])[5:20])


QUANTIZED = HERE.parent / "quantization"
FEWER = json.loads((QUANTIZED / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(FEWER))
def test_golden_quantised_tensors(name):
    ref, x = opened(QUANTIZED, FEWER, name)
    assert ref.codec == FEWER[name]["codec"]
    assert bits(ref[..., 1:3] if x.ndim else ref[()]) == bits(x[..., 1:3] if x.ndim else x[()])
    made = MAKE["quantized_tensors"]()[name][0]
    assert np.array_equal(np.isnan(made), np.isnan(x)), "NaN is kept"
    if name.startswith(("split", "nibbles")):
        assert bits(x) == bits(made)


SPARSE = HERE.parent / "sparse"
MADE = runpy.run_path(str(Path(__file__).with_name("sparse.py")))
MAKE = runpy.run_path(str(Path(__file__).with_name("make.py")))
GOLDEN = {**MADE["door"](), **{k: v for name in MADE["LAYOUTS"] for k, v in MADE["tensors"](name).items()}}  # fmt: skip
CHOSEN = json.loads((SPARSE / "catalog.json").read_text())


@pytest.fixture(scope="module")
def sparse_lake():
    return tl.open(SPARSE / "table", create=False)


def assert_same(got, golden):
    """Check coordinates, values and shape, bit by bit."""
    assert got.shape == golden.shape
    assert np.array_equal(got.coords, golden.coords)
    assert bits(got.values) == bits(golden.values)


def assert_slices_same(ref, golden):
    """Check slices of a tensor against a loop over its elements, and against NumPy where it is small."""
    if not golden.shape:
        assert bits(ref[()]) == bits(golden.values[0])
        return
    n = golden.shape[0]
    for first, last in ((n // 3, n - n // 4), (n // 2, n)):
        inside = [first <= x < last for x in golden.coords[0].tolist()]
        coords = golden.coords[:, inside]
        coords[0] -= first
        got = ref[first:last]
        assert np.array_equal(got.coords, coords)
        assert bits(got.values) == bits(golden.values[inside])
    for k in (0, len(golden.values) // 2, -1) if len(golden.values) else ():
        at = tuple(golden.coords[:, k].tolist())
        assert bits(ref[at]) == bits(golden.values[k])
    if np.prod(golden.shape, dtype=object) > 10**5:
        return
    x = golden.todense()
    keys = [np.s_[...], np.s_[::-2]]
    if n:
        keys += [np.s_[n - 1], np.s_[[0, n - 1, 0]], np.s_[..., x.shape[-1] // 2]]
    if x.ndim > 1:
        keys += [np.s_[::-2, ..., 1:], np.s_[n // 2 :, x.shape[1] // 2 : x.shape[1]]]
    for key in keys:
        assert bits(ref[key]) == bits(x[key])


def test_the_sparse_table_holds_just_what_is_expected(sparse_lake):
    assert list(sparse_lake) == sorted(GOLDEN) == sorted(CHOSEN)
    catalog = sparse_lake.catalog().set_index("id")
    assert MAKE["chosen"](sparse_lake) == CHOSEN
    for name, golden in GOLDEN.items():
        entry, options = catalog.loc[name], golden.options
        assert tuple(entry["shape"]) == golden.shape
        assert entry["dtype"] == golden.values.dtype.name
        assert entry["layout"] == options["layout"]
        assert entry["codec"] == options.get("codec", "zstd")
        assert entry["nnz"] == golden.stored
        assert entry["axes"] == options.get("axes")
        assert entry["attrs"] == options.get("attrs", {})
        assert entry["nbytes"] == np.prod(golden.shape, dtype=object) * golden.values.dtype.itemsize
        if "block_shape" in options:
            assert tuple(entry["block_shape"]) == options["block_shape"]


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_sparse_golden(sparse_lake, name):
    assert_same(sparse_lake[name][...], GOLDEN[name])
    assert_slices_same(sparse_lake[name], GOLDEN[name])


def test_labels_of_golden_tensors(sparse_lake):
    for name in ("door/csr", *(f"{layout}/counts" for layout in MADE["LAYOUTS"])):
        ref, golden = sparse_lake[name], GOLDEN[name]
        days = np.datetime64("2024-02-01") + np.arange(golden.shape[0])
        assert bits(ref.labels("day")) == bits(days)
        assert ref.labels("hour").tolist() == golden.options["labels"]["hour"]
        x = golden.todense()
        assert bits(ref.sel(day="2024-02-05", hour=["f", "b"])) == bits(x[4, [5, 1]])


@pytest.mark.parametrize("layout", MADE["LAYOUTS"])
def test_what_is_written_today_reads_the_same(tmp_path, layout):
    lake = tl.open(tmp_path)
    for name, golden in MADE["tensors"](layout).items():
        ref = MAKE["write_sparse"](lake, name, golden)
        assert_same(ref[...], golden)
        assert_slices_same(ref, golden)


WINDOW = HERE.parent / "window"
SLIDING = runpy.run_path(str(Path(__file__).with_name("window.py")))


def test_the_window_table_holds_just_what_is_expected():
    lake = tl.open(WINDOW / "table", create=False)
    want = SLIDING["tensors"]()
    assert list(lake) == sorted(want)
    assert lake.check().ok
    for name, golden in want.items():
        ref = lake[name]
        assert (ref.layout, ref.axes, ref.attrs) == ("window", golden.options.get("axes"), golden.options.get("attrs", {}))  # fmt: skip
        assert ref.codec == golden.options.get("codec", ref.codec)


@pytest.mark.parametrize("name", sorted(SLIDING["tensors"]()))
def test_window_golden(name):
    ref, x = tl.open(WINDOW / "table", create=False)[name], SLIDING["tensors"]()[name].whole
    assert bits(ref[...]) == bits(x)
    n = len(x)
    keys = [np.s_[::-1, 1:], np.s_[n // 3 : n // 2 + 1, ::2], np.s_[:, 3]]
    if n:
        keys += [np.s_[n // 2], np.s_[[0, n - 1, n // 2], 1:4], np.s_[17 % n :: 3, [0, 4, 2]]]
    for key in keys:
        assert bits(ref[key]) == bits(x[key])
