"""Numbers, texts, bytes, dates and times: a native column each."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types.base import Array, Place, Type, shown
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    InvalidSampleError,
    did_you_mean,
)

# Delta has no unsigned numbers and no half floats: the narrowest of its types that holds them all.
STORAGE: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "uint64": pa.decimal128(20, 0),
    "float16": pa.float32(), "float32": pa.float32(), "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
"""The scalars by their names, and the Arrow type of each."""

_PYTHON = {
    bool: "bool", int: "int64", float: "float64", str: "string", bytes: "bytes",
    dt.date: "date", dt.datetime: "timestamp", decimal.Decimal: "decimal(38, 18)",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_WHAT = {"string": "a text", "bytes": "bytes", "date": "a date", "bool": "True or False"}
_GIVE = {
    "bool": "compare numbers with a bound",
    "string": "give str(value), value.decode() of bytes, or None where there is no text",
    "bytes": "encode a text",
    "date": "give a datetime.date, or a datetime64[D] of NumPy",
    "timestamp": "give a datetime.datetime, or a datetime64 of NumPy",
    "decimal": "give a decimal.Decimal",
}
"""What may be given instead of a value of another kind."""

_TAKES: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (float, int, np.floating, np.integer),
    "string": (str,),
    "bytes": (bytes, bytearray, memoryview),
    "date": (dt.date, np.datetime64),
    "timestamp": (dt.datetime, np.datetime64),
    "decimal": (decimal.Decimal, int),
}

_TIMES = {
    "date": (pa.int32(), -719_162, 2_932_896),
    "timestamp": (pa.int64(), -62_135_596_800_000_000, 253_402_300_799_999_999),
}
"""The years 1 to 9999, in days and in microseconds."""
_UNITS = {"date": "datetime64[D]", "timestamp": "datetime64[us]"}
_COARSE = {
    "date": dict.fromkeys(("Y", "M", "W", "generic"), "M8[D]"),
    "timestamp": dict.fromkeys(("Y", "M", "W", "D", "h", "m", "generic"), "M8[s]"),
}
"""Units of NumPy that Arrow does not take, or takes for dates, and what they become."""
_PLAIN_TIMES = {dt.date, dt.datetime, type(None)}


@dataclass(frozen=True, repr=False)
class Scalar(Type):
    """One number, text, date or piece of bytes in each sample.

    Unsigned integers and ``float16`` are stored in a wider type, because Delta does not have them: ``uint8`` as int16,
    ``uint16`` as int32, ``uint32`` as int64, ``uint64`` as decimal(20, 0), ``float16`` as float32. Arrays have the
    declared dtype again. A ``timestamp`` counts microseconds in UTC; a datetime without a zone is taken as UTC. A
    ``timestamp_ntz`` has no zone: a datetime that has one is stored as what the time is in UTC. Years are 1 to 9999.

    Parameters
    ----------
    dtype : str
        A dtype of NumPy or its name, a type of Python, ``string``, ``bytes``, ``date``, ``timestamp``,
        ``timestamp_ntz`` (without a zone) or ``decimal(precision, scale)``.

    Examples
    --------
    >>> Scalar("uint8").storage()
    DataType(int16)
    >>> Scalar("float32").encode([1, 2.5, None], "x").to_pylist()
    [1.0, 2.5, None]
    """

    dtype: str
    kind: ClassVar[str] = "scalar"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dtype", _name(self.dtype))

    @property
    def family(self) -> str:
        """``bool``, ``int``, ``float``, ``decimal``, or the name itself."""
        name = self.dtype.partition("(")[0]
        return (
            "timestamp" if name == "timestamp_ntz" else name.removeprefix("u").rstrip("0123456789")
        )

    @property
    def stacks(self) -> bool:
        return self.family in ("bool", "int", "float", "date", "timestamp")

    def storage(self) -> pa.DataType:
        if self.family == "decimal":
            precision, scale = _DECIMAL.fullmatch(self.dtype).groups()  # type: ignore[union-attr]
            return pa.decimal128(int(precision), int(scale))
        return STORAGE[self.dtype]

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        try:
            found: list[Any] = self._values(array).to_pylist()
        except (OverflowError, ValueError) as error:
            raise CorruptDataError(
                f"a column of {self} has a value that Python has not: {error}; its table was changed by others"
            ) from error
        return found

    def _stack(self, array: pa.Array) -> Array:
        if self.family == "date":
            return np.asarray(array.cast(pa.int32()).to_numpy(zero_copy_only=False)).astype(
                "datetime64[D]"
            )
        if self.family == "timestamp":
            return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False)).astype(
                "datetime64[us]"
            )
        values = self._values(array).to_numpy(zero_copy_only=False)
        return np.asarray(values).astype(self.dtype, copy=False)

    def _values(self, array: pa.Array) -> pa.Array:
        return array.cast(pa.uint64()) if self.dtype == "uint64" else array

    # ------------------------------------------------------------------ checks

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        takes = _TAKES[self.family]
        kinds = {*map(type, values)}
        if self.family in _TIMES and not kinds <= _PLAIN_TIMES:
            values = [self._time(value, number, place) for number, value in enumerate(values)]
            kinds = {*map(type, values)}
        if not all(_is_taken(kind, takes, self.family) for kind in kinds):
            values = [_item(v) for v in values]
            for number, value in enumerate(values):
                if not _is_taken(type(value), takes, self.family):
                    remedy = _remedy(value) or _GIVE.get(self.family, "")
                    raise place.wrong_type(number, self._expected(), shown(value), remedy)
        if self.family == "float" and any(issubclass(kind, np.unsignedinteger) for kind in kinds):
            # Arrow takes 2^63 and more of NumPy for negative numbers.
            values = [int(v) if isinstance(v, np.unsignedinteger) else v for v in values]
        return self._narrowed(self._built(values, place), place)

    def _time(self, value: Any, number: int, place: Place) -> Any:
        """Return a time of NumPy or pandas as one of Python, None where it is missing; others as they are.

        Arrow leaves out what pandas has of a microsecond, and takes no more than a few forms of NumPy's times.
        """
        value = _item(value)
        if type(value).__name__ == "NaTType":
            return None
        rounded = f"a {self.family} in whole microseconds", str(value), "round it to microseconds"
        if getattr(value, "nanosecond", 0):
            raise place.wrong(number, *rounded)
        if not isinstance(value, np.datetime64):
            return value
        if np.isnat(value):
            return None
        if not 1 <= value.astype("M8[Y]").astype(np.int64) + 1970 <= 9999:
            raise place.wrong(number, f"{self._expected()} of the years 1 to 9999", str(value))
        exact = value.astype(_UNITS[self.family])
        if exact != value:
            if self.family == "timestamp":
                raise place.wrong(number, *rounded)
            remedy = "declare the dtype timestamp, or take the day: value.astype('M8[D]')"
            raise place.wrong_type(number, self._expected(), str(value), remedy)
        return exact.item()

    def _built(self, values: list[Any], place: Place) -> pa.Array:
        wide = self._wide()
        try:
            return pa.array(values, wide)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):
            for number, value in enumerate(values):
                try:
                    pa.array([value], wide)
                except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
                    remedy = "round it, or declare more digits" if self.family == "decimal" else ""
                    if isinstance(error, UnicodeEncodeError):
                        at = error.start + 1
                        remedy = f"it has half of a character at character {at}; write all of it, or leave it out"
                    raise place.wrong(
                        number, self._expected(), shown(value), remedy, error
                    ) from error
            raise

    def _wide(self) -> pa.DataType:
        """Return the type in which values are collected before they are checked."""
        if self.family == "int":
            return pa.uint64() if self.dtype == "uint64" else pa.int64()
        return pa.float64() if self.family == "float" else self.storage()

    def _from_array(self, values: Array, place: Place) -> pa.Array:
        if values.ndim != 1:
            raise place.wrong(
                0, self._expected(), f"an array of shape {values.shape[1:]}",
                "declare Tensor(dtype, shape) for arrays",
            )  # fmt: skip
        if self.family in ("string", "bytes", "decimal"):
            return self._from_list(values.tolist(), place)
        if values.dtype.byteorder == ">":
            values = values.astype(values.dtype.newbyteorder("="))
        if values.dtype.kind == "M" and self.family in _TIMES:
            finer = _COARSE[self.family].get(np.datetime_data(values.dtype)[0])
            values = values if finer is None else values.astype(finer)
            values = _as_days(values) if self.family == "date" else values
        try:
            return self._from_arrow(pa.array(values), place)
        except (pa.ArrowException, ValueError) as error:
            if isinstance(error, InvalidSampleError):
                raise
            raise place.wrong_type(
                0, self._expected(), f"{values.dtype} values", cause=error
            ) from error

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_null(values.type):
            return values.cast(self.storage())
        if self.dtype == "uint64" and pa.types.is_decimal(values.type):  # as it is stored
            values = self._cast(values, pa.uint64(), place)
        if not _IS[self.family](values.type):
            raise place.wrong_type(0, self._expected(), f"values of type {values.type}")
        if self.family == "string":
            _check_text(values, place)
            values = values if values.type == pa.string() else values.cast(pa.string())
        return self._narrowed(values, place)

    def _narrowed(self, values: pa.Array, place: Place) -> pa.Array:
        """Return values in the type of storage, when all are in the range of the declared one."""
        if self.family == "int":
            self._check_range(values, place)
        elif self.family == "float":
            return self._floats(values, place)
        elif self.family == "decimal" and pa.types.is_integer(values.type):
            # Arrow would want digits for all that the type holds.
            values = values.cast(pa.decimal128(20, 0))
        out = self._cast(values, self.storage(), place)
        if self.family in _TIMES:
            self._check_years(out, place)
        return out

    def _cast(self, values: pa.Array, kind: pa.DataType, place: Place) -> pa.Array:
        if values.type == kind:
            return values
        try:
            return values.cast(kind)
        except pa.ArrowException as error:
            number = _culprit(values, kind)
            got = f"{_text(values[number])} of type {values.type}, which does not fit"
            raise place.wrong(number, self._expected(), got, cause=error) from error

    def _check_range(self, values: pa.Array, place: Place) -> None:
        bounds, ends = np.iinfo(self.dtype), pc.min_max(values)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is not None and (low < bounds.min or high > bounds.max):
            numbers = values.to_pylist()
            number = next(
                i
                for i, v in enumerate(numbers)
                if v is not None and not bounds.min <= v <= bounds.max
            )
            raise place.wrong(number, self._expected(), numbers[number], "declare a wider dtype")

    def _check_years(self, values: pa.Array, place: Place) -> None:
        """Raise InvalidSampleError for a year that neither Python nor Spark has."""
        kind, least, most = _TIMES[self.family]
        numbers = values.cast(kind)
        wrong = pc.or_(pc.less(numbers, least), pc.greater(numbers, most))
        if pc.any(wrong).as_py():
            number = pc.index(wrong, True).as_py()
            got = np.array(numbers[number].as_py(), _UNITS[self.family])
            raise place.wrong(number, f"{self._expected()} of the years 1 to 9999", str(got))

    def _floats(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_integer(values.type):
            exact = pc.cast(values, pa.float64(), safe=False)
            wrong = pc.not_equal(
                pc.cast(exact, pa.decimal128(38, 0)), pc.cast(values, pa.decimal128(38, 0))
            )
            if pc.any(wrong).as_py():
                number = pc.index(wrong, True).as_py()
                raise place.wrong(
                    number, self._expected(), values[number], "declare an integer dtype"
                )
            values = exact
        narrow = values
        if self.dtype != "float64":
            small = values.cast(
                pa.float16() if self.dtype == "float16" else pa.float32(), safe=False
            )
            narrow = small.cast(pa.float32())
            lost = pc.and_(pc.is_inf(narrow), pc.is_finite(values.cast(pa.float64())))
            if pc.any(lost).as_py():
                number = pc.index(lost, True).as_py()
                raise place.wrong(number, self._expected(), values[number], "declare a wider dtype")
        return narrow.cast(self.storage())

    def _expected(self) -> str:
        if self.family == "int":
            bounds = np.iinfo(self.dtype)
            return f"{self.dtype} (an integer from {bounds.min} to {bounds.max})"
        return _WHAT.get(self.family, self.dtype)


_IS: dict[str, Any] = {
    "bool": pa.types.is_boolean,
    "int": pa.types.is_integer,
    "float": lambda t: pa.types.is_floating(t) or pa.types.is_integer(t),
    "string": lambda t: (
        pa.types.is_string(t) or pa.types.is_large_string(t) or str(t) == "string_view"
    ),
    "bytes": lambda t: (
        pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t)
        or str(t) == "binary_view"
    ),
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
    "decimal": lambda t: pa.types.is_decimal(t) or pa.types.is_integer(t),
}  # fmt: skip
"""Which Arrow types hold values of a family."""


def _is_taken(kind: type, takes: tuple[type, ...], family: str) -> bool:
    if kind is type(None):
        return True
    if kind in (bool, np.bool_):
        return family == "bool"
    if family == "date" and issubclass(kind, dt.datetime):
        return False  # its time would be lost
    return issubclass(kind, takes)


def _item(value: Any) -> Any:
    """Return the one element of an array without axes, of NumPy or another library; other values as they are."""
    if value is np.ma.masked or type(value).__name__ == "NAType":
        return None  # masked in an array, where it would be 0; missing in pandas
    if (
        not isinstance(value, np.generic)
        and getattr(value, "shape", None) == ()
        and hasattr(value, "item")
    ):
        return value.item()
    return value


def _as_days(values: Array) -> Array:
    """Return times of NumPy as days where all are midnights, as pandas has dates; else as they are."""
    days = values.astype("M8[D]")
    is_same = (days.astype(values.dtype) == values) | np.isnat(values)
    return days if is_same.all() else values


def _remedy(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "declare Tensor(dtype, shape) for arrays"
    if isinstance(value, (bool, np.bool_)):
        return "declare the dtype bool"
    if isinstance(value, dt.datetime):
        return "declare the dtype timestamp, or take its date()"
    return ""


def _check_text(values: pa.Array, place: Place) -> None:
    """Raise InvalidSampleError if texts of Arrow are no UTF-8: whoever made the array need not have looked."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        number = next((n for n in range(len(values)) if not _is_text(values[n])), 0)
        raise place.wrong(
            number, "a text", f"bytes that are no UTF-8: {error}", cause=error
        ) from error


def _is_text(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _text(value: pa.Scalar) -> str:
    try:
        return str(value.cast(pa.string()))
    except pa.ArrowException:
        return "a value"


def _culprit(values: pa.Array, kind: pa.DataType) -> int:
    for number in range(len(values)):
        try:
            values[number : number + 1].cast(kind)
        except pa.ArrowException:
            return number
    return 0


def _name(given: Any) -> str:
    """Return the name of a scalar's dtype."""
    if isinstance(given, type) and given in _PYTHON:
        return _PYTHON[given]
    if isinstance(given, str):
        found = _DECIMAL.fullmatch(given)
        if found and 1 <= int(found[1]) <= 38 and int(found[2]) <= int(found[1]):
            return f"decimal({int(found[1])}, {int(found[2])})"
        if given in STORAGE:
            return given
    try:
        dtype = np.dtype(given)
    except (TypeError, ValueError):
        pass
    else:
        if dtype.kind == "M":
            return "date" if dtype == np.dtype("datetime64[D]") else "timestamp"
        if dtype.kind in "US":
            return "string" if dtype.kind == "U" else "bytes"
        if str(dtype.name) in STORAGE and given is not None:
            return str(dtype.name)
    near = did_you_mean(given, STORAGE) if isinstance(given, str) else ""
    raise InvalidOptionError(
        f"{given!r:.80} is not a type of a column{near}; give a type of tensorlake_spark.types, or one of "
        f"{', '.join(STORAGE)} and decimal(precision, scale)"
    )
