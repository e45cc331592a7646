"""How large a tensor will be in every layout: a sample of it is really encoded, and scaled up."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidTensorError,
    did_you_mean,
    is_iterable,
)
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.layouts import LAYOUTS, Layout, grid_of, layout_of
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.options import DENSE_FROM, WriteOptions, choose_layout, new_spec
from tensorlake_spark.writing.source import (
    REGION_BYTES,
    ArraySource,
    SparseSource,
    bands,
    source_of,
    suited,
)

if TYPE_CHECKING:
    import pandas as pd

_OPTIONS = ("block_shape", "codec", "order", "row_axes")
_CHUNKS = 48  # chunks of a dense layout that are encoded, or fewer
_CHUNK_BYTES = 64 << 20  # of as many bytes together
_PARTS = 12  # parts of a sparse layout that are encoded
_PART_CELLS = 1 << 21  # of an array, looked through for its non-zeros
_ROW_BYTES, _GROUP_BYTES = 30, 9000  # what a row, and a row group, takes beside the payload


def estimate(
    data: Any,
    *,
    layouts: Sequence[str] | None = None,
    threshold: float = DENSE_FROM,
    **options: Any,
) -> pd.DataFrame:
    """Estimate the size of a tensor in every layout, before writing it.

    Samples from all over the tensor are encoded with the default settings of each layout. This takes a fraction
    of the time of writing.

    Parameters
    ----------
    data : array, sparse tensor or array-like
        As for `TensorLake.write`, except iterators, which can be read only once.
    layouts : sequence of str, optional
        Which layouts; all by default.
    threshold : float
        For the column ``chosen``.
    **options
        `block_shape`, `codec`, `order` or `row_axes`, as for `TensorLake.write`, where a layout has them.

    Returns
    -------
    pandas.DataFrame
        One row for each layout, the smallest first: ``layout, bytes, ratio, rows, chosen``. `ratio` is the share
        of the bytes in memory (dense: of the array; sparse: of coordinates and values). `chosen` says whether
        ``layout="auto"`` takes this layout.

    Raises
    ------
    InvalidTensorError
        If `data` is an iterator, or cannot be stored.
    InvalidOptionError
        If a layout or an option is unknown, or no layout takes the options.

    Examples
    --------
    >>> import tensorlake_spark as tl
    >>> found = tl.estimate(np.eye(300))
    >>> found.columns.tolist(), found["layout"][found["chosen"]].tolist()
    (['layout', 'bytes', 'ratio', 'rows', 'chosen'], ['bsgs'])
    """
    if "layout" in options:
        raise InvalidOptionError(
            f"layout={options['layout']!r} is for a write; an estimate takes a list, layouts=[{options['layout']!r}]"
        )
    unknown = options.keys() - _OPTIONS
    if unknown:
        name = min(unknown)
        raise InvalidOptionError(
            f"unknown option {name!r}{did_you_mean(name, _OPTIONS)}; an estimate takes {', '.join(_OPTIONS)}"
        )
    source = source_of(data)
    if not isinstance(source, (ArraySource, SparseSource)):
        raise InvalidTensorError(
            "an iterator of slabs can be read only once, so its size cannot be estimated"
        )
    if isinstance(layouts, str) or not (layouts is None or is_iterable(layouts)):
        raise InvalidOptionError(
            f"layouts={layouts!r:.80} is not a list of layouts; give one, such as ['ftsf', 'bsgs']"
        )
    names = list(LAYOUTS) if layouts is None else list(layouts)
    auto = choose_layout("estimate", source, WriteOptions(threshold=threshold), b"")
    rows: list[tuple[str, int, float, int, bool]] = []
    refusals: list[InvalidOptionError] = []
    for name in names:
        layout = layout_of(name)
        try:
            layout.check_tensor(source.shape, source.dtype)
        except InvalidTensorError:
            if layouts is not None:
                raise
            continue
        try:
            spec = new_spec("estimate", source, WriteOptions(layout=name, **options))
        except InvalidOptionError as error:
            if layouts is not None:
                raise
            refusals.append(error)
            spec = new_spec("estimate", source, WriteOptions(layout=name))
        found = _expected(suited(source, layout.is_sparse, 0), spec, layout)
        groups = math.ceil(found.nbytes / layout.row_group_bytes) + 1
        size = found.nbytes + found.rows * _ROW_BYTES + groups * _GROUP_BYTES
        rows.append((name, size, size / max(1, source.nbytes), found.rows, name == auto))
    if refusals and len(refusals) == len(rows):
        # No layout takes the options. One that has them says more than one that has none.
        raise next((one for one in refusals if " has no " not in str(one)), refusals[0])
    import pandas as pd  # late: it takes longer to import than all the rest

    columns = ["layout", "bytes", "ratio", "rows", "chosen"]
    table: pd.DataFrame = pd.DataFrame(sorted(rows, key=operator.itemgetter(1)), columns=columns)
    return table


Part = tuple[Sequence[int], Any, int]
"""Offset, region and weight of a part: what of the whole it stands for."""


def _expected(source: Any, spec: TensorSpec, layout: Layout) -> Totals:
    """Return rows, elements and bytes of payload that a layout is expected to need."""
    if not layout.is_sparse:
        parts, whole = _chunks(source.data, spec)
    elif isinstance(source, SparseSource):
        parts, whole = _slabs(replace(source, leading_axis=layout.leading_axis(spec)), spec)
    else:
        parts, whole = _regions(source.data, spec)
    found, seen = Totals(), 0
    for lo, part, weight in parts:
        found += Totals.of(layout.encode(part, lo, spec))
        seen += weight
    scale = whole / max(1, seen)
    rows, nnz, nbytes = (math.ceil(n * scale) for n in (found.rows, found.nnz, found.nbytes))
    return Totals(rows, nnz, nbytes)


def _spread(count: int, most: int) -> list[int]:
    """Return up to `most` of the numbers below `count`, evenly spread."""
    found = np.linspace(0, count - 1, min(most, count)).astype(np.int64)
    return [int(k) for k in np.unique(found)]


def _chunks(data: Any, spec: TensorSpec) -> tuple[Iterator[Part], int]:
    """Sample the chunks of a dense layout; of a sparse tensor those that hold an element."""
    grid = grid_of(spec)
    size = math.prod(spec.block_shape) * spec.dtype.itemsize
    most = min(_CHUNKS, max(4, _CHUNK_BYTES // max(1, size)))
    if isinstance(data, SparseTensor):
        sides = np.array(spec.block_shape, np.int64)[:, None]
        cells = np.unique(ravel(data.coords // sides, grid.counts))
        chosen = cells[_spread(len(cells), most)].tolist()
        whole = len(cells)
    else:
        chosen, whole = _spread(grid.n_cells, most), grid.n_cells

    def parts() -> Iterator[Part]:
        for cell in chosen:
            box = grid.cell_box([int(k) for k in np.unravel_index(cell, grid.counts)])
            yield box.lo, np.asarray(data[box.slices() or ...]), 1

    return parts(), whole


def _slabs(source: SparseSource, spec: TensorSpec) -> tuple[Iterator[Part], int]:
    """Sample the regions in which a sparse tensor is written."""
    regions = list(source.regions(spec.block_shape))
    chosen = (regions[k] for k in _spread(len(regions), _PARTS))
    return ((lo, part, part.nnz) for lo, part in chosen), source.data.nnz


def _regions(data: Any, spec: TensorSpec) -> tuple[Iterator[Part], int]:
    """Sample regions of an array for a sparse layout."""
    shape = spec.shape
    blocks = spec.block_shape or (1,) * len(shape)
    boxes = list(bands(shape, blocks, REGION_BYTES // _PART_CELLS)) if shape else [Box((), ())]

    def parts() -> Iterator[Part]:
        for k in _spread(len(boxes), _PARTS // 3):
            part = np.asarray(data[boxes[k].slices() or ...])
            yield boxes[k].lo, part, part.size

    return parts(), math.prod(shape)
