"""Sources by their paths: files of this machine, and objects of S3, asked the same few questions.

Objects are reached by the options of one store, which `using` sets for this process, and which `carried` takes
along to tasks; nothing that is logged or planned has them.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Protocol, TypeVar, cast

import pyarrow.fs as pafs

from tensorlake_spark.delta.store.storage import Storage, is_refusal, reaching, refusal
from tensorlake_spark.errors import InvalidOptionError, StorageError, storage_error
from tensorlake_spark.spark.cluster.s3a import completed

T = TypeVar("T")

_BUFFER = 1 << 20  # what a request brings at the least
_OBJECT = re.compile(r"s3[an]?://", re.IGNORECASE)

_given: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
_known: dict[str, pafs.FileInfo] = {}
"""What listings said of objects, so that a folder of many is not asked for one by one."""


class Files(Protocol):
    """What can be asked of a path."""

    def is_file(self, path: str) -> bool:
        """Whether it is a file."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder."""
        ...

    def find(self, pattern: str) -> list[str]:
        """Return the paths that a glob means, sorted; ``**`` stands for folders of any depth."""
        ...

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield folders with the names of the folders and files in them, as `os.walk` does."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open a file, to be read from any place."""
        ...

    def sizes(self, path: str) -> list[tuple[int, int]]:
        """Return sizes and times (ns) of a file, or of all files of a folder; none where it is gone."""
        ...


class _Disk:
    is_file = staticmethod(os.path.isfile)
    is_folder = staticmethod(os.path.isdir)

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        return os.walk(folder, onerror=_unread)  # which would leave out what it cannot read

    def find(self, pattern: str) -> list[str]:
        return sorted(glob.glob(pattern, recursive=True))

    def open(self, path: str) -> IO[bytes]:
        return open(path, "rb")

    def sizes(self, path: str) -> list[tuple[int, int]]:
        inside = [os.path.join(where, name) for where, _, names in os.walk(path) for name in names]
        try:
            found = [os.stat(one) for one in inside or [path]]
        except OSError:
            return []
        return [(one.st_size, one.st_mtime_ns) for one in found]


def _unread(error: OSError) -> None:
    raise storage_error(
        f"the source folder {error.filename} cannot be read: {error.strerror}; let this user read it, or name the "
        "files and folders to take",
        error,
    ) from error


class _Objects:
    """Objects of S3, whose folders are what their names have in common."""

    def is_file(self, path: str) -> bool:
        return bool(self._info(path).is_file)

    def is_folder(self, path: str) -> bool:
        return bool(self._info(path).type == pafs.FileType.Directory)

    def find(self, pattern: str) -> list[str]:
        base = re.split(r"[*?[]", pattern)[0].rpartition("/")[0]
        if not is_object(base):
            raise InvalidOptionError(
                f"source {pattern!r} is a glob of buckets; name the bucket: s3://bucket/{pattern.rpartition('/')[2]}"
            )
        wanted = _expression(pattern)
        infos = self._inside(
            base, recursive=any(deep in pattern[len(base) + 1 :] for deep in ("/", "**"))
        )
        return sorted(path for path in map(_url, infos) if wanted.fullmatch(path))

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        infos = self._inside(folder)
        folders = sorted(info.base_name for info in infos if not info.is_file)
        yield folder, folders, sorted(info.base_name for info in infos if info.is_file)
        for name in folders:  # the caller may have taken some out
            yield from self.walk(f"{folder.rstrip('/')}/{name}")

    def open(self, path: str) -> IO[bytes]:
        filesystem, key = store_of(path)
        return io.BufferedReader(filesystem.open_input_file(key), _BUFFER)

    def sizes(self, path: str) -> list[tuple[int, int]]:
        infos = [self._info(path)] if self.is_file(path) else self._inside(path, recursive=True)
        return [(info.size, info.mtime_ns) for info in infos if info.is_file]

    def _info(self, path: str) -> pafs.FileInfo:
        filesystem, key = store_of(path)
        if key not in _known:
            with _refused(path):
                _known[key] = filesystem.get_file_info(key)
        return _known[key]

    def _inside(self, folder: str, recursive: bool = False) -> list[pafs.FileInfo]:
        filesystem, key = store_of(folder)
        choice = pafs.FileSelector(key, allow_not_found=True, recursive=recursive)
        with _refused(folder):
            infos = list(filesystem.get_file_info(choice))
        _known.update((info.path, info) for info in infos)
        return infos


_DISK, _OBJECTS = _Disk(), _Objects()


def is_object(path: str) -> bool:
    """Whether a path is of S3.

    Examples
    --------
    >>> is_object("s3a://bucket/a.npy"), is_object("/data/a.npy")
    (True, False)
    """
    return _OBJECT.match(path) is not None


def files_of(path: str) -> Files:
    """Return what answers questions about a path."""
    return cast(Files, _OBJECTS if is_object(path) else _DISK)


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    files = files_of(path)
    return files.is_file(path) or files.is_folder(path)


def open_file(path: str) -> IO[bytes]:
    """Open a file or an object, to be read from any place; see `Files.open`."""
    return files_of(path).open(path)


def check_reached(path: str, error: Exception) -> None:
    """Raise StorageError if a file could not be read because its store refused, or did not answer.

    The file is no bad one then: a repeat may read it, and it must not be left out.
    """
    if is_object(path) and is_refusal(error):
        said = refusal(_place(path)[0], error)
        raise StorageError(f"{path} cannot be read: {said}") from error


def seekable(path: str) -> Any:
    """Return what packages that read a file by its path or as a stream take: the path of a file, an object's stream."""
    return open_file(path) if is_object(path) else path


@contextmanager
def using(options: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[None]:
    """Reach objects meanwhile by these options of their store, and by Spark's settings where they say nothing."""
    global _given
    before, _given = _given, (options, settings)
    _known.clear()
    try:
        yield
    finally:
        _given = before
        _known.clear()


def carried(make: Callable[[Any], Iterator[T]]) -> Callable[[Any], Iterator[T]]:
    """Return what makes batches in a task, where objects are reached as they are here."""
    options, settings = _given

    def made(batches: Any) -> Iterator[T]:
        with using(options, settings):
            yield from make(batches)

    return made


def options_of(path: str) -> dict[str, str]:
    """Return the options of the store of an object."""
    return completed(*_given, path)


def store_of(path: str) -> tuple[pafs.FileSystem, str]:
    """Return the store of an object, and its name there."""
    storage, key = _place(path)
    return storage.place[0], key


def _place(path: str) -> tuple[Storage, str]:
    key = _OBJECT.sub("", path).rstrip("/")
    bucket = f"s3://{key.partition('/')[0]}"
    return Storage(bucket, options_of(path)), key


@contextmanager
def _refused(path: str) -> Iterator[None]:
    with reaching(_place(path)[0]):
        yield


def _url(info: pafs.FileInfo) -> str:
    return f"s3://{info.path}"


def _expression(pattern: str) -> re.Pattern[str]:
    """Return a glob as a regular expression; names that begin with a dot are only meant where it has one.

    Examples
    --------
    >>> found = _expression("s3://b/**/x?.[ch]*")
    >>> bool(found.fullmatch("s3://b/1/2/x1.hdf")), bool(found.fullmatch("s3://b/.1/x1.hdf"))
    (True, False)
    """
    out = []
    segments = pattern.split("/")
    for number, segment in enumerate(segments, 1):
        if segment == "**":
            out.append(r"(?:(?!\.)[^/]+/)*")
            if number == len(segments):
                out.append(r"(?!\.)[^/]+")
            continue
        out.append("" if segment.startswith(".") or not segment else r"(?!\.)")
        for piece in re.findall(r"\[!?\]?[^]/]*\]|.", segment, re.DOTALL):
            if len(piece) > 1:
                inner = piece[1:-1].replace("\\", "\\\\")
                out.append(f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
            else:
                out.append({"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece)))
        out.append("/")
    return re.compile("".join(out).removesuffix("/"), re.DOTALL)
