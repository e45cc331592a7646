"""Elementwise: a ufunc of stored tensors, arrays and scalars, region by region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.regions import region_boxes
from tensorlake_spark.errors import UnsupportedFunctionError
from tensorlake_spark.indexing import Box
from tensorlake_spark.ops.broadcasting import broadcast_shapes
from tensorlake_spark.ops.elements import Elements, canonical
from tensorlake_spark.ops.numpy_arguments import refused_dtypes
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing.source import bands

Array = np.ndarray[Any, Any]

# Keywords of ufuncs that mean the same for a part as for the whole.
_KEYWORDS = ("casting", "dtype", "order", "sig", "signature", "subok")


@dataclass(frozen=True, eq=False)
class Mapped:
    """What a ufunc gives of operands that broadcast; it is a source of regions, which can be written.

    Attributes
    ----------
    ufunc : numpy.ufunc
        With one result.
    operands : tuple
        `Stored`, arrays, `SparseTensor` and scalars; at least one is `Stored`.
    shape, dtype
        Of the result.
    is_sparse : bool
        Whether the result is sparse.
    options : dict
        Keywords of the ufunc.
    """

    ufunc: np.ufunc
    operands: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_sparse: bool
    options: dict[str, Any]
    nbytes: None = None

    @classmethod
    def of(cls, ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]) -> Mapped:
        """Return the elementwise operation.

        Raises
        ------
        UnsupportedFunctionError
            If the ufunc has more than one result, or a core dimension, or takes more or fewer operands, and for
            keywords of whole arrays, such as ``where`` and ``out``.
        DenseResultError
            If it would make zeros of a sparse tensor non-zero.
        InvalidTensorError
            If shapes do not broadcast.
        UnsupportedDtypeError
            A TypeError, as NumPy's: for dtypes that do not go together.
        NumberOverflowError
            If a number does not fit the dtype of the tensor.
        """
        if len(operands) != ufunc.nin:
            raise UnsupportedFunctionError(
                f"np.{ufunc.__name__} takes {ufunc.nin} operand{'s'[: ufunc.nin - 1]}, and got {len(operands)}; the "
                "tensor is the first of them"
            )
        if ufunc.nout != 1 or ufunc.signature is not None:
            raise UnsupportedFunctionError(
                f"np.{ufunc.__name__} of a stored tensor is not there: only ufuncs with one result, element by element"
            )
        if refused := [f"{name}=" for name in options if name not in _KEYWORDS]:
            raise UnsupportedFunctionError(
                f"np.{ufunc.__name__} with {', '.join(refused)} of a stored tensor is not there: it is computed a part "
                f"at a time, and takes {', '.join(f'{name}=' for name in _KEYWORDS)}; read it to give others: "
                f"np.{ufunc.__name__}(ref[...], ...)"
            )
        shape = broadcast_shapes(*(np.shape(x) if np.isscalar(x) else x.shape for x in operands))
        alike = [_like(x) for x in operands]
        if any(isinstance(x, np.ndarray) and x.ndim for x in alike):
            # The dense result of nothing: an array of the whole shape would take memory.
            alike = [_small(x) for x in alike]
        # The try is on zeros: a warning of it, such as that of log(0), would say nothing of the tensor.
        with refused_dtypes(ufunc, alike), np.errstate(all="ignore"):
            tried = ufunc(*alike, **options)
        is_sparse = isinstance(tried, Elements)
        dtype = tried.dtype if is_sparse else np.asarray(tried).dtype
        return cls(ufunc, tuple(operands), shape, dtype, is_sparse, options)

    @property
    def _first(self) -> Stored:
        return next(x for x in self.operands if isinstance(x, Stored))

    def density(self) -> float:
        """Return a guess at the share of elements that are not zero."""
        return (
            1.0
            if not self.is_sparse
            else self._first.meta.totals.nnz / max(1, self._first.meta.spec.size)
        )

    def sample(self, block: Sequence[int]) -> Array:
        """Return a block from the middle, from which a codec is chosen."""
        lo = tuple(max(0, (n - b) // 2) for n, b in zip(self.shape, block, strict=True))
        hi = tuple(min(a + b, n) for a, b, n in zip(lo, block, self.shape, strict=True))
        return np.asarray(self.part(Box(lo, hi)))

    def part(self, box: Box) -> Any:
        """Return the result in a box."""
        parts = [_cut(x, box) for x in self.operands]
        with refused_dtypes(self.ufunc, parts):  # the try was on zeros
            out = self.ufunc(*parts, **self.options)
        if isinstance(out, Elements):
            return out
        array = np.asarray(out).reshape(box.shape)
        # What an array holds may make zeros of a sparse tensor non-zero, as in x > array.
        return SparseTensor.from_dense(array) if self.is_sparse else array

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield ``(offset, region)`` in C order, of whole blocks."""
        for box in self.boxes(tuple(block) or None):
            yield box.lo, self.part(box)

    def computed(self) -> Any:
        """Return the result in memory: an array, a scalar or a `SparseTensor`."""
        if self.is_sparse:
            return self._sparse()
        out = np.empty(self.shape, self.dtype)
        for box in self.boxes():
            out[box.slices()] = self.part(box)
        return out[()] if not out.ndim else out

    def _sparse(self) -> SparseTensor:
        coords, values = [np.zeros((len(self.shape), 0), np.int64)], [np.zeros(0, self.dtype)]
        for box in self.boxes():
            part = self.part(box)
            coords.append(part.coords + np.array(box.lo, np.int64).reshape(-1, 1))
            values.append(part.values)
        found = canonical(np.concatenate(coords, axis=1), np.concatenate(values), self.shape)
        return SparseTensor._trusted(found.coords, found.values, self.shape)

    def boxes(self, block: tuple[int, ...] | None = None) -> Iterator[Box]:
        """Yield boxes that tile the result in C order, of whole blocks where a block is given."""
        first = next(
            (x for x in self.operands if isinstance(x, Stored) and x.shape == self.shape), None
        )
        if first is None:  # all of it comes of broadcasting
            if 0 not in self.shape:
                yield from bands(self.shape, block or (1,) * len(self.shape), self.dtype.itemsize)
            return
        yield from region_boxes(first, block, self.dtype.itemsize)


def _like(operand: Any) -> Any:
    """Return what has the dtype, shape and kind of an operand, and no memory. One without axes is read as a scalar."""
    if isinstance(operand, Stored) and operand.is_sparse and operand.shape:
        return _nothing(operand.shape, operand.dtype)
    if isinstance(operand, Elements):
        return _nothing(operand.shape, operand.dtype)
    if isinstance(operand, (Stored, np.ndarray)):
        return np.broadcast_to(np.zeros((), operand.dtype), operand.shape)
    return operand


def _small(operand: Any) -> Any:
    shape = (1,) * getattr(operand, "ndim", 0)
    if isinstance(operand, Elements):
        return _nothing(shape, operand.dtype)
    return np.zeros(shape, operand.dtype) if isinstance(operand, np.ndarray) else operand


def _nothing(shape: tuple[int, ...], dtype: np.dtype[Any]) -> SparseTensor:
    return SparseTensor._trusted(np.zeros((len(shape), 0), np.int64), np.zeros(0, dtype), shape)


def _cut(operand: Any, box: Box) -> Any:
    """Return what of an operand a box of the result is computed from."""
    if np.isscalar(operand) or not operand.shape:
        return np.asarray(operand.read())[()] if isinstance(operand, Stored) else operand
    skipped = len(box.lo) - len(operand.shape)
    sides = zip(operand.shape, box.lo[skipped:], box.hi[skipped:], strict=True)
    spans = [(0, 1) if n == 1 else (a, b) for n, a, b in sides]
    if isinstance(operand, Stored):
        return operand.box([a for a, _ in spans], [b for _, b in spans]).read()
    return operand[tuple(slice(a, b) for a, b in spans)]
