"""Where the files of a source lie: a folder of this machine or of a store, listed once, read by names inside it."""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import product
from typing import IO, Any

import pyarrow.fs as pafs

from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.storage import Storage, is_refusal, reaching
from tensorlake_spark.errors import FormatError, InvalidOptionError, InvalidSampleError, check_text

MAX_BYTES = "TENSORLAKE_MAX_BYTES"
"""Names the bytes that one value of a sample may have, 2 GiB - 1 by default, which is what Parquet can hold."""

_MOST_BYTES = (1 << 31) - 1
_MOST_NAMES = 1_000_000  # that braces may stand for
_GLOB = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class Folder:
    """A folder with the files of a source; small and picklable, so that executors can open the files themselves.

    Attributes
    ----------
    uri : str
        A local path, or a URL such as ``s3://bucket/photos``.
    options : mapping of str to str
        Of its store, as ``storage_options`` of a lake. Never printed.
    named : tuple of str
        The files that are meant; if there are none, all below the folder.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    named: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # without the listing

    @cached_property
    def storage(self) -> Storage:
        """The folder as a place of a store."""
        return Storage(self.uri, self.options)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file by its name, sorted by names; names that begin with a dot are left out."""
        return {name: info.size for name, info in self._infos.items()}

    @cached_property
    def _infos(self) -> Mapping[str, pafs.FileInfo]:
        with reaching(self.storage):
            if self.named:
                infos = dict(zip(self.named, self.storage.infos(self.named)))
                return {name: info for name, info in infos.items() if info.is_file}
            filesystem, base = self.storage.place
            if self.storage.is_local:  # Arrow would go round in a circle of links
                names = sorted(_names_below(base))
                return dict(zip(names, self.storage.infos(names)))
            wanted = pafs.FileSelector(base, allow_not_found=True, recursive=True)
            start = len(base.rstrip("/")) + 1
            found = {
                info.path[start:]: info for info in filesystem.get_file_info(wanted) if info.is_file
            }
        return {name: found[name] for name in sorted(found) if not _is_hidden(name)}

    def mark(self, names: Sequence[str]) -> str:
        """Return a text that changes if one of these files does, as far as sizes and times tell."""
        seen = hashlib.sha256()
        for name in names:
            info = self._infos[name]
            seen.update(f"{name}\0{info.size}\0{info.mtime_ns}\n".encode())
        return seen.hexdigest()[:16]

    def at(self, name: str) -> str:
        """Return where a file lies, for messages."""
        return self.storage.file_uri(name)

    def check_inside(self, name: str, said_by: str) -> str:
        """Return a name that a file of somebody gives, without ``./``, if it cannot lead out of the folder.

        Raises
        ------
        InvalidSampleError
            If it could.
        """
        check_text(name, f"{said_by} names a file that cannot be:", InvalidSampleError)
        try:
            return inside(re.sub(r"^(\./+)+", "", name.replace("\\", "/")))
        except FormatError as error:
            raise InvalidSampleError(
                f"{said_by} names the file {name!r:.300}, which lies outside of {self.uri}; nothing of it was read: "
                "do not trust this source, or write the name as seen from that folder"
            ) from error

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        with reaching(self.storage):
            return bool(self.storage.infos([name])[0].is_file)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file, to be read from any place in it.

        Raises
        ------
        InvalidSampleError
            If it is not there.
        StorageError
            If the store refuses, or does not answer.
        """
        with reaching(self.storage):
            try:
                stream = self._stream(name)
            except (FileNotFoundError, IsADirectoryError) as error:
                raise InvalidSampleError(f"{self.at(name)}: there is no such file") from error
            with stream:
                yield stream

    def _stream(self, name: str) -> Any:
        if self.storage.is_local:
            return open(f"{self.uri_of_folder}/{inside(name)}", "rb")
        return self.storage.open_input(name)

    @cached_property
    def uri_of_folder(self) -> str:
        """The path of a local folder, made absolute."""
        return self.storage.uri

    @contextmanager
    def open_unpacked(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file; what is packed with gzip is unpacked as it is read. It is read from front to back."""
        with self.open(name) as stream:
            if not name.endswith((".gz", ".tgz")):
                yield stream
                return
            with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked:
                yield unpacked  # type: ignore[misc]

    def read(self, name: str) -> bytes:
        """Return all bytes of a file that is one value of a sample, no more than `MAX_BYTES` says."""
        most = most_bytes()
        with self.open(name) as stream:
            data = stream.read(most + 1)
        check_size(len(data), self.at(name))
        return data


def folder_of(path: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Folder:
    """Return the files that a path means.

    Parameters
    ----------
    path : str or path
        A folder, a file, a glob of files in one folder (``shards/*.tar``), or names with braces
        (``shards/train-{000..146}.tar``, ``{train,test}.parquet``).
    options : mapping, optional
        Of the store.

    Raises
    ------
    InvalidOptionError
        If nothing lies there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> where = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a-0.tar", "a-1.tar", "b.txt"): _ = (where / name).write_bytes(b"..")
    >>> dict(folder_of(where / "a-{0..1}.tar").sizes), list(folder_of(f"{where}/*.txt").sizes)
    ({'a-0.tar': 2, 'a-1.tar': 2}, ['b.txt'])
    """
    options = dict(options or {})
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidOptionError(
            f"the source {path!r:.100} is {type(path).__name__}; name a folder, a file or a glob, as a text or a path"
        )
    given = os.fspath(path)
    if not given:  # a variable of a script that is not set, and not all files of the machine
        raise InvalidOptionError("the source is an empty text; name a folder, a file or a glob")
    text = given.rstrip("/") or "/"
    base, _, last = text.rpartition("/")
    if not re.search(r"[*?\[{]", text) or _exists(text, options):
        return _plain(text, options)
    if re.search(r"[*?\[{]", base):
        raise InvalidOptionError(
            f"{text}: only the last part of a path may be a pattern; name the folder"
        )
    names = expanded(last)
    folder = Folder(base or ".", options)
    if _GLOB.search(last):
        there = [name for name in folder.sizes if "/" not in name]
        names = sorted({name for one in names for name in fnmatch.filter(there, one)})
        if not names:
            raise InvalidOptionError(f"{text}: no file of that folder fits this pattern")
    folder = Folder(folder.uri, options, tuple(names))
    missing = [name for name in names if name not in folder.sizes]
    if missing:
        raise InvalidOptionError(
            f"{folder.at(missing[0])}: there is no such file ({len(missing)} are missing)"
        )
    return folder


def _names_below(base: str) -> Iterator[str]:
    """Yield the names of the files below a folder of this machine; a link to a folder around it is left out.

    A link to another folder is followed.
    """
    start = os.path.realpath(base)
    todo: list[tuple[str, str, tuple[str, ...]]] = []
    if os.path.isdir(start):
        todo.append(("", start, (start,)))
    while todo:
        before, folder, around = todo.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                name, is_link = f"{before}{entry.name}", entry.is_symlink()
                check_text(name, f"{base} has a file whose name cannot be:", InvalidOptionError)
                if os.path.isdir(entry.path) if is_link else entry.is_dir():
                    inner = os.path.realpath(entry.path) if is_link else entry.path
                    if inner not in around:
                        todo.append((f"{name}/", inner, (*around, inner)))
                elif os.path.isfile(entry.path) if is_link else entry.is_file():
                    yield name


def _plain(text: str, options: Mapping[str, str]) -> Folder:
    storage = Storage(text, options)
    base, _, name = storage.uri.rpartition("/")
    with reaching(storage):
        filesystem, place = storage.place
        info = filesystem.get_file_info(place)
    if info.is_file:
        return Folder(base or "/", options, (name,))
    if info.type == pafs.FileType.NotFound:
        raise InvalidOptionError(f"{storage.uri}: there is no such file or folder")
    return Folder(storage.uri, options)


def _exists(text: str, options: Mapping[str, str]) -> bool:
    if _SCHEMED.match(text):
        return False
    return os.path.exists(os.path.expanduser(text))


_SCHEMED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def expanded(pattern: str) -> list[str]:
    """Return the names that braces stand for.

    Examples
    --------
    >>> expanded("a-{08..10}.tar"), expanded("{x,y}.csv"), expanded("plain")
    (['a-08.tar', 'a-09.tar', 'a-10.tar'], ['x.csv', 'y.csv'], ['plain'])
    """
    parts = _BRACES.split(pattern)
    choices: list[Sequence[str]] = []
    count = 1
    for number, part in enumerate(parts):
        span = _RANGE.fullmatch(part) if number % 2 else None
        if span:
            first, last = (int(one) for one in span.groups())
            if last < first:  # no name at all would be every file of the folder
                raise InvalidOptionError(
                    f"{pattern!r:.200}: {{{part}}} counts down, and stands for no name; write {{{span[2]}..{span[1]}}}"
                )
            if last - first >= _MOST_NAMES:
                raise InvalidOptionError(
                    f"{pattern!r:.200} stands for more than {_MOST_NAMES} names"
                )
            choices.append([str(n).zfill(len(span[1])) for n in range(first, last + 1)])
        else:
            choices.append(part.split(",") if number % 2 else [part])
        count *= len(choices[-1])
        if count > _MOST_NAMES:
            raise InvalidOptionError(f"{pattern!r:.200} stands for more than {_MOST_NAMES} names")
    return ["".join(one) for one in product(*choices)]


def most_bytes() -> int:
    """Return how many bytes one value may have."""
    text = os.environ.get(MAX_BYTES, str(_MOST_BYTES))
    if not text.isdecimal() or not int(text):
        raise InvalidOptionError(f"{MAX_BYTES}={text!r} is not a number above 0")
    return min(int(text), _MOST_BYTES)


def check_size(nbytes: int, where: str) -> None:
    """Raise InvalidSampleError if a value has, or claims, more bytes than `most_bytes`."""
    most = most_bytes()
    if nbytes > most:
        raise InvalidSampleError(
            f"{where} has more than {most} bytes, too many for one value; make it smaller, or keep a link to it "
            f"({MAX_BYTES} sets a bound of up to {_MOST_BYTES})"
        )


def check_end(stream: IO[bytes], where: str) -> None:
    """Read what is left of a file that is packed: its checksum stands at the end, and is looked at only there.

    Raises
    ------
    InvalidSampleError
        If the file breaks off, or what was unpacked of it is not what was packed.
    """
    if not isinstance(stream, gzip.GzipFile):
        return
    try:
        while stream.read(1 << 20):
            pass
    except (EOFError, OSError, zlib.error) as error:
        raise damaged(where, "the file cannot be unpacked", error) from error


def damaged(where: str, what: str, error: Exception) -> InvalidSampleError:
    """Return the error for a file that cannot be parsed.

    Raises
    ------
    Exception
        The error itself, if the store refused a request, or did not answer: the file is no bad one then.
    """
    if is_refusal(error):
        raise error
    return InvalidSampleError(f"{where}: {what}: {error}")


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))
