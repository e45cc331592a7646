"""What is computed on: a selection of a stored tensor, at one version of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from tensorlake_spark.computing.composing import compose
from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import ReadPlan, Selection
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.reading.read import read
from tensorlake_spark.rows.metadata import Meta


@dataclass(frozen=True, eq=False)
class Stored:
    """A selection of a tensor of a table.

    Attributes
    ----------
    snapshot : Snapshot
        The version of the table.
    meta : Meta
        The tensor in it.
    selection : Selection or PointSelection
        Which of its elements.
    verify : bool
        Whether lost rows are an error.
    """

    snapshot: Snapshot
    meta: Meta
    selection: AnySelection
    verify: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the selection, as NumPy answers it."""
        return self.selection.result_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""
        return self.meta.spec.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether only elements that are not zero are stored."""
        return stored_layout(self.meta.spec).is_sparse

    @property
    def is_whole(self) -> bool:
        """Whether every element of the tensor is selected, each once."""
        whole = self.selection.box.shape == self.meta.spec.shape
        return self.selection.is_empty == (0 in self.meta.spec.shape) and (
            whole and self.selection.is_box
        )

    @property
    def has_blocks(self) -> bool:
        """Whether a stored row lies in the selection as a block does.

        It does not where single elements are selected, or an index array makes more axes than one; such a selection
        is read as one block.
        """
        return type(self.selection) is Selection and self.selection.points_shape is None

    @property
    def block(self) -> tuple[int, ...]:
        """About what a stored block takes of each axis, 1 where that is not known."""
        spec = self.meta.spec
        if spec.block_shape and len(self.shape) == spec.ndim and self.selection.is_box:
            return spec.block_shape
        return (1,) * len(self.shape)

    @property
    def plain(self) -> Selection:
        """The selection, where it `has_blocks`."""
        return cast("Selection", self.selection)

    @property
    def has_duplicates(self) -> bool:
        """Whether an element may be stored in several rows, which mean one value together."""
        return bool(self.meta.spec.params.get("duplicates", "error") != "error")

    @property
    def known_nnz(self) -> int | None:
        """Number of stored elements, None where only reading would tell."""
        if self.selection.is_empty or not self.meta.totals.nnz:
            return 0
        return self.meta.totals.nnz if self.is_whole and not self.has_duplicates else None

    def read(self, out: Any = None) -> Any:
        """Return the elements as `TensorRef` does."""
        return read(self.snapshot, self.meta, self.selection, self.verify, out)

    def plan(self) -> ReadPlan:
        """Return what reading it, or computing with it, reads and skips."""
        layout = stored_layout(self.meta.spec)
        found = scan.plan(self.snapshot, self.meta.spec.id, self.selection, layout.columns)
        return replace(found, stored=layout.arrangement(self.meta.spec))

    def part(self, key: Any) -> Stored:
        """Return what a key picks of this selection."""
        return replace(self, selection=compose(self.selection, key))

    def box(self, lo: Sequence[int], hi: Sequence[int]) -> Stored:
        """Return a box of this selection. Its rows are not held against the totals: few boxes could tell."""
        key = tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))
        return replace(self.part((*key, ...)), verify=False)
