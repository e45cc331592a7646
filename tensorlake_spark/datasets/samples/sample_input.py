"""What a user gives as samples, as batches of columns: bounded in memory, and of equal length."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.media.images import Picture
from tensorlake_spark.datasets.types.media.media_bytes import Pieces, are_viewed
from tensorlake_spark.datasets.types.media.medical import Dicom
from tensorlake_spark.datasets.types.media.recordings import Audio, Video
from tensorlake_spark.datasets.types.nested import Sequence as SequenceType
from tensorlake_spark.datasets.types.tensors import ArrayType
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.errors import (
    InvalidSampleError,
    InvalidSampleTypeError,
    did_you_mean,
    is_iterable,
)
from tensorlake_spark.rows.extension_arrays import plain_column

Columns = dict[str, Any]  # for each name a list, an ndarray or an Arrow array

BATCH_ROWS = 1024
"""Samples that are taken at a time, at most."""

BATCH_BYTES = 4 << 20
"""Bytes of samples that are taken at a time, about: memory of this size is used again, and not asked for anew."""

VIEWED_BYTES = 8 << 20
"""The same where bytes are written from where they are, which takes no memory."""


def file_columns(schema: Mapping[str, Type]) -> frozenset[str]:
    """Return the columns that take paths of files, whose samples have the size of the file and not of its name."""
    return frozenset(name for name, kind in schema.items() if _takes_paths(kind))


def _takes_paths(kind: Type) -> bool:
    if isinstance(kind, SequenceType):
        return _takes_paths(kind.of)
    return isinstance(kind, (Picture, Audio, Video, Dicom, ArrayType))


def batches_of(
    samples: Any, names: Sequence[str], files: Collection[str] = ()
) -> Iterator[Columns]:
    """Yield samples as batches of columns.

    Parameters
    ----------
    samples : mapping, pandas.DataFrame, pyarrow.Table, other table of Arrow, or iterable of mappings
        A mapping has the columns by name, each with a value a sample; groups may be mappings in it.
    names : sequence of str
        The columns that the dataset has; a column that is not given is null.
    files : collection of str
        Those of them in which a text is the path of a file.

    Raises
    ------
    InvalidSampleError
        If there is no such column, or if columns are of unequal length.
    InvalidSampleTypeError
        If it is none of these.
    """
    check_samples(samples)
    samples = as_columns(samples)
    if isinstance(samples, pa.RecordBatchReader):
        for batch in samples:
            yield from batches_of(batch, names, files)
        return
    if isinstance(samples, Mapping):
        columns = {n: as_column(n, column) for n, column in flat(samples, names).items()}
        counts = {name: len(column) for name, column in columns.items()}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            raise InvalidSampleError(
                f"the columns have unequal lengths: {said}; give each of them one value a sample"
            )
        yield from _slices(columns, next(iter(counts.values()), 0), files)
        return
    yield from _gathered(samples, names, files)


def as_columns(samples: Any) -> Any:
    """Return a table of pandas or Arrow as a mapping of columns, and what gives batches of Arrow as a reader of them.

    Others are returned as they are.
    """
    if isinstance(samples, pd.DataFrame):
        _check_once([*map(str, samples.columns)])
        return {str(name): _of_series(column) for name, column in samples.items()}
    if isinstance(samples, (pa.Table, pa.RecordBatch)):
        _check_once(samples.schema.names)
        columns = zip(samples.schema.names, samples.columns, strict=True)
        return {name: _without_views(plain_column(column)) for name, column in columns}
    if hasattr(samples, "__arrow_c_stream__"):  # of Polars, a result of DuckDB, a reader itself
        try:
            return pa.RecordBatchReader.from_stream(samples)
        except pa.ArrowException as error:
            raise InvalidSampleTypeError(
                f"samples are of type {type(samples).__name__}, one column and no table: {error}; give it by its name, "
                "as in {'label': values}"
            ) from error
    return samples


def _check_once(names: Sequence[str]) -> None:
    """Raise InvalidSampleError if a table has two columns of one name, of which only one could be kept."""
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise InvalidSampleError(
            f"the table has the column {twice!r} twice; rename one, or drop it"
        )


def _of_series(column: Any) -> Any:
    """Return a column of pandas with None where its dtype has a mark of its own for what is missing."""
    if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and column.hasnans:
        return column.to_numpy(object, na_value=None)
    return column.to_numpy()


def _without_views(column: Any) -> Any:
    """Return a column of Arrow whose texts and bytes are not of the types that Polars has for them; others as it is."""
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    kind = _plain_type(column.type)
    return column if kind.equals(column.type) else column.cast(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if kind.equals(pa.string_view()):
        return pa.string()
    if kind.equals(pa.binary_view()):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_dictionary(kind):  # of Polars, a Categorical or an Enum
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    return kind


def check_samples(samples: Any) -> None:
    """Raise InvalidSampleTypeError for what has no samples, such as a DataFrame of Spark, whose rows are elsewhere."""
    if type(samples).__module__.startswith("pyspark."):
        raise InvalidSampleTypeError(
            "samples are a DataFrame of Spark, which executors add to a dataset: call "
            "tensorlake_spark.spark.write_samples(df, uri), or give df.toPandas() if it is small"
        )
    if type(samples).__module__ == "datasets.dataset_dict":  # a mapping, but not of columns
        raise InvalidSampleTypeError(
            f"samples are a {type(samples).__name__} of Hugging Face with the splits {', '.join(map(str, samples))}; "
            f"give one of them, such as samples[{next(iter(samples), 'train')!r}]"
        )
    known = is_iterable(samples) or hasattr(samples, "__arrow_c_stream__")
    if isinstance(samples, (str, bytes)) or not known:
        raise InvalidSampleTypeError(
            f"samples are a mapping of columns, a list or an iterator of mappings, a pyarrow.Table or a "
            f"pandas.DataFrame, not {type(samples).__name__}"
        )


def flat(sample: Mapping[str, Any], names: Sequence[str]) -> Columns:
    """Return columns, or a sample, with groups as names with a slash.

    Examples
    --------
    >>> flat({"training": {"boxes": 1}, "label": 2}, ["training/boxes", "label"])
    {'training/boxes': 1, 'label': 2}
    """
    groups = {name[:at] for name in names for at in range(len(name)) if name[at] == "/"}
    pairs = [*_leaves(sample, "", dict.fromkeys(names), groups)]
    found = dict(pairs)
    if len(found) < len(pairs):
        given = [name for name, _ in pairs]
        twice = next(name for name in given if given.count(name) > 1)
        raise InvalidSampleError(
            f"column {twice!r} is given twice, once in its group; leave one out"
        )
    return found


def _leaves(
    values: Mapping[str, Any], prefix: str, names: Mapping[str, None], groups: set[str]
) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if name in names:
            yield name, value
        elif name in groups and isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/", names, groups)
        elif name in groups and isinstance(getattr(value, "type", None), pa.StructType):  # of Arrow
            fields = {field.name: pc.struct_field(value, field.name) for field in value.type}
            yield from _leaves(fields, f"{name}/", names, groups)
        elif name == SID:
            raise InvalidSampleError(
                f"{SID} is the number that the dataset gives a sample; leave it out of new samples"
            )
        else:
            raise InvalidSampleError(
                f"the dataset has no column {name!r}{did_you_mean(name, names)}; its columns are "
                f"{', '.join(names)}"
            )


def as_column(name: str, column: Any) -> Any:
    """Return a column that has a length and takes slices of places; raises InvalidSampleTypeError for one value."""
    if isinstance(column, pd.api.extensions.ExtensionArray):  # a Categorical has NaN for a null
        column = pd.Series(column)
    if isinstance(column, (pd.Series, pd.Index)):  # a slice of it may be one of its labels
        return _of_series(column)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return plain_column(column)
    is_one = (
        isinstance(column, (str, bytes, Mapping, set, frozenset)) or getattr(column, "ndim", 1) == 0
    )
    if is_one or not hasattr(column, "__len__"):
        raise InvalidSampleTypeError(
            f"column {name!r} is {type(column).__name__}; a column has one value a sample: a list, an array, "
            "or use append for one sample"
        )
    takes_slices = hasattr(column, "__getitem__") and not isinstance(column, deque)
    return column if takes_slices else [*column]


def _slices(columns: Columns, count: int, files: Collection[str]) -> Iterator[Columns]:
    """Yield slices of columns; how many samples go into one follows from the bytes of the last."""
    start, rows = 0, min(64, BATCH_ROWS)
    while start < count:
        batch = {
            name: _looked_at(column[start : start + rows], name in files)
            for name, column in columns.items()
        }
        taken = min(rows, count - start)
        nbytes = sum(nbytes_of(column, name in files) for name, column in batch.items())
        most = VIEWED_BYTES if _has_views(batch) else BATCH_BYTES
        if nbytes > 2 * most and taken > 1:  # larger ones than those before
            rows = taken // 2
            continue
        yield batch
        start += taken
        rows = max(1, min(most // max(1, nbytes // taken), BATCH_ROWS * 16))


def _has_views(columns: Columns) -> bool:
    return any(isinstance(c, Pieces) and are_viewed(c.nbytes, len(c)) for c in columns.values())


def _looked_at(column: Any, is_file: bool) -> Any:
    """Return a list of bytes with how many they are together, anything else as it is; of files with their checksums."""
    return (Pieces.of(column, summed=is_file) or column) if isinstance(column, list) else column


def _gathered(
    samples: Iterable[Any], names: Sequence[str], files: Collection[str]
) -> Iterator[Columns]:
    """Yield batches of samples that come one by one."""
    rest, number = iter(samples), 0
    while True:
        batch: list[Columns] = []
        nbytes = 0
        for sample in islice(rest, BATCH_ROWS):
            if not isinstance(sample, Mapping):
                raise InvalidSampleTypeError(
                    f"sample {number} is {type(sample).__name__}; a sample is a mapping from columns to values"
                )
            one = flat(sample, names)
            batch.append(one)
            number += 1
            nbytes += sum(nbytes_of(value, name in files) for name, value in one.items())
            if nbytes >= BATCH_BYTES:
                break
        if not batch:
            return
        given = dict.fromkeys(name for one in batch for name in one)
        given = given or dict.fromkeys(names[:1])  # samples of nulls are samples
        columns = [{name: [one.get(name) for one in batch] for name in given}]
        del batch, sample, one
        yield columns.pop()  # nothing here keeps the samples while they are written


def nbytes_of(value: Any, is_file: bool = False) -> int:
    """Return about how many bytes a value has; of a file those that will be read.

    Parameters
    ----------
    value : object
        A sample, or many of them.
    is_file : bool
        Whether a text is the path of a file.

    Examples
    --------
    >>> nbytes_of([b"abc", None, "de"])
    13
    """
    if isinstance(value, (bytes, bytearray, str)):
        return _file_bytes(value) if is_file and isinstance(value, str) else len(value)
    if isinstance(value, (list, tuple)):
        pieces = Pieces.of(value)
        if pieces is not None:  # media, of which there are many
            return pieces.nbytes
        return sum(nbytes_of(one, is_file) for one in value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return sum(nbytes_of(one, is_file) for one in value.tolist())
    if isinstance(value, dict):  # the bytes of a file, or its path
        return sum(nbytes_of(one, is_file) for one in value.values())
    if isinstance(value, os.PathLike) or hasattr(value, "read"):
        return _file_bytes(value)
    if is_file and getattr(value, "type", None) == pa.string():  # paths of Arrow
        return nbytes_of(value.to_pylist(), True)
    with suppress(RuntimeError):  # a sparse tensor of PyTorch has none; its type refuses it
        found = getattr(value, "nbytes", None)
        if found is not None:
            return int(found)
    size = getattr(value, "size", None)  # of a PIL image
    if isinstance(size, tuple) and len(size) == 2:
        return int(size[0]) * int(size[1]) * 4
    return 8


def _file_bytes(file: Any) -> int:
    """Return the bytes of a file by its path, or of one that is open; a few where nobody can tell."""
    with suppress(OSError, ValueError, AttributeError):
        if isinstance(file, (str, os.PathLike)):
            return os.stat(file).st_size
        if hasattr(file, "getbuffer"):
            return int(file.getbuffer().nbytes)
        return os.fstat(file.fileno()).st_size
    return 8
