"""The bytes of media from what users give, and the columns of structs that keep them beside their facts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import MAX_BYTES, Array, Place, field_of, is_valid
from tensorlake_spark.datasets.types.media.image_headers import MAX_PIXELS as MAX_PIXELS
from tensorlake_spark.datasets.types.media.image_headers import TRUSTED as TRUSTED
from tensorlake_spark.datasets.types.media.image_headers import pixel_bound as pixel_bound
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.binary_views import views_of
from tensorlake_spark.rows.checksum import crc32, crc_held

_VIEWED = 4 << 10
"""Bytes of a file, of the mean one, from which a view takes less time than a copy."""


def are_viewed(nbytes: int, count: int) -> bool:
    """Whether files that have so many bytes together are written from where they are, where views are taken.

    Examples
    --------
    >>> are_viewed(100_000, 10), are_viewed(100_000, 1000)
    (True, False)
    """
    return nbytes >= _VIEWED * max(1, count)


class Pieces(list[bytes]):
    """Pieces of bytes, with how many bytes they have together, and their checksums if `of` was asked for these.

    Looking at many pieces takes as long as copying them, so it is done once.
    """

    nbytes: int
    crcs: Array | None = None

    @classmethod
    def of(cls, values: Sequence[Any], summed: bool = False) -> Pieces | None:
        """Return values as pieces, None if one is not of type ``bytes``.

        Examples
        --------
        >>> Pieces.of([b"abc", b"de"]).nbytes, Pieces.of([b"abc", "de"])
        (5, None)
        """
        if isinstance(values, Pieces):
            return values
        crcs = _crcs_first(values) if summed else None
        if not {*map(type, values)} <= {bytes}:
            return None
        out = cls(values)
        out.nbytes = sum([*map(len, out)])  # faster than without the list
        out.crcs = crcs
        return out


def bytes_of(value: Any, number: int, place: Place, what: str) -> bytes | None:
    """Return the bytes of a value: of bytes themselves, a path, a file object or a dict with ``bytes`` or ``path``.

    Parameters
    ----------
    value : object
        What the user gave for a sample.
    number : int
        Of the sample.
    place : Place
        For messages.
    what : str
        What was expected, for messages.

    Returns
    -------
    bytes or None
        None if the value is none of these.

    Raises
    ------
    InvalidSampleError
        If a file cannot be read, or is too large.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, dict) and value.keys() & {"bytes", "path"}:
        inner = value.get("bytes")
        return bytes_of(value.get("path") if inner is None else inner, number, place, what)
    if isinstance(value, str) and "://" in value:
        raise place.wrong(
            number,
            what,
            f"the URL {value!r:.200}",
            "declare Link(...) to keep it, or read it first",
        )
    if isinstance(value, (str, os.PathLike)):
        return _read(Path(value), number, place, what)
    if hasattr(value, "read"):
        try:
            data = value.read()
        except (OSError, ValueError) as error:  # it is closed, or for writing only
            raise place.wrong(
                number, what, f"a file that cannot be read: {error}", cause=error
            ) from error
        if not isinstance(data, bytes):
            raise place.wrong_type(
                number, what, f"a file that gives {type(data).__name__}", "open it with mode 'rb'"
            )
        return data
    return None


def _read(path: Path, number: int, place: Place, what: str) -> bytes:
    try:
        found = path.stat()
        size, is_endless = found.st_size, not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode))
        if size <= MAX_BYTES and not is_endless:
            return path.read_bytes()
    except (OSError, ValueError) as error:  # a name may have what no name of a file has
        reason = getattr(error, "strerror", None) or error
        raise place.wrong(
            number, what, f"{str(path)!r:.200}, which cannot be read: {reason}", cause=error
        ) from error
    if is_endless:
        raise place.wrong(
            number, what, f"{str(path)!r:.200}, which is a pipe or a device", "give its bytes"
        )
    raise place.wrong(
        number, f"{what} of at most {MAX_BYTES} bytes", f"{size} in {str(path)!r:.200}"
    )


def struct_of(
    kind: pa.StructType, columns: dict[str, Any], valid: Array | None, place: Place
) -> pa.StructArray:
    """Return a column of media.

    Parameters
    ----------
    kind : pyarrow.StructType
        The storage of its type.
    columns : dict of str to list, ndarray or pyarrow.Array
        By field.
    valid : bool ndarray, or None
        What is not null; None for all.
    place : Place
        For messages.
    """
    columns = columns | {"data": _binary(columns["data"], place)}
    arrays = [
        c if isinstance(c, pa.Array) else pa.array(c, field.type)
        for field in kind
        for c in [columns[field.name]]
    ]
    fields = [field.with_type(array.type) for field, array in zip(kind, arrays, strict=True)]
    mask = None if valid is None or valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _binary(files: Any, place: Place) -> pa.Array:
    """Return pieces of bytes, None for a null, as Arrow has them."""
    return files if isinstance(files, pa.Array) else joined(Pieces.of(files) or files, place)


def joined(files: Sequence[bytes | None], place: Place) -> pa.Array:
    """Return pieces of bytes, None for a null, as Arrow has them.

    Large ones stay where they are if `place` takes views. Others are copied to memory of Arrow's pool: that is used
    again, and need not be mapped anew.

    Raises
    ------
    InvalidSampleError
        If they are more than Arrow can count.
    """
    if isinstance(files, Pieces):
        nbytes = files.nbytes
    else:
        nbytes = sum(len(file) for file in files if file is not None)
    if nbytes > MAX_BYTES:
        raise place.wrong(
            0,
            f"at most {MAX_BYTES} bytes of samples at once",
            "more",
            "give fewer samples at a time",
        )
    if place.views and are_viewed(nbytes, len(files)):
        return views_of(files)
    return pa.array(files, pa.binary())


def crcs_of(values: Sequence[bytes]) -> Array:
    """Return the checksum of each piece of bytes: int64."""
    known = values.crcs if isinstance(values, Pieces) else None
    return np.fromiter(map(crc_held, values), np.int64, len(values)) if known is None else known


def _crcs_first(values: Sequence[Any]) -> Array | None:
    """Return the checksums of small pieces of bytes, None if they are not small, or something else.

    This reads all bytes in order, which the processor foresees: a look at each piece takes a tenth of the time then.
    """
    if not (values and type(values[0]) is bytes and len(values[0]) < _VIEWED):
        return None
    try:
        return np.fromiter(map(crc32, values), np.int64, len(values))
    except (TypeError, ValueError, BufferError):  # one is a path, null, or an array with gaps
        return None


class Media:
    """A column of media, to be read: its bytes beside its facts.

    Parameters
    ----------
    array : pyarrow.StructArray
        With the field ``data``, and others.
    """

    def __init__(self, array: pa.Array) -> None:
        self.array = array
        self.valid: list[bool] = is_valid(array).tolist()
        self.data: list[bytes | None] = field_of(array, "data").to_pylist()
        self._crcs: list[int | None] = self.facts("crc")

    def facts(self, name: str) -> list[Any]:
        """Return a field of all samples; None where it is not known."""
        if self.array.type.get_field_index(name) < 0:
            return [None] * len(self.array)
        found: list[Any] = field_of(self.array, name).to_pylist()
        return found

    def checked(self, number: int) -> bytes:
        """Return the bytes of a sample.

        Raises
        ------
        CorruptDataError
            If they are gone, or their checksum is another one.
        """
        data, crc = self.data[number], self._crcs[number]
        if data is None:
            raise CorruptDataError("a sample has no data; its table was changed by others")
        if crc is not None and crc_held(data) != crc:
            raise CorruptDataError(
                f"its {len(data)} bytes are not those that were written (CRC-32 {crc_held(data)}, "
                f"not {crc}); read an earlier version, or write the sample again"
            )
        return data

    def all_checked(self) -> list[bytes | None]:
        """Return the bytes of all samples, None where they are null."""
        return [self.checked(n) if there else None for n, there in enumerate(self.valid)]
