"""Conversions: another layout, the same tensor."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts import LAYOUTS
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.upkeep import convert
from tensorlake_spark.writing import source
from tensorlake_spark.writing.lake_source import StoredSource

ANY = [name for name in LAYOUTS if name != "window"]  # which takes integers of rank 2
SPARSE = [name for name, layout in LAYOUTS.items() if layout.is_sparse]


def sparse_array(shape=(40, 30, 15), count=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(shape)
    x.reshape(-1)[rng.choice(x.size, count, replace=False)] = rng.normal(size=count)
    return x


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("to", ANY)
def test_conversion_keeps_what_there_is(lake, layout, to):
    x = sparse_array()
    lake.write(
        "x",
        x,
        layout=layout,
        axes=("a", "b", "c"),
        attrs={"k": 1},
        labels={"c": list("abcdefghijklmno")},
    )
    ref = lake.convert("x", layout=to)
    assert (ref.layout, ref.axes, dict(ref.attrs)) == (to, ("a", "b", "c"), {"k": 1})
    assert bits(ref[...]) == bits(x)
    assert bits(ref.sel(c="d")) == bits(x[..., 3])
    assert bits(tl.open(lake.uri, version=1)["x"][...]) == bits(x)


@pytest.mark.parametrize("layout", ANY)
def test_conversion_is_streamed_in_slabs(lake, monkeypatch, layout):
    """No read of a conversion takes more than a region, whose bytes are bounded; all of them are the tensor."""
    monkeypatch.setattr(source, "REGION_BYTES", 4000)
    x = sparse_array()
    lake.write("x", x, layout="ftsf" if layout == "coo" else "coo")
    boxes = []
    read, regions = StoredSource._read, StoredSource.regions

    def spy(self, box):
        boxes.append(box)
        return read(self, box)

    def begin(self, block):
        boxes.clear()  # of looks at a sample
        yield from regions(self, block)

    monkeypatch.setattr(StoredSource, "regions", begin)
    monkeypatch.setattr(StoredSource, "_read", spy)
    block = (4, 6, 5) if layout in ("ftsf", "bsgs") else None
    assert bits(lake.convert("x", layout=layout, block_shape=block)[...]) == bits(x)
    assert len(boxes) >= 3
    covered = np.zeros(x.shape, int)
    for box in boxes:
        covered[box.slices()] += 1
        assert np.count_nonzero(x[box.slices()]) * 32 <= 8000  # three coordinates and a value
    assert (covered == 1).all()


def test_explain_names_the_order_of_a_conversion(lake):
    lake.write("x", sparse_array(), layout="coo")
    ref = lake.convert("x", layout="csf", order=(2, 0, 1))
    assert "csf, runs sorted by the axes 2, 0, 1" in str(ref.explain())
    ref = lake.convert("x", layout="bsgs", block_shape=(64, 8, 8))
    assert "bsgs, blocks of (64, 8, 8): a slice on any axis" in str(ref.explain())


def test_the_rule_for_duplicates_outlives_a_conversion(lake):
    one = tl.SparseTensor([[1], [1]], [2], (3, 3))
    lake.write("x", one, layout="coo", duplicates="sum")
    lake.write("x", one, mode="append", axis=None)
    for layout in ("bsgs", "csr", "coo"):
        assert lake.convert("x", layout=layout)[1, 1] == 4
        lake.write("x", one, mode="append", axis=None)
        assert lake["x"][1, 1] == 6
        lake["x"][1, 1] = 4
    assert lake.convert("x", layout="ftsf")[1, 1] == 4


def test_another_writer_is_faster(lake, monkeypatch):
    lake.write("x", np.ones((4, 4)))
    written = convert._written

    def late(*arguments):
        tl.open(lake.uri).write("x", np.full((4, 4), 2.0), mode="overwrite")
        return written(*arguments)

    monkeypatch.setattr(convert, "_written", late)
    with pytest.raises(tl.ConcurrentWriteError, match="it was not converted, run it again"):
        lake.convert("x", layout="coo")
    assert (lake["x"].layout, lake["x"][...].min()) == ("ftsf", 2)
