"""Write the golden tables that are not there yet. One that is there is never changed: old bytes must read."""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import tensorlake_spark as tl
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, commit
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts.sparse import element_runs as runs
from tensorlake_spark.layouts.testing.laws import DTYPES
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.tensor.spec import dtype_of

HERE = Path(__file__).resolve().parent / "v1" / "ftsf"
SPARSE = HERE.parent / "sparse"
RUN = 30
"""Elements of a row of a tensor whose name ends in ``runs``: a small one has several rows then."""


def tensors() -> dict[str, tuple[np.ndarray, dict]]:
    """Return what the tables hold: id -> (array, options of `write`)."""
    rng = np.random.default_rng(7)
    out: dict[str, tuple[np.ndarray, dict]] = {}
    for name in DTYPES:
        dtype = dtype_of(name)
        if dtype.kind == "b":
            x = rng.integers(0, 2, (5, 40)).astype(bool)
        else:
            x = rng.integers(0, 256, 200 * dtype.itemsize, np.uint8).view(dtype).reshape(5, 40)
        out[f"dtype/{name.replace('[', '-').replace(']', '')}"] = (x, {"block_shape": (2, 40)})
    smooth = np.cumsum(rng.integers(-3, 4, (3, 70, 33)), axis=1).astype(np.int16)
    for codec in ("raw", "zstd", "delta(-1)+zstd", "delta(-2)+zstd", "shuffle+zstd",
                  "delta(-1)+shuffle+zstd", "delta(-2)+shuffle+zstd"):  # fmt: skip
        options = {"block_shape": (1, 70, 16), "codec": codec, "axes": ("a", "b", "c")}
        out[f"codec/{codec}"] = (smooth, options)
    gaps = np.full((8, 8), 2.5, np.float32)
    gaps[5:, 5:] = 1
    out["fill"] = (gaps, {"block_shape": (4, 4), "fill_value": 2.5, "attrs": {"unit": "K"}})
    out["scalar"] = (np.array(3.5), {})
    out["empty"] = (np.zeros((0, 3), np.int8), {})
    out["rank9"] = (rng.integers(0, 9, (2, 1, 2, 1, 2, 1, 2, 1, 3)), {"block_shape": (2, 1, 2, 1, 1, 1, 2, 1, 2)})  # fmt: skip
    return out


def forget_place(table: Path) -> None:
    """Take the folder of the one who wrote a table out of its log, where it is only told for information."""
    for entry in (table / "_delta_log").glob("*.json"):
        text = entry.read_text()
        entry.write_text(text.replace(table.as_uri() + "/", "file:///tables/golden/"))


def make_dense() -> None:
    """Write the tables of the dense layout."""
    lake = tl.open(HERE / "table")
    made = tensors()
    for name, (x, options) in made.items():
        lake.write(name, x, **options)
    lake.write("appended", np.arange(15).reshape(5, 3), block_shape=(2, 2))
    lake.write("appended", np.arange(6).reshape(2, 3), mode="append")
    made["appended"] = (
        np.concatenate([np.arange(15).reshape(5, 3), np.arange(6).reshape(2, 3)]),
        {},
    )
    forget_place(HERE / "table")
    expected = {
        name: {
            "dtype": lake[name].dtype.name,
            "shape": x.shape,
            "bytes": np.ascontiguousarray(x).tobytes().hex(),
        }
        for name, (x, _) in made.items()
    }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=0, sort_keys=True) + "\n")
    (HERE / "PROVENANCE.md").write_text(
        "# Golden tables of row format version 1, layout ftsf\n\n"
        f"Written by `make golden` with tensorlake_spark {tl.__version__}. They stay as they are: every later\n"
        "version has to read them. `expected.json` holds the elements of every tensor, little endian.\n"
    )


def write_sparse(lake: tl.TensorLake, name: str, golden: Any) -> tl.TensorRef:
    """Write one tensor of sparse.py, part by part."""
    whole = runs.RUN
    runs.RUN = RUN if name.endswith("/runs") else whole
    try:
        for at, part in enumerate(golden.parts):
            more = {"mode": "append", "axis": part.axis} if at else golden.options
            ref = lake.write(name, tl.SparseTensor(part.coords, part.values, part.shape), **more)
        return ref
    finally:
        runs.RUN = whole


CHOSEN = ("block_shape", "codec", "rows", "stored_bytes")
"""What the catalog says that the tensors of sparse.py do not: what the writer chose."""


def chosen(lake: tl.TensorLake) -> dict[str, list[Any]]:
    """Return this part of the catalog, as JSON has it."""
    rows = json.loads(lake.catalog().to_json(orient="records"))
    return {row["id"]: [row[name] for name in CHOSEN] for row in rows}


def make_sparse() -> None:
    """Write the tables of the sparse layouts: one tensor through the door, then all others in one commit.

    A commit for each would take a megabyte, nearly all of it footers. The one has a file of data rows, a
    row group for each layout, and a file of metadata rows, as executors and their driver write them.
    """
    made = runpy.run_path(str(Path(__file__).with_name("sparse.py")))
    lake = tl.open(SPARSE / "table")
    for name, golden in made["door"]().items():
        write_sparse(lake, name, golden)
    data, metas, ids = [], [], []
    for layout in sorted(made["LAYOUTS"]):
        with tempfile.TemporaryDirectory() as scratch:
            other = tl.open(scratch)
            for name, golden in made["tensors"](layout).items():
                write_sparse(other, name, golden)
                ids.append(name)
            rows = pq.read_table(
                [scratch + "/" + p for p in Snapshot.open(Storage(scratch)).files.path]
            )
        rows = (
            rows.select(SCHEMA.names)
            .cast(SCHEMA)
            .sort_by([("id", "ascending"), ("seq", "ascending")])
        )
        data.append(rows.filter(pc.field("nnz") > 0))
        metas.append(rows.filter(pc.field("nnz") == 0))
    storage = Snapshot.open(Storage(str(SPARSE / "table"))).storage
    files = []
    for batches in (data, [pa.concat_tables(metas)]):
        writer = FileWriter(storage)
        for table in batches:
            (batch,) = table.combine_chunks().to_batches()
            writer.add_batch(batch)
        files += writer.finish()
    commit(storage, Change(dict.fromkeys(ids), files))
    forget_place(SPARSE / "table")
    lines = [
        f"{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'))}"
        for name, entry in chosen(tl.open(SPARSE / "table")).items()
    ]
    (SPARSE / "catalog.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    (SPARSE / "PROVENANCE.md").write_text(
        "# Golden tables of row format version 1, the sparse layouts\n\n"
        f"Written by `make golden` with tensorlake_spark {tl.__version__}. They stay as they are: every later\n"
        "version has to read them. What they hold is computed by `sparse.py`, by arithmetic alone;\n"
        "`catalog.json` has of every tensor what the writer chose: block shape, codec, rows, bytes of payload.\n"
    )


def main() -> int:
    """Write what is missing."""
    for where, make in ((HERE, make_dense), (SPARSE, make_sparse)):
        if (where / "table").exists():
            print(f"{where} is there; golden tables are never written again")
        else:
            make()
    return 0


if __name__ == "__main__":
    sys.exit(main())
