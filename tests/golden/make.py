"""Write the golden tables that are not there yet. One that is there is never changed: old bytes must read."""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from collections.abc import Mapping
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
CODECS = HERE.parent / "codecs"
PACKED = HERE.parent / "packed"
WINDOW = HERE.parent / "window"
QUANTIZED = HERE.parent / "quantization"
COLUMNS = HERE.parent / "columns"
SAMPLES = HERE.parent / "samples"
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
        for place in (table.as_uri() + "/", table.as_uri(), str(table)):
            text = text.replace(place, "file:///tables/golden/")
        entry.write_text(text)


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


def codec_tensors() -> dict[str, tuple[np.ndarray, dict]]:
    """Return what the table of the later steps holds: id -> (array, options of `write`)."""
    rng = np.random.default_rng(11)
    smooth = np.cumsum(np.cumsum(rng.integers(-3, 4, (3, 35, 9)), axis=1), axis=2)
    odd = smooth.astype(np.float32) / 7
    odd.view(np.uint32)[0, 0, :6] = (0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFA00003, 1)
    prices = np.round(rng.lognormal(4, 1, (2, 60)), 2)
    prices[0, 3] = np.nan  # this row of the table has another codec
    ids = np.minimum(rng.zipf(1.3, 200), 10**12)
    counts = np.minimum(ids[:50], 2000).astype(np.float16)
    ends = np.array([-(2**63), 2**63 - 1, -1, 0, 1, 2**62, -(2**62), 5])
    kinds = {
        "int16": smooth.astype(np.int16), "float32": odd, "complex64": np.stack([odd, odd[::-1]], -1).view(np.complex64)[..., 0],
        "ids": ids, "ends": ends, "uint8": smooth.astype(np.uint8), "times": (ids * 1000).astype("M8[ms]"),
    }  # fmt: skip
    out: dict[str, tuple[np.ndarray, dict]] = {}
    chains = {
        "zigzag+zstd": ("ends", "int16"), "delta(-1)+zigzag+shuffle+zstd": ("ends", "int16", "float32"),
        "delta(-2)+zigzag+bins+zstd": ("int16", "float32"), "lorenzo+zstd": ("uint8",), "bins+zstd": ("ids", "ends"),
        "lorenzo+zigzag+shuffle+zstd": ("int16", "float32", "complex64", "ends"),
        "lorenzo+zigzag+bins+zstd": ("float32", "uint8"), "pco": ("ids", "ends", "float32", "uint8", "times"),
    }  # fmt: skip
    for codec, names in chains.items():
        for name in names:
            x = kinds[name]
            out[f"{codec}/{name}"] = (x, {"codec": codec, "block_shape": (2, 34, 5)[3 - x.ndim :]})
    out["decimals/prices"] = (
        prices,
        {"codec": "decimal(2)+delta(-1)+zigzag+bins+zstd", "block_shape": (1, 60)},
    )
    out["decimals/counts"] = (
        counts,
        {"codec": "decimal(0)+shuffle+zstd", "block_shape": (50,)},
    )
    return out


def make_codecs() -> None:
    """Write the table of the steps that came after release 0.1.0, in one commit."""
    make_steps(CODECS, codec_tensors(), "the steps that came after release 0.1.0")


def make_steps(where: Path, made: Mapping[str, tuple[np.ndarray, dict]], what: str) -> None:
    """Write a table of steps that lose nothing, and what is expected of it."""
    write_together(where, made)
    expected = {
        name: {"dtype": x.dtype.name, "shape": x.shape, "bytes": x.tobytes().hex()}
        for name, (x, _) in made.items()
    }
    tell(where, expected, what, "the elements")


def packed_tensors() -> dict[str, tuple[np.ndarray, dict]]:
    """Return what the table of packed words and of floats that are added holds: id -> (array, options of `write`)."""
    rng = np.random.default_rng(13)
    smooth = np.cumsum(np.cumsum(rng.integers(-3, 4, (4, 35, 9)), axis=1), axis=2)
    field = (smooth / 7).astype(np.float32)
    field.view(np.uint32)[0, 0, :2] = (0x80000000, 0)
    ends = np.array([-(2**63), 2**63 - 1, -1, 0, 1, 2**62, -(2**62), 5])
    chains = {
        "lorenzo(float)+zigzag+pack": {
            "float32": field, "float64": smooth[0] / 7, "five": field.reshape(2, 2, 5, 7, 9), "line": field[0, 0],
        },
        "lorenzo(float)+zstd": {"float32": field},
        "lorenzo(float)+zigzag+shuffle+zstd": {"float64": smooth / 7},
        "delta(-1)+zigzag+pack": {"ends": ends, "uint8": smooth.astype(np.uint8)},
        "delta(-2)+zigzag+pack": {"int16": smooth.astype(np.int16), "complex64": field + 1j * field[::-1]},
        "lorenzo+zigzag+pack": {"int16": smooth.astype(np.int16)},
        "pack": {"ends": ends, "bool": smooth > 0, "scalar": np.array(77, np.uint16)},
    }  # fmt: skip
    return {
        f"{codec}/{name}": (
            x,
            {"codec": codec, "block_shape": tuple(-(-2 * n // 3) for n in x.shape)},
        )
        for codec, arrays in chains.items()
        for name, x in arrays.items()
    }


def make_packed() -> None:
    """Write the table of packed words and of floats that are added, in one commit."""
    make_steps(PACKED, packed_tensors(), "the steps pack and lorenzo(float)")


def write_together(where: Path, made: Mapping[str, tuple[np.ndarray, dict]]) -> tl.TensorLake:
    """Write dense tensors in one commit, and return their lake."""
    lake = tl.open(where / "table")
    with lake.transaction() as batch:
        for name, (x, options) in made.items():
            batch.write(name, x, layout="ftsf", **options)
    forget_place(where / "table")
    return lake


def tell(where: Path, expected: Mapping[str, Any], what: str, elements: str) -> None:
    """Write beside a table what is expected of it, and where it comes from."""
    (where / "expected.json").write_text(json.dumps(expected, indent=0, sort_keys=True) + "\n")
    (where / "PROVENANCE.md").write_text(
        f"# Golden table of row format version 1, {what}\n\n"
        "Written by `make golden`. It stays as it is: every later version has to read it.\n"
        f"`expected.json` holds {elements} of every tensor, little endian.\n"
    )


def quantized_tensors() -> dict[str, tuple[np.ndarray, dict]]:
    """Return what the table of quantised tensors holds: id -> (array, options of `write`)."""
    rng = np.random.default_rng(12)
    x = np.cumsum(np.cumsum(rng.integers(-9, 10, (3, 20, 9)), axis=1), axis=2) / 64
    odd = x.astype(np.float32)
    odd.view(np.uint32)[0, 0, :5] = (0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 1)
    odd.view(np.uint32)[2, 3, :2] = (0x7FFFFFFF, 0x3F808000)
    hidden = odd.copy()
    hidden.view(np.uint32)[1, 2, 3] = 0x7F800005  # this row has another codec
    tame = np.where(np.isinf(odd), 1, odd)
    fine = x * 1e12  # and these
    out: dict[str, tuple[np.ndarray, dict]] = {}
    for kind in (
        "float16",
        "bfloat16",
        "float8_e5m2",
        "int8",
        "split",
        {"error": 0.01},
        {"relative": 0.01},
    ):
        word = kind if isinstance(kind, str) else next(iter(kind))
        out[f"{word}/odd"] = (odd, {"quantize": kind})
        if word in ("bfloat16", "int8", "error", "relative"):
            out[f"{word}/float64"] = (x, {"quantize": kind, "codec": "lorenzo+zigzag+nibbles+zstd"})
        if word in ("int8", "error"):
            out[f"{word}/bfloat16"] = (
                x.astype(dtype_of("bfloat16")),
                {"quantize": kind, "codec": "raw"},
            )
            out[f"{word}/float16"] = (x.astype(np.float16), {"quantize": kind, "codec": "zstd"})
    out["float8_e4m3fn/tame"] = (tame, {"quantize": "float8_e4m3fn"})
    out["split/hidden"] = (hidden, {"quantize": "split", "codec": "delta(-2)+shuffle+zstd"})
    out["error/fine"] = (fine.astype(np.float32), {"quantize": {"error": 0.01}})
    out["nibbles/int16"] = ((x * 64).astype(np.int16), {"codec": "delta(-1)+zigzag+nibbles+zstd"})
    out["nibbles/odd"] = (odd[0, :3, :3].copy(), {"codec": "nibbles+zstd"})
    for _, options in out.values():
        options["block_shape"] = (2, 17, 9)
    out["nibbles/odd"][1]["block_shape"] = (3, 3)
    out["int8/scalar"] = (np.array(-3.5), {"quantize": "int8"})
    return out


def make_quantized() -> None:
    """Write the table of quantised tensors, in one commit. What is read of them is what is expected."""
    made = quantized_tensors()
    lake = write_together(QUANTIZED, made)
    expected = {
        name: {
            "dtype": lake[name].dtype.name,
            "shape": x.shape,
            "codec": lake[name].codec,
            "bytes": np.ascontiguousarray(lake[name][...]).tobytes().hex(),
        }
        for name, (x, _) in made.items()
    }
    tell(QUANTIZED, expected, "quantised tensors", "the elements that are read")


def column_tensors() -> dict[str, tuple[np.ndarray, dict]]:
    """Return what the table of columns holds beside features: id -> (array, options of `write`)."""
    rng = np.random.default_rng(13)
    smooth = np.cumsum(rng.integers(-3, 4, (3, 37, 9)), axis=1).astype(np.int16)
    prices = np.round(rng.lognormal(4, 1, (40, 3)), 2)
    prices[30, 1] = np.nan  # this block has another codec
    parts = rng.integers(0, 256, (11, 4, 8), np.uint8).view(np.complex64)[..., 0]
    out: dict[str, tuple[np.ndarray, dict]] = {}
    for codec in ("raw", "zstd", "delta(-2)+shuffle+zstd", "lorenzo+zigzag+bins+zstd", "pco"):
        out[f"transpose+{codec}/int16"] = (smooth, {"block_shape": (2, 34, 5)})
    out["transpose+shuffle+zstd/complex64"] = (parts, {"block_shape": (8, 3)})
    out["transpose+decimal(2)+shuffle+zstd/prices"] = (prices, {"block_shape": (20, 3)})
    out["transpose+raw/line"] = (smooth[0, :, 0].copy(), {"block_shape": (20,)})
    out["transpose+zstd/scalar"] = (np.array(-3.5), {})
    for name, (_, options) in out.items():
        options["codec"] = name.rpartition("/")[0]
    return out


def feature_columns() -> pa.Table:
    """Return a table of features: of several dtypes, with nulls and with a type of its own."""
    k = np.arange(50)
    return pa.table(
        {
            "score": pa.array(np.sin(k).astype(np.float32)),
            "clicks": pa.array([None if i % 7 == 3 else int(i * i) for i in k], pa.int64()),
            "share": pa.array(np.round(np.cos(k), 2).astype(np.float32)),
            "new": pa.array([None if i == 9 else bool(i % 3) for i in k]),
            "seen": pa.array(k * 10**9, pa.timestamp("ns", "UTC")),
        }
    )


def make_columns() -> None:
    """Write the table of tensors whose columns lie in one piece: some of their own, and those of features."""
    made = column_tensors()
    lake = write_together(COLUMNS, made)
    lake.features("ctr").write(feature_columns())
    forget_place(COLUMNS / "table")
    arrays = {name: x for name, (x, _) in made.items()}
    arrays |= {name: lake[name][...] for name in lake if name not in made}
    expected = {
        name: {"dtype": x.dtype.name, "shape": x.shape, "bytes": np.ascontiguousarray(x).tobytes().hex()}
        for name, x in arrays.items()
    }  # fmt: skip
    tell(COLUMNS, expected, "columns in one piece", "the elements")


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


def make_window() -> None:
    """Write the table of the layout window, all tensors in one commit."""
    made = runpy.run_path(str(Path(__file__).with_name("window.py")))
    lake = tl.open(WINDOW / "table")
    with lake.transaction() as transaction:
        for name, golden in made["tensors"]().items():
            made["write"](transaction, name, golden)
    forget_place(WINDOW / "table")
    (WINDOW / "PROVENANCE.md").write_text(
        "# Golden table of row format version 1, layout window\n\n"
        f"Written by `make golden` with tensorlake_spark {tl.__version__}. It stays as it is: every later version\n"
        "has to read it. What it holds is computed by `window.py`, by arithmetic alone.\n"
    )


def make_samples() -> None:
    """Write the dataset, without the data files that only its older versions need."""
    support = Path(__file__).resolve().parents[1] / "support"
    film = runpy.run_path(str(support / "videos.py"))["encode"]
    made = runpy.run_path(str(Path(__file__).with_name("samples.py")))
    table = SAMPLES / "table"
    made["write"](str(table), film(frames=made["FRAMES"], gop=3))
    needed = {*Snapshot.open(Storage(str(table)), kind="samples").files.path}
    for file in table.glob("*.parquet"):
        if file.name not in needed:
            file.unlink()
    for place in (table, table / "_tensors", *(table / "_columns").iterdir()):
        forget_place(place)
    (SAMPLES / "PROVENANCE.md").write_text(
        "# Golden dataset of dataset format 1\n\n"
        f"Written by `make golden` with tensorlake_spark {tl.__version__}. It stays as it is: every later version\n"
        "has to read it. What it holds is computed by `samples.py`, by arithmetic alone. Data files that only older\n"
        "versions of the dataset need are not kept.\n"
    )


def main() -> int:
    """Write what is missing."""
    for where, make in (
        (HERE, make_dense),
        (SPARSE, make_sparse),
        (CODECS, make_codecs),
        (PACKED, make_packed),
        (WINDOW, make_window),
        (QUANTIZED, make_quantized),
        (COLUMNS, make_columns),
        (SAMPLES, make_samples),
    ):
        if (where / "table").exists():
            print(f"{where} is there; golden tables are never written again")
        else:
            make()
    return 0


if __name__ == "__main__":
    sys.exit(main())
