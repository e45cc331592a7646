"""The stores that the S3 benchmark compares, each behind the same four functions.

Settings are those of the benchmarks on a disk; all may have as many requests on their way as they like. No
peer gets a cache of chunks, and ours has none. What an engine keeps beside: ours the log and footers of a
version, TileDB the metadata of an array that is open, Zarr and TensorStore that of an array.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from dense_engines import ENGINES as DENSE
from dense_engines import whole
from sparse_engines import ENGINES as SPARSE
from sparse_engines import Found

BUCKET = "bucket"
OURS = "tensorlake"
_PIECE = 8 << 20
_DENSE_READS = ("ten", "ten-link", "full")


class Place(NamedTuple):
    """Where a store is.

    Attributes
    ----------
    name : str
        Its folder in the bucket.
    options : dict of str to str
        What ``tl.open(..., storage_options=)`` takes.
    """

    name: str
    options: dict[str, str]

    @property
    def url(self) -> str:
        """As URL."""
        return f"s3://{BUCKET}/{self.name}"

    @property
    def host(self) -> str:
        """The server, without the scheme."""
        return self.options["AWS_ENDPOINT_URL"].split("//")[1]


class S3Engine(NamedTuple):
    """One store on S3.

    Attributes
    ----------
    write : callable
        ``write(place, data)``; the place is empty.
    open : callable
        ``open(place)`` returns a handle, in a process that has not opened anything.
    read : callable
        ``read(handle, key)`` returns the answer by what the handle knows.
    renew : callable
        ``renew(handle, key)`` returns the answer as the store is now.
    package, module, settings, peer, extra
        As those of `harness.Engine`.
    reads : tuple of str
        Which measures it takes part in.
    plain : bool
        Whether it only gets bytes, which is no answer.
    """

    write: Callable[[Place, Any], Any]
    open: Callable[[Place], Any]
    read: Callable[[Any, Any], Any]
    renew: Callable[[Any, Any], Any]
    package: str
    module: str
    settings: str
    reads: tuple[str, ...]
    peer: bool = True
    extra: bool = False
    plain: bool = False


def _ours(checkpoint: bool, reads: tuple[str, ...]) -> S3Engine:
    def write(place: Place, data: Any) -> None:
        from deltalake import DeltaTable

        import tensorlake_spark as tl

        dense = isinstance(data, np.ndarray)
        lake = tl.open(place.url, storage_options=place.options)
        lake.write("x", data if dense else tl.SparseTensor(*data))
        if checkpoint:
            DeltaTable(place.url, storage_options=place.options).create_checkpoint()

    def open_(place: Place) -> Any:
        import tensorlake_spark as tl

        lake = tl.open(place.url, storage_options=place.options)
        return lake, lake["x"]

    def answer(found: Any) -> Any:
        if isinstance(found, np.ndarray):
            return found
        return Found(found.coords, found.values, found.shape)

    return S3Engine(
        write, open_, lambda h, k: answer(h[1][k]), lambda h, k: answer(h[0]["x"][k]),
        "tensorlake-spark", "tensorlake_spark",
        "defaults, its log with a checkpoint" if checkpoint else "defaults", reads, peer=False,
    )  # fmt: skip


def _obstore(place: Place) -> Any:
    from obstore.store import S3Store

    return S3Store(
        BUCKET,
        prefix=place.name,
        endpoint=place.options["AWS_ENDPOINT_URL"],
        access_key_id=place.options["AWS_ACCESS_KEY_ID"],
        secret_access_key=place.options["AWS_SECRET_ACCESS_KEY"],
        region=place.options["AWS_REGION"],
        client_options={"allow_http": True},
    )


def _zarr(like: str, codec: Callable[[], Any]) -> S3Engine:
    def write(place: Place, array: np.ndarray) -> None:
        import zarr
        from zarr.storage import ObjectStore

        made = zarr.create_array(
            ObjectStore(_obstore(place)), shape=array.shape, dtype=array.dtype, chunks=whole(array),
            compressors=[codec()],
        )  # fmt: skip
        made[...] = array

    def open_(place: Place) -> Any:
        import zarr
        from zarr.storage import ObjectStore

        store = ObjectStore(_obstore(place), read_only=True)
        return store, zarr.open_array(store, mode="r", zarr_format=3)

    def renew(handle: Any, key: Any) -> Any:
        import zarr

        return zarr.open_array(handle[0], mode="r", zarr_format=3)[key]

    return S3Engine(
        write, open_, lambda h, k: h[1][k], renew, "zarr", "zarr.storage",
        f"obstore, {DENSE[like].settings}", _DENSE_READS,
    )  # fmt: skip


def _zstd() -> Any:
    from zarr.codecs import ZstdCodec

    return ZstdCodec(level=0)


def _blosc() -> Any:
    from zarr.codecs import BloscCodec

    return BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")


def _tensorstore() -> S3Engine:
    def spec(place: Place) -> dict[str, Any]:
        # It takes keys from the environment only.
        os.environ.update({k: v for k, v in place.options.items() if "KEY" in k})
        kvstore = {
            "driver": "s3",
            "bucket": BUCKET,
            "path": f"{place.name}/",
            "endpoint": place.options["AWS_ENDPOINT_URL"],
            "aws_region": place.options["AWS_REGION"],
        }
        return {"driver": "zarr3", "kvstore": kvstore}

    def write(place: Place, array: np.ndarray) -> None:
        import tensorstore as ts

        zstd = {"name": "zstd", "configuration": {"level": 3}}
        grid = {"name": "regular", "configuration": {"chunk_shape": list(whole(array))}}
        metadata = {
            "shape": list(array.shape),
            "data_type": array.dtype.name,
            "chunk_grid": grid,
            "codecs": [{"name": "bytes"}, zstd],
        }
        ts.open({**spec(place), "metadata": metadata}, create=True).result().write(array).result()

    def open_(place: Place) -> Any:
        import tensorstore as ts

        context = ts.Context()  # with its connections
        return context, spec(place), ts.open(spec(place), context=context).result()

    def renew(handle: Any, key: Any) -> Any:
        import tensorstore as ts

        context, found, _ = handle
        return ts.open(found, context=context).result()[key].read().result()

    return S3Engine(
        write, open_, lambda h, k: h[2][k].read().result(), renew, "tensorstore", "tensorstore",
        DENSE["tensorstore"].settings, _DENSE_READS,
    )  # fmt: skip


def _tiledb(like: dict[str, Any], name: str, reads: tuple[str, ...]) -> S3Engine:
    """TileDB with the settings and the schema that it has in a benchmark on a disk."""

    def context(place: Place) -> Any:
        import tiledb

        config = {
            "vfs.s3.endpoint_override": place.host,
            "vfs.s3.scheme": "http",
            "vfs.s3.region": place.options["AWS_REGION"],
            "vfs.s3.aws_access_key_id": place.options["AWS_ACCESS_KEY_ID"],
            "vfs.s3.aws_secret_access_key": place.options["AWS_SECRET_ACCESS_KEY"],
            "vfs.s3.use_virtual_addressing": "false",
        }
        return tiledb.Ctx(tiledb.Config(config))

    def write(place: Place, data: Any) -> None:
        import tiledb

        with tiledb.scope_ctx(context(place)):
            like[name].write(place.url, data)

    def open_(place: Place) -> Any:
        import tiledb

        made = context(place)
        return [made, place.url, tiledb.open(place.url, ctx=made)]

    def renew(handle: Any, key: Any) -> Any:
        import tiledb

        made, url, opened = handle
        opened.close()
        handle[2] = tiledb.open(url, ctx=made)
        return like[name].read(handle[2], key)

    return S3Engine(
        write, open_, lambda h, k: like[name].read(h[2], k), renew, "tiledb", "tiledb",
        like[name].settings, reads,
    )  # fmt: skip


def _get() -> S3Engine:
    """Ours without the tensors: all bytes of its data files, by many requests at a time."""

    def open_(place: Place) -> Any:
        ours = place._replace(name=place.name.replace("-get", f"-{OURS}"))
        store = _obstore(ours)
        listed = [found for page in store.list() for found in page]
        files = [(f["path"], f["size"]) for f in listed if f["path"].endswith(".parquet")]
        return store, [f for f in files if "_delta_log" not in f[0]]

    def read(handle: Any, key: Any) -> int:
        store, files = handle
        spans = [(name, at, min(at + _PIECE, size)) for name, size in files
                 for at in range(0, size, _PIECE)]  # fmt: skip

        def get(span: tuple[str, int, int]) -> int:
            name, start, end = span
            return len(store.get_range(name, start=start, end=end))

        with ThreadPoolExecutor(32) as threads:
            return sum(threads.map(get, spans))

    return S3Engine(
        lambda place, data: None, open_, read, read, "obstore", "obstore.store",
        "a plain GET of tensorlake's data files, 8 MiB a request, 32 at a time", ("full", "full-link"), peer=False,
        plain=True,
    )  # fmt: skip


ENGINES = {
    OURS: _ours(False, (*_DENSE_READS, "full-link", "day")),
    f"{OURS}-checkpoint": _ours(True, ("ten", "day")),
    "zarr-zstd": _zarr("zarr-zstd", _zstd),
    "zarr-blosc": _zarr("zarr-blosc", _blosc),
    "tensorstore": _tensorstore(),
    "tiledb": _tiledb(DENSE, "tiledb", _DENSE_READS),
    "tiledb-sparse": _tiledb(SPARSE, "tiledb", ("day",)),
    "tiledb-int16": _tiledb(SPARSE, "tiledb-int16", ("day",)),
    "get": _get(),
}
"""By name; ours first, then the peers, at last the bytes alone."""
