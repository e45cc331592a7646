"""Arrays as a column of structs: the name of the dtype, the shape, and the elements in C order, little endian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import MAX_BYTES, Array, Place, Tiled, field_of, is_valid
from tensorlake_spark.errors import CorruptDataError, UnsupportedDtypeError
from tensorlake_spark.own_memory import empty_bytes, is_own
from tensorlake_spark.rows.binary_views import payloads
from tensorlake_spark.tensor.spec import dtype_name, dtype_of

FIELDS = (("dtype", pa.string()), ("shape", pa.list_(pa.int64())), ("data", pa.binary()))

TENSOR = pa.struct([pa.field(name, kind) for name, kind in FIELDS])
"""What Spark calls TENSOR."""


_LARGE = 4 << 10
"""Bytes of a value from which on it is copied by itself: Arrow copies all values of a column at once, into memory of
its own, and then they have to be copied again."""


def struct_of(parts: Sequence[Array | Tiled | None], dtype: str, place: Place) -> pa.StructArray:
    """Return arrays of one dtype as a column of type `TENSOR`.

    Parameters
    ----------
    parts : sequence of ndarray, Tiled or None
        One a sample. None is null; what is tiled has no data.
    dtype : str
        Theirs.
    place : Place
        For messages.
    """
    shapes = [() if part is None else part.shape for part in parts]
    ranks = np.fromiter(map(len, shapes), np.int32, len(parts))
    marks = np.zeros(len(parts) + 1, np.int32)
    np.cumsum(ranks, out=marks[1:])
    lengths = np.fromiter((n for shape in shapes for n in shape), np.int64, int(marks[-1]))
    valid = np.fromiter((part is not None for part in parts), bool, len(parts))
    given = np.fromiter((isinstance(part, np.ndarray) for part in parts), bool, len(parts))
    return _struct(dtype, lengths, marks, binary_of(parts, given, dtype, place), valid)


def struct_of_stack(stack: Array, dtype: str, place: Place) -> pa.StructArray:
    """Return the arrays along the first axis of one array as a column of type `TENSOR`."""
    count, shape = len(stack), stack.shape[1:]
    flat = _little(np.ascontiguousarray(stack)).reshape(-1).view(np.uint8)
    if flat.size > MAX_BYTES:
        raise _too_much(place)
    size = flat.size // max(1, count)
    ends = np.arange(count + 1, dtype=np.int64) * size
    data = pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(flat)]
    )
    marks = np.arange(count + 1, dtype=np.int32) * len(shape)
    return _struct(dtype, np.tile(np.array(shape, np.int64), count), marks, data, None)


def _struct(
    dtype: str, lengths: Array, marks: Array, data: pa.Array, valid: Array | None
) -> pa.StructArray:
    missing = None if valid is None or valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(
        [
            pa.repeat(pa.scalar(dtype, pa.string()), len(data)),
            pa.ListArray.from_arrays(pa.array(marks), pa.array(lengths)),
            data,
        ],
        fields=[*TENSOR],
        mask=missing,
    )


def binary_of(parts: Sequence[Any], given: Array, dtype: str, place: Place) -> pa.Array:
    """Return the elements of arrays as one binary column: one copy, straight into Arrow's buffer.

    Parameters
    ----------
    parts : sequence
        Arrays, where `given` says so.
    given : bool ndarray
        What is an array; the rest is null.
    dtype : str
        Of the arrays.
    place : Place
        For messages.
    """
    kind = dtype_of(dtype)
    sizes = np.fromiter(
        (part.size * kind.itemsize if there else 0 for part, there in zip(parts, given.tolist())),
        np.int64,
        len(parts),
    )
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    if ends[-1] > MAX_BYTES:
        raise _too_much(place)
    data = np.empty(int(ends[-1]) // kind.itemsize, kind.newbyteorder("<"))
    start = 0
    for part, there in zip(parts, given.tolist()):
        if there and part.size:
            data[start : start + part.size].reshape(part.shape)[...] = part
            start += part.size
    valid = None if given.all() else pa.py_buffer(np.packbits(given, bitorder="little"))
    buffers = [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data.view(np.uint8))]
    return pa.Array.from_buffers(pa.binary(), len(parts), buffers)


class Structs:
    """A column of type `TENSOR`, to be read as arrays.

    Parameters
    ----------
    array : pyarrow.StructArray
        With the fields of `TENSOR`, and perhaps others.
    """

    def __init__(self, array: pa.Array) -> None:
        self.count = len(array)
        self.valid = is_valid(array)
        self.names = field_of(array, "dtype")
        shapes = field_of(array, "shape")
        self._marks = np.zeros(1, np.int64)
        if self.count:
            shapes = shapes.cast(pa.large_list(pa.int64()))
            self._marks = np.frombuffer(shapes.buffers()[1], np.int64)
            self._marks = self._marks[shapes.offset : shapes.offset + self.count + 1]
        # A length that is null is no length: -1 is found where shapes are compared with bytes.
        lengths = shapes.values.fill_null(-1) if shapes.values.null_count else shapes.values
        self._lengths = np.asarray(lengths.to_numpy(zero_copy_only=False))
        self._shaped = is_valid(shapes)
        self._data = bytes_of(field_of(array, "data"))
        self.given = self._data[2]

    def dtype(self) -> np.dtype[Any] | None:
        """Return the one dtype of all samples that are not null, None where there are none.

        Raises
        ------
        CorruptDataError
            If they have several, or one has none.
        """
        names = self.names.filter(pa.array(self.valid)).unique().to_pylist()
        if len(names) > 1 or None in names:
            raise CorruptDataError(
                f"samples of one column have the dtypes {names}; its table was changed by others"
            )
        return dtype_of(names[0]) if names else None

    def shape(self, number: int) -> tuple[int, ...]:
        """Return the shape of a sample."""
        if not self._shaped[number]:
            raise CorruptDataError("a sample has no shape; its table was changed by others")
        return tuple(self._lengths[self._marks[number] : self._marks[number + 1]].tolist())

    def arrays(self) -> list[Any]:
        """Return one array a sample, all in one new block of memory; None for null, `Tiled` for what has no data.

        Raises
        ------
        CorruptDataError
            If the bytes of a sample do not fit its dtype and shape.
        """
        dtype = self.dtype()
        if dtype is None:
            return [None] * self.count
        raw, ends, _ = self._data
        size = dtype.itemsize
        whole = raw[ends[0] : ends[-1]]
        if (np.diff(ends) % size).any():
            raise CorruptDataError(
                f"the data of a sample are not whole elements of {dtype}; its table was changed by others"
            )
        flat = _native(_own(whole).view(dtype.newbyteorder("<")), dtype)
        starts = ((ends - ends[0]) // size).tolist()
        alike = self._common_shape()
        if alike is not None and self.given.all() and math.prod(alike) * self.count == flat.size:
            # Without the axis of its own, an array without axes would become a number.
            return [part.reshape(alike) for part in flat.reshape(self.count, *alike, 1)]
        out: list[Any] = []
        lengths, marks = self._lengths.tolist(), self._marks.tolist()
        valid, given = self.valid.tolist(), self.given.tolist()
        for number in range(self.count):
            if not valid[number]:
                out.append(None)
                continue
            shape = tuple(lengths[marks[number] : marks[number + 1]])
            if not given[number]:
                out.append(Tiled(shape, dtype.name))
                continue
            start, stop = starts[number], starts[number + 1]
            if math.prod(shape) != stop - start or min(shape, default=0) < 0:
                raise CorruptDataError(
                    f"a sample has {(stop - start) * size} bytes, which is not {dtype} of shape {shape}; its "
                    "table was changed by others"
                )
            out.append(flat[start:stop].reshape(shape))
        return out

    def stack(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return samples of one shape, none of them null, as one array.

        Raises
        ------
        CorruptDataError
            If a sample is not of this dtype and shape.
        """
        if self.count == 0:
            return np.empty((0, *shape), dtype)
        raw, ends, given = self._data
        fits = self.dtype() == dtype and given.all() and self._common_shape() == shape
        if not fits or (np.diff(ends) != math.prod(shape) * dtype.itemsize).any():
            raise CorruptDataError(
                f"not every sample is {dtype} of shape {shape}; its table was changed by others"
            )
        flat = _own(raw[ends[0] : ends[-1]]).view(dtype.newbyteorder("<"))
        return _native(flat, dtype).reshape(self.count, *shape)

    def _common_shape(self) -> tuple[int, ...] | None:
        """Return the shape of all samples, None if they differ."""
        ranks = np.diff(self._marks)
        if not self.count or not self._shaped.all() or (ranks != ranks[0]).any():
            return None
        rows = self._lengths[self._marks[0] : self._marks[-1]].reshape(self.count, int(ranks[0]))
        alike = (rows == rows[0]).all() and (rows[0] >= 0).all()
        return tuple(rows[0].tolist()) if alike else None


def scales_of(array: pa.Array) -> Array:
    """Return the scales of vectors in eight bits; a missing one would turn its vector into NaN.

    Raises
    ------
    CorruptDataError
        If one is missing, negative or not finite.
    """
    found = field_of(array, "scale").to_numpy(zero_copy_only=False)  # null is NaN here
    scales = np.asarray(found, np.float32)
    wrong = ~(np.isfinite(scales) & (scales >= 0))
    if wrong.any():
        number = int(np.argmax(wrong))
        raise CorruptDataError(
            f"a sample has the scale {field_of(array, 'scale')[number].as_py()}, which is not a finite number "
            "of at least 0; its table was changed by others"
        )
    return scales


def bytes_of(array: pa.Array) -> tuple[Array, Array, Array]:
    """Return the bytes of a binary column, where each value begins and ends, and which are not null."""
    if array.type == pa.binary_view() and (found := _large_bytes(array)) is not None:
        return found
    wide = array.cast(pa.large_binary())
    raw = np.frombuffer(wide.buffers()[2] or b"", np.uint8)
    if not len(wide):
        return raw[:0], np.zeros(1, np.int64), np.zeros(0, bool)
    ends = np.frombuffer(wide.buffers()[1], np.int64)
    return raw, ends[wide.offset : wide.offset + len(wide) + 1], is_valid(wide)


def _large_bytes(array: pa.Array) -> tuple[Array, Array, Array] | None:
    """Return what `bytes_of` does, copied once into memory of its own; None where values are too small for that."""
    valid = is_valid(array)
    values = payloads(array, range(len(array)))
    ends = np.zeros(len(array) + 1, np.int64)
    np.cumsum([0 if value is None else len(value) for value in values], out=ends[1:])
    if ends[-1] < _LARGE * len(array):
        return None
    raw = empty_bytes(int(ends[-1]))
    for value, start, stop in zip(values, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if stop > start:
            raw[start:stop] = np.frombuffer(value, np.uint8)
    return raw, ends, valid


def _own(part: Array) -> Array:
    """Return bytes that nobody else has: a copy, unless they were copied by `bytes_of`."""
    return part if is_own(part) else np.array(part)


def name_of(dtype: Any) -> str:
    """Return the name of a dtype that may be stored."""
    if isinstance(dtype, str):
        try:
            return dtype_name(dtype_of(dtype))
        except UnsupportedDtypeError:
            pass  # one of NumPy's other names, as "f4"
    return dtype_name(np.dtype(dtype))


def as_array(value: Any, wanted: np.dtype[Any]) -> Array:
    """Return an array or nested lists as NumPy takes them, but whole numbers as they are where uint64 is wanted.

    NumPy makes floats of them if one is at least 2**63 and another is not.

    Examples
    --------
    >>> as_array([1, 2**64 - 1], np.dtype("uint64")).tolist()
    [1, 18446744073709551615]
    """
    array = np.asarray(value)
    if wanted != np.uint64 or array.dtype != np.float64 or not isinstance(value, (list, tuple)):
        return array
    items = np.array(value, object)
    is_whole = all(isinstance(one, (int, np.integer)) and one >= 0 for one in items.flat)
    return items.astype(np.uint64) if items.size and is_whole else array


def cast(array: Array, wanted: np.dtype[Any], rounds: bool) -> Array | None:
    """Return an array in another dtype; None if that changes values, except by rounding if that is allowed."""
    if array.size == 0 and array.dtype == np.float64:
        return array.astype(wanted)  # an empty list
    kind = array.dtype.kind
    if kind not in "biufcmMV" or array.dtype.fields is not None:
        return None
    if np.can_cast(array.dtype, wanted, "safe"):
        return array.astype(wanted)
    if not rounds or kind in "bmM" or wanted.kind in "bmM":
        return None
    with np.errstate(all="ignore"):
        if kind == "c" and wanted.kind != "c":
            return None
        out = array.astype(wanted)
        if wanted.kind in "iu":
            return (
                out if kind in "iu" and (out == array).all() and _same_signs(out, array) else None
            )
        lost = np.isfinite(array.astype(np.float64 if kind != "c" else array.dtype))
        lost &= ~np.isfinite(out.astype(np.float64) if out.dtype.kind == "V" else out)
    return None if lost.any() else out


def _same_signs(out: Array, array: Array) -> bool:
    return bool(((out < 0) == (array < 0)).all())


def _little(array: Array) -> Array:
    little: Array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return little


def _native(array: Array, dtype: np.dtype[Any]) -> Array:
    native: Array = array.astype(dtype, copy=False)
    return native


def _too_much(place: Place) -> Exception:
    return place.wrong(
        0, f"at most {MAX_BYTES} bytes of samples at once", "more", "give fewer samples at a time"
    )
