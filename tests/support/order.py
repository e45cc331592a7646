"""The order of rows that FORMAT.md asks of every data file of ours, looked at with Parquet alone."""

import pyarrow.parquet as pq


def rows_in_order(path):
    """See that data rows come first, by (id, seq), then metadata rows, by (id, seq), and no row group has both."""
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little")
    if data[-16 - footer :][:4] != b"TLFC":
        return  # another writer's
    file, rows = pq.ParquetFile(path), []
    for group in range(file.num_row_groups):
        part = file.read_row_group(group, columns=["id", "seq", "nnz"]).to_pydict()
        meta = [nnz == 0 for nnz in part["nnz"]]
        assert all(meta) or not any(meta), (path, group)
        rows += zip(meta, part["id"], part["seq"], strict=True)
    assert rows == sorted(rows), path
