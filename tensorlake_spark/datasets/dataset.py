"""A dataset: columns of equal length, a sample is a row. The door is `dataset`."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tensorlake_spark.datasets.apart.large_samples import checked_bound
from tensorlake_spark.datasets.changes.change_methods import ChangeMethods
from tensorlake_spark.datasets.column import Column
from tensorlake_spark.datasets.dataset_extensions import DoorMethods
from tensorlake_spark.datasets.derived.derived_methods import DerivedMethods
from tensorlake_spark.datasets.derived.lineage import is_unfinished
from tensorlake_spark.datasets.interchange.hugging_face_files import guessed_schema, with_files
from tensorlake_spark.datasets.interchange.interchange_methods import InterchangeMethods
from tensorlake_spark.datasets.links.link_rules import LinkRules, rules_of
from tensorlake_spark.datasets.samples.appending import append, check_batch, count_of
from tensorlake_spark.datasets.samples.sample_input import (
    as_column,
    as_columns,
    batches_of,
    check_samples,
    file_columns,
)
from tensorlake_spark.datasets.samples.sample_plan import SamplePlan, plan
from tensorlake_spark.datasets.samples.sample_reading import read_table, runs_of
from tensorlake_spark.datasets.samples.sample_selection import select_samples, whole_numbers
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.plain import types_of_numbers
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.datasets.types.schema import SampleSchema, declared_types
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    FormatError,
    InvalidKeyTypeError,
    InvalidOptionError,
    SampleNotFoundError,
    TableNotFoundError,
    check_flag,
)

_ARROW = (pa.Table, pa.RecordBatch)
_LOOKED_AT = 100  # samples from which the columns of a new dataset are guessed


def dataset(
    uri: str | os.PathLike[str],
    schema: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    version: int | str | None = None,
    timestamp: str | dt.datetime | None = None,
    create: bool = True,
    *,
    tile_bytes: int | None = None,
    allow_http: Sequence[str] = (),
    links: LinkRules | None = None,
) -> Dataset:
    """Open a dataset, or create one.

    Parameters
    ----------
    uri : str or path
        A local path, or a URL such as ``s3://bucket/coco``.
    schema : mapping of str to Type, optional
        The columns of a new dataset: types of `tensorlake_spark.types`, or NumPy's names of dtypes. A name may have
        ``/`` between groups. Without a schema, a new dataset guesses its columns from its first samples; a table of
        Arrow from `Dataset.to_arrow` says them. If the dataset exists, the schema has to have the same columns, in
        any order.
    storage_options : mapping, optional
        As for `open`.
    version : int or str, optional
        A version or a tag; the dataset is then for reading only.
    timestamp : str or datetime, optional
        The version that was the newest at that time.
    create : bool
        Whether a place without a table is an empty dataset, which the first samples create. With False it is an
        error.
    tile_bytes : int, optional
        For a new dataset: arrays and raw images with more bytes are stored as tiles, so that a slice reads only the
        tiles that it needs; 8 MiB by default.
    allow_http : sequence of str
        Hosts to which links may lead by http and https, such as ``images.example.org`` or ``*.example.org``; see
        `LinkRules`. Without any host, such links are stored, but never looked up or fetched.
    links : LinkRules, optional
        Rules for all links, in the place of `allow_http`: also which folders and buckets they may lead to.

    Returns
    -------
    Dataset

    Raises
    ------
    TableNotFoundError
        If there is no table, and `create` is False or a version was named.
    FormatError
        If the table is not a dataset, or has other columns than `schema`.
    InvalidOptionError
        If the log does not have that version, or the dataset exists with another `tile_bytes`.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
    >>> ds.extend({"label": ["dog", "cat"], "size": np.array([3, 4])})
    >>> ds["label"][:].tolist(), ds[1]
    ([1, 0], {'label': 0, 'size': 4})
    """
    check_flag("create", create)
    storage = Storage.at(uri, storage_options)
    wanted = None if schema is None else SampleSchema(schema)
    pinned = version is not None or timestamp is not None
    try:
        snapshot: Snapshot | None = Snapshot.open(storage, version, timestamp, SAMPLES)
    except TableNotFoundError:
        if pinned or not create:
            raise
        snapshot = None
    if snapshot is not None and not pinned and is_unfinished(snapshot):
        raise TableNotFoundError(
            f"{storage.uri} is a copy that is not complete: another process is at work on it, or was killed; delete "
            "it, or make the copy again, which removes the incomplete one an hour after its last file was written"
        )
    rules = rules_of(links, allow_http, storage.options)
    out = Dataset(storage, snapshot, pinned, checked_bound(tile_bytes), rules)
    if tile_bytes not in (None, out.tile_bytes):
        raise InvalidOptionError(
            f"tile_bytes={tile_bytes} is for a new dataset; the one at {storage.uri} has {out.tile_bytes}, and keeps "
            "it: leave tile_bytes out"
        )
    if wanted is not None and snapshot is None:
        out._created(wanted)
    elif wanted is not None and (others := out.schema.differences(wanted)):
        raise FormatError(
            f"the dataset at {storage.uri} has other columns than those of the schema: {others}; open "
            "it without a schema, or use add_column, drop_column or rename_column"
        )
    return out


class Dataset(ChangeMethods, DerivedMethods, InterchangeMethods, DoorMethods):
    """Samples in columns. Make one with `dataset`.

    Examples
    --------
    >>> import tempfile, tensorlake_spark as tl
    >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
    >>> ds.extend({"label": ["dog", "cat", "dog"], "size": [3, 4, 5]})
    >>> len(ds), ds[1], ds["size"][:].tolist(), ds.sids.tolist()
    (3, {'label': 0, 'size': 4}, [3, 4, 5], [0, 1, 2])
    """

    def __repr__(self) -> str:
        shown = "no version" if self.version is None else f"version {self.version}"
        return f"<Dataset {self.uri}: {len(self)} samples, {len(self.schema)} columns, {shown}>"

    # ------------------------------------------------------------------ reading

    def __getitem__(self, key: Any) -> Any:
        """Return a column, a group, one sample, or several samples.

        A name gives a `Column`, or a `Group`. An int gives a sample as a dict by names. A slice, a list or a
        mask gives a dict of columns, which `extend` takes.
        """
        if isinstance(key, str):
            if key in self.schema or key not in self.schema.groups():
                return Column(self, key)
            return Group(self, key)
        return self._samples(key, list(self.schema))

    def __contains__(self, name: object) -> bool:
        """Whether the dataset has a column, or a group, of a name."""
        return name in self.schema or name in self.schema.groups()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = list(self.schema)
        for positions in runs_of(self.parts, names, np.arange(len(self))) if len(self) else ():
            columns = self._values(positions, names)
            for values in zip(*columns.values(), strict=True):
                yield dict(zip(names, values, strict=True))

    def _samples(self, key: Any, names: list[str]) -> Any:
        chosen = select_samples(key, len(self), "the dataset")
        if isinstance(chosen, int):
            found = self._values(np.array([chosen]), names)
            return {name: values[0] for name, values in found.items()}
        return self._values(chosen, names, stack=True)

    def sample(self, sid: int) -> dict[str, Any]:
        """Return the sample with a number, as a dict by names of columns.

        Raises
        ------
        SampleNotFoundError
            If there is none, or it was deleted.
        InvalidKeyTypeError
            If the number is not an integer.
        """
        if not isinstance(sid, (int, np.integer)) or isinstance(sid, bool):
            raise InvalidKeyTypeError(
                f"sid={sid!r} is {type(sid).__name__}; a sid is a whole number, and ds.sids has them all"
            )
        position = -1
        if len(self):
            position = int(self.stored.positions_of(whole_numbers([sid]))[0])
        if position < 0:
            raise SampleNotFoundError(
                f"the dataset at {self.uri} has no sample with sid {sid} at version {self.version}; ds.sids has "
                "them all"
            )
        found: dict[str, Any] = self[position]
        return found

    # ------------------------------------------------------------------ writing

    def append(self, sample: Mapping[str, Any]) -> None:
        """Add one sample, in a commit of its own; `extend` adds many samples faster.

        Parameters
        ----------
        sample : mapping
            A value for each column. A column that is left out is null.

        Raises
        ------
        InvalidSampleError
            If a value does not fit its column; the message says what was expected.
        """
        self.extend([sample])

    def extend(self, samples: Any, *, transaction: tuple[str, int] | None = None) -> None:
        """Add samples, in one commit.

        Parameters
        ----------
        samples : mapping, pandas.DataFrame, pyarrow.Table, other table of Arrow, or iterable of mappings
            A mapping has the columns by name, each with a value for every sample. Tables of Polars, results of DuckDB,
            readers of record batches and datasets of Hugging Face work too; files of the last are stored unchanged if
            they have the column's format. Iterators and readers are streamed, so memory is bounded.
        transaction : (str, int), optional
            Name and number of a batch. If this number or a later one is committed already, nothing changes.

        Raises
        ------
        InvalidSampleError
            If a sample does not fit; nothing is committed then.
        InvalidOptionError
            If `transaction` is not such a pair.
        ConcurrentWriteError
            If other writers won every attempt.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4]})
        >>> ds.extend({"size": n} for n in range(2))  # an iterator of samples
        >>> ds["size"][:].tolist()
        [3, 4, 0, 1]
        """
        self._check_writable()
        check_batch(transaction)
        schema = self.schema
        if self._stored is None:
            samples, schema = _with_schema(samples)
            if not schema:  # no sample, so that nothing tells the columns: the next ones may
                return
        samples = with_files(samples, schema)
        snapshot = self._created(schema)
        given = batches_of(samples, list(schema), file_columns(schema))
        batches = self._with_facts(given, schema)
        self._show(
            append(self._storage, snapshot, schema, batches, "extend", transaction=transaction)
        )

    def _with_facts(
        self, batches: Iterator[dict[str, Any]], schema: SampleSchema
    ) -> Iterator[dict[str, Any]]:
        """Yield batches of columns in which links are looked up."""
        first = 0
        for columns in batches:
            yield {
                name: self._looked_up(name, schema[name], values, first)
                for name, values in columns.items()
            }
            first += count_of(columns)

    # ------------------------------------------------------------------ other forms

    def to_arrow(self, columns: list[str] | None = None, where: str | None = None) -> pa.Table:
        """Return columns as they are stored.

        Parameters
        ----------
        columns : list of str, optional
            Names, and ``sid``; all without ``sid`` where None.
        where : str, optional
            SQL on the scalar columns and the fields of media, such as ``image.height > 512 AND label = 'cat'``.
            Write a column of a group as ``training.label`` or ``"training/label"``. You may write a class by its name.
            Nulls and NaN compare as in Spark, and times without a zone are in UTC.

        Raises
        ------
        InvalidOptionError
            If `where` is not a condition; the message shows the place in it, and what is allowed.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
        >>> ds.extend({"label": ["dog", "cat", "dog"], "size": [3, 4, 5]})
        >>> ds.to_arrow(["size"], where="label = 'dog' AND size BETWEEN 4 AND 9")["size"].to_pylist()
        [5]
        """
        wanted = self._names(columns, sid=True)
        positions = np.arange(len(self)) if where is None else self.positions_where(where)
        if self._stored is None:
            return self.schema.to_arrow().empty_table()
        return read_table(self.parts, wanted, positions)

    def to_pandas(self, columns: list[str] | None = None, where: str | None = None) -> pd.DataFrame:
        """Return columns as a DataFrame of decoded values. Its index has the sids.

        Parameters
        ----------
        columns : list of str, optional
            Names; all by default. Media are decoded into memory, so name only the columns that you need.
        where : str, optional
            As for `to_arrow`.
        """
        wanted = self._names(columns)
        positions = np.arange(len(self)) if where is None else self.positions_where(where)
        index = pd.Index(self._sids_of(positions), name=SID)
        found = self._values(positions, wanted, stack=True)
        columns_ = {name: _series(found[name], self.type_of(name), index) for name in wanted}
        frame: pd.DataFrame = pd.DataFrame(columns_, index)
        return frame

    def explain(self, where: str | None = None, columns: list[str] | None = None) -> SamplePlan:
        """Return what `to_arrow` would read: files, row groups and bytes. No sample is read for it.

        Parameters
        ----------
        where : str, optional
            As for `to_arrow`.
        columns : list of str, optional
            Names; all where None.

        Returns
        -------
        SamplePlan
            ``print`` shows it.
        """
        return plan(self, where, self._names(columns))

    def column_names(self, columns: Sequence[str] | None) -> list[str]:
        """Return names of columns, after a check that they exist; all columns without ``sid`` for None.

        Raises
        ------
        UnknownLabelError
            If there is no such column.
        """
        return self._names(columns, sid=True)


def _series(values: Any, kind: Type, index: Any) -> Any:
    """Return values of a column for a DataFrame: numbers stay what they are, also beside nulls."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return pd.Series(values, index)
    family = kind.family if isinstance(kind, Scalar) else ""
    dtype: Any = {"bool": "boolean", "int": "Int64", "float": "float64"}.get(family, object)
    if isinstance(kind, ClassLabel):
        dtype = "Int64"
    elif isinstance(kind, Scalar) and kind.dtype == "uint64":
        dtype = "UInt64"
    return pd.Series([*values], index, dtype=dtype)


def _with_schema(samples: Any) -> tuple[Any, SampleSchema]:
    """Return samples, of which the first were looked at, and a schema that fits those."""
    check_samples(samples)
    guessed = guessed_schema(samples, _LOOKED_AT)
    if guessed is not None:
        return samples, guessed
    declared = declared_types(samples.schema) if isinstance(samples, _ARROW) else {}
    samples = as_columns(samples)
    if isinstance(samples, pa.RecordBatchReader):
        batch = next(samples, None)
        rest = samples if batch is None else chain([batch], samples)
        looked_at = samples.schema.empty_table() if batch is None else batch
        return pa.RecordBatchReader.from_batches(samples.schema, rest), _with_schema(looked_at)[1]
    if isinstance(samples, Mapping):
        columns = {name: as_column(name, column) for name, column in samples.items()}
        some = {name: _first(column) for name, column in columns.items()}
        return samples, SampleSchema.infer(some, {**types_of_numbers(columns), **declared})
    rest = iter(samples)
    first = list(islice(rest, _LOOKED_AT))
    schema = SampleSchema.infer(first)
    if first and not schema:
        raise InvalidOptionError(
            "the first samples have no values to tell the columns by; give schema="
        )
    return chain(first, rest), schema


def _first(values: Any) -> list[Any]:
    some = values[:_LOOKED_AT]
    return some.to_pylist() if isinstance(some, (pa.Array, pa.ChunkedArray)) else list(some)


class Group:
    """Some columns of a dataset: those whose names begin with the group's and a ``/``."""

    def __init__(self, table: Dataset, name: str) -> None:
        self._table = table
        self.name = name
        self.schema: dict[str, Type] = {
            key[len(name) + 1 :]: kind
            for key, kind in table.schema.items()
            if key.startswith(f"{name}/")
        }

    def __repr__(self) -> str:
        return f"<Group {self.name!r}: {', '.join(self.schema)}>"

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        """Whether the group has a column, or a group, of a name."""
        return isinstance(name, str) and f"{self.name}/{name}" in self._table

    def __getitem__(self, key: Any) -> Any:
        """Return a column, a group in this one, one sample, or several samples, with the names that they have here."""
        if isinstance(key, str):
            return self._table[f"{self.name}/{key}"]
        names = [f"{self.name}/{inner}" for inner in self.schema]
        found = self._table._samples(key, names)
        return dict(zip(self.schema, found.values(), strict=True))
