"""Contraction: two tensors multiplied along axes that they share, as matrices of those axes and the others.

Every product of tensors is one product of matrices. The rows of the left one are the axes that both keep and its own,
its columns those that both keep and those that are summed. That makes it block-diagonal, so that blocks which do not
belong together never meet. SciPy multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing.coords import check_shape, combine, unravel
from tensorlake_spark.ops import loop_choice
from tensorlake_spark.ops.csr_matrix import (
    ROOMY,
    SCIPY_DTYPES,
    RowBlock,
    by_rows,
    csr_of,
    kept_blocks,
    kept_matrix,
    keys_of,
    lengths_of,
    rows_of,
    turned_product,
)
from tensorlake_spark.ops.elements import Elements, canonical
from tensorlake_spark.ops.numpy_arguments import axes_of, dtype_of_product
from tensorlake_spark.threads import at_once

Array = np.ndarray[Any, Any]
Operand = Elements | Array
Label = int | str

_PIECE = 4 << 20
"""Bytes of a dense product that SciPy makes at a time: it copies them, and memory of that size is used again."""

loops_for = partial(loop_choice.loops_for, "tensorlake_spark.ops.products.product_loops")
"""Return the compiled loops of products if one of them runs; it takes its name, the dtype of values, and bytes."""


def operand(value: Any) -> Operand:
    """Return what can be multiplied: elements as they are, all else as an array of numbers.

    Raises
    ------
    UnsupportedDtypeError
        If it has no numbers: also for sparse matrices of another package, which would have to become dense.

    Examples
    --------
    >>> operand([1, 2])
    array([1, 2])
    """
    found: Operand = value if isinstance(value, Elements) else np.asarray(value)
    if found.dtype.kind not in "biufcV" or found.dtype.names:
        remedy = (
            "astype('int64') counts units"
            if found.dtype.kind in "mM"
            else "sparse matrices of other packages become tensors by SparseTensor.from_scipy(...) and its kin"
        )
        raise UnsupportedDtypeError(
            f"{type(value).__name__} of dtype {found.dtype} has no products; {remedy}"
        )
    return found


def elements_of(array: Operand) -> Elements:
    """Return the elements of an array that are not zero.

    Examples
    --------
    >>> elements_of(np.array([0.0, 2.0])).coords.tolist()
    [[1]]
    """
    if isinstance(array, Elements):
        return array
    places = np.flatnonzero(array)
    values = array.reshape(-1)[places]
    return Elements._trusted(unravel(places, array.shape), values, array.shape, places)


def dense_of(x: Operand) -> Array:
    """Return a tensor as an array.

    Examples
    --------
    >>> dense_of(elements_of(np.array([0, 2])))
    array([0, 2])
    """
    if not isinstance(x, Elements):
        return x
    out = np.zeros(x.shape, x.dtype)
    out.reshape(-1)[x.places] = x.values
    return out


def cast(x: Operand, dtype: np.dtype[Any]) -> Operand:
    """Return a tensor with its values converted; itself if they have the dtype.

    Examples
    --------
    >>> cast(elements_of(np.array([0, 2])), np.dtype("f4")).values
    array([2.], dtype=float32)
    """
    if not isinstance(x, Elements):
        return x.astype(dtype, copy=False)
    if x.dtype == dtype:
        return x
    return Elements._trusted(x.coords, x.values.astype(dtype), x.shape, x._places)


def transposed(x: Elements, axes: Sequence[int]) -> Elements:
    """Return a tensor with its axes in another order.

    Examples
    --------
    >>> transposed(elements_of(np.array([[0, 1, 2]])), (1, 0)).coords.tolist()
    [[1, 2], [0, 0]]
    """
    if list(axes) == list(range(x.ndim)):
        return x
    shape = tuple(x.shape[axis] for axis in axes)
    return canonical(x.coords[list(axes)], x.values, shape)


def to_csr(x: Elements, rows: int | Iterable[int] = 0) -> Any:
    """Return the tensor as a matrix of SciPy, which is kept, so that further products need not make it again.

    Parameters
    ----------
    x : Elements
        Of rank 1 at least.
    rows : int or sequence of int
        Axes that form the rows, the last of them fastest. The other axes form the columns, in their order. With one
        axis it is the unfolding of that mode, in C order.

    Returns
    -------
    scipy.sparse.csr_array
        Of shape (cells of `rows`, cells of the others), read-only: it shares memory with the tensor where it can.

    Raises
    ------
    AxisError
        If there is no such axis. One that is given twice is a ValueError.
    InvalidTensorError
        For a dtype that SciPy does not have.

    Examples
    --------
    >>> to_csr(elements_of(np.array([[[0, 1], [2, 0]]])), (0, 1)).toarray().tolist()
    [[0, 1], [2, 0]]
    """
    axes = axes_of(rows, x.ndim)
    if x.dtype.char not in SCIPY_DTYPES:
        raise InvalidTensorError(
            f"scipy.sparse has no matrices of dtype {x.dtype}; convert it with .astype(...)"
        )
    return kept_matrix(x, axes, tuple(k for k in range(x.ndim) if k not in axes))


def same_lengths(
    operands: Sequence[Operand], labels: Sequence[Sequence[Label]]
) -> tuple[list[Operand], list[list[Label]], dict[Label, int]]:
    """Return operands without those axes of length 1 whose label is longer elsewhere, their labels, all lengths.

    Raises
    ------
    InvalidTensorError
        If the axes of a label have two lengths that do not broadcast.

    Examples
    --------
    >>> _, labels, _ = same_lengths([np.ones((1, 3)), np.ones((2, 3))], ["ij", "ij"])
    >>> labels
    [['j'], ['i', 'j']]
    """
    long: dict[Label, int] = {}
    for x, of in zip(operands, labels, strict=True):
        for axis, (label, n) in enumerate(zip(of, x.shape, strict=True)):
            if 1 not in (n, known := long.get(label, 1)) and n != known:
                raise InvalidTensorError(
                    f"axis {axis} of an operand of shape {x.shape} has length {n}, and the axis that it goes with "
                    f"has {known}; they must be equal, or one of them 1"
                )
            long[label] = n if known == 1 else known
    found, names = [], []
    for x, of in zip(operands, labels, strict=True):
        left = [k for k, label in enumerate(of) if x.shape[k] == long[label]]
        found.append(_only(x, left))
        names.append([of[k] for k in left])
    return found, names, long


def _only(x: Operand, axes: Sequence[int]) -> Operand:
    """Return a tensor without the other axes, which have length 1."""
    if len(axes) == x.ndim:
        return x
    shape = tuple(lengths_of(x, axes))
    if not isinstance(x, Elements):
        return x.reshape(shape)
    return Elements._trusted(x.coords[list(axes)], x.values, shape, x._places)


def multiply(
    a: Operand, of_a: Sequence[Label], b: Operand, of_b: Sequence[Label], out: Sequence[Label]
) -> Any:
    """Return the product of two tensors whose axes have labels: what ``einsum`` computes of two operands.

    Parameters
    ----------
    a, b : Elements or ndarray
        The operands, one of them Elements.
    of_a, of_b : sequence of labels
        One for each axis, none twice. Axes of one label have one length.
    out : sequence of labels
        Those of the result. What is in both operands and not in it is summed. What is in one of them only must be
        in it.

    Returns
    -------
    Elements or ndarray
        Dense if an operand is dense and something is summed; elements otherwise.

    Raises
    ------
    InvalidTensorError
        If the result has 2**63 elements or more.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> multiply(x, "ij", np.array([5, 7]), "j", "i")
    array([14, 15])
    """
    both = [label for label in of_a if label in of_b]
    kept, summed = [n for n in both if n in out], [n for n in both if n not in out]
    if summed and not isinstance(a, Elements):
        a, of_a, b, of_b = b, of_b, a, of_a
    own_a, own_b = ([n for n in of if n not in both] for of in (of_a, of_b))
    labels = (*kept, *own_a, *own_b)
    long = dict(zip((*of_a, *of_b), (*a.shape, *b.shape), strict=True))
    shape = check_shape([long[label] for label in labels])
    dtype = dtype_of_product(a.dtype, b.dtype)

    def axes(of: Sequence[Label], *groups: list[Label]) -> list[int]:
        return [of.index(label) for group in groups for label in group]

    rows, inner = axes(of_a, kept, own_a), axes(of_a, kept, summed)
    order = [labels.index(label) for label in out]
    x = _worked(elements_of(a), dtype)
    if summed and not isinstance(b, Elements):
        across = b.transpose(axes(of_b, kept, summed, own_b)).astype(scipy_dtype(dtype), copy=False)
        count = math.prod(long[label] for label in (*kept, *summed))
        columns = math.prod(long[label] for label in own_b)
        dense = _dense_product(x, rows, inner, across.reshape(count, columns))
        return dense.astype(dtype, copy=False).reshape(shape).transpose(order)
    y = _worked(elements_of(b), dtype)
    places = axes(of_b, kept, summed), axes(of_b, own_b)
    found = _sparse_product(x, rows, inner, y, *places, shape)
    if found.dtype != dtype:
        found = canonical(found.coords, found.values.astype(dtype), shape)
    return transposed(found, order)


def scipy_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that SciPy computes in: itself, or float32 for one that is shorter than that.

    Examples
    --------
    >>> scipy_dtype(np.dtype("f2")), scipy_dtype(np.dtype("i1"))
    (dtype('float32'), dtype('int8'))
    """
    return dtype if dtype.char in SCIPY_DTYPES else np.dtype(np.float32)


def _worked(x: Elements, dtype: np.dtype[Any]) -> Any:
    return x if x.dtype.char in SCIPY_DTYPES else cast(x, scipy_dtype(dtype))


def _dense_product(x: Elements, rows: list[int], inner: list[int], dense: Array) -> Array:
    """Return a tensor as a matrix times a dense one, dense."""
    vectors = dense[:, 0] if dense.shape[1] == 1 else dense
    if dense.shape[1] == 1 and [*inner, *rows] == list(range(x.ndim)):  # its transpose is sorted
        return turned_product(x, inner, rows, vectors)
    blocks = kept_blocks(x, rows, inner)
    stored = blocks[0].matrix.dtype
    is_looped = dense.shape[1] > 1 and stored == dense.dtype
    loops = loops_for("spmm", stored, x.values.nbytes) if is_looped else None
    dtype = np.result_type(stored, dense.dtype)
    out = np.empty((blocks[-1].rows.stop, *vectors.shape[1:]), dtype)

    def put(block: RowBlock) -> None:
        matrix, here = block.matrix, out[block.rows]
        if loops is not None:
            loops.spmm(matrix.indptr, matrix.indices, matrix.data, dense, here)
            return
        step = max(1, len(here) * _PIECE // max(1, here.nbytes))
        for first in range(0, len(here), step):
            last = min(first + step, len(here))
            here[first:last] = rows_of(matrix, first, last) @ vectors

    at_once(put, blocks)
    return out


def _sparse_product(
    a: Elements,
    rows: list[int],
    inner: list[int],
    b: Elements,
    across: list[int],
    cols: list[int],
    shape: tuple[int, ...],
) -> Elements:
    """Return two tensors as matrices multiplied, canonical."""
    if not a.nnz or not b.nnz:
        return Elements._trusted(
            np.empty((len(shape), 0), np.int64), (a.values[:0] * b.values[:0]), shape
        )
    if not cols and set(rows) <= set(inner):
        return _matched(a, rows, inner, b, across, shape)
    heads, tails = lengths_of(a, rows), lengths_of(b, cols)
    cells = math.prod(heads), math.prod(lengths_of(a, inner)), math.prod(tails)
    if max(cells) <= ROOMY * (a.nnz + b.nnz):
        found, values = _matrix_product(kept_matrix(a, rows, inner), kept_matrix(b, across, cols))
    else:
        of_row, row = np.unique(keys_of(a, rows), return_inverse=True)
        of_col, col = np.unique(keys_of(b, cols), return_inverse=True)
        both = np.concatenate((keys_of(a, inner), keys_of(b, across)))
        of_inner, between = np.unique(both, return_inverse=True)
        n = len(of_inner)
        found, values = _matrix_product(
            csr_of(row, between[: a.nnz], a.values, (len(of_row), n), False),
            csr_of(between[a.nnz :], col, b.values, (n, len(of_col)), False),
        )
        found = np.stack((of_row[found[0]], of_col[found[1]]))
    kept = values != 0
    if not kept.all():
        found, values = found[:, kept], values[kept]
    if len(heads) == len(tails) == 1:
        return Elements._trusted(found, values, shape)
    coords = np.empty((len(shape), len(values)), np.int64)
    unravel(found[0], heads, coords[: len(heads)])
    unravel(found[1], tails, coords[len(heads) :])
    return Elements._trusted(coords, values, shape)


def _matrix_product(a: Any, b: Any) -> tuple[Array, Array]:
    """Return the product of two matrices: rows and columns, shape (2, n), in C order, and values."""
    # By columns, and then by rows: that sorts in linear time.
    columns = b.tocsc()
    return by_rows(lambda *rows: (rows_of(a, *rows).tocsc() @ columns).tocsr(), a)


def _matched(
    a: Elements,
    rows: list[int],
    inner: list[int],
    b: Elements,
    across: list[int],
    shape: tuple[int, ...],
) -> Elements:
    """Return the product of two tensors that have all axes in common, summed over those that are not rows."""
    keys = keys_of(a, inner), keys_of(b, across)
    loops = loops_for("matches", np.dtype(np.int64), keys[0].nbytes + keys[1].nbytes)
    if loops is not None and inner == across == list(range(a.ndim)):
        mine, yours = loops.matches(*keys)
    else:
        _, mine, yours = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    values = a.values[mine] * b.values[yours]
    if rows:
        return canonical(a.coords[rows][:, mine], values, shape, "sum")
    total = combine(values, np.zeros(min(1, len(values)), np.int64), "sum")
    return canonical(np.empty((0, len(total)), np.int64), total, ())
