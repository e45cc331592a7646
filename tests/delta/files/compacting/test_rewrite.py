"""Which files are written anew: those that hold rows of a tensor, not those whose bounds would allow it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from other_writer import write_by_another

import tensorlake_spark as tl
from tensorlake_spark.delta.files.compacting.rewrite import held_in
from tensorlake_spark.delta.files.footer import Footer
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

FILES = (["x/1", "x/8"], ["x/17", "x/19"], ["x/10", "x/16"], ["x/2", "x/3"])


@pytest.fixture
def filled(lake):
    """Four files: by their bounds, the first may have all tensors whose number begins with 1."""
    for ids in FILES:
        with lake.transaction() as changes:
            for name in ids:
                changes.write(name, np.arange(3) + len(name))
    return lake


def live(lake):
    return {*DeltaTable(lake.uri).file_uris()}


@pytest.mark.parametrize(
    "change",
    [
        lambda lake: lake.delete("x/17"),
        lambda lake: lake.write("x/17", np.zeros(4), mode="overwrite"),
        lambda lake: lake.convert("x/17", layout="coo"),
        lambda lake: lake.purge("x/17", now=True),
    ],
)
def test_files_without_rows_of_a_tensor_stay(filled, change):
    before = live(filled)
    change(filled)
    assert len(before - live(filled)) == 1
    assert all(filled[name][:].tolist() == [3, 4, 5] for name in ("x/1", "x/8", "x/2"))
    assert filled["x/19"][:].tolist() == [4, 5, 6]
    assert filled.check().ok


@pytest.mark.parametrize("known", [True, False])
def test_names_are_read_where_bounds_do_not_tell(filled, monkeypatch, known):
    if not known:
        monkeypatch.setattr(Footer, "_bounds_of", lambda *_: (None, None))
    snapshot = Snapshot.open(Storage(filled.uri))
    every = range(len(snapshot.files.path))

    def held(*ids):
        return sorted(snapshot.files.first_id[i] for i in held_in(snapshot, every, ids))

    assert held("x/17") == ["x/17"]
    assert held("x/8") == held("x/1") == ["x/1"]
    assert held("x/16", "x/3") == ["x/10", "x/2"]
    assert held("x/18", "x/0", "x/9", "x/11") == []
    assert held() == []


def test_a_sample_whose_tiles_are_written_anew_leaves_those_of_others(tmp_path):
    ds = tl.dataset(tmp_path, {"scan": tl.types.Tensor("uint8", (None, None))}, tile_bytes=64 << 10)
    rng, large = np.random.default_rng(0), (1, 8, 15, 17, 25)
    scans = [rng.integers(0, 256, (300, 400 if n in large else 1), np.uint8) for n in range(30)]
    for first in range(0, 30, 10):
        ds.extend({"scan": scans[first : first + 10]})
    tiles = tl.open(f"{ds.uri}/_tensors")
    before = live(tiles)
    ds.update(15, {"scan": 255 - scans[15]})
    assert len(before - live(tiles)) == 1
    before = live(tiles)
    assert ds.purge([17], now=True).verified
    assert len(before - live(tiles)) == 1
    assert all(np.array_equal(ds.sample(n)["scan"], scans[n]) for n in (1, 8, 25))
    assert np.array_equal(ds.sample(15)["scan"], 255 - scans[15])


def test_files_without_rows_of_a_tensor_are_not_merged_for_it(filled):
    assert filled.optimize("x/17").files_before == 0
    assert filled.optimize(["x/17", "x/3"], dry_run=True).files_before == 2
    filled.write("x/17", np.arange(3), mode="append")
    before = live(filled)
    assert filled.optimize("x/17").files_before == 2
    assert len(before - live(filled)) == 2


@pytest.mark.local_disk
def test_names_in_a_file_that_asks_for_views(lake):
    """A delete ended with an error of Arrow."""
    with lake.transaction() as changes:
        for name in ("a", "b", "c"):
            changes.write(name, np.arange(3))

    def write(rows, path):
        place = rows.schema.get_field_index("id")
        ids = rows.column("id").cast(pa.string_view())
        pq.write_table(rows.set_column(place, "id", ids), path)

    write_by_another(lake.uri, write)
    lake.delete("b")
    assert [*lake] == ["a", "c"]
    assert lake["c"][:].tolist() == [0, 1, 2]
