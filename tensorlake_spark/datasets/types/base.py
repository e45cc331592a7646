"""What a column of a dataset may hold: the contract that every type keeps."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import (
    CorruptDataError,
    FormatError,
    InvalidOptionError,
    InvalidSampleError,
    InvalidSampleTypeError,
    check_flag,
    check_text,
    did_you_mean,
    is_iterable,
)

Array = np.ndarray[Any, Any]

KINDS: dict[str, type[Type]] = {}
"""The types by their names in the metadata; a class enters itself."""

MAX_BYTES = (1 << 31) - 1
"""Bytes of the samples of one column that `Type.encode` takes at once: Arrow counts them in 31 bits."""


class Tiled(NamedTuple):
    """A sample whose elements are kept elsewhere, as tiles.

    `Type.encode` takes it in the place of an array, and stores its shape without elements. `Type.decode`
    gives it back.

    Attributes
    ----------
    shape : tuple of int
        Of the array.
    dtype : str
        NumPy's name of its dtype.
    """

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where values come from, for messages, and whether they are written from there.

    Attributes
    ----------
    column : str
        Name of the column.
    first : int
        The number of the first value in what the user gave.
    views : bool
        As for `Type.encode`.
    """

    column: str
    first: int = 0
    views: bool = False

    def wrong(
        self, number: int, expected: str, got: Any, remedy: str = "", cause: Any = None
    ) -> InvalidSampleError:
        """Return the error for a value that does not fit."""
        return self._error(InvalidSampleError, number, expected, got, remedy, cause)

    def wrong_type(
        self, number: int, expected: str, got: Any, remedy: str = "", cause: Any = None
    ) -> InvalidSampleError:
        """Return the error for a value of another kind."""
        return self._error(InvalidSampleTypeError, number, expected, got, remedy, cause)

    def _error(
        self,
        kind: type[InvalidSampleError],
        number: int,
        expected: str,
        got: Any,
        remedy: str,
        cause: Any,
    ) -> InvalidSampleError:
        text = (
            f"column {self.column!r}, sample {self.first + number}: expected {expected}, got {got}"
        )
        error = kind(f"{text}; {remedy}" if remedy else text)
        error.__cause__ = cause
        return error


@dataclass(frozen=True, kw_only=True, repr=False)
class Type:
    """What a column holds, and how it is written in Arrow.

    A subclass says with `storage` what Delta sees, and turns values into that and back. The laws:

    1. ``decode(encode(values)) == values`` for all values that the type takes, unless the type says otherwise.
    2. `encode` checks every value, and raises an error that names column, sample and remedy.
    3. A null stays null, and nothing else becomes null.

    Parameters
    ----------
    nullable : bool
        Whether a sample may be without a value.
    apart : bool
        Whether the column is kept in a table of its own.
    """

    nullable: bool = True
    apart: bool = False

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for name in ("nullable", "apart"):
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))

    # ------------------------------------------------------------------ what it is

    @property
    def stacks(self) -> bool:
        """Whether many samples are one array, see `stack`."""
        return False

    @property
    def reads_files(self) -> bool:
        """Whether `encode` takes the bytes of a file, so that a link may lead to a value."""
        kind = self.storage()
        return any(
            is_bytes(kind)
            for is_bytes in (
                pa.types.is_binary,
                pa.types.is_large_binary,
                pa.types.is_fixed_size_binary,
            )
        )

    def storage(self) -> pa.DataType:
        """Return the Arrow type of the column: one that Delta, Spark and DuckDB know."""
        raise NotImplementedError

    # ------------------------------------------------------------------ values

    def encode(self, values: Any, column: str, first: int = 0, *, views: bool = False) -> pa.Array:
        """Return values as an Arrow array of type `storage`.

        Parameters
        ----------
        values : sequence, ndarray, pyarrow.Array or pyarrow.ChunkedArray
            One value a sample; None is null. An ndarray has the samples along its first axis.
        column : str
            Its name, for messages.
        first : int
            The number of ``values[0]`` in what the user gave, for messages.
        views : bool
            Whether the bytes of media may be of type ``binary_view``: large ones are not copied then. This is for what
            is only written, as Arrow can do little else with such a column.

        Raises
        ------
        InvalidSampleError
            If a value does not fit the type.
        InvalidSampleTypeError
            If a value is of another kind.
        """
        place = Place(column, first, views)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, np.ma.MaskedArray):
            values = [None if np.ma.is_masked(v) and v.mask.all() else v for v in values]
        if isinstance(values, pa.Array):
            out = self._from_arrow(values, place)
        elif isinstance(values, np.ndarray) and values.dtype != object:
            out = self._from_array(values, place)
        else:
            out = self._from_list(values if isinstance(values, list) else list(values), place)
        if out.null_count and not self.nullable:
            number = int(np.argmin(is_valid(out)))
            raise place.wrong(
                number, f"a value ({self})", "null", "fill it, or declare the column nullable"
            )
        return out

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        """Return one value a sample, None where it is null.

        Parameters
        ----------
        array : pyarrow.Array
            As `encode` returns it.
        native : bool
            Return what is stored: bytes of media undecoded, numbers that were quantised as they are.

        Raises
        ------
        CorruptDataError
            If the bytes are not what was written.
        """
        raise NotImplementedError

    def fault(self, value: Any) -> str | None:
        """Return what is wrong with a value that was decoded, and that neither `encode` nor `decode` sees in bytes."""
        return None

    def stack(self, array: pa.Array) -> Array:
        """Return all samples as one array, with the samples along its first axis.

        Raises
        ------
        InvalidSampleError
            If the type does not stack, or a sample is null.
        """
        if not self.stacks:
            raise InvalidSampleError(
                f"samples of {self} do not make one array; take them as a list"
            )
        if array.null_count:
            number = int(np.argmin(is_valid(array)))
            raise InvalidSampleError(
                f"{array.null_count} of {len(array)} samples are null, the first is number {number}; fill them, or "
                'leave them out by where="... IS NOT NULL"'
            )
        return self._stack(array)

    def _stack(self, array: pa.Array) -> Array:
        raise NotImplementedError

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        raise NotImplementedError

    def _from_array(self, values: Array, place: Place) -> pa.Array:
        return self._from_list(list(values), place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        return self._from_list(values.to_pylist(), place)

    # ------------------------------------------------------------------ metadata

    def to_json(self) -> dict[str, Any]:
        """Return the type as it is kept in a field's metadata.

        Examples
        --------
        >>> as_type("int64").to_json()
        {'kind': 'scalar', 'dtype': 'int64'}
        """
        out: dict[str, Any] = {"kind": self.kind}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in ("nullable", "apart") or value != field.default:
                out[field.name] = _json(value)
        return out

    @staticmethod
    def from_json(found: Any) -> Type:
        """Return the type that `to_json` wrote.

        Raises
        ------
        FormatError
            If this version of the package does not know the type, or an option of it.
        """
        if not isinstance(found, Mapping) or not isinstance(found.get("kind"), str):
            raise FormatError(f"{found!r:.200} describes no type of a column")
        kind = KINDS.get(found["kind"])
        if kind is None:
            raise FormatError(
                f"a column has the type {found['kind']!r:.80}, which tensorlake_spark {_version()} does not know"
                f"{did_you_mean(found['kind'], KINDS)}; a newer version may read it"
            )
        known = {field.name for field in dataclasses.fields(kind)}
        for name in found.keys() - known - {"kind"}:
            raise FormatError(
                f"a column of type {kind.kind!r} has the option {name!r:.80}, which tensorlake_spark {_version()} "
                "does not know; a newer version may read it"
            )
        try:
            return kind._from_fields({k: _value(v) for k, v in found.items() if k != "kind"})
        except (InvalidOptionError, TypeError) as error:
            raise FormatError(f"{json.dumps(found)[:200]} describes no type: {error}") from error

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Type:
        return cls(**fields)

    def __str__(self) -> str:
        parts: list[str] = []
        whole = True
        for field in sorted(dataclasses.fields(self), key=lambda field: field.kw_only is True):
            value = getattr(self, field.name)
            if value == field.default and (parts or not isinstance(value, str)):
                whole = False
            elif whole and not field.kw_only:
                parts.append(repr(value))
            else:
                parts.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    __repr__ = __str__


def as_type(given: Any) -> Type:
    """Return the type that is meant.

    Parameters
    ----------
    given : Type, dtype, type or str
        A type of `tensorlake_spark.types`, or for scalars a dtype of NumPy, its name, a type of Python, ``"string"``,
        ``"bytes"``, ``"date"``, ``"timestamp"``, ``"timestamp_ntz"`` or ``"decimal(10, 2)"``.

    Raises
    ------
    InvalidOptionError
        If it is none of these.

    Examples
    --------
    >>> as_type("int64"), as_type(bool)
    (Scalar('int64'), Scalar('bool'))
    """
    if isinstance(given, Type):
        return given
    if isinstance(given, type) and issubclass(given, Type):
        try:
            return given()
        except TypeError:
            raise InvalidOptionError(
                f"{given.__name__} is a class that needs arguments; call it"
            ) from None
    return KINDS["scalar"](given)  # type: ignore[call-arg]


def is_valid(array: pa.Array) -> Array:
    """Return which values are not null, as bools."""
    if not array.null_count:
        return np.ones(len(array), bool)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def field_of(array: pa.Array, name: str) -> pa.Array:
    """Return a field of a struct; null where the struct is.

    Raises
    ------
    CorruptDataError
        If there is no such field.
    """
    if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
        raise CorruptDataError(
            f"a column of type {array.type} has no field {name!r}; its table was changed by others"
        )
    index = array.type.get_field_index(name)
    # flatten() would make all fields, for each one of a group of thousands. Both mind the offset, the second the nulls.
    return array.field(index) if not array.null_count else pc.struct_field(array, index)


def as_tuple(values: Any, what: str) -> tuple[Any, ...]:
    """Return the values of an option as a tuple.

    Raises
    ------
    InvalidOptionError
        If they are one text or no sequence.
    """
    # A set has no order: the next process would give its names other numbers. Of a mapping only the names would count.
    if isinstance(values, (str, bytes, set, frozenset, Mapping)) or not is_iterable(values):
        raise InvalidOptionError(f"{what}={values!r:.80} is not a list or tuple")
    return tuple(values)


def check_names(names: Any, what: str = "names") -> tuple[str, ...]:
    """Return names as a tuple.

    Raises
    ------
    InvalidOptionError
        If there are none, or one is empty, not a string, there twice, or has half of a character.
    """
    checked = as_tuple(names, what)
    if not checked:  # no value would fit but null
        raise InvalidOptionError(f"{what} is empty; give at least one name")
    for name in checked:
        if not isinstance(name, str) or not name:
            raise InvalidOptionError(f"{what} has {name!r:.80}, which is not a name")
        check_text(name, f"{what} has a name that cannot be stored:")
    if len({*checked}) < len(checked):
        twice = next(name for name in checked if checked.count(name) > 1)
        raise InvalidOptionError(f"{what} has {twice!r:.80} twice")
    return tuple(map(str, checked))  # those of an array would be shown as np.str_


def check_one_of(value: Any, known: Sequence[str], what: str) -> None:
    """Raise InvalidOptionError if a value is none of those that are known."""
    if not isinstance(value, str) or value not in known:
        near = did_you_mean(value, known) if isinstance(value, str) else ""
        raise InvalidOptionError(f"{what}={value!r:.80} is not one of {', '.join(known)}{near}")


def shown(value: Any) -> str:
    """Return a short text that says what a value is, for a message.

    Examples
    --------
    >>> shown(np.zeros((2, 3))), shown(b"abc"), shown(5)
    ('float64 of shape (2, 3)', '3 bytes', '5 (int)')
    """
    if value is None:
        return "null"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    if isinstance(value, (str, int, float, np.generic, decimal.Decimal, dt.date)):
        return f"{value!r:.60} ({type(value).__name__})"
    return type(value).__name__


def _json(value: Any) -> Any:
    if isinstance(value, Type):
        return value.to_json()
    return [_json(v) for v in value] if isinstance(value, tuple) else value


def _value(found: Any) -> Any:
    if isinstance(found, Mapping):
        return Type.from_json(found)
    return tuple(_value(v) for v in found) if isinstance(found, list) else found


def _version() -> str:
    # The front door imports the doors below it, so it is not imported here.
    return str(sys.modules[__name__.partition(".")[0]].__version__)
