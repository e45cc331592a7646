"""What a tensor is, apart from its elements: id, shape, dtype, layout, blocks, axis names, attributes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tensorlake_spark.errors import (
    InvalidTensorError,
    MissingDependencyError,
    UnsupportedDtypeError,
    check_text,
    is_iterable,
)
from tensorlake_spark.indexing.predicate import STORED_AXES as STORED_AXES
from tensorlake_spark.tensor.labels import Labels

FORMAT_VERSION = 1
"""Version of the row format that this package writes; it reads this one and all before it."""

MAX_RANK = 32
"""NumPy's own limit when the format was fixed. The first `STORED_AXES` axes prune."""

_ML_DTYPES = re.compile(r"bfloat16|float8_\w+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def listed_ids(ids: Any) -> list[str]:
    """Return an id of a tensor, or some of them, as a list.

    Raises
    ------
    InvalidTensorError
        If it is neither a text nor a list of texts. Which tensors there are is not asked here.

    Examples
    --------
    >>> listed_ids("x"), listed_ids(("x", "y"))
    (['x'], ['x', 'y'])
    """
    if isinstance(ids, bytes) or not is_iterable(ids):
        raise InvalidTensorError(f"{ids!r:.100} is not an id of a tensor, and not a list of them")
    names = [ids] if isinstance(ids, str) else list(ids)
    for name in names:
        _check_text_id(name)
    return names


def _check_text_id(tensor_id: Any) -> None:
    if not isinstance(tensor_id, str):
        raise InvalidTensorError(
            f"a tensor id is a string, not {type(tensor_id).__name__}: {tensor_id!r:.100}"
        )


def check_id(tensor_id: str) -> str:
    """Return `tensor_id` if it may name a tensor, else raise.

    An id has 1 to 512 characters, none of them a control character or half of one; ``/`` separates groups, and no
    segment is empty, ``.`` or ``..``.

    Raises
    ------
    InvalidTensorError
        If the id breaks one of these rules; the message says which.

    Examples
    --------
    >>> check_id("training/boxes")
    'training/boxes'
    """
    _check_text_id(tensor_id)
    if not 1 <= len(tensor_id) <= 512:
        raise InvalidTensorError(f"a tensor id has 1 to 512 characters, this has {len(tensor_id)}")
    if _CONTROL.search(tensor_id):
        raise InvalidTensorError(f"tensor id {tensor_id!r} has a control character")
    check_text(tensor_id, "tensor id", InvalidTensorError)
    for segment in tensor_id.split("/"):
        if segment in ("", ".", ".."):
            raise InvalidTensorError(
                f"tensor id {tensor_id!r} has the segment {segment!r}; segments between '/' may not "
                "be empty, '.' or '..'"
            )
    return tensor_id


def dtype_name(dtype: Any) -> str:
    """Return the name under which the format stores `dtype`, always little endian.

    Raises
    ------
    UnsupportedDtypeError
        For object, structured, string and void dtypes, for ``datetime64`` without a unit, and for what is no dtype.

    Examples
    --------
    >>> dtype_name(np.dtype(">f4")), dtype_name(np.dtype("datetime64[ns]"))
    ('float32', 'datetime64[ns]')
    """
    try:
        return _dtype_name(dtype)
    except UnsupportedDtypeError:
        raise
    except TypeError:  # a list and an array cannot be looked up
        raise UnsupportedDtypeError(
            f"{dtype!r:.80} is no dtype that can be stored; give one of NumPy, such as 'float32'"
        ) from None


@lru_cache(maxsize=256)
def _dtype_name(given: Any) -> str:
    try:
        dtype = np.dtype(given)
    except (TypeError, ValueError) as error:  # the latter for half of a character
        if isinstance(given, str) and _ML_DTYPES.fullmatch(given):
            dtype_of(given)  # which imports ml_dtypes: from then on NumPy knows the name
            return given
        raise UnsupportedDtypeError(f"{given!r:.80} is no dtype of NumPy: {error}") from None
    name = str(dtype.name)
    if dtype.kind in "biufc" and dtype.itemsize <= (16 if dtype.kind == "c" else 8):
        return name
    if dtype.kind in "mM" and "[" in name:
        return name
    if dtype.fields is None and _ML_DTYPES.fullmatch(name):
        return name
    raise UnsupportedDtypeError(
        f"dtype {dtype!s} cannot be stored; bool, integers, floats and complex numbers up to 64 bits "
        "a part, datetime64 and timedelta64 with a unit, bfloat16 and float8_* can"
    )


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype (native byte order) that the format stores under `name`.

    Raises
    ------
    MissingDependencyError
        If the dtype needs the package ``ml_dtypes``, which is not installed.
    UnsupportedDtypeError
        If no such dtype exists.

    Examples
    --------
    >>> dtype_of("uint8")
    dtype('uint8')
    """
    if _ML_DTYPES.fullmatch(name):
        try:
            import ml_dtypes
        except ImportError as error:
            raise MissingDependencyError(
                f"dtype {name} needs the package ml_dtypes: pip install 'tensorlake-spark[dtypes]'"
            ) from error
        if not hasattr(ml_dtypes, name):
            raise UnsupportedDtypeError(f"ml_dtypes {ml_dtypes.__version__} has no dtype {name!r}")
        small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return small
    return _numpy_dtype(name)


@lru_cache(maxsize=256)
def _numpy_dtype(name: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(name)
    except TypeError as error:
        raise UnsupportedDtypeError(f"{name!r} is not a dtype") from error
    full = dtype_name(dtype)
    if full != name:
        raise UnsupportedDtypeError(
            f"{name!r} is not the name of a stored dtype; its name is {full!r}"
        )
    return dtype


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `array` in the machine's byte order, itself where it already is.

    Examples
    --------
    >>> native(np.array([1], dtype=">i4")).dtype.byteorder
    '='
    """
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def converted(values: Any, dtype: np.dtype[Any], place: str) -> np.ndarray[Any, Any]:
    """Return values as an array of a dtype that holds them.

    Parameters
    ----------
    values : array-like
        Floats may be rounded; nothing else may change. Integers and texts may become times.
    dtype : numpy.dtype
        What they become.
    place : str
        What they are for, for the message.

    Raises
    ------
    InvalidTensorError
        If one is not a number of that dtype: NumPy would store another one, for arrays without a word.

    Examples
    --------
    >>> converted([1, 2], np.dtype("u1"), "x")
    array([1, 2], dtype=uint8)
    """
    try:
        given = np.asarray(values)
        if given.dtype == dtype:
            return given
        if given.dtype.kind in "SUO" and dtype.kind not in "mM":
            raise TypeError("only numbers can")
        _check_times(given.dtype, dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is lost is said below
            out = given.astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTensorError(
            f"{values!r:.100} cannot be stored in {place} of dtype {dtype}: {error}"
        ) from error
    # NumPy counts the kinds of ml_dtypes, such as bfloat16, as void.
    known = given.astype(np.float64) if given.dtype.kind == "V" else given
    lost = None
    if dtype.kind in "iu" and known.dtype.kind in "iufc":
        lost = out != known
    elif dtype.kind in "fcV" and known.dtype.kind in "iufc":
        stored = out.astype(np.float64) if dtype.kind == "V" else out
        lost = np.isfinite(known) & ~np.isfinite(stored)
        if dtype.kind != "c":
            lost |= known.imag != 0
    elif dtype.kind in "mM" and known.dtype.kind in "iu":
        lost = out.astype(np.int64) != known
    elif dtype.kind in "mM" and known.dtype.kind == dtype.kind:
        lost = ~np.isnat(known) & (out.astype(known.dtype) != known)
    if lost is not None and lost.any():
        raise InvalidTensorError(
            f"{given[lost][0]!r} cannot be stored in {place} of dtype {dtype} without loss; round or clip it, or "
            "write a tensor of another dtype"
        )
    return np.asarray(out)


def _check_times(given: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    """Raise TypeError if times would become numbers, fractions times, or times of one kind those of the other."""
    times = [kind for kind in (given.kind, dtype.kind) if kind in "mM"]
    if not times or (len(times) == 1 and given.kind in "biuSUO"):
        return
    if len(times) == 2 and np.can_cast(given, dtype, "same_kind"):
        return
    if dtype.kind in "mM":
        raise TypeError(f"only integers, texts and times of its kind can, not {given}")
    raise TypeError("only numbers can; .astype('int64') counts the units of times")


def fill_bytes(value: Any, dtype: np.dtype[Any]) -> bytes:
    """Return a fill value as the format stores it: one element, little endian.

    The default of all writers, the int 0, is the element without a bit, whatever a dtype counts it as:
    ``float8_e8m0fnu`` has powers of two only.

    Raises
    ------
    InvalidTensorError
        If the dtype does not hold the value.

    Examples
    --------
    >>> fill_bytes(0, np.dtype("f4")), fill_bytes(1, np.dtype("u2"))
    (b'\\x00\\x00\\x00\\x00', b'\\x01\\x00')
    """
    if type(value) is int and value == 0:
        return bytes(dtype.itemsize)
    fill = converted(value, dtype, "the fill value")
    little: bytes = fill.astype(dtype.newbyteorder("<")).tobytes()
    return little


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor without its elements; what a metadata row says.

    Attributes
    ----------
    id : str
        Its name in the table; see `check_id`.
    shape : tuple of int
        Length of every axis.
    dtype : numpy.dtype
        In native byte order; the format stores little endian.
    layout : str
        How its boxes are written, such as ``"ftsf"``.
    block_shape : tuple of int
        Shape of a whole chunk (dense) or block (sparse). Chunks at the edge are clipped. Empty if the layout has
        no blocks.
    segments : tuple of tuple of int
        For every axis the positions at which a fresh run of chunks begins: 0, and the end of the
        tensor before each append that did not start on a chunk's edge.
    codec : str
        How the writer codes values; every row names its own codec too.
    fill : bytes
        The value of dense chunks that are not stored: one element, little endian.
    axes : tuple of str, or None
        Names of the axes.
    attrs : mapping
        The user's own attributes, as JSON has them.
    params : mapping
        What the layout needs to write further rows, as JSON has it: ``order``, ``row_axes``, ``duplicates``.
    labels : mapping of str to Labels
        By the name of an axis, what its indices stand for.

    Examples
    --------
    >>> spec = TensorSpec("x", (64, 3), np.dtype("uint8"), "ftsf", (16, 3))
    >>> spec.ndim, spec.size, spec.nbytes
    (2, 192, 192)
    """

    id: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: str
    block_shape: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...] = ()
    codec: str = "zstd"
    fill: bytes = b""
    axes: tuple[str, ...] | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_id(self.id)
        put = object.__setattr__
        put(self, "shape", tuple(int(n) for n in self.shape))
        put(self, "block_shape", tuple(int(n) for n in self.block_shape))
        put(self, "attrs", dict(self.attrs))
        put(self, "params", dict(self.params))
        put(self, "labels", dict(self.labels))
        dtype_name(self.dtype)
        if len(self.shape) > MAX_RANK:
            raise InvalidTensorError(f"rank {len(self.shape)} is above the limit of {MAX_RANK}")
        if min(self.shape, default=0) < 0 or self.size >= 2**63:
            raise InvalidTensorError(
                f"shape {self.shape} is not a shape of fewer than 2**63 elements"
            )
        sides = self.block_shape or (1,)
        if len(self.block_shape) not in (0, self.ndim) or not 1 <= min(sides) <= max(sides) < 2**63:
            raise InvalidTensorError(
                f"block shape {self.block_shape} does not fit shape {self.shape}: one length of at "
                "least 1 for every axis"
            )
        put(self, "segments", self.segments or ((0,),) * self.ndim)
        put(self, "fill", self.fill or bytes(self.dtype.itemsize))
        if len(self.fill) != self.dtype.itemsize:
            raise InvalidTensorError(
                f"a fill value of {len(self.fill)} bytes does not fit dtype {self.dtype}"
            )
        if self.axes is not None:
            put(self, "axes", check_axes(self.axes, self.ndim))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor as one dense array in memory."""
        return self.size * self.dtype.itemsize

    @property
    def fill_value(self) -> np.ndarray[Any, Any]:
        """The fill element as a 0-d array of the tensor's dtype."""
        little = np.frombuffer(self.fill, self.dtype.newbyteorder("<"))
        return native(little).reshape(())


def check_axes(axes: Sequence[str], ndim: int) -> tuple[str, ...]:
    """Return `axes` as a tuple if they can name the axes of a tensor of rank `ndim`.

    Raises
    ------
    InvalidTensorError
        If there is not one distinct identifier for every axis.

    Examples
    --------
    >>> check_axes(["image", "y"], 2)
    ('image', 'y')
    """
    if not is_iterable(axes) or isinstance(axes, (set, frozenset)):
        raise InvalidTensorError(
            f"axes={axes!r} is not a list of names, one for every axis in order"
        )
    names = (axes,) if isinstance(axes, str) else tuple(axes)
    if len(names) != ndim:
        raise InvalidTensorError(f"{len(names)} axis names {names} for a tensor of rank {ndim}")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidTensorError(f"axis name {name!r} is not an identifier")
    if len(set(names)) != len(names):
        raise InvalidTensorError(f"axis names {names} repeat themselves")
    return names
