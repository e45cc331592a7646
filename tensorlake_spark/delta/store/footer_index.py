"""An index of the row groups of a data file: with it, a reader parses only those parts of the footer that it needs.

A footer takes two kilobytes for each row group, and Arrow parses all of them before a reader learns which one it needs.
The index lies before the seal of the footer, see `parquet_output`: a text in JSON, then `END`. It says how long each
row group is in the footer, and its rows, bytes and bounds. No reader needs it: where there is none, or it does not fit
the footer, the whole footer is parsed.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.store.storage import open_here
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.checksum import crc32

MAGIC = b"TLFI"

END = struct.Struct("<II4s")
"""What ends an index: the length of its text, the CRC-32 of that, and `MAGIC`."""

FEWEST = 16
"""Row groups of a file that has an index: fewer are parsed at once."""

_FOOTER_END = struct.Struct("<I4s")
_PARQUET = b"PAR1"

# How Thrift's compact protocol begins a row group whose first column is called `id`: a list of structs, the first of
# which has a place in the file and a struct with a type, a list of encodings and a path.
_FIRST = "id"
_BEGIN = re.compile(
    rb"\x19(?:\xfc[\x80-\xff]*[\x00-\x7f]|[\x1c-\xec])\x26[\x80-\xff]*[\x00-\x7f]\x1c\x15[\x00-\x7f]"
    rb"\x19[\x15-\xf5][\x00-\x7f]{1,14}\x19\x18\x02id",
    re.DOTALL,
)

Bounds = tuple[list[Any], list[Any]]


@dataclass(frozen=True)
class FooterIndex:
    """What an index says.

    Attributes
    ----------
    head : int
        Bytes of the footer before the list of its row groups.
    lengths : list of int
        Bytes of each row group in the footer.
    rows, nbytes : list of int
        Rows and bytes of each.
    bounds : dict of str to (list, list)
        For each leaf column that has bounds, the least and the greatest value in each row group, None if unknown.
    """

    head: int
    lengths: list[int]
    rows: list[int]
    nbytes: list[int]
    bounds: dict[str, Bounds]

    @classmethod
    def of(
        cls, footer: bytes, metadata: pq.FileMetaData, bounds: Mapping[str, Bounds]
    ) -> FooterIndex | None:
        """Return the index of a footer, None if its row groups are few, or are not found in it.

        Parameters
        ----------
        footer : bytes
            As Thrift's compact protocol has it.
        metadata : pyarrow.parquet.FileMetaData
            The same, parsed.
        bounds : mapping of str to (list, list)
            See `FooterIndex`.
        """
        count = metadata.num_row_groups
        if count < FEWEST or schema_of(metadata).column(0).path != _FIRST or metadata.metadata:
            return None
        starts = [match.start() for match in _BEGIN.finditer(footer)]
        maker = metadata.created_by.encode()  # comes behind the row groups
        end = footer.rfind(b"\x28" + bytes([len(maker)]) + maker) if len(maker) < 128 else -1
        # Each row group begins once. So, of as many places, none is a text that only looks like one.
        if len(starts) != count or end < starts[-1]:
            return None
        groups = [metadata.row_group(g) for g in range(count)]
        found = cls(
            starts[0] - len(_list_of(count)),
            [b - a for a, b in pairwise([*starts, end])],
            [group.num_rows for group in groups],
            [group.total_byte_size for group in groups],
            dict(bounds),
        )
        return found if found._fits(footer) else None

    def _fits(self, footer: bytes) -> bool:
        """Whether every row group can be parsed without those beside it: a reader would take it for damage."""
        whole = pa.py_buffer(footer + bytes(_FOOTER_END.size))
        try:
            for first in range(3):  # of half of them, all would be parsed
                IndexedFooter(whole, self).part(range(first, len(self.rows), 3))
        except CorruptDataError:
            return False
        return True

    def packed(self) -> bytes:
        """Return what stands in the file; in it, a list of one bound stands for as many equal ones."""
        bounds = {
            name: [some[:1] if some == some[:1] * len(some) else some for some in both]
            for name, both in self.bounds.items()
        }
        text = json.dumps({**vars(self), "bounds": bounds}, separators=(",", ":")).encode()
        return text + END.pack(len(text), crc32(text), MAGIC)

    @classmethod
    def unpacked(cls, before: memoryview, nbytes: int) -> FooterIndex | None:
        """Return what stands at the end of some bytes, None if it is no index of a footer of `nbytes`."""
        place = len(before) - END.size
        length, crc, magic = END.unpack(before[place:]) if place >= 0 else (0, 0, b"")
        if magic != MAGIC or length > place:
            return None
        text = before[place - length : place]
        if crc32(text) != crc:
            return None
        try:
            return cls._read(json.loads(bytes(text)), nbytes)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    @classmethod
    def _read(cls, said: Any, nbytes: int) -> FooterIndex:
        """Return an index of a footer of `nbytes`; raises ValueError, or what odd types raise, where it is none."""
        head, count = said["head"], len(said["lengths"])
        lengths, rows, sizes = (
            _checked(said[name], {int}, count) for name in ("lengths", "rows", "nbytes")
        )
        bounds = {}
        for name, (least, most) in said["bounds"].items():
            kinds = {str if name == _FIRST else int, type(None)}
            bounds[name] = _checked(least, kinds, count), _checked(most, kinds, count)
        if type(head) is not int or head < 1 or min(*lengths, *rows, *sizes) < 0:
            raise ValueError("a number below 0")
        if head + len(_list_of(count)) + sum(lengths) >= nbytes:
            raise ValueError("the index of a longer footer")
        if max(sum(rows), sum(sizes)) >= 2**63:
            raise ValueError("more rows, or bytes, than a file has")
        return cls(head, lengths, rows, sizes, bounds)


def _checked(said: Any, kinds: set[type], count: int) -> list[Any]:
    """Return a value for each row group; raises ValueError if they are of another type, or number."""
    if type(said) is not list or len(said) not in (1, count) or not {*map(type, said)} <= kinds:
        raise ValueError("no values of row groups")
    return said * count if len(said) < count else said


class IndexedFooter:
    """A footer of which only some row groups are parsed.

    Parameters
    ----------
    footer : pyarrow.Buffer
        As it ends the file, its length and Parquet's magic included.
    index : FooterIndex
        Says where its row groups are.
    """

    def __init__(self, footer: pa.Buffer, index: FooterIndex) -> None:
        self.index = index
        self.num_rows = sum(index.rows)
        self._footer = footer
        self._some: tuple[pq.FileMetaData, dict[int, int]] | None = None
        self._count = 0

    @cached_property
    def metadata(self) -> pq.FileMetaData:
        """All of it."""
        return _parsed(self._footer)

    @property
    def schema(self) -> pq.ParquetSchema:
        """Columns of the file."""
        some = self._some
        return schema_of(self.part([0])[0] if some is None else some[0])

    def part(self, groups: Sequence[int]) -> tuple[pq.FileMetaData, list[int]]:
        """Return a footer that has some row groups, and their numbers in it.

        Raises
        ------
        CorruptDataError
            If it cannot be parsed, or the index is of another footer.
        """
        if "metadata" in self.__dict__:
            return self.metadata, [*groups]
        some = self._some
        if some is not None and all(g in some[1] for g in groups):
            return some[0], [some[1][g] for g in groups]
        self._count += len(groups)
        if 2 * self._count > len(self.index.rows):  # all of them cost less than so many one by one
            return self.metadata, [*groups]
        found = _parsed(self._of(groups))
        numbers = {g: number for number, g in enumerate(groups)}
        for g, number in numbers.items():
            one, said = found.row_group(number), (self.index.rows[g], self.index.nbytes[g])
            if (one.num_rows, one.total_byte_size) != said or found.num_rows != self.num_rows:
                raise CorruptDataError("the index of row groups is of another footer")
        self._some = found, numbers
        return found, [*numbers.values()]

    def _of(self, groups: Sequence[int]) -> bytes:
        """Return a footer with some row groups alone."""
        whole, index = memoryview(self._footer).cast("B"), self.index
        first = index.head + len(_list_of(len(index.rows)))
        starts = [*accumulate(index.lengths, initial=first)]
        parts: list[bytes | memoryview] = [
            whole[: index.head],
            _list_of(len(groups)),
            *(whole[starts[g] : starts[g + 1]] for g in groups),
            whole[starts[-1] : -_FOOTER_END.size],
        ]
        return b"".join(parts) + _FOOTER_END.pack(sum(map(len, parts)), _PARQUET)


def schema_of(footer: pq.FileMetaData | IndexedFooter) -> pq.ParquetSchema:
    """Return the columns of a file.

    The attribute ``schema`` of Arrow's footer keeps a schema that keeps the footer. So the footer, 75 KiB of a small
    file that Python takes for two small objects, would stay in memory until the garbage collector finds the two.
    """
    return footer.schema if isinstance(footer, IndexedFooter) else pq.ParquetSchema(footer)


def _parsed(footer: pa.Buffer | bytes) -> pq.FileMetaData:
    try:
        return open_here(pa.BufferReader(footer)).metadata
    except (pa.ArrowException, OSError) as error:
        raise CorruptDataError(f"the footer of the file cannot be read: {error}") from error


def _list_of(count: int) -> bytes:
    """Return how Thrift's compact protocol begins a list of so many structs."""
    if count < 15:
        return bytes([count << 4 | 12])
    out = b"\xfc"
    while count > 127:
        out += bytes([count & 127 | 128])
        count >>= 7
    return out + bytes([count])
