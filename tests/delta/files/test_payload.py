"""Payloads without a copy: Arrow is the oracle."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.payload import PayloadViews, over, plain_column
from tensorlake_spark.delta.store.storage import Storage


def test_payload_views_equal_what_arrow_reads(tmp_path):
    rng = np.random.default_rng(0)
    values = [None if n % 7 == 3 else rng.bytes(int(rng.integers(0, 40))) for n in range(500)]
    path = tmp_path / "a.parquet"
    column = pa.table({"values": pa.array(values, pa.binary())})
    pq.write_table(
        column, path, compression="none", use_dictionary=False, row_group_size=123, data_page_size=200,
        write_batch_size=5, write_statistics=False,
    )  # fmt: skip
    buffer = Storage(str(tmp_path)).map_file("a.parquet")
    meta = pq.read_metadata(path)
    parts = []
    for group in range(meta.num_row_groups):
        chunk = plain_column(meta.row_group(group), 0)
        assert chunk is not None
        parts.append(PayloadViews(buffer, chunk))
    assert [v for part in parts for v in over(buffer, [part]).to_pylist()] == values
    assert over(buffer, parts).to_pylist() == values, "several row groups in one array"
    third = np.arange(len(values)) % 3 == 0
    assert over(buffer, parts, third).to_pylist() == values[::3]
    pq.write_table(column, path, compression="zstd")
    assert plain_column(pq.read_metadata(path).row_group(0), 0) is None
