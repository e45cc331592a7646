"""What an ingestion of arrays would write, told from their shapes and dtypes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.ingest.arrays.array_discovery import Part
from tensorlake_spark.spark.ingest.outcome import Plan
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.grouping import usual_block
from tensorlake_spark.tensor.spec import TensorSpec, dtype_of
from tensorlake_spark.writing.append import check_append, check_kept
from tensorlake_spark.writing.options import new_spec
from tensorlake_spark.writing.source import ArraySource


@dataclass(frozen=True, eq=False)
class _Unread(ArraySource):
    """An array of which only shape and dtype are known."""

    def density(self) -> float:
        """Return the density of a full array."""
        return 1.0


def plan_slabs(
    storage: Storage, parts: Sequence[Part], settings: Mapping[str, str], old: Meta | None
) -> Plan:
    """Return the plan for one tensor of many parts, which is new or continues `old`.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If an option will not do for such arrays, or they do not continue the tensor.
    """
    options = SparkWriteOptions.parse({**settings, "path": storage.uri})
    shape = options.shape or ()
    dtype = dtype_of(parts[0].dtype)
    files = tuple(part.path for part in parts)
    if old is not None:
        axis = options.axis
        check_kept(old.spec, options.write, axis)
        check_append(old.spec, shape, dtype, axis)
        whole = list(old.spec.shape)
        whole[axis] += shape[axis]
        spec = replace(old.spec, shape=tuple(whole), segments=(), labels={})
        return Plan(files, (spec,), (shape,), 1)
    return Plan(files, (_new(str(options.id), shape, dtype, options),), (shape,), 1)


def plan_tensors(
    storage: Storage, parts: Sequence[Part], ids: Sequence[str], settings: Mapping[str, str]
) -> Plan:
    """Return the plan for a tensor of each part; see `plan_slabs`."""
    options = SparkWriteOptions.parse({**settings, "path": storage.uri})
    specs = tuple(
        _new(i, part.shape, dtype_of(part.dtype), options)
        for i, part in zip(ids, parts, strict=True)
    )
    files, shapes = tuple(p.path for p in parts), tuple(p.shape for p in parts)
    # Sparse blocks follow how full each array is.
    told = options.write.layout != "auto" and (
        options.write.block_shape is not None or not layout_of(options.write.layout).is_sparse
    )
    return Plan(files, specs, shapes, 1, tells_layout=told)


def check_distinct(ids: Sequence[str]) -> None:
    """Raise InvalidTensorError if two files would become one tensor."""
    [(name, count)] = Counter(ids).most_common(1)
    if count > 1:
        raise InvalidTensorError(
            f"several files would become tensor {name!r}; rename them or ingest them apart"
        )


def _new(
    tensor_id: str, shape: tuple[int, ...], dtype: np.dtype[Any], options: SparkWriteOptions
) -> TensorSpec:
    """Return the spec as the writer chooses it for slabs whose whole shape is given."""
    write = options.write
    layout = layout_of("ftsf" if write.layout == "auto" else write.layout)
    block = write.block_shape
    if block is None and layout.is_sparse and layout.has_blocks:
        block = usual_block(shape)
    codec = (
        "zstd" if write.codec in BY_TRYING else write.codec
    )  # a plan does not tell which is chosen
    chosen = replace(write, layout=layout.name, block_shape=block, codec=codec, labels={})
    return new_spec(tensor_id, _Unread(None, shape, dtype), chosen)
