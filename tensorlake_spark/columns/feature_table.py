"""FeatureTable: named features of a lake, read by their names as Arrow tables, and their changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tensorlake_spark.columns.access_log import order_of
from tensorlake_spark.columns.elsewhere.feature_parts import RowsElsewhere
from tensorlake_spark.columns.feature_changes import (
    FeatureChange,
    check_codec,
    tell_codec_kept,
)
from tensorlake_spark.columns.feature_commits import FeatureCommits
from tensorlake_spark.columns.feature_encoding import (
    add_elsewhere,
    append_elsewhere,
    write_elsewhere,
)
from tensorlake_spark.columns.feature_input import table_of
from tensorlake_spark.columns.feature_reads import checked_names
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidTensorError,
    TensorExistsError,
    check_flag,
    is_iterable,
)


class FeatureTable(FeatureCommits):
    """A table of named features: thousands of columns of numbers. A read takes only the features that it names.

    `TensorLake.features` makes it. It shows one version of the lake, and moves on with the changes that you make
    through it. The features of a dtype are one tensor of shape (row, feature), and every change is one commit.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
    >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
    >>> features.write(pa.table({"age": [31, None], "score": [0.5, 0.25]}))
    FeatureTable('ctr', rows=2, features=2, version=1)
    >>> features.read(["score", "age"], rows=slice(1, 2)).to_pylist()
    [{'score': 0.25, 'age': None}]
    """

    def write(
        self,
        table: Any,
        *,
        mode: str = "error",
        codec: str = "auto",
        transaction: tuple[str, int] | None = None,
    ) -> FeatureTable:
        """Write a table of features in one commit, and return this one at the version that has it.

        Parameters
        ----------
        table : pyarrow.Table, pandas.DataFrame, or a DataFrame of Spark
            A column for each feature, of booleans, integers, floats, times or dates, nulls allowed. The index of a
            DataFrame of pandas is left out. The rows of a DataFrame of Spark are encoded and written by executors, in
            the order of its partitions; only what they wrote comes to this process.
        mode : {"error", "overwrite"}
            What to do if there is a table of this name. `append` and `add` continue one.
        codec : str
            How values are coded, as in `TensorLake.write`.
        transaction : (str, int), optional
            Name and number of a batch. If this number or a later one is committed already, nothing is written.

        Raises
        ------
        TensorExistsError
            If there is one, and the mode is ``"error"``.
        InvalidTensorError, UnsupportedDtypeError
            If a name is there twice, or no tensor holds the type of a column.
        InvalidOptionError
            If the codec is unknown, or not one for the dtype of a feature.
        ConcurrentWriteError
            If another writer was faster; nothing is committed then.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> features.write(pa.table({"age": [31, None]})).read().to_pylist()
        [{'age': 31}, {'age': None}]
        """
        if mode not in ("error", "overwrite"):
            raise InvalidOptionError(
                f"mode={mode!r} is not a mode of writing features; known are 'error' and 'overwrite', and "
                ".append(table) adds rows"
            )
        with self._rows_of(table) as given:
            check_codec(codec, given.schema)

            def change(now: FeatureChange) -> None:
                if now.found is not None and mode == "error":
                    raise TensorExistsError(
                        f"features {self._name!r} exist in {self._storage.uri}; write with mode='overwrite', add rows "
                        "with .append(table), or features with .add(table)"
                    )
                if isinstance(given, pa.Table):
                    now.write(given, codec)
                else:
                    write_elsewhere(now, given, codec)

            return self._change("write", _nbytes(given), change, transaction)

    def append(self, table: Any, *, transaction: tuple[str, int] | None = None) -> FeatureTable:
        """Add rows to all features, in one commit.

        If another writer commits first, the append is repeated on the new version.

        Parameters
        ----------
        table : pyarrow.Table, pandas.DataFrame, or a DataFrame of Spark
            A column for each feature, in any order and of the same types; columns of Spark, which has fewer types,
            are cast. Deprecated features may be left out; they are null then.
        transaction : (str, int), optional
            Name and number of a batch, as in `write`.

        Raises
        ------
        InvalidTensorError
            If a feature is missing, a column is new, or a type differs.
        TensorNotFoundError
            If there is no such table.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> _ = features.write(pa.table({"age": [31, None], "score": [0.5, 0.25]}))
        >>> len(features.append(pa.table({"score": [1.0], "age": [54]})))
        3
        """
        with self._rows_of(table, self._set.types if self._set else {}) as given:

            def change(now: FeatureChange) -> None:
                if isinstance(given, pa.Table):
                    now.append(given)
                else:
                    append_elsewhere(now, given)

            return self._change_anew("append", _nbytes(given), change, transaction)

    @contextmanager
    def _rows_of(
        self, data: Any, types: Mapping[str, pa.DataType] | None = None
    ) -> Iterator[pa.Table | RowsElsewhere]:
        """Take rows as an Arrow table; those of a DataFrame of Spark, or elsewhere, stay where they are.

        `types` are those of the features that the rows continue.
        """
        if type(data).__module__.startswith("pyspark."):
            from tensorlake_spark.spark.frames.feature_frame import FrameRows

            with FrameRows.of(data, self._storage, types or {}) as rows:
                yield rows
        elif isinstance(data, RowsElsewhere):
            yield data
        else:
            yield table_of(data)

    def write_parts(
        self,
        tables: Iterable[Any],
        *,
        mode: str = "append",
        codec: str = "auto",
        transaction: tuple[str, int] | None = None,
    ) -> FeatureTable:
        """Write the rows of several tables in one commit, without having all of them in memory.

        Give every table except the last a multiple of 4,096 rows, so that all blocks are full.

        Parameters
        ----------
        tables : iterable of pyarrow.Table or pandas.DataFrame
            At least one; each as `write` and `append` take them.
        mode : {"append", "overwrite"}
            Whether they continue the existing table, or replace it.
        codec, transaction
            As in `write`.

        Raises
        ------
        InvalidTensorError
            If there are no tables, or one does not fit.
        ConcurrentWriteError
            If another writer was faster; nothing is committed then.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> parts = (pa.table({"age": range(k, k + 4096)}) for k in (0, 4096))
        >>> len(features.write_parts(parts))
        8192
        """
        if mode not in ("append", "overwrite"):
            raise InvalidOptionError(
                f"mode={mode!r} is not a mode of writing parts; known are 'append' and 'overwrite'"
            )
        check_codec(codec, pa.schema([]))
        if not is_iterable(tables):
            raise InvalidTensorError(
                f"tables={tables!r:.80} is not an iterator of tables; one table goes to append(table)"
            )

        def change(now: FeatureChange) -> None:
            if now.found is not None and mode == "append":
                tell_codec_kept(codec, now.found)
            count = 0
            for count, table in enumerate(tables, start=1):
                given = table_of(table)
                if count == 1 and (now.found is None or mode == "overwrite"):
                    check_codec(codec, given.schema)
                    now.write(given, codec)
                else:
                    now.append(given)
                now = now.next()
            if not count:
                raise InvalidTensorError(
                    "no table was given, so there are no names of features; give one without rows at least"
                )

        return self._change("write", None, change, transaction)

    def add(
        self, table: Any, *, codec: str = "auto", transaction: tuple[str, int] | None = None
    ) -> FeatureTable:
        """Add features to all rows, in one commit. The stored features are not written anew.

        If another writer commits first, it starts again on the new version.

        Parameters
        ----------
        table : pyarrow.Table, pandas.DataFrame, or a DataFrame of Spark
            A column for each new feature, and a row for each row of this table, in its order. The rows of a DataFrame
            of Spark have the order of its partitions, and executors encode them.
        codec : str
            How values are coded, for dtypes that the table does not have yet.
        transaction : (str, int), optional
            Name and number of a batch, as in `write`.

        Raises
        ------
        InvalidTensorError
            If a name exists already, or the number of rows differs.
        InvalidOptionError
            If the codec is unknown, or not one for the dtype of a feature.
        TensorNotFoundError
            If there is no such table.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> _ = features.write(pa.table({"age": [31, None], "score": [0.5, 0.25]}))
        >>> features.add(pa.table({"clicks": [3, 1]})).names
        ['age', 'score', 'clicks']
        """
        with self._rows_of(table) as given:
            check_codec(codec, given.schema)

            def change(now: FeatureChange) -> None:
                if isinstance(given, pa.Table):
                    now.add(given, codec)
                else:
                    add_elsewhere(now, given, codec)

            return self._change_anew("add", _nbytes(given), change, transaction)

    def deprecate(self, names: Sequence[str], hidden: bool = True) -> FeatureTable:
        """Hide features from `names`, `schema` and reads of all features; no data is written.

        A read that names one still gets it, with a `FutureWarning`.

        Parameters
        ----------
        names : sequence of str
            Which features.
        hidden : bool
            With False they are shown again.

        Raises
        ------
        UnknownLabelError
            If there is no feature of a name.
        InvalidOptionError
            If `hidden` is not True or False.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> _ = features.write(pa.table({"age": [31, None], "score": [0.5, 0.25]}))
        >>> features.deprecate(["age"]).names, features.deprecated
        (['score'], ['age'])
        """
        is_hidden = check_flag("hidden", hidden)
        given = checked_names(names)
        return self._change_anew("deprecate", None, lambda now: now.deprecate(given, is_hidden))

    def drop(self, names: Sequence[str]) -> FeatureTable:
        """Remove features, in one commit.

        Blocks before the first that loses a feature stay as they are, and so do files that hold nothing else. Those
        behind it are written anew. So features that were added last are dropped without writing the others. Old
        versions keep what is dropped until `TensorLake.vacuum`. When the last feature is dropped, the table is gone.

        Parameters
        ----------
        names : sequence of str
            Which features.

        Raises
        ------
        UnknownLabelError
            If there is no feature of a name.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> _ = features.write(pa.table({"age": [31, None], "score": [0.5, 0.25]}))
        >>> features.drop(["age"]).names
        ['score']
        """
        given = checked_names(names)
        return self._change_anew("drop", None, lambda now: now.drop(given))

    def reorder(self, order: Sequence[str] | None = None) -> FeatureTable:
        """Store features in another order, so that a read of some of them needs fewer blocks; in one commit.

        Blocks are rewritten from the first one that changes. Names, values and the order in the table stay.

        Parameters
        ----------
        order : sequence of str, optional
            The features that come first; the others follow. By default, features that were read together come together,
            see `record`.

        Raises
        ------
        InvalidOptionError
            If no order is given and no read was counted.
        UnknownLabelError
            If there is no feature of a name.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> _ = features.write(pa.table({"age": [31, None], "score": [0.5, 0.25]}))
        >>> features.reorder(["score"]).names  # only the place in blocks has changed
        ['age', 'score']
        """
        found = self._found()
        if order is None:
            counts = self.accessed
            if not counts:
                raise InvalidOptionError(
                    f"no read of features {self._name!r} was counted, so there is no order; call .record() before "
                    "reads, or give the order"
                )
            given = order_of(counts, found.every_name)
        else:
            given = checked_names(order)
            found.pick(given)
        return self._change_anew("reorder", None, lambda now: now.reorder(given))


def _nbytes(given: pa.Table | RowsElsewhere) -> int | None:
    """Return the bytes of rows, where they are known."""
    return int(given.nbytes) if isinstance(given, pa.Table) else None
