"""Ranges of remote files, kept on a local disk and shared by processes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import struct
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError, StorageError
from tensorlake_spark.loader.caching.cache_folder import CacheFolder
from tensorlake_spark.rows.checksum import crc32

Key = tuple[str, str, int, int]
"""The URI of a table, the path of a file in it, where the range begins, and its bytes."""

_HEAD = struct.Struct("<8sIQ4x")
_MAGIC = b"TLRANGE1"
_MAPPED = (
    64 << 10
)  # smaller ranges are copied: a map costs more, and a process has some ten thousands of them
_CHECKED = 100_000  # files whose checksum need not be looked at again
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class RangeCache:
    """Ranges of remote files on a local disk: what was used last stays.

    Threads and processes may share a folder. A range is written under another name first and has a checksum, which
    each process looks at when it meets the file for the first time, and again if that was changed since. Large ranges
    are mapped, not copied. It pickles, for processes that are spawned.

    Parameters
    ----------
    folder : path
        Is made where it is not there. It holds nothing else.
    most_bytes : int
        How much may be in it.

    Attributes
    ----------
    hits, misses : int
        Ranges that were there, and that were fetched, by this object.
    wrong : int
        Of those that were fetched, the ones that were there with another checksum.

    Raises
    ------
    InvalidOptionError
        If the folder holds other things, or others may change what is in it.
    StorageError
        If it cannot be made or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = RangeCache(folder + "/cache", 1000)
    ...     for _ in range(2):
    ...         data = cache.get(("s3://bucket/table", "part-0.parquet", 4, 3), lambda: b"abc")
    >>> bytes(data), cache.hits, cache.misses
    (b'abc', 1, 1)
    """

    def __init__(self, folder: str | os.PathLike[str], most_bytes: int) -> None:
        self._folder = CacheFolder(folder, most_bytes)
        self._counting = threading.Lock()
        self._is_off = False
        self._checked: dict[str, tuple[int, int]] = {}
        self.hits = self.misses = self.wrong = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return RangeCache, (self._folder.path, self._folder.most_bytes)

    @property
    def most_bytes(self) -> int:
        """How much may be in it."""
        return self._folder.most_bytes

    @property
    def is_on(self) -> bool:
        """Whether it keeps what is fetched: not after its disk was full or has failed."""
        return not self._is_off

    def get(self, key: Key, fetch: Callable[[], bytes | memoryview]) -> memoryview:
        """Return a range; what is not there is fetched and kept. A large one is mapped, also when it was just fetched.

        Parameters
        ----------
        key : tuple
            URI of the table, path of the file, offset and bytes.
        fetch : callable
            Gives the bytes. What it raises is raised.

        Raises
        ------
        StorageError
            If `fetch` gives more or fewer bytes than the key says.
        """
        name = _name(key)
        found = self._read(name, key[3])
        if found is not None:
            return found
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # then another process may fetch it too
                stack.enter_context(self._folder.locked(name))
                found = self._read(name, key[3])  # whoever held the lock may have fetched it
                if found is not None:
                    return found
            data = memoryview(fetch()).cast("B")
            if len(data) != key[3]:
                raise StorageError(f"{key[1]}: {len(data)} bytes came from {key[2]}, not {key[3]}")
            with self._counting:
                self.misses += 1
            if not self._is_off and _HEAD.size + len(data) <= self._folder.most_bytes:
                self._keep(name, data)
                return self._written(name, data)
        return data

    def _written(self, name: str, data: memoryview) -> memoryview:
        """Return a range that was written just now from its file, so that it does not stay in memory."""
        size = _HEAD.size + len(data)
        if size < _MAPPED or name not in self._checked:
            return data
        try:
            found, stamp = _opened(self._folder.file(name), size)
        except (OSError, pa.ArrowInvalid):  # another process needed its space
            return data
        return found[_HEAD.size :] if self._checked.get(name) == stamp else data

    def known(self, key: Key) -> memoryview | None:
        """Return a range that is there and was checked by this object; None for all others, at little cost."""
        name = _name(key)
        return self._read(name, key[3]) if name in self._checked else None

    def _read(self, name: str, size: int) -> memoryview | None:
        path = self._folder.file(name)
        try:
            data, stamp = _opened(path, _HEAD.size + size)
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowInvalid):  # it cannot be read, or has no bytes
            data, stamp = memoryview(b""), (0, 0)
        if self._checked.get(name) == stamp or _is_whole(data, size):
            self._check_off(name, stamp)
            with contextlib.suppress(
                OSError
            ):  # the time of its last use; that of its writing stays
                os.utime(path, ns=(time.time_ns(), stamp[1]))
            with self._counting:
                self.hits += 1
            return data[_HEAD.size :]
        self._checked.pop(name, None)
        with contextlib.suppress(OSError):
            os.unlink(path)
        with self._counting:
            self.wrong += 1
        return None

    def _check_off(self, name: str, stamp: tuple[int, int]) -> None:
        if len(self._checked) >= _CHECKED:
            self._checked.clear()
        self._checked[name] = stamp

    def _keep(self, name: str, data: memoryview) -> None:
        try:
            begun = self._folder.begin(_HEAD.size + len(data))
            if begun is None:
                return
            file, temporary = begun
            try:
                _write_all(file, _HEAD.pack(_MAGIC, crc32(data), len(data)))
                _write_all(file, data)
                facts = os.fstat(file)
                path = self._folder.file(name)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(os.path.dirname(path), 0o700)
                os.replace(temporary, path)
                self._check_off(name, (facts.st_ino, facts.st_mtime_ns))
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            finally:
                os.close(file)
        except FileNotFoundError:  # somebody emptied the folder: the next range is kept again
            with contextlib.suppress(OSError):
                self._claim()
        except OSError as error:
            self._turn_off(error)

    def _claim(self) -> None:
        try:
            self._folder.claim()
        except InvalidOptionError as error:  # it has become somebody's folder of other things
            self._turn_off(error)

    def _turn_off(self, error: OSError | InvalidOptionError) -> None:
        with self._counting:
            first, self._is_off = not self._is_off, True
        if first:
            is_full = getattr(error, "errno", None) in _FULL
            said = getattr(error, "strerror", None) or error
            warnings.warn(
                f"the cache {str(self._folder.path)!r} takes no more: {said}; reading goes on "
                "without it. "
                + (
                    "Free space on its disk, or give it a smaller size"
                    if is_full
                    else "Look at its disk"
                ),
                RuntimeWarning,
                stacklevel=4,
            )


def _name(key: Key) -> str:
    """Return the name of the file of a range."""
    return hashlib.blake2b(repr(tuple(key)).encode(), digest_size=16).hexdigest()


def _opened(path: str, size: int) -> tuple[memoryview, tuple[int, int]]:
    """Return the bytes of a file, and its number and the time of its last change; no bytes if it has another size."""
    file: Any  # Arrow's, or the system's
    with pa.memory_map(path) if size >= _MAPPED else open(path, "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        if facts.st_size != size:
            return memoryview(b""), (0, 0)
        data = memoryview(file.read_buffer(size) if size >= _MAPPED else _read_all(file, size))
        return data.cast("B"), (facts.st_ino, facts.st_mtime_ns)


def _is_whole(data: memoryview, size: int) -> bool:
    """Whether a file has a range of so many bytes, as it was written."""
    if len(data) != _HEAD.size + size:
        return False
    magic, crc, length = _HEAD.unpack_from(data)
    return bool(magic == _MAGIC and length == size and crc32(data[_HEAD.size :]) == crc)


def _read_all(file: io.FileIO, size: int) -> bytes:
    data = file.read(size)
    while 0 < len(data) < size:  # a signal
        more = file.read(size - len(data))
        if not more:
            break
        data += more
    return data


def _write_all(file: int, data: Any) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
