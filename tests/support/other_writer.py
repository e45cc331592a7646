"""A data file that another writer of Delta has written in the place of one of ours."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

Write = Callable[[pa.Table, Path], object]


def write_by_another(
    uri: str | os.PathLike[str], write: Write, before: str = "", is_beside: bool = False
) -> None:
    """Put the rows of the table's first file, by path, into a file that `write` makes, by a commit by hand.

    In the log, `before` stands before the name of the file. With `is_beside` the first file stays.
    """
    table, folder = DeltaTable(uri), Path(uri)
    old = min(Path(name.removeprefix("file://")) for name in table.file_uris())
    rows = pq.read_table(old).replace_schema_metadata(None)
    new = folder / f"part-by-another-{table.version()}.parquet"
    write(rows, new)
    said = {"partitionValues": {}, "size": new.stat().st_size, "modificationTime": 0}
    stats = json.dumps({"numRecords": pq.read_metadata(new).num_rows})
    removed = {"remove": {"path": old.name, "deletionTimestamp": 0, "dataChange": True}}
    actions = [
        *([] if is_beside else [removed]),
        {"add": {"path": before + new.name, "dataChange": True, "stats": stats, **said}},
    ]
    commit = folder / f"_delta_log/{table.version() + 1:020}.json"
    commit.write_text("\n".join(map(json.dumps, actions)))
