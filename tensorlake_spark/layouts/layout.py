"""What a layout is: the way one box is written, and the laws that every layout keeps.

For tensor ``x``, spec ``s``, selection ``k``, any order and any split of the rows:

1. *round trip*: decoding what was encoded gives ``x``: dtype, shape, NaN bits and signed zeros too;
2. *inclusive*: decoding the rows that match the predicate of ``k`` gives ``x[k]``, as NumPy does;
3. *order free*: permuting the rows, or splitting them into batches, changes nothing;
4. *over-delivery*: further rows, which ``k`` does not need, change nothing;
5. *tight*: no more rows match than `Layout.row_bound` says;
6. *stable*: the golden tables decode for ever;
7. *pure*: the same input gives the same rows.

`tensorlake_spark.layouts.testing.laws` is the executable form, for our layouts and for anybody's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing import AnySelection, Box, Grid
from tensorlake_spark.rows.row import Row, Totals
from tensorlake_spark.tensor.spec import TensorSpec


def grid_of(spec: TensorSpec) -> Grid:
    """Return the grid on which a tensor's boxes lie.

    Examples
    --------
    >>> grid_of(TensorSpec("x", (5,), np.dtype("uint8"), "ftsf", (2,))).n_cells
    3
    """
    block = spec.block_shape or tuple(max(1, n) for n in spec.shape)  # without blocks: one cell
    return Grid(spec.shape, block, spec.segments)


class Layout(ABC):
    """The way one box of a tensor is written; stateless, one instance for each name."""

    name: ClassVar[str]
    """Name in the column ``layout``."""

    columns: ClassVar[tuple[str, ...]]
    """Columns that `decode` needs."""

    is_sparse: ClassVar[bool] = False
    """Whether rows hold non-zeros only, and a read gives a `SparseTensor`."""

    has_index: ClassVar[bool] = False
    """Whether a row of a dense layout may have something in the column ``index``."""

    has_blocks: ClassVar[bool] = True
    """Whether a row lies in one cell of a grid of blocks."""

    has_threads: ClassVar[bool] = False
    """Whether `decode` itself has several threads decode what takes long."""

    row_group_bytes: ClassVar[int] = 2 << 20
    """A row group is closed before its payload grows beyond this: the least that a slice reads at a time."""

    def check_tensor(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:  # noqa: B027
        """Raise if the layout does not store tensors of such a shape or dtype; most store any.

        Raises
        ------
        InvalidTensorError
            If the rank is not one of the layout.
        UnsupportedDtypeError
            If the dtype is not one of the layout.
        """

    @abstractmethod
    def default_block(
        self, shape: Sequence[int], dtype: np.dtype[Any], density: float = 1.0
    ) -> tuple[int, ...]:
        """Return the block shape for a tensor whose writer named none; empty if there are no blocks."""

    @abstractmethod
    def choose_codec(self, sample: np.ndarray[Any, Any]) -> str:
        """Return the codec for a tensor whose writer named none, by trying a sample of it."""

    def smallest_codec(self, sample: np.ndarray[Any, Any]) -> str:
        """Return the codec that makes a sample smallest, however slow; by default that of `choose_codec`."""
        return self.choose_codec(sample)

    @abstractmethod
    def check_codec(self, name: str) -> str:
        """Return `name` if it is a codec of this layout, else raise InvalidOptionError."""

    def choose_params(
        self, ndim: int, order: Sequence[int] | None, row_axes: Sequence[int] | None
    ) -> dict[str, Any]:
        """Return the layout's own parameters for a tensor, as JSON has them.

        Parameters
        ----------
        ndim : int
            The tensor's rank.
        order : sequence of int, optional
            The order of the axes in which elements are sorted in a row.
        row_axes : sequence of int, optional
            The axes that are the rows when the tensor is flattened to a matrix.

        Raises
        ------
        InvalidOptionError
            If the layout has no such parameter, or the axes are wrong.
        """
        for name, value in (("order", order), ("row_axes", row_axes)):
            if value is not None:
                raise InvalidOptionError(f"layout {self.name} has no {name}")
        return {}

    def leading_axis(self, spec: TensorSpec) -> int:
        """Return the axis along which a tensor may be cut without its rows changing much."""
        return 0

    def arrangement(self, spec: TensorSpec) -> str:
        """Return how rows lie in a tensor, so what slices skip, in a few words for `explain`."""
        return f"{self.name}, blocks of {spec.block_shape}: a slice on any axis skips blocks"

    @abstractmethod
    def pieces(self, spec: TensorSpec, box: Box) -> Iterator[Box]:
        """Yield the parts of a region that are encoded on their own, in storage order."""

    @abstractmethod
    def encode(self, part: Any, lo: Sequence[int], spec: TensorSpec) -> list[Row]:
        """Return the rows of one part, an ndarray, whose lower corner in the tensor is `lo`.

        Sparse layouts also take a `SparseTensor`.
        """

    def encode_again(self, part: Any, lo: Sequence[int], spec: TensorSpec) -> list[Row]:
        """Return what the box of one stored row becomes where its elements change: one row, or none."""
        return self.encode(part, lo, spec)

    @abstractmethod
    def new_result(self, spec: TensorSpec, selection: AnySelection, full: bool) -> Any:
        """Return what `decode` fills; `full` says that stored rows cover the whole tensor."""

    @abstractmethod
    def decode(
        self, batch: pa.RecordBatch, spec: TensorSpec, selection: AnySelection, result: Any
    ) -> Totals:
        """Decode the rows that `selection` needs into `result`, trimmed; other rows do no harm.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Data rows of this tensor, with `columns` at least.
        spec : TensorSpec
            The tensor.
        selection : Selection, PointSelection or MixedSelection
            What is asked for.
        result : object
            What `new_result` returned; batches may be decoded into it from several threads.

        Returns
        -------
        Totals
            Rows that were decoded, elements of the selection that they gave, payload bytes.

        Raises
        ------
        CorruptDataError
            If the checksum of a row fails or its payload does not fit its box.
        """

    @abstractmethod
    def finish(self, spec: TensorSpec, selection: AnySelection, result: Any) -> Any:
        """Return the answer in the form NumPy gives it."""

    @abstractmethod
    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        """Return how many rows may match the predicate of `selection` at the most."""
