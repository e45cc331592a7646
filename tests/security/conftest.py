"""Tables that somebody made up: real ones, of which files and the log are changed by hand."""

import json
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.rows.checksum import crc_of
from tensorlake_spark.rows.metadata import meta_crc
from tensorlake_spark.tensor.spec import STORED_AXES


class Forger:
    """Changes a local table behind its back, so that every checksum and size holds again."""

    def __init__(self, lake):
        self.folder = lake

    def log(self, change):
        """Let a function change the actions of every commit."""
        for path in sorted((self.folder / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            for action in actions:
                change(action)
            path.write_text("\n".join(map(json.dumps, actions)))

    def rows(self, change):
        """Let a function change every row; files get new names, for nobody reads a known one again."""
        new = {}
        for path in self.folder.glob("*.parquet"):
            table = pq.read_table(path)
            rows = table.to_pylist()
            for row in rows:
                change(row)
                self.seal(row)
            new[path.name] = self.folder / f"{uuid.uuid4()}.parquet"
            pq.write_table(
                pa.Table.from_pylist(rows, schema=table.schema), new[path.name], row_group_size=1
            )
            path.unlink()

        def follow(action):
            if "add" in action:
                path = new[action["add"]["path"]]
                action["add"] |= {"path": path.name, "size": path.stat().st_size}
                action["add"].pop("stats", None)

        self.log(follow)

    def meta(self, columns=(), body=(), text=None):
        """Change columns of the metadata row, parts of its JSON, or the whole text of that."""

        def change(row):
            if row["nnz"] == 0 and row["lo"] is None:
                kept = {**json.loads(row["attrs"]), **dict(body)}
                row["attrs"] = json.dumps(kept) if text is None else text
                row |= dict(columns)

        self.rows(change)

    def data(self, change):
        """Let a function change the data rows."""
        self.rows(lambda row: change(row) if row["lo"] is not None else None)

    @staticmethod
    def seal(row):
        """Make the checksum right, as anybody can."""
        head = [row["layout"], row["params"], row["dtype"], row["codec"]]
        if row["lo"] is not None:
            sides = [row[s][f"d{k}"] for s in ("lo", "hi") for k in range(STORED_AXES)]
            known = [n for n in sides if n is not None]
            row["crc"] = crc_of(*head, known, row["index"], row["values"])
        else:
            layout, _, dtype, codec = head
            shape, block = row["shape"] or (), row["block_shape"] or ()
            row["crc"] = meta_crc(layout, dtype, codec, shape, block, row["attrs"])


@pytest.fixture
def forge():
    """Return what changes a table behind its back."""
    return Forger


@pytest.fixture
def little_memory():
    """See that what is done takes no more than 1 GiB beyond what the process has."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew: a test before may have had a high one
    before = _peak()
    yield
    assert _peak() - before < 1 << 20


def _peak():
    """Return the peak of this process's memory in KiB."""
    with open("/proc/self/status") as file:
        return int(file.read().split("VmHWM:")[1].split()[0])
