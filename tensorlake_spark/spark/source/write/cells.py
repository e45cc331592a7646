"""Cells (``i0..iN, value``) to rows of a sparse tensor, in any order and from any number of tasks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t

from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import check_rule
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.quantization.kinds import ROUNDED
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.source.cell_columns import (
    coordinate_columns,
    coordinates_of,
    value_dtype,
    values_of,
)
from tensorlake_spark.spark.source.commit_message import Written
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.cell_buffer import CellBuffer
from tensorlake_spark.spark.source.write.conversion import cells_as_chunks
from tensorlake_spark.spark.source.write.grouping import usual_block
from tensorlake_spark.spark.source.write.input_format import InputForm, first_place
from tensorlake_spark.spark.source.write.uniqueness import check_unique
from tensorlake_spark.tensor.label_input import check_labels
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.append import check_kept, longer_labels
from tensorlake_spark.writing.options import WriteOptions, auto_layout, new_spec, tell_layout
from tensorlake_spark.writing.pipeline import encode
from tensorlake_spark.writing.source import SparseSource

Array = np.ndarray[Any, Any]

REWRITTEN_BYTES = 2 << 30
"""A dense tensor of more bytes stays sparse: the driver alone would write it again."""


def stays_sparse(options: WriteOptions, overwrite: bool) -> str:
    """Return why ``layout="auto"`` is a sparse layout for cells however many there are; empty if they decide.

    Cells can be added to a sparse tensor only, and only sparse layouts have these options.

    Examples
    --------
    >>> stays_sparse(WriteOptions(duplicates="sum"), True)
    "duplicates='sum' is an option of sparse layouts"
    """
    usual = {"duplicates": "error", "order": None, "row_axes": None}
    for name, without in usual.items():
        value = getattr(options, name)
        if value != without:
            return f"{name}={value!r} is an option of sparse layouts"
    if not overwrite:
        return "cells are appended, and more of them can follow only where the layout is sparse"
    return ""


class Cells(InputForm):
    """Cells of one sparse tensor; an append adds them where they lie.

    What all tasks have to agree on, dtype, layout and blocks, is settled here, on the driver.
    """

    def __init__(
        self,
        options: SparkWriteOptions,
        schema: t.StructType,
        old: Meta | None,
        overwrite: bool = False,
    ) -> None:
        self.options = options
        self.old = old
        kept = "" if options.write.layout != "auto" else stays_sparse(options.write, overwrite)
        self.is_open = old is None and options.write.layout == "auto" and not kept
        if old is None and kept:
            tell_layout(str(options.id), "bsgs", kept)
        self.names = coordinate_columns(schema, options, None if old is None else old.spec)
        natural = value_dtype(schema["value"].dataType)
        self.spec = self._new(natural) if old is None else self._continued(old.spec)
        self.shape = options.shape
        if old is not None and self.shape is not None:
            self.shape = tuple(max(a, b) for a, b in zip(self.shape, old.spec.shape, strict=True))

    @property
    def rule(self) -> str:
        """What becomes of an element that is given twice."""
        return str(self.spec.params.get("duplicates", "error"))

    def _new(self, natural: np.dtype[Any]) -> TensorSpec:
        """Return the spec of a tensor that is written afresh, its shape as far as it is known."""
        write, ndim, shape = self.options.write, len(self.names), self.options.shape
        layout = layout_of("bsgs" if write.layout == "auto" else write.layout)
        if not layout.is_sparse:
            raise InvalidOptionError(
                f"layout {layout.name} holds arrays; cells are written to a sparse one: bsgs, coo, csr, csc "
                "or csf"
            )
        if shape is not None and len(shape) != ndim:
            raise InvalidTensorError(
                f"option shape={shape} has {len(shape)} axes, the cells have {ndim} coordinates"
            )
        known = write.quantization
        if known is not None and known.kind not in ROUNDED:
            name, given = str(self.options.id), known.to_json()
            raise InvalidOptionError(
                f"option quantize={given!r} needs arrays, and cells are written to a sparse layout, which rounds "
                f"values one by one: give one of {', '.join(ROUNDED)}, or write tensor {name!r} without it and call "
                f"lake.convert({name!r}, layout='ftsf', quantize={given!r})"
            )
        block = write.block_shape
        if block is None and write.chunk_rank is None and layout.has_blocks:
            block = usual_block(shape, ndim)
        choices = replace(write, layout=layout.name, block_shape=block, labels={})
        reach = (0,) * ndim if shape is None else shape
        dtype = self.options.dtype or natural
        nothing = SparseTensor(np.zeros((ndim, 0), np.int64), np.zeros(0, dtype), reach)
        return new_spec(str(self.options.id), SparseSource(nothing), choices)

    def _continued(self, spec: TensorSpec) -> TensorSpec:
        """Return the spec of a tensor that is there, with the rule for duplicates that is asked for."""
        options = self.options
        if not layout_of(spec.layout).is_sparse:
            raise InvalidOptionError(
                f"tensor {spec.id!r} is dense (layout {spec.layout}), and cells are added to sparse ones; "
                f"lake.convert({spec.id!r}, layout='bsgs') makes it one, mode('overwrite') replaces it"
            )
        # Without names of its own a tensor takes those of the columns for this write.
        write = options.write if spec.axes is not None else replace(options.write, axes=None)
        check_kept(spec, write, None)
        if options.dtype not in (None, spec.dtype):
            raise InvalidOptionError(
                f"tensor {spec.id!r} has dtype {spec.dtype}, and an append keeps it; leave out the option "
                f"dtype={options.dtype.name!r}"
            )
        if options.shape is not None and len(options.shape) != spec.ndim:
            raise InvalidTensorError(
                f"option shape={options.shape} has {len(options.shape)} axes, tensor {spec.id!r} has {spec.ndim}"
            )
        have = spec.params.get("duplicates", "error")
        asked = options.duplicates or have
        check_rule(asked, spec.dtype)
        if have not in ("error", asked):
            raise InvalidOptionError(
                f"tensor {spec.id!r} combines duplicates by {have!r}, and cannot by {asked!r} too"
            )
        rule = {} if asked == "error" else {"duplicates": asked}
        return replace(spec, params={**spec.params, **rule})

    def write(self, batches: Iterator[pa.RecordBatch], writer: FileWriter) -> list[Written]:
        """Encode the cells of one partition, a bounded number of them at a time."""
        writer.row_group_bytes = layout_of(self.spec.layout).row_group_bytes
        numbers = itertools.count(first_place(self._base))
        buffer = CellBuffer(self.spec, self.shape)
        done: list[tuple[Box, tuple[int, int], Totals]] = []
        for batch in batches:
            coords = coordinates_of(batch, self.names, self.shape)
            values = values_of(batch.column("value"), self.spec.dtype)
            start = 0
            while start < len(values):
                start += buffer.add(coords[:, start:], values[start:])
                if buffer.is_full:
                    done.append(self._flush(buffer, writer, numbers, last=False))
        if len(buffer):
            done.append(self._flush(buffer, writer, numbers, last=True))
        boxes, spans, totals = zip(*done, strict=True) if done else ((), (), ())
        return [Written(self.spec, boxes, sum(totals, Totals()), spans)]

    @property
    def _base(self) -> int:
        return 0 if self.old is None else self.old.seq + 1

    def _flush(
        self, buffer: CellBuffer, writer: FileWriter, numbers: Iterator[int], last: bool
    ) -> tuple[Box, tuple[int, int], Totals]:
        """Encode the cells of a buffer; return their box, the places of their rows, and what these add up to."""
        box = Box(*buffer.extent())
        spec = replace(self.spec, shape=self._reaching([box]))
        totals, places = Totals(), []
        for _, rows in encode(spec, buffer.regions(spec, last)):
            for row in rows:
                places.append(next(numbers))
                writer.add(spec, places[-1], row)
            totals += Totals.of(rows)
        return box, (places[0], places[-1] + 1), totals

    def _reaching(self, boxes: Sequence[Box]) -> tuple[int, ...]:
        """Return the shape that is asked for, else the least that holds the boxes and what is there."""
        if self.shape is not None:
            return self.shape
        known = self.spec.shape if self.old is None else self.old.spec.shape
        return tuple(max(sides) for sides in zip(known, *(box.hi for box in boxes), strict=True))

    def describe(
        self, written: Sequence[Written], files: Sequence[DataFile], snapshot: Snapshot
    ) -> list[Meta]:
        """Return the metadata of the tensor, once no element is known to be stored twice."""
        boxes = [box for w in written for box in w.boxes]
        spans = [span for w in written for span in w.spans]
        totals = sum((w.totals for w in written), Totals())
        if not boxes and self.old is None and self.shape is None:
            raise InvalidTensorError(
                f"tensor {self.spec.id!r} would have no cell and no shape; give option('shape', 'n0,n1,...')"
            )
        shape, given = self._reaching(boxes), self.options.write
        if self.old is None:
            labels = check_labels(given.labels, self.spec.axes, shape)
            spec = replace(self.spec, shape=shape, labels=labels)
        else:
            totals += self.old.totals
            labels = longer_labels(self.spec, shape, given.labels)
            attrs = {**self.spec.attrs, **given.attrs}
            spec = replace(self.spec, shape=shape, labels=labels, attrs=attrs)
        if self.rule == "error":
            check_unique(spec, boxes, spans, files, snapshot, self.old)
        return [Meta(spec, totals, max([self._base, *(stop for _, stop in spans)]))]

    def finish(
        self,
        metas: list[Meta],
        files: list[DataFile],
        snapshot: Snapshot,
        new_writer: Callable[[], FileWriter],
    ) -> tuple[list[Meta], list[DataFile]]:
        """Return the tensor as chunks if so many of its elements are stored that it is a dense one."""
        [meta] = metas
        if not self.is_open:
            return metas, files
        spec, nnz = meta.spec, meta.totals.nnz
        name, reason = auto_layout(nnz / max(1, spec.size), self.options.write, False, True)
        if name == "ftsf" and (not nnz or not spec.ndim):
            name, reason = "bsgs", "cells are given, and chunks hold more than one"
        elif name == "ftsf" and spec.nbytes > REWRITTEN_BYTES:
            name, reason = (
                "bsgs",
                (
                    f"the driver alone would write its {size_text(spec.nbytes)} as chunks, though {reason}; "
                    f"lake.convert({spec.id!r}, layout='ftsf') does so"
                ),
            )
        tell_layout(spec.id, name, reason)
        if name != "ftsf":
            return metas, files
        made, files = cells_as_chunks(meta, files, self.options.write, snapshot, new_writer)
        return [made], files
