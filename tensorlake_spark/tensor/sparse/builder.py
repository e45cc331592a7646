"""SparseBuilder: a sparse tensor that may change, until it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import integer_of
from tensorlake_spark.tensor.sparse.array import SparseTensor
from tensorlake_spark.tensor.sparse.assigned import refused_values
from tensorlake_spark.tensor.sparse.builder_view import BuilderView
from tensorlake_spark.tensor.sparse.element_buffer import ElementBuffer
from tensorlake_spark.tensor.spec import dtype_name

_SCALARS = frozenset((bool, int, float, complex))


class SparseBuilder(BuilderView):
    """A sparse tensor that may change. `build` returns it as a `SparseTensor`.

    ``b[key] = values`` takes the keys and values that NumPy's assignment takes, and sparse values: what is there is
    replaced, zeros are removed. ``b[key]`` reads; ``b.view[key]`` is a view, to which one writes. Operators such as
    ``b *= 2``, and ufuncs with ``out=b``, work in place.

    What is put is appended to a buffer, and sorted when order is needed next: by a slice that is read, by an
    operator, by `nnz` or by `build`. So many puts between two of these are cheap.

    Parameters
    ----------
    shape : sequence of int
        Length of every axis; fewer than 2**63 elements.
    dtype : dtype
        Of its elements. Values are converted to it as NumPy's assignment does.

    Raises
    ------
    InvalidTensorError
        For a shape that cannot be, and for values that do not stretch to what they are assigned to.
        UnsupportedDtypeError for a dtype that no row can hold, and for a result of a ufunc that `dtype` does not
        take.
    InvalidKeyError
        For a key that does not fit the shape.
    DenseResultError
        For values that would be stretched to more than 2**27 elements.
    BuilderClosedError
        For every use after `build`, also of views.

    Notes
    -----
    What was read stays as it is: it shares no memory that is written to. A builder, and a view, can be pickled: the
    copy has elements of its own. One thread at a time may use a builder and its views, also to read, since reading
    may sort.

    Examples
    --------
    >>> b = SparseBuilder((3, 2), dtype=int)
    >>> b[0, 1] = 5
    >>> b[:, 0] = [0, 7, 9]
    >>> b[2] = 0
    >>> b *= 2
    >>> b.build().todense().tolist()
    [[0, 10], [14, 0], [0, 0]]
    """

    __slots__ = ()

    def __init__(self, shape: Sequence[int], dtype: Any = np.float64) -> None:
        dtype_name(dtype)
        kind = np.dtype(dtype)
        nothing = np.empty(0, kind.newbyteorder("="))
        super().__init__(ElementBuffer(np.empty(0, np.int64), nothing, check_shape(shape)))

    @classmethod
    def of(cls, x: SparseTensor) -> SparseBuilder:
        """Return a builder with the elements of a tensor, which it shares until they change.

        Examples
        --------
        >>> SparseBuilder.of(SparseTensor.from_dense(np.eye(2)))[1, 1]
        np.float64(1.0)
        """
        if not isinstance(x, Elements):
            raise InvalidTensorError(
                f"{x!r:.80} is {type(x).__name__}; a builder begins with a SparseTensor, such as "
                "SparseTensor.from_dense(array), or with a shape: SparseBuilder(shape)"
            )
        new = cls(x.shape, x.dtype)
        new._buffer.replace(x.places, x.values, x._coords)
        return new

    def __setitem__(self, key: Any, values: Any) -> None:
        # Single elements come by the hundred thousand, and need nothing of what other keys do.
        if type(values) in _SCALARS or isinstance(values, np.generic):
            place = self._place(key)
            if place is not None:
                try:
                    self._buffer.put(place, values)
                except (TypeError, ValueError, OverflowError):  # a `with` around it costs each put
                    with refused_values(values, self.dtype):
                        raise
                return
        super().__setitem__(key, values)

    def __getitem__(self, key: Any) -> Any:
        place = self._place(key)
        return super().__getitem__(key) if place is None else self._buffer.get(place)

    def _place(self, key: Any) -> int | None:
        """Return the place that a key of integers within the shape names, None for every other key."""
        shape = self._buffer.shape
        indices = key if type(key) is tuple else (key,)
        if len(indices) != len(shape):
            return None
        place = 0
        for index, size in zip(indices, shape):
            if type(index) is not int:
                if not isinstance(index, np.integer):
                    return None
                index = int(index)
            if index < 0:
                index += size
            if not 0 <= index < size:
                return None
            place = place * size + index
        return place

    @property
    def nnz(self) -> int:
        """Number of elements that are not zero."""
        return self._buffer.elements().nnz

    @property
    def capacity(self) -> int:
        """Number of elements, with those put twice, that there is room for before a buffer is made larger."""
        return self._buffer.capacity

    def reserve(self, count: int) -> None:
        """Make room for so many elements altogether, so that puts do not make buffers larger one by one.

        Raises
        ------
        InvalidOptionError
            For a negative number, or one beyond every memory. InvalidKeyTypeError for what is not an integer.

        Examples
        --------
        >>> b = SparseBuilder((1000, 1000))
        >>> b.reserve(500)
        >>> b.capacity
        500
        """
        number = integer_of(count, "count")
        if number < 0:
            raise InvalidOptionError(f"count={number} elements cannot be reserved; give 0 or more")
        if number > (most := np.iinfo(np.intp).max // (8 + self.dtype.itemsize)):
            raise InvalidOptionError(
                f"count={number} elements cannot be reserved: no memory holds more than {most} of {self.dtype}"
            )
        self._buffer.reserve(number)

    def copy(self) -> SparseBuilder:
        """Return a builder of its own with the same elements."""
        return SparseBuilder.of(self[...])

    __copy__ = copy

    def build(self) -> SparseTensor:
        """Return the tensor, canonical: in C order, without zeros. The builder and its views end with it.

        The tensor takes the arrays of the builder; nothing is copied.

        Raises
        ------
        BuilderClosedError
            If it was built before.
        """
        built = self._buffer.elements()
        self._buffer.close()
        return SparseTensor._trusted(built._coords, built.values, built.shape, built.places)

    def __repr__(self) -> str:
        if self._buffer.closed:
            return f"SparseBuilder(shape={self.shape}, dtype={self.dtype}, built)"
        return f"SparseBuilder(shape={self.shape}, dtype={self.dtype}, nnz={self.nnz})"
