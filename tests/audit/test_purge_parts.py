"""A part that is purged is gone from versions in which the tensor was longer, too."""

from pathlib import Path

import deltalake
import numpy as np
import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.indexing import select
from tensorlake_spark.indexing.keys.key import extend

pytestmark = pytest.mark.local_disk


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


def shrink(lake, x):
    """Twelve rows in two versions and files, then three others."""
    lake.write("a", x[:6], block_shape=(1, 400), codec="raw")
    lake.write("a", x[6:], mode="append")
    lake.write("a", x[:3] + 1, mode="overwrite", block_shape=(1, 400), codec="raw")


def rows_left(lake, x):
    data = b"\n".join(path.read_bytes() for path in Path(lake.uri).glob("*.parquet"))
    return [i for i, row in enumerate(x) if row.tobytes() in data]


@pytest.mark.parametrize(
    ("key", "left"),
    [
        (":", []),
        ("...", []),
        (":, :", []),
        ("::-1", []),
        (":, 100:", []),
        ("..., 7", []),
        ("2:", []),
        ("-1:", []),
        ("5:", []),
        ("0:100", []),
        ("0:7", []),
        ("::5", []),
        ("7:9", [0, 1, 2, 3, 4, 5]),
        ("7::9", [0, 1, 2, 3, 4, 5]),
        ("0:3", [6, 7, 8, 9, 10, 11]),
        ("-1", [6, 7, 8, 9, 10, 11]),
        (":-1", [6, 7, 8, 9, 10, 11]),
        ("2::-1", [6, 7, 8, 9, 10, 11]),
        ("[0, 2]", [6, 7, 8, 9, 10, 11]),
    ],
)
def test_open_ends_of_a_key_reach_as_far_as_the_tensor_did(lake, x, key, left):
    """Files go as a whole: one has rows 0 to 5, one 6 to 11."""
    shrink(lake, x)
    want = x[:3] + 1
    want[tl.indexing.parse_key(key)] = 0
    receipt = lake.purge("a", key, now=True)
    assert receipt.verified, receipt.reason
    np.testing.assert_array_equal(lake["a"][:], want)
    assert rows_left(lake, x) == left
    assert lake.purge("a", key, now=True).deleted == ()


@pytest.mark.parametrize("layout", ["coo", "csr", "bsgs"])
def test_so_do_those_of_a_sparse_tensor(lake, layout):
    coords = np.stack([np.arange(40), np.arange(40) % 7])
    lake.write("s", tl.SparseTensor(coords, np.arange(1.0, 41), (40, 7)), layout=layout)
    lake.write("s", tl.SparseTensor([[1], [2]], [5.0], (3, 7)), mode="overwrite", layout=layout)
    assert lake.purge("s", "30:35", now=True, dry_run=True).deleted
    assert not lake.purge("s", "50:", now=True, dry_run=True).deleted
    receipt = lake.purge("s", "30:", now=True)
    assert receipt.verified, receipt.reason
    assert len(receipt.deleted) == 1
    assert lake["s"][...].nnz == 1


def test_a_tensor_that_is_empty_now_has_a_past(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    lake.write("a", x[:0], mode="overwrite")
    receipt = lake.purge("a", ":", now=True)
    assert receipt.verified, receipt.reason
    assert rows_left(lake, x) == []
    assert lake["a"].shape == (0, 400)


BOUND = st.none() | st.integers(-9, 16)


@given(
    size=st.integers(0, 6),
    more=st.integers(0, 9),
    key=st.builds(slice, BOUND, BOUND, st.none() | st.sampled_from([1, 2, 3, 7, -1, -2, -3, -7])),
)
def test_a_longer_axis_has_the_same_picks_and_those_that_follow(size, more, key):
    run = extend(key, select(key, (size,)), (size + more,)).axes[0]
    picked = set(range(run.start, run.stop, run.step))
    assert {i for i in picked if i < size} == set(np.arange(size)[key].tolist())
    assert picked <= set(range(size + more))
    beyond = set(range(size, size + more))
    if key.step in (None, 1) and key.stop is None:
        assert picked & beyond == {i for i in beyond if i >= (key.start or 0)}
    if key.step == -1 and key.start is None:
        assert picked & beyond == {i for i in beyond if i > (-1 if key.stop is None else key.stop)}
    if key.step is not None and abs(key.step) == 2 and key.stop is key.start is None and size:
        assert picked & beyond == {i for i in beyond if (i - (size - 1) * (key.step < 0)) % 2 == 0}


def test_columns_of_users_stay_where_old_rows_agree(lake):
    coords = np.stack([np.arange(40), np.arange(40) % 7])
    lake.write(
        "s",
        tl.SparseTensor(coords, np.arange(1.0, 41), (40, 7)),
        block_shape=(10, 7),
        layout="bsgs",
    )
    lake.write("d", np.arange(1.0, 41).reshape(4, 10), block_shape=(1, 10))
    table = deltalake.DeltaTable(lake.uri)
    for name in ("owner", "place"):
        table.alter.add_columns([Field(name, PrimitiveType("string"), nullable=True)])
    table.update(updates={"owner": "'me'", "place": "cast(lo.d0 as string)"})
    lake.purge("s", "5:15, 0", now=True)
    lake.purge("d", "2, 3:", now=True)
    rows = deltalake.DeltaTable(lake.uri).to_pyarrow_table(
        columns=["id", "nnz", "lo", "owner", "place"]
    )
    got = {(r["id"], r["lo"]["d0"]): (r["owner"], r["place"]) for r in rows.to_pylist() if r["nnz"]}
    # Rows of two blocks became others: what both had in common stays.
    want = {("s", lo): ("me", None if lo < 20 else str(lo)) for lo in (0, 10, 20, 30)}
    want |= {("d", lo): ("me", str(lo)) for lo in range(4)}
    assert got == want


def test_coordinates_that_are_no_table_of_integers(lake, x):
    lake.write("a", x)
    for coords in (3, "abc", [1, 2], [[1, 2]], [[1, 2], [3]], [[1], [2], [3]], [[0.5], [1.5]]):
        with pytest.raises(tl.InvalidKeyError, match="a row for every axis of 2"):
            lake.purge("a", coords=coords)
