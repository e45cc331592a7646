"""Cells sorted by block before they are written, so that every block comes out whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, did_you_mean
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.spark.cluster.arguments import FRAME, takes
from tensorlake_spark.spark.source.cell_columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_USUAL_NNZ = 1_000_000
_USUAL_SIZE = 10**11
_LEAST_DENSE = 0.1


def usual_block(shape: Sequence[int] | None, ndim: int | None = None) -> tuple[int, ...]:
    """Return the block shape of a sparse tensor whose elements nobody has counted yet.

    All tasks of a write, and `group_cells` before it, choose the same one: by the shape alone, as for a
    tensor with a million elements, or by the rank where the shape is not known either. Give the option
    ``blockShape`` where a tensor is much fuller or emptier than that.

    Examples
    --------
    >>> usual_block((183, 24, 1140, 1717))
    (4, 24, 128, 256)
    """
    if shape is None:
        shape = (round(_USUAL_SIZE ** (1 / ndim)),) * ndim if ndim else ()
    density = min(_LEAST_DENSE, _USUAL_NNZ / max(1, math.prod(shape)))
    return layout_of("bsgs").default_block(shape, np.dtype(np.float64), density)


@takes(df=FRAME)
def group_cells(
    df: DataFrame,
    shape: Sequence[int],
    block_shape: Sequence[int] | None = None,
    axes: Sequence[str] | None = None,
) -> DataFrame:
    """Sort cells by block across all executors, with Spark's own shuffle.

    Each partition then holds whole blocks, so its data files share no box with others. Slices read less, and the
    driver has nothing to compare. Without it the result is correct too.

    Parameters
    ----------
    df : DataFrame
        Cells: a column for every axis, and ``value``.
    shape : sequence of int
        Shape of the tensor. Give the writer the same, as option ``shape``.
    block_shape : sequence of int, optional
        Shape of the blocks. If you give it, give the writer the same, as option ``blockShape``. With a length of 1
        for every axis, cells are sorted one by one, which suits layouts without blocks.
    axes : sequence of str, optional
        Names of the coordinate columns. By default ``i0`` to ``iN``.

    Raises
    ------
    InvalidTensorError
        If `block_shape` does not fit `shape`, or there is not one column for every axis.
    """
    from pyspark.sql import functions as f

    lengths = check_shape(shape)
    block = usual_block(lengths) if block_shape is None else tuple(int(n) for n in block_shape)
    names = tuple(f"i{k}" for k in range(len(lengths))) if axes is None else tuple(axes)
    if len(block) != len(lengths) or min(block, default=1) < 1:
        raise InvalidTensorError(
            f"block shape {block} does not fit shape {lengths}: one length of at least 1 for every axis"
        )
    if len(names) != len(lengths):
        raise InvalidTensorError(f"{len(names)} columns {names} for a tensor of shape {lengths}")
    for name in names:
        if name not in df.columns:
            raise InvalidOptionError(
                f"the DataFrame has no column {name!r}{did_you_mean(name, df.columns)}; it has "
                f"{', '.join(df.columns)}"
            )
    if not names:
        return df
    number = "0L"
    for name, side, length in zip(names, block, lengths, strict=True):
        number = f"({number} * {max(1, -(-length // side))}L + {quoted(name)} div {side}L)"
    return df.repartitionByRange(f.expr(number)).sortWithinPartitions(f.expr(number))
