"""Labels of an axis: what stands for its indices, so that ``ref.sel(carrier="UA")`` finds them.

An axis has a list of labels, one for every index, or regular bins: of a number (``start``, ``step``) or of
time (with a ``unit`` of `numpy.datetime64`). Both are JSON in the tensor's metadata.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidTensorError,
    UnknownLabelError,
    did_you_mean,
)

_SORTS = (str, int, float, bool)
KINDS = {*_SORTS}
"""The types of labels."""
_FEW = 4  # labels that are looked for one by one
_TIMES = 64  # that often; a loop over all labels would look at all of them for each
_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False)
class Listed:
    """One label for every index.

    Attributes
    ----------
    values : tuple
        Distinct strings, integers, floats or bools.

    Examples
    --------
    >>> Listed(("AA", "UA")).index("UA", 2), Listed(("AA", "DL", "UA")).index(slice("DL", "UA"), 3)
    (1, slice(1, 3, None))
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        _check_kinds(self.values)
        self._places  # noqa: B018 - raises where one is there twice

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    @classmethod
    def stored(cls, values: Sequence[Any]) -> Listed:
        """Return labels that were checked before they were stored: whether one is there twice is seen later.

        Raises
        ------
        InvalidTensorError
            If one is no label.

        Examples
        --------
        >>> Listed.stored(["AA", "UA"])
        Listed(values=('AA', 'UA'))
        """
        _check_kinds(values)
        found = object.__new__(cls)
        object.__setattr__(found, "values", tuple(values))
        return found

    @cached_property
    def _places(self) -> dict[Any, int]:
        places = dict(zip(self.values, range(len(self.values)), strict=True))
        if len(places) != len(self.values):
            twice = next(v for at, v in enumerate(self.values) if places[v] != at)
            raise InvalidTensorError(
                f"labels of an axis repeat themselves: {twice!r:.80} is there twice; give each index its own"
            )
        return places

    def array(self, count: int) -> np.ndarray[Any, Any]:
        """Return the labels of the first `count` indices."""
        values = self.values[:count]
        return np.array(values, object if len({isinstance(v, str) for v in values}) > 1 else None)

    def places(self, labels: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return the index of every label, -1 of one that the axis does not have.

        Examples
        --------
        >>> Listed(("AA", "UA")).places(["UA", "DL"]).tolist()
        [1, -1]
        """
        times = self.__dict__.get("_times", 0)
        if len(labels) <= _FEW and times < _TIMES and "_places" not in self.__dict__:
            # The index of ten thousand labels takes as long as to look at a few of them.
            self.__dict__["_times"] = times + 1
            return np.array([self._place(label) for label in labels], np.int64)
        places = self._places
        try:
            return np.array([places.get(label, -1) for label in labels], np.int64)
        except TypeError:  # a label that cannot be one, such as a list
            known = (k if isinstance(k, (str, int, float, bool)) else None for k in labels)
            return np.array([places.get(label, -1) for label in known], np.int64)

    def _place(self, label: Any) -> int:
        """Return the index of one label, -1 of one that the axis does not have."""
        try:
            return self.values.index(label) if isinstance(label, _SORTS) else -1
        except ValueError:
            return -1

    def index(self, label: Any, length: int) -> Any:
        """Return the index, slice or indices that a label, a slice or a list of labels stands for.

        Both ends of a slice belong to it, as in pandas. `length` is that of the axis.

        Raises
        ------
        UnknownLabelError
            If there is no such label; the message offers the nearest.
        """
        if isinstance(label, slice):
            if label.step is not None:
                raise UnknownLabelError("a slice of labels has no step")
            first = 0 if label.start is None else self.index(label.start, length)
            last = len(self.values) - 1 if label.stop is None else self.index(label.stop, length)
            return slice(first, last + 1)
        if _is_array(label):
            label = label.tolist()
        if isinstance(label, (list, tuple)):
            found = self.places(label)
            for place in np.flatnonzero(found < 0)[:1].tolist():
                self.index(label[place], length)
            return found
        label = label.item() if isinstance(label, np.generic) else label
        try:
            return self._places[label]
        except (KeyError, TypeError):
            known = [str(v) for v in self.values]
            raise UnknownLabelError(
                f"there is no label {label!r}{did_you_mean(str(label), known)}; the axis has "
                f"{len(known)} labels"
            ) from None

    def to_json(self) -> Any:
        """Return what the metadata row has."""
        return list(self.values)


@dataclass(frozen=True)
class Regular:
    """Bins of one length: index ``k`` is ``start + k * step`` up to the next one.

    Attributes
    ----------
    start : float or str
        Of the first bin; a time as text, such as ``2013-01-01T05``.
    step : float
        Length of a bin, in units of `unit` for time.
    unit : str or None
        A unit of `numpy.datetime64`, None for numbers.

    Examples
    --------
    >>> Regular("2013-01-01T00", 1, "h").index("2013-01-02", 100)
    slice(24, 48, None)
    >>> Regular(40.5, 0.01, None).index(40.752, 100)
    25
    """

    start: Any
    step: Any
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in _UNITS:
            raise InvalidTensorError(
                f"unknown unit of time {self.unit!r}; known are {', '.join(_UNITS)}"
            )
        if not 0 < self.step < 2**63:
            raise InvalidTensorError(f"bins have a length above 0, not {self.step!r}")

    @property
    def _is_whole(self) -> bool:
        return type(self.start) is int and type(self.step) is int

    @property
    def _origin(self) -> Any:
        return np.array(self.start, f"datetime64[{self.unit}]")

    def array(self, count: int) -> np.ndarray[Any, Any]:
        """Return where the first `count` bins start."""
        return self.starts(np.arange(count))

    def starts(self, bins: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return where bins start, by their numbers."""
        if self._is_whole:
            return self._computed(bins, lambda k: self.start + k * self.step)
        if self.unit is None:
            return np.asarray(self.start + bins * self.step)
        return np.asarray(
            self._origin + (bins * int(self.step)).astype(f"timedelta64[{self.unit}]")
        )

    def places(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the bin of every value, negative before the first one."""
        if self._is_whole and values.dtype.kind in "iu":  # doubles have not all numbers above 2^53
            return self._computed(values, lambda value: (value - self.start) // self.step)
        if self.unit is None:
            # A value on an edge belongs to the bin that begins there, whatever binary fractions do.
            exact = ((values.astype(np.float64) - self.start) / self.step).clip(-(2.0**62), 2.0**62)
            near = np.rint(exact)
            bins = np.where(np.abs(exact - near) < 1e-9, near, np.floor(exact))
            return np.asarray(bins, np.int64)
        since = values.astype(f"datetime64[{self.unit}]") - self._origin
        return np.asarray(since.astype(np.int64) // int(self.step))

    def _computed(
        self, numbers: np.ndarray[Any, Any], function: Callable[[Any], Any]
    ) -> np.ndarray[Any, Any]:
        """Return a linear function of integers, by NumPy where int64 has room for all that comes up, else by Python."""
        ends = [int(numbers.min()), int(numbers.max())] if numbers.size else []
        if all(abs(number) < 2**61 for number in (self.start, *ends, *map(function, ends))):
            return np.asarray(function(numbers.astype(np.int64)))
        return np.array([function(int(number)) for number in numbers], object)

    def index(self, label: Any, length: int) -> Any:
        """Return the index, slice or indices of a value, a slice or a list; see `Listed.index`.

        A time that is coarser than the bins stands for all bins of it: a day for its hours. A slice takes the
        bins that there are, as it does in pandas.
        """
        if isinstance(label, slice):
            if label.step is not None:
                raise UnknownLabelError("a slice of labels has no step")
            first = 0 if label.start is None else self._span(label.start)[0]
            stop = length if label.stop is None else self._span(label.stop)[1]
            return slice(max(first, 0), max(stop, 0))
        if isinstance(label, (list, tuple)) or _is_array(label):
            return np.array(
                [self._there(one, self._span(one)[0], length) for one in label], np.int64
            )
        first, stop = self._span(label)
        if first < 0 < stop:  # a time of which only the end is there
            return slice(0, stop)
        self._there(label, first, length)
        return first if stop == first + 1 else slice(first, stop)

    def _there(self, label: Any, first: int, length: int) -> int:
        """Return the first bin of a label; raise UnknownLabelError if an axis of that length has no such bin."""
        if first < 0:
            raise UnknownLabelError(f"label {label!r} lies before the first bin, {self.start!r}")
        if first >= length:
            last = self.starts(np.array([max(length, 1) - 1]))[0]
            where = "behind the last bin," if length else "in no bin: the first will be"
            raise UnknownLabelError(f"label {label!r} lies {where} {last}")
        return first

    def _span(self, label: Any) -> tuple[int, int]:
        """Return the first bin that a value would be in, and the one after the last, whether there or not."""
        try:
            if str(label).lower() in ("", "none", "nat", "nan"):
                raise ValueError("neither a number nor a time")
            if self.unit is None:
                is_whole = isinstance(label, (int, np.integer)) and -(2**63) <= label < 2**63
                first = int(self.places(np.array([label if is_whole else float(label)]))[0])
                stop = first + 1
            else:
                time = np.datetime64(label)
                after = time + np.ones((), f"timedelta64[{np.datetime_data(time.dtype)[0]}]")
                first = int(self.places(np.array([time]))[0])
                fine = np.array([after]).astype(f"datetime64[{self.unit}]") - self._origin
                stop = max(first + 1, math.ceil(int(fine.astype(np.int64)[0]) / int(self.step)))
        except (ValueError, TypeError) as error:
            raise UnknownLabelError(
                f"{label!r} is not a label of bins from {self.start!r} on"
            ) from error
        return first, stop

    def to_json(self) -> Any:
        """Return what the metadata row has."""
        return {"start": self.start, "step": self.step, "unit": self.unit}


Labels = Listed | Regular


class Unread(Listed):
    """Labels that are plain texts, as the metadata row has them: read when they are asked for.

    To make ten thousand strings takes several times as long as to find one of them in the text.

    Examples
    --------
    >>> labels = Unread.of('["AA","DL","UA"]')
    >>> labels.places(["UA", "U"]).tolist(), labels.values
    ([2, -1], ('AA', 'DL', 'UA'))
    >>> Unread.of('["AA",1]') is None
    True
    """

    _text: str
    _span: tuple[int, int]

    @classmethod
    def of(cls, text: str, start: int = 0, stop: int | None = None) -> Unread | None:
        """Return the labels of a list in JSON, None unless each is a text of which every character is one byte.

        The list may be a part of the text, which is not copied: new memory costs more than to look at it.
        """
        span = start, len(text) if stop is None else stop
        ends = text.startswith('["', *span) and text.endswith('"]', *span) and text.isascii()
        if not ends or text.find("\\", *span) >= 0:
            return None
        quotes = text.count('"', *span)
        # A flat list of texts has a comma less than texts: one more for each in a text, and for what is no text.
        flat = all(text.find(one, span[0] + 1, span[1]) < 0 for one in "[{")
        if not (flat and quotes == 2 * text.count(",", *span) + 2):
            # Nothing stands between two texts but the comma of the list, and no text is a comma itself. At either end
            # it would make up for a number among the texts.
            if text.startswith('[","', *span) or text.endswith(',","]', *span):
                return None
            if text.find('",","', *span) >= 0 or quotes != 2 * text.count('","', *span) + 2:
                return None
        found = object.__new__(cls)
        object.__setattr__(found, "_text", text)
        object.__setattr__(found, "_span", span)
        return found

    @cached_property
    def values(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The texts."""
        try:
            found = json.loads(self._text[slice(*self._span)])
        except ValueError as error:
            raise CorruptDataError(f"labels of an axis are not JSON: {error}") from error
        _check_kinds(found)
        return tuple(found)

    def _place(self, label: Any) -> int:
        if not isinstance(label, str) or "values" in self.__dict__ or "," in label:
            return super()._place(label)
        if '"' in label or "\\" in label:  # it would stand with a backslash
            return -1
        start, stop = self._span
        at = self._text.find(f'"{label}"', start, stop)
        return at if at < 0 else self._text.count('"', start, at) // 2

    def __repr__(self) -> str:
        return f"{Listed.__name__}(values={self.values!r})"


def _check_kinds(values: Sequence[Any]) -> None:
    """Raise InvalidTensorError if one is no label."""
    if not {*map(type, values)} <= KINDS:  # of ten thousand names, quickly
        for value in values:
            if not isinstance(value, _SORTS):
                raise InvalidTensorError(f"label {value!r:.80} is not a string, number or bool")


def _is_array(value: Any) -> bool:
    """Whether it is an array, also one of another library, such as a Series."""
    return hasattr(value, "__array__") and not isinstance(value, np.generic)


def stored_labels(value: Any) -> Labels:
    """Return labels from what the metadata row has: a list, bins, or labels that are not read yet.

    Raises
    ------
    InvalidTensorError
        If they are none of these.
    """
    if isinstance(value, Listed):
        return value
    if isinstance(value, list):
        return Listed.stored(value)
    return regular_of(value)


def regular_of(value: Any) -> Regular:
    """Return bins from their start, step and unit.

    Raises
    ------
    InvalidTensorError
        If they are no bins.

    Examples
    --------
    >>> regular_of({"start": 0, "step": 5})
    Regular(start=0, step=5, unit=None)
    """
    try:
        return Regular(**value)
    except TypeError:
        raise InvalidTensorError(
            f"{value!r:.80} are not regular bins: give start, step (a number) and, for time, unit"
        ) from None
