"""The order of rows in the files of a writer; tests/properties looks at it after whatever a lake does."""

from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from order import rows_in_order

import tensorlake_spark as tl
from tensorlake_spark.delta.files import writer as write
from tensorlake_spark.delta.files.compacting.rewrite import live_batches
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Data rows and metadata rows of three tensors, each appended to, as one table."""
    lake = tl.open(tmp_path_factory.mktemp("stored"))
    for name in ("b", "a", "c", "b", "a"):
        lake.write(name, np.random.default_rng(0).random((6, 4)), mode="append", block_shape=(2, 4))
    snapshot = Snapshot.open(Storage(lake.uri))
    batches = [b for path in snapshot.files.path for b in live_batches(snapshot, path)]
    return pa.Table.from_batches(batches)


@times(0.4)
@given(
    order=st.permutations(range(20)),
    size=st.integers(1, 20),
    file_bytes=st.sampled_from([1, 2_000, 1 << 20]),
    metadata_bytes=st.sampled_from([1, 1 << 20]),
)
def test_batches_in_any_order(stored, tmp_path_factory, order, size, file_bytes, metadata_bytes):
    place = tmp_path_factory.mktemp("any")
    assert stored.num_rows == len(order)
    mixed = stored.take(pa.array(order))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "ROW_GROUP_BYTES", metadata_bytes)
        writer = write.FileWriter(Storage(str(place)), file_bytes)
        for start in range(0, mixed.num_rows, size):
            (batch,) = mixed.slice(start, size).combine_chunks().to_batches()
            writer.add_batch(batch)
        files = writer.finish()
    for file in files:
        rows_in_order(place / file.path)
    found = pa.concat_tables(pq.read_table(place / file.path) for file in files)
    keys = [("id", "ascending"), ("seq", "ascending")]
    assert found.cast(stored.schema).sort_by(keys).equals(stored.sort_by(keys))


def test_files_that_are_written_anew_keep_the_tables_size(lake):
    """A tensor that shares many files is deleted: what is left does not become one large file."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        for name in ("here", "gone"):
            lake.write(name, rng.random((1, 1 << 13)), mode="append", block_shape=(1, 1 << 13))
        lake.optimize(target_bytes=200_000)
    table = deltalake.DeltaTable(lake.uri)
    table.alter.set_table_properties({"delta.targetFileSize": "130000"}, False)
    before = len(table.file_uris())
    lake.delete("gone")
    after = deltalake.DeltaTable(lake.uri).file_uris()
    assert before > 2
    assert 2 <= len(after) <= before
    for path in after:
        rows_in_order(Path(path))
        assert Path(path).stat().st_size < 2 * 130_000
