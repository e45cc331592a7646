"""What a user gives as samples, as batches of columns: bounded in memory, and of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tensorlake_spark.errors import InvalidSampleError, InvalidSampleTypeError, did_you_mean

Columns = dict[str, Any]  # for each name a list, an ndarray or an Arrow array

BATCH_ROWS = 1024
"""Samples that are taken at a time, at most."""

BATCH_BYTES = 4 << 20
"""Bytes of samples that are taken at a time, about: memory of this size is used again, and not asked for anew."""


def batches_of(samples: Any, names: Sequence[str]) -> Iterator[Columns]:
    """Yield samples as batches of columns.

    Parameters
    ----------
    samples : mapping, pandas.DataFrame, pyarrow.Table, or iterable of mappings
        A mapping has the columns by name, each with a value a sample; groups may be mappings in it.
    names : sequence of str
        The columns that the dataset has; a column that is not given is null.

    Raises
    ------
    InvalidSampleError
        If there is no such column, or if columns are of unequal length.
    InvalidSampleTypeError
        If it is none of these.
    """
    check_plain(samples)
    if isinstance(samples, pd.DataFrame):
        samples = {str(name): samples[name].to_numpy() for name in samples.columns}
    elif isinstance(samples, (pa.Table, pa.RecordBatch)):
        samples = dict(zip(samples.schema.names, samples.columns, strict=True))
    if isinstance(samples, Mapping):
        columns = flat(samples, names)
        counts = {name: _length(name, column) for name, column in columns.items()}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            raise InvalidSampleError(
                f"the columns have unequal lengths: {said}; give each of them one value a sample"
            )
        yield from _slices(columns, next(iter(counts.values()), 0))
        return
    if isinstance(samples, (str, bytes)) or not isinstance(samples, Iterable):
        raise InvalidSampleTypeError(
            f"samples are a mapping of columns, a list or an iterator of mappings, a pyarrow.Table or a "
            f"pandas.DataFrame, not {type(samples).__name__}"
        )
    yield from _gathered(samples, names)


def check_plain(samples: Any) -> None:
    """Raise InvalidSampleTypeError for a DataFrame of Spark, whose rows are with executors."""
    if type(samples).__module__.startswith("pyspark."):
        raise InvalidSampleTypeError(
            "samples are a DataFrame of Spark, which executors add to a dataset: call "
            "tensorlake_spark.spark.write_samples(df, uri), or give df.toPandas() if it is small"
        )


def flat(sample: Mapping[str, Any], names: Sequence[str]) -> Columns:
    """Return columns, or a sample, with groups as names with a slash.

    Examples
    --------
    >>> flat({"training": {"boxes": 1}, "label": 2}, ["training/boxes", "label"])
    {'training/boxes': 1, 'label': 2}
    """
    groups = {name[:at] for name in names for at in range(len(name)) if name[at] == "/"}
    return dict(_leaves(sample, "", dict.fromkeys(names), groups))


def _leaves(
    values: Mapping[str, Any], prefix: str, names: Mapping[str, None], groups: set[str]
) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if name in names:
            yield name, value
        elif name in groups and isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/", names, groups)
        else:
            raise InvalidSampleError(
                f"the dataset has no column {name!r}{did_you_mean(name, names)}; its columns are "
                f"{', '.join(names)}"
            )


def _length(name: str, column: Any) -> int:
    if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
        raise InvalidSampleTypeError(
            f"column {name!r} is {type(column).__name__}; a column has one value a sample: a list, an array, "
            "or use append for one sample"
        )
    return len(column)


def _slices(columns: Columns, count: int) -> Iterator[Columns]:
    """Yield slices of columns; how many samples go into one follows from the bytes of the last."""
    start, rows = 0, min(64, BATCH_ROWS)
    while start < count:
        batch = {name: column[start : start + rows] for name, column in columns.items()}
        yield batch
        taken = min(rows, count - start)
        start += taken
        each = max(1, sum(nbytes_of(column) for column in batch.values()) // taken)
        rows = max(1, min(BATCH_BYTES // each, BATCH_ROWS * 16))


def _gathered(samples: Iterable[Any], names: Sequence[str]) -> Iterator[Columns]:
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
            nbytes += sum(nbytes_of(value) for value in one.values())
            if nbytes >= BATCH_BYTES:
                break
        if not batch:
            return
        given = dict.fromkeys(name for one in batch for name in one)
        columns = [{name: [one.get(name) for one in batch] for name in given}]
        del batch, sample, one
        yield columns.pop()  # nothing here keeps the samples while they are written


def nbytes_of(value: Any) -> int:
    """Return about how many bytes a value has.

    Examples
    --------
    >>> nbytes_of([b"abc", None, "de"])
    13
    """
    if isinstance(value, (bytes, bytearray, str)):
        return len(value)
    if isinstance(value, (list, tuple)):
        if {*map(type, value)} <= {bytes}:  # media, of which there are many
            return sum(map(len, value))
        return sum(map(nbytes_of, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return sum(map(nbytes_of, value.tolist()))
    found = getattr(value, "nbytes", None)
    if found is not None:
        return int(found)
    size = getattr(value, "size", None)  # of a PIL image
    if isinstance(size, tuple) and len(size) == 2:
        return int(size[0]) * int(size[1]) * 4
    return 8
