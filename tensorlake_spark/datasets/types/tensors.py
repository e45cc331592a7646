"""Arrays of numbers: tensors, embeddings and clouds of points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types import tensor_struct
from tensorlake_spark.datasets.types.base import (
    Array,
    Place,
    Tiled,
    Type,
    as_tuple,
    check_names,
    check_one_of,
    shown,
)
from tensorlake_spark.datasets.types.tensor_struct import TENSOR, Structs
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    InvalidSampleError,
    UnsupportedDtypeError,
)
from tensorlake_spark.layouts.coding.chain import CASTS
from tensorlake_spark.layouts.quantization import casts, row_scales
from tensorlake_spark.rows.extension_arrays import plain_column
from tensorlake_spark.tensor.sparse import check_unmasked
from tensorlake_spark.tensor.spec import dtype_of

Shape = tuple[int | None, ...]

MAX_RANK = 32
"""NumPy's own limit when the format was fixed."""


@dataclass(frozen=True, repr=False)
class ArrayType(Type):
    """What types that are stored as TENSOR share: a dtype, and a shape whose lengths may be free."""

    def fixed(self) -> tuple[str, Shape | None]:
        """Return the dtype, and the shape: None for any, None in it for any length."""
        raise NotImplementedError

    def storage(self) -> pa.DataType:
        return TENSOR

    @property
    def stacks(self) -> bool:
        shape = self.fixed()[1]
        return shape is not None and None not in shape

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        structs = Structs(array)
        self._check_dtype(structs)
        return structs.arrays()

    def _stack(self, array: pa.Array) -> Array:
        dtype, shape = self.fixed()
        return Structs(array).stack(shape or (), dtype_of(dtype))  # type: ignore[arg-type]

    def _check_dtype(self, structs: Structs) -> None:
        stored, dtype = structs.dtype(), self.fixed()[0]
        if stored is not None and stored != dtype_of(dtype):
            raise CorruptDataError(
                f"a column of {self} has samples of {stored}; its table was changed by others"
            )

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        parts = [self._part(value, number, place) for number, value in enumerate(values)]
        self.check_all([p for p in parts if isinstance(p, np.ndarray)], parts, place)
        return tensor_struct.struct_of(parts, self.fixed()[0], place)

    def _from_array(self, values: Array, place: Place) -> pa.Array:
        dtype, shape = self.fixed()
        stack = converted_stack(values, dtype, place, self.lenient)
        if not fits(stack.shape[1:], shape):
            raise self._wrong_shape(0, stack.shape[1:], place)
        self.check_all([stack], None, place)
        return tensor_struct.struct_of_stack(stack, dtype, place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_struct(values.type):
            return self._from_list(Structs(values).arrays(), place)
        if pa.types.is_fixed_size_list(values.type) and not values.null_count:
            flat = values.flatten()
            if not flat.null_count and pa.types.is_primitive(flat.type):
                length = values.type.list_size
                rows = flat.to_numpy(zero_copy_only=False).reshape(len(values), length)
                return self._from_array(self._reshaped(rows), place)
        if isinstance(values, pa.ExtensionArray):
            return self.encode(plain_column(values), place.column, place.first)
        return self._from_list(values.to_pylist(), place)

    def _reshaped(self, rows: Array) -> Array:
        """Return rows in the shape of the type, as they are where they do not have so many elements."""
        shape = self.fixed()[1]
        if not shape or None in shape or math.prod(shape) != rows.shape[1]:  # type: ignore[arg-type]
            return rows
        return rows.reshape(len(rows), *shape)  # type: ignore[arg-type]

    lenient: ClassVar[bool] = False
    """Whether arrays of another dtype are rounded to the declared one."""

    def check_all(self, arrays: list[Array], parts: list[Any] | None, place: Place) -> None:
        """Raise InvalidSampleError if values are not what they should be.

        Parameters
        ----------
        arrays : list of ndarray
            Those to look at: one a sample, or one for all samples.
        parts : list, or None
            One a sample; None where `arrays` is one for all.
        place : Place
            For messages.
        """

    def _part(self, value: Any, number: int, place: Place) -> Any:
        dtype, shape = self.fixed()
        if value is None:
            return None
        if isinstance(value, Tiled):
            if value.dtype != dtype or not fits(value.shape, shape):
                raise place.wrong(number, str(self), f"{value.dtype} of shape {value.shape}")
            return value
        if type(value) is np.ndarray and value.dtype == dtype:
            array = value
        else:
            array = converted(value, dtype, number, place, self.lenient)
        if array.size == 0 and array.shape == (0,) and shape is not None and None in shape:
            array = array.reshape(
                [0 if n is None else n for n in shape]
            )  # an empty list has no other axes
        if not fits(array.shape, shape):
            raise self._wrong_shape(number, array.shape, place)
        return array

    def _wrong_shape(self, number: int, shape: tuple[int, ...], place: Place) -> Exception:
        wanted = self.fixed()[1]
        remedy = ""
        if wanted is not None and len(shape) != len(wanted):
            remedy = (
                f"it has {len(shape)} {'axis' if len(shape) == 1 else 'axes'}, not {len(wanted)}"
            )
        return place.wrong(number, f"shape {wanted} (None: any length)", f"shape {shape}", remedy)


@dataclass(frozen=True, repr=False)
class Tensor(ArrayType):
    """An array of one dtype in each sample.

    You may also give arrays of a smaller dtype, such as int16 for int32, and lists of numbers.

    Parameters
    ----------
    dtype : str
        NumPy's name, or a dtype.
    shape : tuple, optional
        The length of each axis; None allows any length. Without a shape, arrays may have any number of axes.

    Examples
    --------
    >>> column = Tensor("float32", (None, 2)).encode([np.ones((3, 2), "f4"), None], "x")
    >>> [None if a is None else a.shape for a in Tensor("float32", (None, 2)).decode(column)]
    [(3, 2), None]
    """

    dtype: str
    shape: Shape | None = None
    kind: ClassVar[str] = "tensor"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dtype", check_dtype(self.dtype))
        if self.shape is not None:
            object.__setattr__(self, "shape", check_shape(self.shape))

    def fixed(self) -> tuple[str, Shape | None]:
        return self.dtype, self.shape


@dataclass(frozen=True, repr=False)
class PointCloud(ArrayType):
    """Points in each sample: an array of shape (points, fields).

    Parameters
    ----------
    fields : sequence of str
        Names of the fields of a point.
    dtype : str
        Of the array; numbers of others are rounded to it.

    Examples
    --------
    >>> cloud = PointCloud(["x", "y", "z"])
    >>> cloud.decode(cloud.encode([np.zeros((5, 3), "f4")], "cloud"))[0].shape
    (5, 3)
    """

    fields: tuple[str, ...] = ("x", "y", "z")
    dtype: str = "float32"
    kind: ClassVar[str] = "point_cloud"
    lenient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fields", check_names(self.fields, "fields"))
        object.__setattr__(self, "dtype", check_float(self.dtype))

    def fixed(self) -> tuple[str, Shape | None]:
        return self.dtype, (None, len(self.fields))


@dataclass(frozen=True, repr=False)
class Embedding(ArrayType):
    """A vector in each sample.

    Parameters
    ----------
    size : int
        Its length.
    dtype : str
        ``float16``, ``bfloat16``, ``float32`` or ``float64``. Numbers of other dtypes are rounded to it.
    quantize : str, optional
        Store it in fewer bits: ``float16``, ``bfloat16``, ``float8_e4m3fn`` or ``float8_e5m2`` rounds each number,
        ``int8`` stores 127ths of the vector's greatest size, and that size. What is read has `dtype` again.

    Examples
    --------
    >>> small = Embedding(3, quantize="float16")
    >>> small.stack(small.encode([[1, 2.5, 1 / 3]], "x"))
    array([[1.        , 2.5       , 0.33325195]], dtype=float32)
    """

    size: int
    dtype: str = "float32"
    quantize: str | None = None
    kind: ClassVar[str] = "embedding"
    lenient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 1:
            raise InvalidOptionError(f"size={self.size!r:.80} is not a number of elements above 0")
        object.__setattr__(self, "dtype", check_float(self.dtype))
        if self.quantize is not None:
            check_one_of(self.quantize, (*CASTS, "int8"), "quantize")

    def fixed(self) -> tuple[str, Shape | None]:
        return self.dtype, (self.size,)

    def storage(self) -> pa.DataType:
        if self.quantize == "int8":
            return pa.struct([*TENSOR, pa.field("scale", pa.float32())])
        return TENSOR

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        parts = [self._part(value, number, place) for number, value in enumerate(values)]
        there = [p for p in parts if p is not None]
        stack = np.stack(there) if there else np.empty((0, self.size), self.fixed()[0])
        numbers = [i for i, p in enumerate(parts) if p is not None]
        out = self._stored(stack, numbers, place)
        if len(there) == len(parts):
            return out
        index = np.full(len(parts), -1)
        index[numbers] = np.arange(len(numbers))
        return out.take(pa.array(index, mask=index < 0))

    def _from_array(self, values: Array, place: Place) -> pa.Array:
        stack = converted_stack(values, self.dtype, place, True)
        if stack.shape[1:] != (self.size,):
            raise self._wrong_shape(0, stack.shape[1:], place)
        return self._stored(stack, range(len(stack)), place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_struct(values.type):
            return self._from_list(self.decode(values), place)
        return super()._from_arrow(values, place)

    def _part(self, value: Any, number: int, place: Place) -> Any:
        if isinstance(value, Tiled):
            raise place.wrong_type(number, str(self), "a tiled sample")
        return super()._part(value, number, place)

    def _stored(self, stack: Array, numbers: Any, place: Place) -> pa.Array:
        """Return vectors, one a row, as a column without nulls; `numbers` are those of the samples."""
        if self.quantize is None:
            return tensor_struct.struct_of_stack(stack, self.dtype, place)
        if self.quantize == "int8":
            codes, scales, lost = row_scales.codes_of(stack)
            self._check_kept(lost | ~np.isfinite(scales)[:, None], stack, numbers, place)
            column = tensor_struct.struct_of_stack(codes, "int8", place)
            fields = [*self.storage()]
            return pa.StructArray.from_arrays([*column.flatten(), pa.array(scales)], fields=fields)
        stored = casts.rounded(stack, dtype_of(self.quantize))
        self._check_kept(casts.lost(stack, stored), stack, numbers, place)
        return tensor_struct.struct_of_stack(stored, self.quantize, place)

    def _check_kept(self, lost: Array, stack: Array, numbers: Any, place: Place) -> None:
        if lost.any():
            row, at = np.argwhere(lost)[0].tolist()
            raise place.wrong(
                numbers[row], f"numbers that {self.quantize} holds", f"{stack[row, at]} at [{at}]",
                "leave quantize out",
            )  # fmt: skip

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        if not array.null_count:
            return list(self._vectors(array, native))
        there = array.is_valid()
        stored = array.cast(self.storage())  # Arrow filters no views
        vectors = iter(self._vectors(stored.filter(there), native))
        return [next(vectors) if valid else None for valid in there.to_pylist()]

    def _stack(self, array: pa.Array) -> Array:
        return self._vectors(array, False)

    def _vectors(self, array: pa.Array, native: bool) -> Array:
        structs = Structs(array)
        if self.quantize is None:
            return structs.stack((self.size,), dtype_of(self.dtype))
        stored = structs.stack((self.size,), dtype_of(self.quantize))
        if native:
            return stored
        if self.quantize == "int8":
            return row_scales.floats_of(
                stored, tensor_struct.scales_of(array), dtype_of(self.dtype)
            )
        return np.asarray(stored.astype(dtype_of(self.dtype)))


# ------------------------------------------------------------------ checks


def check_dtype(dtype: Any) -> str:
    """Return the name of a dtype.

    Raises
    ------
    InvalidOptionError
        If an array of it cannot be stored.
    """
    try:
        return tensor_struct.name_of(dtype)
    except (UnsupportedDtypeError, TypeError, ValueError) as error:
        raise InvalidOptionError(f"dtype={dtype!r:.80} cannot be stored: {error}") from error


def check_float(dtype: Any) -> str:
    """Return the name of a dtype, which has to be one of floats."""
    name = check_dtype(dtype)
    check_one_of(name, ("float16", "bfloat16", "float32", "float64"), "dtype")
    return name


def check_shape(shape: Any) -> Shape:
    """Return a shape as a tuple.

    Raises
    ------
    InvalidOptionError
        If a length is neither None nor a number from 0, or there are too many axes.
    """
    checked = as_tuple(shape, "shape")
    for length in checked:
        if length is not None and (
            not isinstance(length, (int, np.integer)) or isinstance(length, bool) or length < 0
        ):
            raise InvalidOptionError(
                f"shape={shape!r:.80} has the length {length!r:.40}; give a number or None"
            )
    if len(checked) > MAX_RANK:
        raise InvalidOptionError(f"shape has {len(checked)} axes, more than {MAX_RANK}")
    return tuple(None if n is None else int(n) for n in checked)


def fits(shape: tuple[int, ...], wanted: Shape | None) -> bool:
    """Whether an array's shape is one of those that are wanted."""
    if wanted is None:
        return len(shape) <= MAX_RANK
    return shape == wanted or (
        len(shape) == len(wanted) and all(w in (None, n) for n, w in zip(shape, wanted))
    )


def converted(value: Any, dtype: str, number: int, place: Place, lenient: bool) -> Array:
    """Return a value as an array of a dtype.

    Parameters
    ----------
    value : array_like
        An array, or nested lists of numbers.
    dtype : str
        NumPy's name.
    number : int
        Of the sample.
    place : Place
        For messages.
    lenient : bool
        Whether any real numbers are rounded to the dtype. Else only dtypes are taken that it holds.
    """
    wanted = dtype_of(dtype)
    try:
        if isinstance(value, (str, bytes, bytearray, dict, set)):
            path = "; give an array, or the path of a .npy" if isinstance(value, str) else ""
            raise TypeError(f"{type(value).__name__} is not an array{path}")
        if isinstance(value, pa.Scalar):  # NumPy would take the bytes of a text for numbers
            value = value.as_py()
        check_unmasked(value)
        array = tensor_struct.as_array(value, wanted)
    except (TypeError, ValueError, RuntimeError) as error:
        raise place.wrong_type(
            number, f"an array of {dtype}", shown(value), f"{error}", error
        ) from error
    if array.dtype == wanted:
        return array
    listed = isinstance(value, (list, tuple, int, float)) or lenient
    out = tensor_struct.cast(array, wanted, listed)
    if out is None:
        remedy = (
            "cast it with astype, or declare its dtype" if array.dtype.kind in "biufcmM" else ""
        )
        if isinstance(value, (list, tuple, int)) and array.dtype.kind in "iu" and array.size:
            raise place.wrong(
                number, f"dtype {dtype}", f"numbers from {array.min()} to {array.max()}", "declare a wider dtype",
            )  # fmt: skip
        if listed and array.dtype.kind in "iuf" and wanted.kind not in "biu" and array.size:
            most = np.abs(array[np.isfinite(array)]).max(initial=0)
            raise place.wrong(
                number, f"numbers that {dtype} holds", f"{shown(array)} with {most}", "declare a wider dtype",
            )  # fmt: skip
        raise place.wrong_type(number, f"dtype {dtype}", shown(array), remedy)
    return out


def converted_stack(values: Array, dtype: str, place: Place, lenient: bool) -> Array:
    """Return the values of many samples, one after the other along the first axis, as `converted` does it."""
    try:
        return converted(values, dtype, 0, place, lenient)
    except InvalidSampleError:  # of one of them, which is named with its own shape
        for number in range(len(values)):
            converted(values[number, ...], dtype, number, place, lenient)
        raise
