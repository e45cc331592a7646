"""Where a table lies: its URI, the options of its store, a file system, and what goes wrong there."""

from __future__ import annotations

import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from tensorlake_spark.delta.store.paths import absolute, inside
from tensorlake_spark.delta.store.redaction import cleanse
from tensorlake_spark.delta.store.store_options import (
    ENDPOINT,
    KEY,
    REGION,
    SECRET,
    TOKEN,
    UNSIGNED,
    VIRTUAL,
    as_text,
    check_options,
    get,
    get_or_env,
    is_true,
    proxy_of,
)
from tensorlake_spark.delta.store.timeouts import Timeouts
from tensorlake_spark.errors import (
    InvalidOptionError,
    StorageError,
    TensorLakeError,
    check_text,
    is_denied,
    storage_error,
)

T = TypeVar("T")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_REPEATED = re.compile(r"after [1-9]\d* retries")
# In these a container or a user has its place before the host; elsewhere a key would stand there.
_BEFORE_HOST = ("abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs")


@dataclass(frozen=True, slots=True)
class Storage:
    """One table's place; small and picklable, so that executors can open its files themselves.

    Attributes
    ----------
    uri : str
        A local path, or a URL such as ``s3://bucket/lake``.
    options : mapping of str to str
        What deltalake calls ``storage_options``. Never printed.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def at(cls, place: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
        """Return the store of the place that a caller names."""
        given: Any = place  # it becomes a text below
        return cls(given, {} if options is None else options)

    def __post_init__(self) -> None:
        try:
            uri = os.fspath(self.uri)
            if isinstance(uri, bytes):
                raise TypeError
        except TypeError:
            raise InvalidOptionError(
                f"the place of the table is {self.uri!r} ({type(self.uri).__name__}); name a folder, or a URL such as "
                "s3://bucket/lake"
            ) from None
        if not uri.strip():
            # It would be the folder of the process; a variable of a script that is not set is more likely.
            raise InvalidOptionError(
                "the place of the table is an empty text; name a folder, or a URL such as s3://bucket/lake"
            )
        one = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)", uri)
        if one and one[1].lower() != "file":
            # It would be a folder of that name in the folder of the process.
            raise InvalidOptionError(
                f"the place of the table begins with {one[0]}, which has one slash where a URL has two; write {one[1]}://"
            )
        file = re.match(r"file:(//([^/]*))?(?=/|$)", uri, re.IGNORECASE)
        if file:  # file:///folder, or file:/folder as Hadoop prints it
            if file[2] not in (None, "", "localhost"):
                # Left out, it would make another folder of this machine: /lake for file://data/lake.
                raise InvalidOptionError(
                    f"the place of the table is file:// and the host {file[2]!r:.100}; a folder of this machine has "
                    "three slashes, as file:///data/lake"
                )
            uri = unquote(uri[file.end() :])
        if "\0" in uri:
            raise InvalidOptionError(
                f"the place of the table {uri!r:.200} has a character of code 0, which no file system takes; "
                "leave it out"
            )
        if not _SCHEME.match(uri):
            uri = absolute(uri)
        empty = re.match(r"(?!hdfs|viewfs|file)([A-Za-z][A-Za-z0-9+.-]+://)(/|$)", uri)
        if empty:
            raise InvalidOptionError(
                f"the place of the table begins with {empty[1]} and names no bucket; write it as {empty[1]}bucket/lake"
            )
        # Hadoop's name of the same store, which pyarrow does not know.
        uri = re.sub(r"^s3[an]://", "s3://", uri)
        object.__setattr__(self, "uri", uri.rstrip("/") or "/")
        object.__setattr__(self, "options", as_text(self.options))
        self._check()
        check_text(self.uri, "the place of the table")  # which is known to have no secret in it now

    def _check(self) -> None:
        """Raise InvalidOptionError for what deltalake would take for something else, or panic at."""
        scheme, _, rest = ("", "", "") if self.is_local else self.uri.partition("://")
        host = rest.split("/", 1)[0]
        # A secret may have a slash in it, so what follows a colon need not end with the host.
        secret = ":" in host and not re.fullmatch(r"([^:@]*@)?[^:@]*:\d*", host)
        if (
            secret
            or ("@" in host and scheme.lower() not in _BEFORE_HOST)
            or (":" in host and "@" in rest and self.uri.startswith("s3://"))
        ):
            raise InvalidOptionError(
                "credentials belong in the storage options, not in the URL, which messages show"
            )
        # deltalake takes a backslash of a local path for a slash, and looks for the log in another folder.
        odd = re.search(
            r"%[0-9A-Fa-f]{2}|\\" if self.is_local else r"%[0-9A-Fa-f]{2}|[?#]", self.uri
        )
        if odd:
            # What follows in a URL may be a signature.
            shown = self.uri if self.is_local else f"{self.uri[: odd.end()]}..."
            raise InvalidOptionError(
                f"the place {shown} has {odd.group()!r} in it, which a URL gives a meaning of its own; "
                "write the name as it is, or choose another one"
            )
        check_options(self.options, self.uri.startswith("s3://"))

    @property
    def is_local(self) -> bool:
        """Whether the table lies on a file system of this machine."""
        return not _SCHEME.match(self.uri)

    @property
    def log_options(self) -> dict[str, str] | None:
        """What deltalake gets for ``storage_options``: with time-outs, and the same credentials as pyarrow.

        Without keys in the options pyarrow looks through the environment, profiles and roles. So does
        deltalake on AWS, but with an endpoint it does so only if it is told to.
        """
        if self.is_local:
            return dict(self.options) or None
        options = Timeouts.of(self.options).told(self.options)
        if self.uri.startswith("s3://") and get(self.options, KEY) is None:
            options = {"AWS_FORCE_CREDENTIAL_LOAD": "true", **options}
        return options

    @property
    def place(self) -> tuple[pafs.FileSystem, str]:
        """The file system that the table lies on, and its path there."""
        return _filesystem(self.uri, tuple(sorted(self.options.items())))

    def file_uri(self, name: str) -> str:
        """Return where a data file lies, for messages."""
        return f"{self.uri}/{name}"

    def open_output(self, name: str) -> Any:
        """Return a writable binary stream for a new data file."""
        filesystem, base = self.place
        if self.is_local:
            os.makedirs(base, exist_ok=True)
        return filesystem.open_output_stream(f"{base}/{inside(name)}")

    def open_parquet(self, name: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
        """Open a data file; with its footer at hand nothing is read until a row group is."""
        if self.is_local:
            # Given the path, Arrow would first find out which file system it lies on.
            return open_here(pa.memory_map(f"{self.uri}/{inside(name)}"), metadata)
        return open_here(self.open_input(name), metadata, is_far=True)

    def map_file(self, name: str) -> pa.Buffer | None:
        """Return a data file as one memory-mapped buffer, None where the store cannot map."""
        if not self.is_local:
            return None
        with pa.memory_map(f"{self.uri}/{inside(name)}") as file:
            # Of what is read, Arrow has the system fetch the beginning from the disk at once, 16 MiB of it for one
            # feature. So it reads a byte, which keeps the whole map alive, and the rest is fetched when it is touched.
            first = file.read_buffer(1)
            return pa.foreign_buffer(first.address, file.size(), first) if first.size else first

    def open_input(self, name: str) -> pa.NativeFile:
        """Return a file of the table to read, from any place in it."""
        filesystem, base = self.place
        return filesystem.open_input_file(f"{base}/{inside(name)}")

    def read_tail(self, name: str, nbytes: int) -> pa.Buffer:
        """Return the last bytes of a data file, all of it if it is shorter."""
        if self.is_local:
            with open(f"{self.uri}/{inside(name)}", "rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - nbytes))
                return pa.py_buffer(file.read())
        with self.open_input(name) as file:
            size = file.size()
            return pa.py_buffer(file.read_at(min(size, nbytes), max(0, size - nbytes)))

    def read_whole(self, name: str) -> bytes:
        """Return all bytes of a small file."""
        return bytes(self.read_tail(name, 1 << 62))

    def find_whole(self, name: str) -> bytes | None:
        """Return all bytes of a small file, None if it is not there."""
        try:
            return self.read_whole(name)
        except FileNotFoundError:
            return None

    def put_whole(self, name: str, data: bytes | pa.Buffer) -> None:
        """Write a small file, which others see when all of it is there; it takes the place of one of its name."""
        filesystem, base = self.place
        path = f"{base}/{inside(name)}"
        if not self.is_local:  # an object appears when its upload is complete
            with filesystem.open_output_stream(path) as stream:
                stream.write(data)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put_file(path, data)

    def files_in(self, folder: str, recursive: bool = False) -> list[pafs.FileInfo]:
        """Return what the store says of the files of a folder, which need not be there."""
        filesystem, base = self.place
        where = pafs.FileSelector(f"{base}/{folder}", allow_not_found=True, recursive=recursive)
        return [info for info in filesystem.get_file_info(where) if info.is_file]

    def delete(self, name: str) -> None:
        """Delete a data file that no commit ever named; one that is gone already is fine."""
        filesystem, base = self.place
        try:
            filesystem.delete_file(f"{base}/{inside(name)}")
        except FileNotFoundError:
            return

    def modified(self, names: Sequence[str]) -> tuple[int | None, ...]:
        """Return for each file when it was modified, in nanoseconds, None where there is no such file."""
        if self.is_local:
            return tuple(_modified(f"{self.uri}/{inside(name)}") for name in names)
        return tuple(info.mtime_ns if info.is_file else None for info in self.infos(names))

    def infos(self, names: Sequence[str]) -> list[pafs.FileInfo]:
        """Return what the store says of each file, also of one that is not there."""
        filesystem, base = self.place
        return list(filesystem.get_file_info([f"{base}/{inside(name)}" for name in names]))


def put_file(path: str, data: bytes | pa.Buffer) -> None:
    """Write a file of this machine, which others see when all of it is there; a file of its name stays until then."""
    unfinished = f"{os.path.dirname(path)}/.{uuid.uuid4()}"
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except OSError:  # a full disk, which a part of a file would not make emptier
        with suppress(OSError):
            os.remove(unfinished)
        raise


def _modified(path: str) -> int | None:
    """Return when a file of this machine was modified, in nanoseconds, None where there is none."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = os.stat(path)
        return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else None
    return None


def open_here(source: Any, metadata: Any = None, is_far: bool = False) -> pq.ParquetFile:
    """Open a Parquet file whose bytes are mapped, or in memory, or far away.

    To read ahead would only hand them over to other threads, which a small read waits for.
    """
    # Spark's times are INT96. Arrow makes nanoseconds of them, which hold no year after 2262.
    options = {"pre_buffer": is_far, "coerce_int96_timestamp_unit": "us"}
    return pq.ParquetFile(source, metadata=metadata, **options)


@contextmanager
def reaching(storage: Storage) -> Iterator[None]:
    """Turn what goes wrong between us and a store into StorageError; a scheme of no store is a wrong place."""
    try:
        yield
    except TensorLakeError as error:
        cleanse(error, storage.options)  # it may have been made from what the store said
        raise
    except (OSError, DeltaError) as error:
        if "Unknown scheme" in str(error):
            raise _no_store(storage.uri) from error
        raise refusal(storage, error) from error
    except BaseException as error:  # deltalake panics with one that is no Exception
        if "Forked process detected" not in str(error):
            raise
        raise InvalidOptionError(
            f"this process was forked from one that uses deltalake, which cannot reach {storage.uri} from here; start "
            'it by multiprocessing\'s "spawn", or do this in its parent'
        ) from error


def _no_store(uri: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"the place {uri} begins with {uri.partition('://')[0]}://, which names no kind of store; begin with s3://, "
        "gs://, az://, abfss:// or hdfs://, or name a folder"
    )


def listed(call: Callable[[], T], there: bool = False) -> T:
    """Return what `call` returns, which lists the log; again where the listing has a gap, or breaks off.

    A listing that is made while others commit may show a version and not one before it, or nothing at
    all: of a folder, and of an object store that keeps its objects in one. One whose answer breaks off
    is not repeated by deltalake.

    Parameters
    ----------
    call : callable
        Raises DeltaError, or OSError.
    there : bool
        Whether the log is known to have something in it.
    """
    gaps = [
        "contiguous commit files", "No table metadata or protocol", "error reading a body",
        "LogSegment end version", "Gap between checkpoint version", "didn't find any checkpoints",
    ]  # fmt: skip
    if there:
        gaps.append("No files in log segment")
    for wait in (0.02, 0.05, 0.1, 0.2, 0.4):
        try:
            return call()
        except (DeltaError, OSError) as error:
            if not any(gap in str(error) for gap in gaps):
                raise
        time.sleep(wait)
    return call()


def refusal(storage: Storage, error: Exception) -> StorageError:
    """Return the error for what a store, or its client, said; neither has a credential in it afterwards."""
    cleanse(error, storage.options)  # it will be the cause, which a traceback shows
    said = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # deltalake colours its messages
    code = re.search(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", said, re.DOTALL)
    if code:
        said = ": ".join(part for part in code.groups() if part)
    said = re.sub(r" ?↳ ?", ": ", " ".join(said.split()))
    if is_full(error):
        return StorageError(
            f"the disk of {storage.uri} is full, and what was committed before is as it was: {said}; free some space, "
            "and do it again"
        )
    if storage.is_local and is_denied(error):
        said += "; give this user access to it, or take a copy"
    if storage.is_local and "Read-only file system" in said:
        said += "; its disk can only be read: mount it for writing, or write to a copy"
    if "scheme is not allowed" in said:
        said += "; an endpoint that begins with http:// needs the option AWS_ALLOW_HTTP='true'"
    if "ExpiredToken" in said or "HTTP status 400" in said:  # pyarrow does not always say the first
        said += "; temporary credentials may have expired: open the lake with new ones"
    return storage_error(
        f"the store of {storage.uri} refused a request, or does not answer: {said}", error
    )


def is_full(error: BaseException) -> bool:
    """Whether an error tells that a disk has no space left, or none for this user."""
    said = str(error)
    return "No space left on device" in said or "Disk quota exceeded" in said


def is_refusal(error: BaseException) -> bool:
    """Whether an error of Arrow's tells of the way to the store, and not of what is stored there."""
    said = str(error)
    if "Error performing" in said or "HTTP error" in said:  # deltalake
        return "416 Range" not in said  # the file is shorter than the log has it
    return isinstance(error, PermissionError) or "AWS Error" in said


def is_answer(error: BaseException) -> bool:
    """Whether an error of deltalake's is what a store answered: the request is over, and will not land later.

    Of a request that deltalake repeated only the last answer is known: an earlier one may be on its way.
    """
    said = str(error)
    return ("status code" in said or "<Code>" in said) and not _REPEATED.search(said)


@lru_cache(maxsize=64)
def _filesystem(uri: str, options: tuple[tuple[str, str], ...]) -> tuple[pafs.FileSystem, str]:
    """Return a pyarrow file system and the table's path in it."""
    if not _SCHEME.match(uri):
        return pafs.LocalFileSystem(), uri
    if uri.startswith("s3://"):
        return _s3(dict(options)), uri[len("s3://") :]
    try:
        filesystem, path = pafs.FileSystem.from_uri(uri)
    except ValueError as error:  # such as http://
        if "Unrecognized filesystem" in str(error):
            raise _no_store(uri) from error
        raise InvalidOptionError(f"the place {uri} cannot be opened: {error}") from error
    return filesystem, path


def _s3(options: Mapping[str, str]) -> pafs.S3FileSystem:
    """Return pyarrow's S3 client for the options, named as deltalake names them."""
    if not hasattr(pafs, "S3FileSystem"):
        raise InvalidOptionError("this build of pyarrow has no S3; install pyarrow from PyPI")
    # Opened late, a small file is written by one request, not by the three of an upload in parts.
    arguments = s3_arguments(options) | Timeouts.of(options).arrow() | {"allow_delayed_open": True}
    return pafs.S3FileSystem(**{k: v for k, v in arguments.items() if v is not None})


def s3_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Return endpoint, region and credentials in the options, as pyarrow's S3 client names them."""
    endpoint = get_or_env(options, ENDPOINT)
    # Key, secret and token belong together: those of the environment the client finds by itself.
    arguments: dict[str, Any] = {
        "access_key": get(options, KEY),
        "secret_key": get(options, SECRET),
        "session_token": get(options, TOKEN),
        "region": get_or_env(options, REGION),
    }
    if is_true(options, UNSIGNED):
        arguments = {"region": arguments["region"], "anonymous": True}
    if is_true(options, VIRTUAL):
        arguments["force_virtual_addressing"] = True
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        arguments |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return arguments | {"proxy_options": proxy_of(options)}
