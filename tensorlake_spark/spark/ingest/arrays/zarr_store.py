"""A Zarr store on S3, read only; the package zarr has one, which needs three packages more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pyarrow.fs as pafs
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype

from tensorlake_spark.spark.ingest.source_files import store_of


class ObjectStore(Store):
    """The objects below a URL; they are reached as `tensorlake_spark.spark.ingest.source_files.using` says."""

    supports_writes, supports_deletes, supports_listing = False, False, True

    def __init__(self, url: str) -> None:
        super().__init__(read_only=True)
        self.url = url
        self._files, self._root = store_of(url)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and other.url == self.url

    def __str__(self) -> str:
        return self.url

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return an object or a part of it, None if there is none."""
        data = await asyncio.to_thread(self._read, key, byte_range)
        return None if data is None else prototype.buffer.from_bytes(data)

    def _read(self, key: str, asked: ByteRequest | None) -> bytes | None:
        try:
            file = self._files.open_input_file(f"{self._root}/{key}")
        except FileNotFoundError:
            return None
        with file:
            size = file.size()
            start, stop = 0, size
            if isinstance(asked, RangeByteRequest):
                start, stop = asked.start, asked.end
            elif isinstance(asked, OffsetByteRequest):
                start = asked.offset
            elif isinstance(asked, SuffixByteRequest):
                start = max(0, size - asked.suffix)
            return bytes(file.read_at(min(stop, size) - start, start))

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return parts of objects."""
        asked = [self.get(key, prototype, some) for key, some in key_ranges]
        return list(await asyncio.gather(*asked))

    async def exists(self, key: str) -> bool:
        """Whether there is such an object."""
        info = await asyncio.to_thread(self._files.get_file_info, f"{self._root}/{key}")
        return bool(info.is_file)

    async def list(self) -> AsyncIterator[str]:
        """Yield the names of all objects."""
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of the objects that begin with a prefix."""
        for info in await self._listed("", True):
            key = info.path[len(self._root) + 1 :]
            if info.is_file and key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of what lies directly in a folder."""
        for info in await self._listed(prefix, False):
            yield info.base_name

    async def _listed(self, folder: str, recursive: bool) -> Any:
        place = f"{self._root}/{folder}".rstrip("/")
        choice = pafs.FileSelector(place, allow_not_found=True, recursive=recursive)
        return await asyncio.to_thread(self._files.get_file_info, choice)

    async def set(self, key: str, value: Buffer) -> None:
        """Raise: the store is for reading."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Raise: the store is for reading."""
        self._check_writable()
