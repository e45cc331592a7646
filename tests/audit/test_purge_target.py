"""Which rows of a file hold something of a tensor or of a part, told by the rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.audit.purge_target import Target
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import parse_key, select, select_points

pytestmark = pytest.mark.local_disk

POINTS = ((3, 0), (4, 5))  # coordinates of two elements, in rows 3 and 0
ROW = ((3,) * 6, tuple(range(6)))  # of all of row 3


@pytest.fixture
def x():
    x = np.arange(1, 31, dtype="f8").reshape(5, 6)
    x[2, :3] = 0
    x[4] = [0, 0, 0, 1, 0, 0]
    return x


def target(lake, key):
    spec = catalog.get(Snapshot.open(Storage(lake.uri)), "a").spec
    if isinstance(key, tuple):
        return Target("a", spec, select_points(tuple(np.array(key)), spec.shape))
    return Target("a", spec, select(parse_key(key), spec.shape), parse_key(key))


def held(lake, sought, path=None):
    """Return what is held of a file: for each row its first corner, and whether all of it is sought."""
    storage = Storage(lake.uri)
    path = path or Snapshot.open(storage).files.path[0]
    found = []

    def visit(rows, whole):
        corners = [lo and lo["d0"] for lo in rows.column("lo").to_pylist()]
        found.extend(zip(corners, whole.tolist(), strict=True))

    count = sought.held_rows(storage, path, visit)
    assert sought.held_rows(storage, path) == count == len(found)
    return dict(found)


@pytest.mark.parametrize(
    ("key", "want"),
    [
        (":", {0: True, 1: True, 2: True, 3: True, 4: True}),
        ("1", {1: True}),
        ("1:3", {1: True, 2: True}),
        ("1:3, 4:", {1: False, 2: False}),
        ("2, :3", {}),  # only the fill value
        ("2, 2:4", {2: False}),
        ("2, 3:", {2: None}),  # of the row only a sparse layout stores nothing else
        ("::3, 5", {0: False, 3: False}),
        (POINTS, {0: False, 3: False}),
        (ROW, {3: None}),  # dense rows hold their box, of which coordinates are no more than a part
        ("2:2", {}),
    ],
)
@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_rows_of_a_part(lake, x, key, want, layout):
    """A row counts if it stores something in the part; all of it is sought if nothing else is in it."""
    is_sparse = layout == "bsgs"
    array = tl.SparseTensor(np.nonzero(x), x[x != 0], x.shape) if is_sparse else x
    lake.write("a", array, layout=layout, block_shape=(1, 6))
    assert held(lake, target(lake, key)) == {
        row: is_sparse if whole is None else whole for row, whole in want.items()
    }


def test_all_rows_of_a_tensor_count_its_metadata_too(lake, x):
    lake.write("a", x, block_shape=(1, 6))
    lake.write("b", x)
    assert [*held(lake, Target("a"))] == [0, 1, 2, 3, 4, None]
    assert held(lake, Target("c")) == {}


@pytest.mark.parametrize("key", ["4:", "-1:", POINTS])
def test_a_tensor_that_was_longer(lake, x, key):
    """Slices without an end go on where it was longer; coordinates name what they name."""
    lake.write("a", np.concatenate([x, x]), block_shape=(1, 6))
    old = Snapshot.open(Storage(lake.uri)).files.path[0]
    lake.write("a", x, mode="overwrite", block_shape=(1, 6))
    want = {0: False, 3: False} if key is POINTS else dict.fromkeys(range(4, 10), True)
    assert held(lake, target(lake, key), old) == want


@pytest.mark.parametrize("change", ["crc", "layout", "dtype"])
def test_what_cannot_be_decoded_may_hold_it(lake, x, change):
    lake.write("a", x, block_shape=(1, 6))
    path = Snapshot.open(Storage(lake.uri)).files.path[0]
    table = pq.read_table(Path(lake.uri, path))
    other = {"crc": 1, "layout": "coo", "dtype": "<f4"}[change]
    column = [other] * table.num_rows
    place = table.schema.get_field_index(change)
    table = table.set_column(place, change, pa.array(column, table.schema.field(change).type))
    pq.write_table(table, Path(lake.uri, "damaged.parquet"))
    # Row 2 has nothing in the part, which nobody can tell; no row is looked for in the bytes of others.
    assert held(lake, target(lake, "1:3, :3"), "damaged.parquet") == {1: False, 2: False}


def test_rows_of_another_rank_are_not_judged(lake, x):
    lake.write("a", x)
    old = Snapshot.open(Storage(lake.uri)).files.path[0]
    lake.write("a", x[0], mode="overwrite")
    with pytest.raises(
        tl.CorruptDataError, match=r"another rank than 1, .* purge the whole tensor"
    ):
        held(lake, target(lake, ":"), old)
    assert len(held(lake, Target("a"), old)) == 2


def test_files_of_other_columns(lake, x):
    """A file that names the tensor and has not the columns of tensors is told; all others hold nothing."""
    lake.write("a", x)
    for name, table in {
        "none": pa.table({"x": [1]}),
        "other": pa.table({"id": ["b"]}),
        "named": pa.table({"id": ["b", "a"]}),
    }.items():
        pq.write_table(table, Path(lake.uri, f"{name}.parquet"))
    for sought in (Target("a"), target(lake, ":")):
        assert held(lake, sought, "none.parquet") == held(lake, sought, "other.parquet") == {}
        with pytest.raises(
            tl.CorruptDataError, match="it has no column nnz, seq, so it is no file"
        ):
            held(lake, sought, "named.parquet")
        with pytest.raises(tl.MissingDataError):
            held(lake, sought, "gone.parquet")
