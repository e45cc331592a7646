"""Which rows of a file hold something of a tensor, or of a part of it: told by the rows, never by statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.footer import plain_types, reading
from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Box, Selection
from tensorlake_spark.indexing.keys.key import extend
from tensorlake_spark.indexing.selection import box_selection
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.layouts.verification import boxes
from tensorlake_spark.rows.row import PAYLOAD, SCHEMA
from tensorlake_spark.tensor.spec import TensorSpec, dtype_name

Array = np.ndarray[Any, Any]

_SMALL = ("nnz", "lo", "hi", "params", "layout", "dtype", "shape")


@dataclass(frozen=True, eq=False, slots=True)
class Target:
    """A tensor, or a part of one.

    Attributes
    ----------
    tensor_id : str
        The tensor.
    spec : TensorSpec, or None
        The tensor as it is now; needed for a part.
    selection : Selection, PointSelection or MixedSelection, or None
        The part, no element of it twice; None for the whole tensor, its metadata included.
    key : object
        What the selection was made from, where that is a key.
    """

    tensor_id: str
    spec: TensorSpec | None = None
    selection: AnySelection | None = None
    key: Any = None

    def over(self, hi: Array) -> tuple[TensorSpec, AnySelection]:
        """Return tensor and part, both as long as rows with these upper corners need it.

        Where the tensor was longer once, what the key leaves open at the end goes on there.
        """
        spec, selection = self.spec, self.selection
        assert spec is not None  # nosec B101 # for mypy
        assert selection is not None  # nosec B101 # for mypy
        longest = np.maximum(np.array(spec.shape, np.int64), hi.max(axis=0, initial=0))
        shape = tuple(longest.tolist())
        if isinstance(selection, Selection) and shape != spec.shape:
            selection = extend(self.key, selection, shape)
        return replace(spec, shape=shape, labels={}), selection

    def held_rows(
        self,
        storage: Storage,
        path: str,
        visit: Callable[[pa.RecordBatch, Array], None] | None = None,
    ) -> int:
        """Return how many rows of a file hold something of it, see `held_rows`."""
        return held_rows(storage, path, self, visit)


class Sought(Protocol):
    """What a purge looks for in data files."""

    def held_rows(
        self,
        storage: Storage,
        path: str,
        visit: Callable[[pa.RecordBatch, Array], None] | None = None,
    ) -> int:
        """Return how many rows of a file hold something of it.

        Parameters
        ----------
        storage : Storage
            The table.
        path : str
            Path of a Parquet file in it, named by the log or not.
        visit : callable, optional
            Takes these rows, payloads in columns of bytes, and for each whether all that it stores is sought.

        Raises
        ------
        MissingDataError
            If the file is not there.
        CorruptDataError
            If the file cannot be judged.
        """
        ...


def held_rows(
    storage: Storage,
    path: str,
    target: Target,
    visit: Callable[[pa.RecordBatch, Array], None] | None = None,
) -> int:
    """Return how many rows of a file hold something of a target.

    A row of a tensor's part counts if its box meets the part and it stores something there other than
    the fill value. A file without a column ``id`` holds no row of a tensor.

    Parameters
    ----------
    storage : Storage
        The table.
    path : str
        Path of a Parquet file in it, named by the log or not.
    target : Target
        What is looked for.
    visit : callable, optional
        Takes these rows, with their payload, and for each whether all that it stores belongs to the target.

    Raises
    ------
    MissingDataError
        If the file is not there.
    CorruptDataError
        If the file cannot be read, has the part's tensor at another rank, or is not an axis of tensors though it
        names this one.
    """
    count = 0
    with reading(storage, path):
        metadata = read_footer(storage, path)
        schema = schema_of(metadata)
        names = {schema.column(i).path.partition(".")[0] for i in range(len(schema))}
        if "id" not in names:
            return 0
        with storage.open_parquet(path, metadata) as file:
            for group in range(metadata.num_row_groups):

                def load(*columns: str, group: int = group) -> pa.Table:
                    table = file.read_row_group(group, columns=list(columns), use_threads=False)
                    return plain_types(table)

                ours = np.asarray(pc.equal(load("id")["id"], target.tensor_id))
                if ours.any() and not names >= _REQUIRED:
                    raise CorruptDataError(
                        f"its column id has {target.tensor_id!r}, but it has no column "
                        f"{', '.join(sorted(_REQUIRED - names))}, so it is no file of tensors; look into it, and "
                        "delete it if it has to go"
                    )
                if target.selection is not None and ours.any():
                    ours = _near(load(*_SMALL), ours, target)
                if not ours.any():
                    continue
                if target.selection is not None or visit is not None:
                    columns = sorted(names & set(_COLUMNS))
                    rows = load(*columns).combine_chunks().to_batches()[0].filter(pa.array(ours))
                    whole = np.ones(rows.num_rows, bool)
                    if target.selection is not None:
                        dirty, whole = _dirty(rows, target)
                        rows, whole = rows.filter(pa.array(dirty)), whole[dirty]
                    if visit is not None and rows.num_rows:
                        visit(rows, whole)
                    count += rows.num_rows
                else:
                    count += int(ours.sum())
    return count


_REQUIRED = {field.name for field in SCHEMA if not field.nullable}
_COLUMNS = (*_SMALL, "id", "seq", "codec", "crc", *PAYLOAD)


def _near(table: pa.Table, ours: Array, target: Target) -> Array:
    """Return which of a tensor's rows have a box that meets the part."""
    spec = target.spec
    assert spec is not None  # nosec B101 # for mypy
    batch = table.combine_chunks().to_batches()[0]
    ours = ours & np.asarray(pc.greater(batch.column("nnz"), 0))
    places = np.flatnonzero(ours)
    rows = batch.take(pa.array(places))
    ranks = pc.unique(pc.list_value_length(rows.column("shape"))).to_pylist()
    if any(rank != spec.ndim for rank in ranks):
        raise CorruptDataError(
            f"it has rows of an earlier tensor {spec.id!r} of another rank than {spec.ndim}, in which the part "
            "has no meaning; purge the whole tensor, or vacuum the file"
        )
    lo, hi = boxes(rows, spec.ndim)
    out = np.zeros(len(ours), bool)
    out[places] = target.over(hi)[1].hits(lo, hi)
    return out


def _dirty(rows: pa.RecordBatch, target: Target) -> tuple[Array, Array]:
    """Return which rows store something in the part, and which store nothing else.

    Those that cannot be decoded, and those of another layout or dtype, may.
    """
    spec = target.spec
    assert spec is not None  # nosec B101 # for mypy
    lo, hi = boxes(rows, spec.ndim)
    grown, selection = target.over(hi)
    kinds = zip(rows.column("layout").to_pylist(), rows.column("dtype").to_pylist(), strict=True)
    alike = [kind == (spec.layout, dtype_name(spec.dtype)) for kind in kinds]
    stored = _stored_sparse if stored_layout(spec).is_sparse else _stored_dense
    dirty, whole = np.ones(rows.num_rows, bool), np.zeros(rows.num_rows, bool)
    for i in np.flatnonzero(alike).tolist():
        try:
            dirty[i], whole[i] = stored(
                rows.slice(i, 1), Box(_corner(lo[i]), _corner(hi[i])), grown, selection
            )
        except CorruptDataError:
            continue
    return dirty, whole


def _stored_sparse(
    row: pa.RecordBatch, box: Box, spec: TensorSpec, selection: AnySelection
) -> tuple[bool, bool]:
    layout = stored_layout(spec)
    gathered = layout.new_result(spec, selection, False)
    count = layout.decode(row, spec, selection, gathered).nnz
    return count > 0, count == row.column("nnz")[0].as_py()


def _stored_dense(
    row: pa.RecordBatch, box: Box, spec: TensorSpec, selection: AnySelection
) -> tuple[bool, bool]:
    layout = stored_layout(spec)
    every = box_selection(spec.shape, box)
    part = layout.new_result(spec, every, True)
    layout.decode(row, spec, every, part)
    picked = part[selection.project(box.lo, box.hi)[0]]
    dirty = picked.tobytes() != spec.fill_value.tobytes() * picked.size
    return dirty, isinstance(selection, Selection) and picked.size == part.size


def _corner(values: Array) -> tuple[int, ...]:
    return tuple(values.tolist())
