"""What a user names becomes a source."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tensorlake_spark.datasets.dataset import Dataset, dataset
from tensorlake_spark.delta.plain.plain_table import PlainTable
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidQueryError,
    TableNotFoundError,
    check_text,
)
from tensorlake_spark.lake.lake import TensorLake
from tensorlake_spark.lake.lake import open as open_lake
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.duckdb_tables import as_arrow
from tensorlake_spark.query.sources.table_source import TableSource

Source = DatasetSource | TableSource

TAKEN = (
    "a Dataset, a View, a TensorLake, a pyarrow.Table, a pandas.DataFrame, or the place of a dataset, of a lake, of a "
    "Delta table or of Parquet files"
)


def source_of(given: Any, name: str, called: str) -> Source:
    """Return what a query reads under a name.

    Parameters
    ----------
    given : object
        What the user gave: see `TAKEN`.
    name : str
        What DuckDB shall call it.
    called : str
        What the query calls it, for messages.

    Raises
    ------
    InvalidOptionError
        If it is nothing of that kind.
    TableNotFoundError
        If there is nothing at that place.
    StorageError
        If a file or folder there cannot be read.
    """
    as_source = getattr(given, "as_source", None)
    if as_source is not None:
        found: Source = as_source(name)
        return found
    if isinstance(given, Dataset):
        return DatasetSource(name, given)
    if isinstance(given, TensorLake):
        return _catalog(given, name)
    if isinstance(given, pd.DataFrame):
        given = as_arrow(given, called)
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return TableSource(name, called, None, given.schema, given.num_rows, given)
    if isinstance(given, (str, os.PathLike)):
        return _at_place(os.fspath(given), name)
    raise InvalidOptionError(f"source {called}={type_name(given)} is not {TAKEN}")


def type_name(given: Any) -> str:
    """Return the name of a type with its package: not only pandas has a DataFrame."""
    package = type(given).__module__.partition(".")[0]
    name = type(given).__name__
    return name if package == "builtins" else f"{package}.{name}"


def check_names(sources: Iterable[str]) -> None:
    """Refuse two sources whose names differ in case only, which a query could not tell apart.

    Raises
    ------
    InvalidOptionError
        With both names.
    """
    known: dict[str, str] = {}
    for name in sources:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise InvalidOptionError(
                f"sources {other!r:.80} and {name!r:.80} differ in case only, which a query does not see; give one "
                "another name"
            )


def checked_parameters(parameters: Any, seed: Any) -> dict[str, Any]:
    """Return the values of a query's parameters, after a check of them and of the seed.

    A set, a range, or an array of another library becomes a list or an array of NumPy, which all engines take.

    Raises
    ------
    InvalidOptionError, InvalidQueryError
        With the value; the latter if a text has half of a character.
    """
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidOptionError(f"parameters={parameters!r:.80} is not a dict of names and values")
    given = {name: _listed(value) for name, value in (parameters or {}).items()}
    for name, value in given.items():
        is_texts = isinstance(value, np.ndarray) and value.dtype.kind == "U"
        several = value.ravel().tolist() if is_texts else value
        for one in several if isinstance(several, (list, tuple)) else [several]:
            if isinstance(one, str):
                check_text(one, f"parameter {name!r:.80},", InvalidQueryError)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidOptionError(f"seed={seed!r:.40} is not a number from 0")
    return given


def _listed(value: Any) -> Any:
    """Return a value as a list or an array of NumPy if it is another kind of list."""
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__array__"):
        return value
    found = np.asarray(value)
    return found.tolist() if found.dtype == object else found


def at_version(
    source: TableSource, name: str, version: int | str | None, timestamp: str | dt.datetime | None
) -> Source:
    """Return another version of a Delta table.

    Raises
    ------
    InvalidOptionError
        If it is a table without versions.
    """
    if source.version is None:
        raise InvalidOptionError(
            f"{source.uri} has no versions; only datasets, lakes and Delta tables do"
        )
    if source.lake is not None:
        options = source.lake._storage.options
        opened = open_lake(
            source.uri, storage_options=options, version=version, timestamp=timestamp, create=False
        )
        return _catalog(opened, name)
    return _delta(Storage(source.uri), name, version, timestamp)


def _at_place(uri: str, name: str) -> Source:
    storage = Storage(uri)
    if storage.is_local and not os.path.isdir(os.path.join(storage.uri, "_delta_log")):
        return _parquet(storage, name)
    if not storage.is_local and storage.uri.endswith(".parquet"):
        table = pq.read_table(storage.place[1], filesystem=storage.place[0])
        return TableSource(name, storage.uri, None, table.schema, table.num_rows, table)
    kind = PlainTable.kind(storage)
    if kind == "samples":
        return DatasetSource(name, dataset(uri, create=False))
    if kind == "tensors":
        return _catalog(open_lake(uri, create=False), name)
    return _delta(storage, name, None, None)


def _delta(
    storage: Storage, name: str, version: int | str | None, timestamp: str | dt.datetime | None
) -> TableSource:
    found = PlainTable(storage, version, timestamp)
    return TableSource(name, storage.uri, found.version, found.schema, found.rows, found.data)


def _parquet(storage: Storage, name: str) -> TableSource:
    uri = storage.uri
    with reaching(storage):
        filesystem, place = storage.place
        info = filesystem.get_file_info(place)
        is_folder = info.type == pafs.FileType.Directory
        paths = sorted(_parquet_files(uri)) if is_folder else [uri] * info.is_file
        if not paths:
            raise TableNotFoundError(f"there is no Delta table and no Parquet file at {uri}")
        try:
            files = [pq.ParquetFile(path) for path in paths]
            schema = pa.unify_schemas(
                [file.schema_arrow for file in files], promote_options="permissive"
            )
        except pa.ArrowException as error:
            raise InvalidOptionError(f"{uri} cannot be read as Parquet: {error}") from error
    rows = sum(file.metadata.num_rows for file in files)
    for file in files:
        file.close()
    return TableSource(name, uri, None, schema, rows, None, paths)


def _parquet_files(folder: str) -> Iterator[str]:
    """Yield the Parquet files below a folder, without those that Spark hides; what cannot be read is an error."""
    for where, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.endswith(".parquet") and not name.startswith((".", "_")):
                yield os.path.join(where, name)


def _refuse(error: OSError) -> None:
    raise error


def _catalog(lake: TensorLake, name: str) -> TableSource:
    table = catalog_of(lake)
    out = TableSource(name, lake.uri, lake.version, table.schema, table.num_rows, table)
    out.lake = lake
    return out


def catalog_of(lake: TensorLake) -> pa.Table:
    """Return the catalog of a lake as a table: shapes as lists, axes and attributes as JSON."""
    frame = lake.catalog()
    columns: dict[str, Any] = {}
    for column in frame.columns:
        values = frame[column].tolist()
        if column in ("attrs", "axes"):
            values = [None if v is None else json.dumps(v, default=str) for v in values]
        elif column in ("shape", "block_shape"):
            values = [None if v is None else [int(n) for n in v] for v in values]
        columns[column] = values
    kinds = {
        "shape": pa.list_(pa.int64()), "block_shape": pa.list_(pa.int64()), "nnz": pa.int64(),
        "nbytes": pa.int64(), "stored_bytes": pa.int64(), "rows": pa.int64(),
    }  # fmt: skip
    arrays = {
        key: pa.array([_plain(v) for v in values], kinds.get(key, pa.string()))
        for key, values in columns.items()
    }
    return pa.table(arrays)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
