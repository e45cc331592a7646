"""Where a table lies: its URI, the options of its store, and a file system that reads its data files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tensorlake_spark.errors import InvalidOptionError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


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

    def __post_init__(self) -> None:
        uri = os.fspath(self.uri)
        if uri.startswith("file://"):
            uri = urlsplit(uri).path
        elif uri.startswith("file:/"):  # the form Hadoop prints
            uri = uri[len("file:") :]
        if not _SCHEME.match(uri):
            uri = os.path.abspath(os.path.expanduser(uri))
        # Hadoop's name of the same store, which pyarrow does not know.
        uri = re.sub(r"^s3[an]://", "s3://", uri)
        object.__setattr__(self, "uri", uri.rstrip("/") or "/")
        object.__setattr__(self, "options", {str(k): str(v) for k, v in self.options.items()})

    @property
    def is_local(self) -> bool:
        """Whether the table lies on a file system of this machine."""
        return not _SCHEME.match(self.uri)

    def file_uri(self, name: str) -> str:
        """Return where a data file lies, for messages."""
        return f"{self.uri}/{name}"

    def open_output(self, name: str) -> Any:
        """Return a writable binary stream for a new data file."""
        filesystem, base = _filesystem(self.uri, tuple(sorted(self.options.items())))
        if self.is_local:
            os.makedirs(base, exist_ok=True)
        return filesystem.open_output_stream(f"{base}/{name}")

    def open_parquet(self, name: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
        """Open a data file; with its footer at hand nothing is read until a row group is."""
        filesystem, base = _filesystem(self.uri, tuple(sorted(self.options.items())))
        path = f"{base}/{name}"
        if self.is_local:
            return pq.ParquetFile(path, metadata=metadata, memory_map=True)
        return pq.ParquetFile(filesystem.open_input_file(path), metadata=metadata, pre_buffer=True)

    def map_file(self, name: str) -> pa.Buffer | None:
        """Return a data file as one memory-mapped buffer, None where the store cannot map."""
        if not self.is_local:
            return None
        with pa.memory_map(f"{self.uri}/{name}") as file:
            return file.read_buffer()

    def delete(self, name: str) -> None:
        """Delete a data file that no commit ever named; one that is gone already is fine."""
        filesystem, base = _filesystem(self.uri, tuple(sorted(self.options.items())))
        try:
            filesystem.delete_file(f"{base}/{name}")
        except FileNotFoundError:
            return

    def size_of(self, name: str) -> int:
        """Return the size of a data file in bytes."""
        filesystem, base = _filesystem(self.uri, tuple(sorted(self.options.items())))
        return int(filesystem.get_file_info(f"{base}/{name}").size)


@lru_cache(maxsize=64)
def _filesystem(uri: str, options: tuple[tuple[str, str], ...]) -> tuple[pafs.FileSystem, str]:
    """Return a pyarrow file system and the table's path in it."""
    if not _SCHEME.match(uri):
        return pafs.LocalFileSystem(), uri
    parts = urlsplit(uri)
    if parts.scheme == "s3":
        return _s3(dict(options)), f"{parts.netloc}{parts.path}"
    filesystem, path = pafs.FileSystem.from_uri(uri)
    return filesystem, path


def _s3(options: Mapping[str, str]) -> pafs.S3FileSystem:
    """Return pyarrow's S3 client for the options, named as deltalake names them."""

    def get(*names: str) -> str | None:
        lower = {k.lower(): v for k, v in options.items()}
        found = [lower[n] for n in names if n in lower]
        env = [
            os.environ[n.upper()] for n in names if n.startswith("aws_") and n.upper() in os.environ
        ]
        return (found + env + [None])[0]

    if not hasattr(pafs, "S3FileSystem"):
        raise InvalidOptionError("this build of pyarrow has no S3; install pyarrow from PyPI")
    endpoint = get("aws_endpoint_url", "endpoint_url", "aws_endpoint", "endpoint")
    arguments: dict[str, Any] = {
        "access_key": get("aws_access_key_id", "access_key_id"),
        "secret_key": get("aws_secret_access_key", "secret_access_key"),
        "session_token": get("aws_session_token", "session_token", "token"),
        "region": get("aws_region", "region", "aws_default_region"),
    }
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        arguments |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return pafs.S3FileSystem(**{k: v for k, v in arguments.items() if v is not None})
