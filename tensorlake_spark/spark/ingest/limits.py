"""Bounds on what a file of an ingestion may make of itself in memory, whatever it says of itself.

The environment variables are those of the driver and of the executors (``spark.executorEnv.NAME``).
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError

MAX_BYTES = "TENSORLAKE_MAX_BYTES"
"""Names the bytes of an array that is unpacked as a whole; 8 GiB by default."""

MAX_PIXELS = "TENSORLAKE_MAX_PIXELS"
"""Names the pixels of an image, or of a TIFF page; Pillow's own limit by default, about 89 million."""

LINE_BYTES = 64 << 20
"""Bytes of a line of text."""

_BYTES = 8 << 30
_PIXELS = (1 << 30) // 12  # Pillow's own


def _limit(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise InvalidOptionError(f"{name}={text!r} is not a number above 0")
    return int(text)


def check_bytes(nbytes: int, what: str) -> None:
    """Raise InvalidTensorError if something says that it has more bytes than `MAX_BYTES` says; nothing is read."""
    limit = _limit(MAX_BYTES, _BYTES)
    if nbytes > limit:
        raise InvalidTensorError(
            f"{what} has {nbytes} bytes unpacked, more than {limit}; if it may, set {MAX_BYTES} to more, on "
            "executors too"
        )


def check_pixels(pixels: int) -> None:
    """Raise InvalidTensorError if an image has more pixels than `MAX_PIXELS` says."""
    limit = _limit(MAX_PIXELS, _PIXELS)
    if pixels > limit:
        raise InvalidTensorError(_too_many(limit))


def _too_many(pixels: int) -> str:
    return (
        f"it has more than {pixels} pixels; if it may, set {MAX_PIXELS} to more, on executors too"
    )


def check_archive(archive: zipfile.ZipFile) -> None:
    """Raise InvalidTensorError if a member would be larger, unpacked, than `MAX_BYTES` says; nothing is unpacked."""
    limit = _limit(MAX_BYTES, _BYTES)
    for info in archive.infolist():
        if info.file_size > limit:
            raise InvalidTensorError(
                f"{info.filename} has {info.compress_size} bytes and unpacks to {info.file_size}, more than "
                f"{limit}; if it may, set {MAX_BYTES} to more, on executors too"
            )


@contextmanager
def bounded_pixels(images: Any) -> Iterator[None]:
    """Make Pillow's warning of an image with too many pixels an error, before any of them is decoded.

    Parameters
    ----------
    images : module
        ``PIL.Image``.

    Raises
    ------
    InvalidTensorError
        If an image that is opened inside has more pixels than `MAX_PIXELS` says.
    """
    before = images.MAX_IMAGE_PIXELS
    limit = _limit(MAX_PIXELS, before or 1 << 62)
    images.MAX_IMAGE_PIXELS = -(-limit // 2)  # Pillow raises above twice of it, and warns before
    try:
        yield
    except images.DecompressionBombError as error:
        raise InvalidTensorError(_too_many(limit)) from error
    finally:
        images.MAX_IMAGE_PIXELS = before


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream.

    Raises
    ------
    ValueError
        At a line of more than `LINE_BYTES`; no more of it is read.

    Examples
    --------
    >>> import io
    >>> list(bounded_lines(io.BytesIO(b"a\\nb")))
    [b'a\\n', b'b']
    """
    while line := stream.readline(LINE_BYTES + 1):
        if len(line) > LINE_BYTES:
            raise ValueError(f"a line has more than {LINE_BYTES} bytes")
        yield line
