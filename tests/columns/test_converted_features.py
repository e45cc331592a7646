"""Tensors of features that somebody converted: read as before, and changed only as chunks."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.jobs import optimize

ROWS = 40


@pytest.fixture
def table():
    """Mostly zeros, few nulls: what the layout auto would store as elements."""
    row = np.arange(ROWS)
    names = [f"f{k}" for k in range(20)]
    columns = [
        pa.array(np.where(row == k, 1.5, 0).astype("f4"), mask=row == k + 1) for k in range(20)
    ]
    return pa.table(dict(zip(names, columns, strict=True)))


@pytest.fixture
def features(lake, table):
    lake.features("w").write(table)
    return lambda: tl.open(lake.uri).features("w")


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "csf", "bsgs"])
@pytest.mark.parametrize("name", ["w/float32", "w/float32/null"])
def test_a_read_takes_any_layout(lake, features, table, layout, name):
    lake.convert(name, layout=layout)
    assert features().read().equals(table)
    backwards = features().read(["f3", "f17"], slice(None, 4, -2))
    assert backwards.equals(table.select(["f3", "f17"]).take(list(range(ROWS))[:4:-2]))
    assert features().read([], slice(2, 9)).num_rows == 7
    assert lake.check().findings == ()


@pytest.mark.parametrize("name", ["w/float32", "w/float32/null"])
def test_a_change_wants_chunks_and_says_how_to_get_them(lake, features, table, name):
    lake.convert(name, layout="coo")
    version = tl.open(lake.uri).version
    new = pa.table({"new": table["f0"]})
    for change in (
        lambda: features().append(table),
        lambda: features().add(new),
        lambda: features().drop(["f3"]),
        lambda: features().reorder(["f5", "f2"]),
    ):
        with pytest.raises(
            tl.InvalidOptionError, match=f"tensor '{name}' of the features 'w' has layout 'coo'"
        ):
            change()
    assert tl.open(lake.uri).version == version
    features().deprecate(["f5"])
    assert features().names == [n for n in table.column_names if n != "f5"]
    lake.convert(name, layout="ftsf", block_shape=(4096, 16))
    features().append(table)
    features().add(pa.table({"new": pa.concat_arrays(2 * table["f0"].chunks)}))
    features().drop(["f3"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert (
            features()
            .read(["f5"])
            .equals(pa.concat_tables([table, table]).select(["f5"]).combine_chunks())
        )


def test_the_layout_auto_keeps_chunks(lake, features, table):
    for name in ("w/float32", "w/float32/null"):
        assert lake.convert(name, block_shape=(8, 4)).layout == "ftsf"
    assert features().append(table).read().equals(pa.concat_tables([table, table]).combine_chunks())


@pytest.mark.local_disk
def test_the_job_keeps_chunks(lake, features, table):
    lake.write("zeros", np.eye(40), layout="ftsf")
    assert optimize.main(["--table", lake.uri, "--layout", "auto"]) == 0
    lake = tl.open(lake.uri)
    layouts = {name: lake[name].layout for name in lake}
    assert layouts == {"w/float32": "ftsf", "w/float32/null": "ftsf", "zeros": "bsgs"}
    assert features().read().equals(table)


def test_an_overwrite_makes_chunks_of_them_again(lake, features, table):
    lake.convert("w/float32", layout="bsgs")
    features().write(table, mode="overwrite")
    assert tl.open(lake.uri)["w/float32"].layout == "ftsf"
    assert features().append(table).read().num_rows == 2 * ROWS
