"""Types of types: several values a sample, and values that are kept elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types.base import Place, Type, as_type, field_of, is_valid, shown
from tensorlake_spark.datasets.types.link_url import parse_link
from tensorlake_spark.errors import InvalidLinkError, InvalidOptionError, InvalidSampleError

LINK = pa.struct(
    [
        pa.field("url", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("etag", pa.string()),
    ]
)
"""Storage of a link."""

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_LINKED = "Image (but not raw), BinaryMask, SegmentMask, Video, Audio, Dicom and 'bytes'"


class Reference(NamedTuple):
    """Where a value is kept.

    Attributes
    ----------
    url : str
        Its address.
    size : int or None
        Its bytes, None where they are not known.
    etag : str or None
        What its store says to tell versions apart.
    """

    url: str
    size: int | None = None
    etag: str | None = None


@dataclass(frozen=True, repr=False)
class Sequence(Type):
    """Any number of values of one type in each sample.

    Parameters
    ----------
    of : Type
        Theirs; a dtype for scalars.

    Examples
    --------
    >>> Sequence("int64").encode([[1, 2], [], None], "tags").to_pylist()
    [[1, 2], [], None]
    """

    of: Any
    kind: ClassVar[str] = "sequence"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "of", _inner(self.of))

    def storage(self) -> pa.DataType:
        return pa.list_(self.of.storage())

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        flat: list[Any] = []
        counts = np.zeros(len(values), np.int32)
        for number, value in enumerate(values):
            if value is None:
                continue
            if not is_many(value):
                raise place.wrong_type(number, f"a list of {self.of}", shown(value))
            items = list(value)
            counts[number] = len(items)
            flat += items
        missing = pa.array([value is None for value in values], pa.bool_())
        return self._lists(flat, counts, missing, values, place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if isinstance(values, pa.ExtensionArray):
            return self._from_arrow(values.storage, place)
        if not any(is_list(values.type) for is_list in _LISTS):
            return super()._from_arrow(values, place)
        counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        # Items stay in Arrow, where each type takes what it stores.
        return self._lists(values.flatten(), counts, values.is_null(), values, place)

    def _lists(
        self, flat: Any, counts: Any, missing: pa.Array, values: Any, place: Place
    ) -> pa.Array:
        """Return lists as they are stored.

        Parameters
        ----------
        flat : list or pyarrow.Array
            The items of all lists.
        counts : ndarray of int
            How many each list has.
        missing : pyarrow.Array of bool
            Which samples are null.
        values : list or pyarrow.Array
            The lists themselves, to find the one with an error.
        place : Place
            For messages.
        """
        try:
            inner = self.of.encode(flat, place.column)
        except InvalidSampleError:
            self._blame(values, place)
            raise
        ends = pa.array(np.cumsum([0, *counts], dtype=np.int32))
        return pa.ListArray.from_arrays(ends, inner, type=self.storage(), mask=missing)

    def _blame(self, values: Any, place: Place) -> None:
        """Raise the error of the first sample that has one, with its number."""
        for number, value in enumerate(values):
            items = value.values if isinstance(value, pa.Scalar) else value
            if items is None:
                continue
            try:
                self.of.encode(items if isinstance(items, pa.Array) else list(items), place.column)
            except InvalidSampleError as error:
                text = str(error).partition(", sample ")[2]
                raise type(error)(
                    f"column {place.column!r}, sample {place.first + number}: item {text}"
                ) from error

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        ends = array.cast(pa.large_list(array.type.value_type))
        if not len(ends):
            return []
        marks = np.frombuffer(ends.buffers()[1], np.int64)[ends.offset :][: len(ends) + 1].tolist()
        inner = self.of.decode(ends.values.slice(marks[0], marks[-1] - marks[0]), native)
        return [
            inner[a - marks[0] : b - marks[0]] if there else None
            for a, b, there in zip(marks, marks[1:], is_valid(array).tolist())
        ]


@dataclass(frozen=True, repr=False)
class Link(Type):
    """The address of a value in each sample. The value itself stays where it is.

    You may give texts, paths, a `Reference`, or a dict with ``url``, ``size`` and ``etag``. Relative paths are refused,
    and so are addresses with a password or a signature, because everybody who reads the table would see them.

    Parameters
    ----------
    of : Type
        The type of the value. The type has to take the bytes of a file, as the types of media do.
    """

    of: Any
    kind: ClassVar[str] = "link"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "of", _inner(self.of))
        if isinstance(self.of, Link):
            raise InvalidOptionError("a link leads to a value, not to a link")

    def storage(self) -> pa.DataType:
        return LINK

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        found = [None if v is None else self._reference(v, n, place) for n, v in enumerate(values)]
        rows = [None if ref is None else ref._asdict() for ref in found]
        return pa.array(rows, LINK)

    def _reference(self, value: Any, number: int, place: Place) -> Reference:
        if isinstance(value, dict) and "url" in value and value.keys() <= {"url", "size", "etag"}:
            value = Reference(**value)
        if not isinstance(value, Reference):
            if not isinstance(value, (str, os.PathLike)):
                raise place.wrong_type(number, str(self), shown(value), "give a URL or a path")
            value = Reference(os.fspath(value))
        url, size, etag = value
        try:
            url = parse_link(url).text
        except InvalidLinkError as error:
            where = f"column {place.column!r}, sample {place.first + number}"
            raise InvalidLinkError(f"{where}: {error}") from None
        if size is not None and (type(size) is not int or not 0 <= size < 1 << 63):
            raise place.wrong(number, "a size in bytes", f"{size!r:.40}")
        if etag is not None and not isinstance(etag, str):
            raise place.wrong_type(number, "an ETag", shown(etag))
        return Reference(url, size, etag)

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        columns = [field_of(array, name).to_pylist() for name in Reference._fields]
        there = is_valid(array).tolist()
        return [Reference(*row) if ok else None for ok, *row in zip(there, *columns)]


def is_many(value: Any) -> bool:
    """Whether a value has others in it, one after the other; a table of pandas would give the names of its columns.

    Examples
    --------
    >>> [is_many(value) for value in ([1], (), "ab", {"a": 1}, np.array(1))]
    [True, True, False, False, False]
    """
    if isinstance(value, (str, bytes, Mapping)) or getattr(value, "ndim", 1) == 0:
        return False
    return hasattr(value, "__iter__") and not hasattr(value, "columns")


def link_in(kind: Type) -> Link | None:
    """Return the type of the links of a column: its own, or that of the items of its lists; None for other columns.

    Examples
    --------
    >>> link_in(Sequence("int64")) is None
    True
    """
    while isinstance(kind, Sequence):
        kind = kind.of
    return kind if isinstance(kind, Link) else None


def target_of(kind: Type) -> Type:
    """Return the type of a column after its links were replaced by what they lead to.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types import Image
    >>> target_of(Sequence(Link(Image("png")), apart=True))
    Sequence(Image('png'), apart=True)
    """
    if isinstance(kind, Sequence):
        return replace(kind, of=target_of(kind.of))
    if isinstance(kind, Link):
        of: Type = kind.of
        return replace(of, nullable=kind.nullable, apart=kind.apart)
    return kind


def check_links(columns: Mapping[str, Type]) -> None:
    """Raise InvalidOptionError if new columns have links to values that no file can hold.

    Columns that exist are not checked, so that their tables can be opened.
    """
    for name, kind in columns.items():
        link = link_in(kind)
        if link is not None and not link.of.reads_files:
            raise InvalidOptionError(
                f"column {name!r}: a link cannot lead to {link.of}, because its values are not read from files; "
                f"what can be linked are {_LINKED}"
            )


def _inner(given: Any) -> Type:
    kind = as_type(given)
    if kind.apart:
        raise InvalidOptionError(f"{kind}: apart is for the column, not for a type inside another")
    return kind
