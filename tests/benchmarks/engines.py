"""The stores that the dense benchmark compares, each behind the same three functions.

Settings: every peer compresses, has a chunk that suits it, and may use both cores. The photographs'
chunk of Zarr and TensorStore is one image; TileDB's tile and levels are those of its table in the
project's research. Imports happen inside, so that one process loads one engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Engine(NamedTuple):
    """One store.

    Attributes
    ----------
    write : callable
        ``write(path, array)``.
    open : callable
        ``open(path)`` returns a handle.
    read : callable
        ``read(handle, key)`` returns an ndarray.
    compressed : bool
        Whether it counts as a compressed peer.
    package : str
        Whose version is reported.
    """

    write: Callable[[Path, Array], Any]
    open: Callable[[Path], Any]
    read: Callable[[Any, Any], Array]
    compressed: bool
    package: str


def _chunk(array: Array) -> tuple[int, ...]:
    return (1, *array.shape[1:]) if array.ndim == 4 else tuple(min(64, n) for n in array.shape)


def _npy_write(path: Path, array: Array) -> None:
    path.mkdir()
    np.save(path / "x.npy", array)


def _zarr(codec: str) -> Engine:
    def write(path: Path, array: Array) -> None:
        import zarr
        from zarr.codecs import BloscCodec, ZstdCodec

        compressor = (
            ZstdCodec(level=0)
            if codec == "zstd"
            else BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")
        )
        made = zarr.create_array(
            str(path), shape=array.shape, dtype=array.dtype, chunks=_chunk(array),
            compressors=[compressor],
        )  # fmt: skip
        made[...] = array

    def open_(path: Path) -> Any:
        import zarr

        return zarr.open_array(str(path), mode="r")

    return Engine(write, open_, lambda handle, key: handle[key], True, "zarr")


def _tensorstore_write(path: Path, array: Array) -> None:
    import tensorstore as ts

    codecs = [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 3}}]
    grid = {"name": "regular", "configuration": {"chunk_shape": list(_chunk(array))}}
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": str(path)},
        "metadata": {
            "shape": list(array.shape),
            "data_type": array.dtype.name,
            "chunk_grid": grid,
            "codecs": codecs,
        },
    }
    ts.open(spec, create=True).result().write(array).result()


def _tensorstore_open(path: Path) -> Any:
    import tensorstore as ts

    return ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}).result()


def _tiledb_write(path: Path, array: Array) -> None:
    import tiledb

    tile = (1, 3, 256, 256) if array.ndim == 4 else (64, 64, 64)
    dims = [
        tiledb.Dim(f"d{k}", domain=(0, n - 1), tile=min(t, n), dtype=np.int64)
        for k, (n, t) in enumerate(zip(array.shape, tile))
    ]
    values = tiledb.Attr(
        "v", dtype=array.dtype, filters=tiledb.FilterList([tiledb.ZstdFilter(level=3)])
    )
    schema = tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=[values])
    tiledb.Array.create(str(path), schema)
    with tiledb.open(str(path), "w") as made:
        made[:] = array


def _tiledb_open(path: Path) -> Any:
    import tiledb

    return tiledb.open(str(path))


def _tiledb_read(handle: Any, key: Any) -> Array:
    found = handle[key]
    return np.asarray(found["v"] if isinstance(found, dict) else found)


def _lance_write(path: Path, array: Array) -> None:
    """A row is one index of the first axis, as a fixed-size list: how Lance keeps tensors."""
    import lance
    import pyarrow as pa

    flat = array.reshape(len(array), -1)

    def batches() -> Any:
        for start in range(0, len(flat), 4):
            part = flat[start : start + 4]
            lists = pa.FixedSizeListArray.from_arrays(pa.array(part.reshape(-1)), part.shape[1])
            yield pa.RecordBatch.from_arrays([lists], names=["x"])

    kind = pa.list_(pa.from_numpy_dtype(array.dtype), flat.shape[1])
    schema = pa.schema([pa.field("x", kind, metadata={"lance-encoding:compression": "zstd"})])
    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), str(path))
    (path / "shape.json").write_text(json.dumps(array.shape))


def _lance_open(path: Path) -> Any:
    import lance

    return lance.dataset(str(path)), tuple(json.loads((path / "shape.json").read_text()))


def _lance_read(handle: Any, key: Any) -> Array:
    dataset, shape = handle
    key = key if isinstance(key, tuple) else (key,)
    rows = range(shape[0])[key[0]]
    if len(rows) == shape[0]:
        table = dataset.to_table()
    else:
        table = dataset.take(list(rows))
    parts = [chunk.flatten().to_numpy() for chunk in table["x"].chunks]
    x = (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(len(rows), *shape[1:])
    return x[(slice(None), *key[1:])]


def _ours_write(path: Path, array: Array) -> None:
    import tensorlake_spark as tl

    tl.open(path).write("x", array)


def _ours_open(path: Path) -> Any:
    import tensorlake_spark as tl

    return tl.open(path)["x"]


ENGINES = {
    "tensorlake": Engine(_ours_write, _ours_open, lambda h, k: h[k], False, "tensorlake-spark"),
    "npy": Engine(
        _npy_write,
        lambda p: np.load(p / "x.npy", mmap_mode="r"),
        lambda h, k: np.array(h[k]),
        False,
        "numpy",
    ),
    "zarr-zstd": _zarr("zstd"),
    "zarr-blosc": _zarr("blosc"),
    "tensorstore": Engine(
        _tensorstore_write,
        _tensorstore_open,
        lambda h, k: h[k].read().result(),
        True,
        "tensorstore",
    ),
    "tiledb": Engine(_tiledb_write, _tiledb_open, _tiledb_read, True, "tiledb"),
    "lance": Engine(_lance_write, _lance_open, _lance_read, True, "pylance"),
}
"""By name; ours first, then plain NumPy, then the compressed peers."""
