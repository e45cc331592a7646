"""A tensor as a matrix of SciPy: some axes form its rows, others its columns. It is kept on the tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.thread_shares import spans
from tensorlake_spark.threads import at_once

Array = np.ndarray[Any, Any]

SCIPY_DTYPES = "?" + np.typecodes["AllInteger"] + "fdgFDG"
"""Characters of the dtypes that SciPy has matrices of."""

ROOMY = 4
"""An index space of more than so many times the elements gets no pointer for each index."""

_AT_ONCE = 1 << 16  # elements whose rows are counted together
_MANY = 1 << 12  # elements below which making a matrix costs more than it saves
_TURNED = 2  # blocks whose products are added up


class RowBlock(NamedTuple):
    """Some rows of a matrix of SciPy, or the transpose of these."""

    rows: slice
    matrix: Any


def kept_matrix(x: Elements, rows: Sequence[int], cols: Sequence[int]) -> Any:
    """Return the matrix of some axes and others, which is kept; an axis may be in both.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> kept_matrix(x, (1,), (0,)).toarray().tolist()
    [[0, 0, 7], [5, 0, 0]]
    """
    key = "csr", tuple(rows), tuple(cols)
    if key not in x._cached:
        shape = math.prod(lengths_of(x, rows)), math.prod(lengths_of(x, cols))
        order = [*rows, *(axis for axis in cols if axis not in rows)]
        is_sorted = order == list(range(x.ndim))
        x._cached[key] = csr_of(keys_of(x, rows), keys_of(x, cols), x.values, shape, is_sorted)
    return x._cached[key]


def kept_blocks(
    x: Elements, rows: Sequence[int], cols: Sequence[int], turned: bool = False
) -> list[RowBlock]:
    """Return `kept_matrix` in blocks of rows, for threads to multiply: SciPy lets go of the interpreter.

    Parameters
    ----------
    x, rows, cols
        As of `kept_matrix`.
    turned : bool
        Whether the transpose of each block is wanted. Then there are two at the most, however many threads there are,
        so that the sum of their products is the same everywhere.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> [(block.rows, block.matrix.shape) for block in kept_blocks(x, (0,), (1,), True)]
    [(slice(0, 3, None), (2, 3))]
    """
    key = "blocks", tuple(rows), tuple(cols), turned
    if key not in x._cached:
        matrix = kept_matrix(x, rows, cols)
        most = _TURNED if turned else None
        if turned and matrix.shape[1] > matrix.nnz:  # another sum would take longer
            most = 1
        blocks = [RowBlock(slice(*span), rows_of(matrix, *span)) for span in _shares(matrix, most)]
        x._cached[key] = [RowBlock(b.rows, b.matrix.T) for b in blocks] if turned else blocks
    kept: list[RowBlock] = x._cached[key]
    return kept


def turned_product(x: Elements, rows: Sequence[int], cols: Sequence[int], vector: Array) -> Array:
    """Return the transpose of `kept_matrix` times a vector.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> turned_product(x, (0,), (1,), np.array([1, 1, 10])).tolist()
    [70, 5]
    """
    blocks = kept_blocks(x, rows, cols, turned=True)
    found, *more = at_once(lambda block: block.matrix @ vector[block.rows], blocks)
    for part in more:
        found += part
    return np.asarray(found)


def _shares(matrix: Any, most: int | None = None) -> list[tuple[int, int]]:
    """Return which rows of a matrix of SciPy each thread takes; without rows, one takes none."""
    return spans(matrix.indptr, most) or [(0, matrix.shape[0])]


def rows_of(matrix: Any, first: int, last: int) -> Any:
    """Return some rows of a matrix of SciPy, whose numbers are not copied."""
    if (first, last) == (0, matrix.shape[0]):
        return matrix
    ends = matrix.indptr[first : last + 1]
    here = slice(ends[0], ends[-1])
    parts = matrix.data[here], matrix.indices[here], ends - ends[0]
    return type(matrix)(parts, (last - first, matrix.shape[1]))


def split_matrix(x: Elements, lead: int) -> Any:
    """Return the matrix whose rows are the first axes and whose columns are the others; None where it does not pay.

    Examples
    --------
    >>> split_matrix(Elements._trusted(np.array([[0], [1]]), np.array([5]), (3, 2)), 1) is None
    True
    """
    return kept_matrix(x, range(lead), range(lead, x.ndim)) if splits(x, lead) else None


def splits(x: Elements, lead: int) -> bool:
    """Whether a matrix of the first axes and the others pays.

    It does not for few elements, for many more rows or columns than elements, and for dtypes that SciPy lacks.
    """
    sides = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
    return x.nnz >= _MANY and max(sides) <= ROOMY * x.nnz and x.dtype.char in SCIPY_DTYPES


def cells_of(matrix: Any) -> tuple[Array, Array]:
    """Return rows and columns, shape (2, n), and values of a matrix of SciPy with sorted rows."""
    cells = np.empty((2, matrix.nnz), np.int64)
    put_cells(matrix, cells)
    return cells, matrix.data


def put_cells(matrix: Any, cells: Array) -> None:
    """Write the rows and columns of a matrix of SciPy with sorted rows."""
    ends, counts = matrix.indptr, np.diff(matrix.indptr)
    first = 0
    while first < matrix.shape[0]:  # some rows at a time: their numbers stay in the cache
        most = min(int(ends[first]) + _AT_ONCE, len(matrix.data))
        # Empty rows that follow come along.
        last = int(np.searchsorted(ends, ends.dtype.type(most), "right")) - 1
        last = max(last, first + 1)
        cells[0, ends[first] : ends[last]] = np.repeat(np.arange(first, last), counts[first:last])
        first = last
    cells[1] = matrix.indices


def by_rows(work: Callable[[int, int], Any], matrix: Any) -> tuple[Array, Array]:
    """Return `cells_of` of what work returns for some rows of a matrix, from the first to the one before the last.

    Threads share the rows: SciPy lets go of the interpreter.
    """
    shares = _shares(matrix)
    found = at_once(lambda share: work(*share), shares)
    if len(found) == 1:
        return cells_of(found[0])
    ends = np.cumsum([0, *(part.nnz for part in found)])
    cells, values = np.empty((2, ends[-1]), np.int64), np.empty(ends[-1], found[0].dtype)

    def put(k: int) -> None:
        here = slice(ends[k], ends[k + 1])
        put_cells(found[k], cells[:, here])
        cells[0, here] += shares[k][0]
        values[here] = found[k].data

    at_once(put, range(len(found)))
    return cells, values


def run_sums(values: Array, starts: Array) -> Array:
    """Return the sums of runs of numbers, many of them short, sooner than ``np.add.reduceat`` does.

    Examples
    --------
    >>> run_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 2]))
    array([3., 4.])
    """
    from scipy.sparse import csr_array

    word = (
        np.int32 if len(values) < 1 << 31 else np.int64
    )  # half the memory, where that holds the ends
    ends = np.append(starts, len(values)).astype(word, copy=False)
    runs = csr_array((values, np.zeros(len(values), word), ends), (len(starts), 1))
    return np.asarray(runs @ np.ones(1, values.dtype))


def lengths_of(x: Any, axes: Iterable[int]) -> list[int]:
    """Return the lengths of some axes."""
    return [x.shape[axis] for axis in axes]


def keys_of(x: Elements, axes: Sequence[int]) -> Array:
    """Return the place of every element among the cells of some axes."""
    return x.coords[axes[0]] if len(axes) == 1 else ravel(x.coords[list(axes)], lengths_of(x, axes))


def csr_of(rows: Array, cols: Array, values: Array, shape: tuple[int, int], is_sorted: bool) -> Any:
    """Return a read-only matrix of SciPy; ``is_sorted`` if rows ascend, and columns in each of them."""
    from scipy import sparse

    # Half the memory, where the numbers fit.
    word = np.int32 if max(*shape, len(values)) < 1 << 31 else np.int64
    cols = cols.astype(word, copy=False)
    if is_sorted:
        ends = np.zeros(shape[0] + 1, word)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=ends[1:])
        out = sparse.csr_array((values, cols, ends), shape)
        out.has_canonical_format = True
    else:
        out = sparse.coo_array((values, (rows.astype(word, copy=False), cols)), shape).tocsr()
    for array in (out.data, out.indices, out.indptr):
        array.flags.writeable = False
    return out
