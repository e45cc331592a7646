"""The stores that the dense benchmark compares, each behind the same three functions.

Settings: every peer compresses where it can, has a chunk that suits the data, and may use all cores,
which is what each of them does by default. No peer gets a cache of decoded chunks, and ours has none.
Imports happen inside, so that one process loads one engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Engine

Array = np.ndarray
Shape = tuple[int, ...]


def whole(array: Array) -> Shape:
    """Return the peers' usual chunk: one image of a batch, or a cube of a field."""
    return (1, *array.shape[1:]) if array.ndim == 4 else tuple(min(64, n) for n in array.shape)


def bands(array: Array) -> Shape:
    """Return the chunk that ours would choose: a quarter of an image, its rows whole."""
    return (1, *array.shape[1:-2], max(1, array.shape[-2] // 4), array.shape[-1])


def planes(array: Array) -> Shape:
    """Return a chunk of a whole plane, or a whole image of one colour."""
    return (1,) * (array.ndim - 2) + array.shape[-2:]


def _npy_write(path: Path, array: Array) -> None:
    path.mkdir()
    np.save(path / "x.npy", array)


def _npy_open(path: Path) -> Any:
    return np.load(path / "x.npy", mmap_mode="r")


def _named(chunk: Callable[[Array], Shape]) -> str:
    named = {whole: "an image or 64^3", bands: "a quarter of an image", planes: "a whole plane"}
    return f"chunk = {named[chunk]}"


def _zarr(codec: str, chunk: Callable[[Array], Shape], **options: Any) -> Engine:
    def write(path: Path, array: Array) -> None:
        import zarr
        from zarr.codecs import BloscCodec, ZstdCodec

        compressor = (
            ZstdCodec(level=0)
            if codec == "zstd"
            else BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")
        )
        made = zarr.create_array(
            str(path), shape=array.shape, dtype=array.dtype, chunks=chunk(array),
            compressors=[compressor],
        )  # fmt: skip
        made[...] = array

    def open_(path: Path) -> Any:
        import zarr

        return zarr.open_array(str(path), mode="r")

    name = "zstd-0, Zarr's default" if codec == "zstd" else "Blosc: bitshuffle, zstd-5"
    return Engine(
        write, open_, lambda h, k: h[k], "zarr", "zarr", f"{name}; {_named(chunk)}", **options
    )


def _tensorstore(chunk: Callable[[Array], Shape], **options: Any) -> Engine:
    def store(path: Path) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}

    def write(path: Path, array: Array) -> None:
        import tensorstore as ts

        zstd = {"name": "zstd", "configuration": {"level": 3}}
        grid = {"name": "regular", "configuration": {"chunk_shape": list(chunk(array))}}
        metadata = {
            "shape": list(array.shape),
            "data_type": array.dtype.name,
            "chunk_grid": grid,
            "codecs": [{"name": "bytes"}, zstd],
        }
        made = ts.open({**store(path), "metadata": metadata}, create=True).result()
        made.write(array).result()

    def open_(path: Path) -> Any:
        import tensorstore as ts

        return ts.open(store(path)).result()

    return Engine(
        write, open_, lambda h, k: h[k].read().result(), "tensorstore", "tensorstore",
        f"zarr3, zstd-3; {_named(chunk)}", **options,
    )  # fmt: skip


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


def _lance(compress: bool) -> Engine:
    """Rows of a fixed-size list, or rows of one compressed binary value: Lance packs only the latter.

    A row of lists is one index of the first axis, how Lance keeps tensors; a row of bytes is a band.
    """

    def write(path: Path, array: Array) -> None:
        import lance
        import pyarrow as pa

        chunk = bands(array) if compress else (1, *array.shape[1:])
        cut = array.shape[-2] // chunk[-2]
        if array.shape[-2] % chunk[-2]:
            raise ValueError("bands of one height only")

        def batches() -> Any:
            for image in array:
                parts = np.split(image, cut, axis=-2)
                if compress:
                    values = pa.array([part.tobytes() for part in parts], kind)
                else:
                    values = pa.FixedSizeListArray.from_arrays(image.reshape(-1), image.size)
                yield pa.RecordBatch.from_arrays([values], schema=schema)

        items = pa.list_(pa.from_numpy_dtype(array.dtype), array[0].size)
        kind = pa.large_binary() if compress else items
        options = {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "3"}
        schema = pa.schema([pa.field("x", kind, metadata=options if compress else None)])
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        lance.write_dataset(reader, str(path), data_storage_version="2.1")
        note = {"shape": array.shape, "dtype": array.dtype.str, "chunk": chunk, "binary": compress}
        (path / "shape.json").write_text(json.dumps(note))

    def open_(path: Path) -> Any:
        import lance

        return lance.dataset(str(path)), json.loads((path / "shape.json").read_text())

    settings = "binary rows, zstd-3; a quarter of an image" if compress else "a row = one image"
    return Engine(write, open_, _lance_read, "pylance", "lance", settings)


def _lance_read(handle: Any, key: Any) -> Array:
    dataset, note = handle
    shape, chunk, dtype = note["shape"], note["chunk"], np.dtype(note["dtype"])
    key = key if isinstance(key, tuple) else (key,)
    key = (*key, *[slice(None)] * (len(shape) - len(key)))
    images = range(shape[0])[key[0]]
    height, cut = chunk[-2], shape[-2] // chunk[-2]
    touched = np.atleast_1d(np.arange(shape[-2])[key[-2]]) // height
    first, last = int(touched.min()), int(touched.max())
    rows = [i * cut + band for i in images for band in range(first, last + 1)]
    table = dataset.to_table() if len(rows) == shape[0] * cut else dataset.take(rows)
    if not note["binary"]:
        parts = [part.flatten().to_numpy() for part in table["x"].chunks]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        found = joined.reshape(len(images), *shape[1:])
    else:
        found = np.empty((len(images), *shape[1:-2], (last - first + 1) * height, shape[-1]), dtype)
        values = (value.as_buffer() for part in table["x"].chunks for value in part)
        for i in range(len(images)):
            for band in range(last - first + 1):
                block = np.frombuffer(next(values), dtype).reshape(chunk[1:])
                found[i, ..., band * height : (band + 1) * height, :] = block
    # The bands before the first one that was read are missing in what was found.
    lines = key[-2]
    if isinstance(lines, slice):
        start, stop, step = lines.indices(shape[-2])
        lines = slice(start - first * height, stop - first * height, step)
    else:
        lines -= first * height
    return found[(slice(None), *key[1:-2], lines, key[-1])]


def _ours_write(path: Path, array: Array) -> None:
    import tensorlake_spark as tl

    tl.open(path).write("x", array)


def _ours_open(path: Path) -> Any:
    import tensorlake_spark as tl

    return tl.open(path)["x"]


ENGINES = {
    "tensorlake": Engine(
        _ours_write, _ours_open, lambda h, k: h[k], "tensorlake-spark", "tensorlake_spark",
        "defaults", peer=False,
    ),
    "npy": Engine(
        _npy_write, _npy_open, lambda h, k: np.array(h[k]), "numpy", "numpy",
        "not compressed, memory-mapped, copied", peer=False,
    ),
    "zarr-zstd": _zarr("zstd", whole),
    "zarr-blosc": _zarr("blosc", whole),
    "tensorstore": _tensorstore(whole),
    "tiledb": Engine(
        _tiledb_write, _tiledb_open, _tiledb_read, "tiledb", "tiledb",
        "dense, zstd-3; tiles of 1x3x256x256 or 64^3",
    ),
    "lance": _lance(compress=False),
    "lance-zstd": _lance(compress=True),
    "zarr-blosc-bands": _zarr("blosc", bands, extra=True),
    "tensorstore-bands": _tensorstore(bands, extra=True),
    "zarr-blosc-planes": _zarr("blosc", planes, extra=True),
    "tensorstore-planes": _tensorstore(planes, extra=True),
}  # fmt: skip
"""By name; ours first, then plain NumPy, then the peers, at last peers with chunks such as ours, and with whole planes."""
