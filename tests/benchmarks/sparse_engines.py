"""The stores that the sparse benchmark compares, each behind the same three functions.

Settings: every peer compresses where it can, is cut as suits the data, and may use all cores. Every
answer is int64 coordinates and float64 values, which is what went in, in any order; a store that keeps
something narrower widens it on the clock. No peer gets a cache of decoded data, and ours has none.
Imports happen inside, so that one process loads one engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import Engine
from workloads import Elements

Array = np.ndarray


class Found(NamedTuple):
    """An answer.

    Attributes
    ----------
    coords : sequence of int64 ndarray
        One for each axis, or one array of them all.
    values : float64 ndarray
        What belongs to them.
    shape : tuple of int, or None
        The slice's shape, where coordinates count within the slice, and axes that an integer names are
        gone. None: they are those of the tensor.
    """

    coords: Sequence[Array]
    values: Array
    shape: tuple[int, ...] | None = None


def bounds(key: Any, shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return a key of integers and slices as half-open ranges, one for each axis."""
    key = key if isinstance(key, tuple) else (key,)
    out = []
    for k, n in zip((*key, *[slice(None)] * (len(shape) - len(key))), shape):
        out.append((k, k + 1) if isinstance(k, int) else k.indices(n)[:2])
    return out


def _masked(coords: Array, values: Array, key: Any, shape: Sequence[int]) -> Found:
    """Return the elements of a slice by a look at all of them: only the axes that the key limits."""
    mask = None
    for axis, (lo, hi), n in zip(coords, bounds(key, shape), shape):
        if (lo, hi) != (0, n):
            inside = axis == lo if hi == lo + 1 else (axis >= lo) & (axis < hi)
            mask = inside if mask is None else mask & inside
    return Found(coords, values) if mask is None else Found(coords[:, mask], values[mask])


def _ours(layout: str) -> Engine:
    def write(path: Path, data: Elements) -> None:
        import tensorlake_spark as tl

        tl.open(path).write("x", tl.SparseTensor(*data), layout=layout)

    def open_(path: Path) -> Any:
        import tensorlake_spark as tl

        return tl.open(path)["x"]

    def read(handle: Any, key: Any) -> Found:
        found = handle[key]
        return Found(found.coords, found.values, found.shape)

    return Engine(
        write, open_, read, "tensorlake-spark", "tensorlake_spark", "defaults", peer=False
    )


def _torch() -> Engine:
    def write(path: Path, data: Elements) -> None:
        import torch

        path.mkdir()
        parts = torch.from_numpy(data.coords), torch.from_numpy(data.values)
        torch.save(torch.sparse_coo_tensor(*parts, data.shape), path / "x.pt")

    def read(path: Path, key: Any) -> Found:
        import torch

        tensor = torch.load(path / "x.pt")
        parts = tensor._indices().numpy(), tensor._values().numpy()
        return _masked(*parts, key, tuple(tensor.shape))

    return Engine(
        write, lambda path: path, read, "torch", "torch", "torch.save; loaded whole, then a mask",
        peer=False,
    )  # fmt: skip


def _numpy() -> Engine:
    def write(path: Path, data: Elements) -> None:
        path.mkdir()
        np.save(path / "coords.npy", data.coords)
        np.save(path / "values.npy", data.values)
        (path / "shape.txt").write_text(" ".join(map(str, data.shape)))

    def read(path: Path, key: Any) -> Found:
        shape = [int(n) for n in (path / "shape.txt").read_text().split()]
        return _masked(np.load(path / "coords.npy"), np.load(path / "values.npy"), key, shape)

    return Engine(
        write, lambda path: path, read, "numpy", "numpy",
        "stands for torch's .pt, which is not installed: the same bytes, int64 coordinates and float64 "
        "values, by numpy.save; loaded whole, then a mask",
        peer=False,
    )  # fmt: skip


def _pydata() -> Engine:
    def write(path: Path, data: Elements) -> None:
        import sparse

        path.mkdir()
        made = sparse.COO(*data, has_duplicates=False, sorted=True)
        sparse.save_npz(path / "x.npz", made)

    def read(path: Path, key: Any) -> Found:
        import sparse

        found = sparse.load_npz(path / "x.npz")[key]
        return Found(found.coords.astype(np.int64, copy=False), found.data, found.shape)

    return Engine(
        write, lambda path: path, read, "sparse", "sparse",
        "pydata/sparse's save_npz; loaded whole, then its own index",
    )  # fmt: skip


def _savez() -> Engine:
    def write(path: Path, data: Elements) -> None:
        path.mkdir()
        np.savez_compressed(path / "x.npz", **data._asdict())

    def read(path: Path, key: Any) -> Found:
        with np.load(path / "x.npz") as found:
            return _masked(found["coords"], found["values"], key, found["shape"].tolist())

    return Engine(
        write, lambda path: path, read, "numpy", "numpy",
        "numpy.savez_compressed, for pydata/sparse is not installed; loaded whole, then a mask",
    )  # fmt: skip


def _tiledb(
    filters: Callable[[Any], list[Any]], capacity: int, settings: str, narrow: bool = False
) -> Engine:
    """A sparse array whose elements lie in tiles of at most 12 x 24 x 256 x 256 cells."""

    def write(path: Path, data: Elements) -> None:
        import tiledb

        def chain() -> Any:
            return tiledb.FilterList(filters(tiledb))

        tile = (12, 24, 256, 256)
        dtype = np.int16 if narrow and max(data.shape) < 1 << 15 else np.int64
        dims = [
            tiledb.Dim(f"d{k}", domain=(0, n - 1), tile=min(t, n), dtype=dtype, filters=chain())
            for k, (n, t) in enumerate(zip(data.shape, tile))
        ]
        values = tiledb.FilterList([tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(level=3)])
        schema = tiledb.ArraySchema(
            domain=tiledb.Domain(*dims),
            attrs=[tiledb.Attr("v", dtype=data.values.dtype, filters=values)],
            sparse=True,
            capacity=capacity,
        )
        tiledb.Array.create(str(path), schema)
        with tiledb.open(str(path), "w") as made:
            made[tuple(axis.astype(dtype, copy=False) for axis in data.coords)] = data.values

    def open_(path: Path) -> Any:
        import tiledb

        return tiledb.open(str(path))

    def read(handle: Any, key: Any) -> Found:
        key = key if isinstance(key, tuple) else (key,)
        key = (*key, *[slice(None)] * (handle.ndim - len(key)))
        found = handle.query(order="U")[key]  # unordered: the fastest
        coords = [found[f"d{k}"].astype(np.int64, copy=False) for k in range(handle.ndim)]
        return Found(coords, found["v"])

    return Engine(write, open_, read, "tiledb", "tiledb", settings)


def _shuffled(tiledb: Any) -> list[Any]:
    return [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(level=3)]


def _delta(tiledb: Any) -> list[Any]:
    return [tiledb.DoubleDeltaFilter(), tiledb.ZstdFilter(level=5)]


def _parquet() -> Engine:
    """A row is an element, in C order; row groups that the filter rules out are not read."""

    def write(path: Path, data: Elements) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path.mkdir()
        names = [f"d{k}" for k in range(len(data.shape))]
        meta = {"shape": " ".join(map(str, data.shape))}
        table = pa.table({**dict(zip(names, data.coords)), "v": data.values}, metadata=meta)
        encodings = {**dict.fromkeys(names, "DELTA_BINARY_PACKED"), "v": "BYTE_STREAM_SPLIT"}
        pq.write_table(
            table, path / "x.parquet", compression="zstd", compression_level=3,
            row_group_size=128 << 10, use_dictionary=False, column_encoding=encodings,
        )  # fmt: skip

    def open_(path: Path) -> Any:
        import pyarrow.dataset as ds

        return ds.dataset(path / "x.parquet")

    def read(handle: Any, key: Any) -> Found:
        import pyarrow.dataset as ds

        shape = [int(n) for n in handle.schema.metadata[b"shape"].split()]
        wanted = None
        for k, ((lo, hi), n) in enumerate(zip(bounds(key, shape), shape)):
            if (lo, hi) != (0, n):
                axis = ds.field(f"d{k}")
                inside = (axis >= lo) & (axis < hi)
                wanted = inside if wanted is None else wanted & inside
        table = handle.to_table(filter=wanted)
        *coords, values = (column.to_numpy() for column in table.columns)
        return Found(coords, values)

    return Engine(
        write, open_, read, "pyarrow", "pyarrow.dataset",
        "sorted rows, int64 as DELTA_BINARY_PACKED, zstd-3, row groups of 128 Ki elements, filter pushed "
        "down",
    )  # fmt: skip


LAYOUTS = ("bsgs", "coo", "csr", "csc", "csf")
"""Ours, each an engine."""

BASE = "pt" if find_spec("torch") else "npy"
"""What the paper's figures are ratios to."""

_TILE = "sparse, tile 12x24x256x256"

ENGINES = {
    **{name: _ours(name) for name in LAYOUTS},
    BASE: _torch() if BASE == "pt" else _numpy(),
    "npz": _pydata() if find_spec("sparse") else _savez(),
    "tiledb": _tiledb(_shuffled, 10_000, f"{_TILE}, int64, byte shuffle + zstd-3, capacity 10,000"),
    "tiledb-delta": _tiledb(_delta, 100_000, f"{_TILE}, int64, double delta + zstd-5, capacity 100,000"),
    "tiledb-int16": _tiledb(
        _shuffled, 10_000, f"{_TILE}, int16, byte shuffle + zstd-3, capacity 10,000", narrow=True
    ),
    "parquet": _parquet(),
}  # fmt: skip
"""By name; ours first, then the whole file that the paper compares with, then the peers."""


def result_shape(key: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that NumPy gives a slice."""
    key = key if isinstance(key, tuple) else (key,)
    key = (*key, *[slice(None)] * (len(shape) - len(key)))
    return tuple(len(range(n)[k]) for k, n in zip(key, shape) if not isinstance(k, int))


def places_of(found: Found, key: Any, shape: Sequence[int]) -> Array:
    """Return the places of an answer's elements in the tensor, in C order.

    Raises
    ------
    ValueError
        If one lies outside of the tensor, or the answer has not the slice's axes.
    """
    limits = bounds(key, shape)
    coords = list(found.coords)
    if found.shape is not None:
        fixed = key if isinstance(key, tuple) else (key,)
        for k, (lo, _) in enumerate(limits):
            if k < len(fixed) and isinstance(fixed[k], int):
                coords.insert(k, np.full(len(found.values), lo))
            else:
                coords[k] = coords[k] + lo
    if len(coords) != len(shape) or math.prod(shape) >= 1 << 63:
        raise ValueError(f"{len(coords)} axes of coordinates")
    return np.ravel_multi_index(coords, tuple(shape))
