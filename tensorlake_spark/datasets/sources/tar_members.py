"""The members of a tar file, one after the other; nothing is unpacked to a disk, and no name is used as a path."""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO

from tensorlake_spark.datasets.sources.folder import check_end, check_size, damaged
from tensorlake_spark.errors import InvalidSampleError

_BLOCK = 512
_MOST_NAME = 1 << 20  # bytes of a long name, or of a member's further headers
_STEP = 1 << 20  # bytes that are skipped at once
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


def members(stream: IO[bytes], where: str) -> Iterator[tuple[str, bytes]]:
    """Yield names and bytes of the regular files of a tar, in their order.

    Folders, links and devices are left out. `tarfile` parses the headers of 512 bytes; long names and pax headers are
    bounded here, where `tarfile` takes any size that a header claims.

    Parameters
    ----------
    stream : binary file
        Read from front to back, so it may be a stream that unpacks.
    where : str
        For messages.

    Raises
    ------
    InvalidSampleError
        If the file breaks off, is no tar, or a member is larger than one value may be.
    """
    name = size = None
    while True:
        head = _exactly(stream, _BLOCK, where)
        if head == bytes(_BLOCK):
            check_end(stream, where)
            return
        try:
            info = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise InvalidSampleError(
                f"{where}: this is not a tar file, or it is damaged: {error}"
            ) from error
        if (
            info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
            or info.type in _HEADERS
        ):
            if info.size > _MOST_NAME:
                raise InvalidSampleError(
                    f"{where}: a header of {info.size} bytes, more than {_MOST_NAME}"
                )
            data = _content(stream, info.size, where)
            if info.type == tarfile.GNUTYPE_LONGNAME:
                name = data.split(b"\0")[0].decode("utf-8", "surrogateescape")
            elif info.type == tarfile.XHDTYPE:
                records = _pax(data, where)
                name = records.get("path", name)
                size = int(records["size"]) if records.get("size", "").isdecimal() else size
            continue
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise InvalidSampleError(
                f"{where}: {info.name!r:.200} is a sparse member; write the tar without --sparse"
            )
        length, named = info.size if size is None else size, name or info.name
        name = size = None
        if info.type not in _FILES:
            _skip(stream, length if info.type not in _EMPTY else 0, where)
            continue
        check_size(length, f"{where}: member {named!r:.200}")
        yield named, _content(stream, length, where)


_EMPTY = (
    tarfile.LNKTYPE,
    tarfile.SYMTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
)


def _content(stream: IO[bytes], size: int, where: str) -> bytes:
    data = _exactly(stream, size, where)
    _exactly(stream, -size % _BLOCK, where)
    return data


def _skip(stream: IO[bytes], size: int, where: str) -> None:
    left = size + -size % _BLOCK
    while left:
        left -= len(_exactly(stream, min(left, _STEP), where))


def _exactly(stream: IO[bytes], size: int, where: str) -> bytes:
    """Return that many bytes; memory grows with what is there, not with what was claimed."""
    parts, left = [], size
    try:
        while left:
            part = stream.read(min(left, _STEP))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    except (EOFError, OSError, zlib.error) as error:
        raise damaged(where, "the tar cannot be unpacked", error) from error
    if left:
        raise InvalidSampleError(
            f"{where}: the tar breaks off, {left} bytes or more are missing: a member, or the mark at its end"
        )
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _pax(data: bytes, where: str) -> dict[str, str]:
    """Return the records of a pax header.

    Examples
    --------
    >>> _pax(b"17 path=a/b.jpg" + bytes([10]) + b"", "x")
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidSampleError: x: a pax header that is damaged
    >>> _pax(b"16 path=a/b.jpg" + bytes([10]), "x")
    {'path': 'a/b.jpg'}
    """
    found, place = {}, 0
    while place < len(data) and data[place : place + 1] != b"\0":
        match = re.compile(rb"(\d{1,9}) ([^=]+)=").match(data, place)
        end = place + int(match[1]) if match else 0
        if match is None or end > len(data) or end <= match.end() or data[end - 1 : end] != b"\n":
            raise InvalidSampleError(f"{where}: a pax header that is damaged")
        key = match[2].decode("utf-8", "surrogateescape")
        found[key] = data[match.end() : end - 1].decode("utf-8", "surrogateescape")
        place = end
    return found
