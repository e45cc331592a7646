"""Classes by name, stored as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types import nested
from tensorlake_spark.datasets.types.base import Array, Place, Type, check_names, shown
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.errors import CorruptDataError, InvalidSampleError, did_you_mean

_INT = Scalar("int32")


@dataclass(frozen=True, repr=False)
class ClassLabel(Type):
    """A class in each sample. You may give its name or its number; its number is stored, and read.

    Parameters
    ----------
    names : sequence of str
        Names of the classes, in the order of their numbers.

    Examples
    --------
    >>> label = ClassLabel(["cat", "dog"])
    >>> column = label.encode(["dog", 0, None], "label")
    >>> label.decode(column), label.names_of([1, 0, None])
    ([1, 0, None], ['dog', 'cat', None])
    """

    names: tuple[str, ...]
    kind: ClassVar[str] = "class_label"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "names", check_names(self.names))

    @property
    def stacks(self) -> bool:
        return True

    def storage(self) -> pa.DataType:
        return pa.int32()

    def number_of(self, name: str) -> int:
        """Return the number of a class.

        Raises
        ------
        InvalidSampleError
            If there is none of that name.
        """
        return int(self.encode([name], "label")[0].as_py())

    def names_of(self, numbers: Sequence[int | None] | Array) -> list[str | None]:
        """Return the names of classes by their numbers."""
        try:
            return [None if n is None else self.names[_natural(n)] for n in numbers]
        except IndexError:
            raise CorruptDataError(
                f"a label is not a number from 0 to {len(self.names) - 1}; its table was changed by others"
            ) from None

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        found: list[Any] = array.to_pylist()
        return found

    def _stack(self, array: pa.Array) -> Array:
        return np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int32, copy=False)

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        if any(issubclass(kind, str) for kind in {*map(type, values)}):
            numbers = dict(zip(self.names, range(len(self.names))))
            for i, value in enumerate(values):
                if isinstance(value, str) and value not in numbers:
                    raise self._unknown(i, value, place)
            values = [numbers[v] if isinstance(v, str) else v for v in values]
        return self._checked(
            _INT._from_list(values, _ClassPlace(place, len(self.names) - 1)), place
        )

    def _from_array(self, values: Array, place: Place) -> pa.Array:
        if values.dtype.kind in "UT":
            return self._from_arrow(pa.array(values.tolist(), pa.string()), place)
        return self._checked(
            _INT._from_array(values, _ClassPlace(place, len(self.names) - 1)), place
        )

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.type == pa.string_view():  # index_in takes none
            values = values.cast(pa.string())
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            found = pc.index_in(values, pa.array(self.names, values.type))
            if found.null_count > values.null_count:
                wrong = pc.and_(pc.is_null(found), pc.is_valid(values))
                number = pc.index(wrong, True).as_py()
                raise self._unknown(number, values[number].as_py(), place)
            return found
        return self._checked(
            _INT._from_arrow(values, _ClassPlace(place, len(self.names) - 1)), place
        )

    def _checked(self, numbers: pa.Array, place: Place) -> pa.Array:
        found = pc.min_max(numbers)
        least, most = found["min"].as_py(), found["max"].as_py()
        if least is not None and not 0 <= least <= most < len(self.names):
            wrong = pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, len(self.names)))
            number = pc.index(wrong, True).as_py()
            raise place.wrong(
                number,
                f"the number of a class, 0 to {len(self.names) - 1}",
                shown(numbers[number].as_py()),
            )
        return numbers

    def _unknown(self, number: int, name: str, place: Place) -> Exception:
        near = did_you_mean(name, self.names).removeprefix("; ")
        return place.wrong(
            number,
            f"one of {len(self.names)} classes",
            f"{name!r:.80}",
            near or "add it to the names",
        )


class _ClassPlace(Place):
    """The place of numbers of classes."""

    _inside: Place
    _last: int

    def __init__(self, place: Place, last: int) -> None:
        super().__init__(place.column, place.first)
        object.__setattr__(self, "_inside", place)
        object.__setattr__(self, "_last", last)

    def _error(
        self, kind: Any, number: int, expected: str, got: Any, remedy: str, cause: Any
    ) -> InvalidSampleError:
        expected = f"the name of a class, or its number as an integer, 0 to {self._last}"
        remedy = "give None where there is no class"
        return self._inside._error(kind, number, expected, got, remedy, cause)


def _natural(number: Any) -> int:
    if number < 0:
        raise IndexError
    return int(number)


def classes_in(kind: Type | None) -> tuple[str, ...] | None:
    """Return the names of the classes that a column has, also in lists; None if it has no classes.

    Examples
    --------
    >>> classes_in(nested.Sequence(ClassLabel(["cat", "dog"]))), classes_in(nested.Sequence("int64"))
    (('cat', 'dog'), None)
    """
    if isinstance(kind, nested.Sequence):
        return classes_in(kind.of)
    return kind.names if isinstance(kind, ClassLabel) else None
