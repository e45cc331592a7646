"""What a query returns: rows in an order, of which nothing is read before it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_selection import select_samples
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.guessing import guess
from tensorlake_spark.datasets.types.plain import type_of_arrow
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidQueryError,
    UnknownLabelError,
    did_you_mean,
    is_iterable,
)
from tensorlake_spark.query.engine.read_report import ReadReport, report_of
from tensorlake_spark.query.planning.plan import Plan
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import Lazy, Stored, is_collected
from tensorlake_spark.query.sources.table_source import TableSource
from tensorlake_spark.query.views.view_rows import ViewRows
from tensorlake_spark.query.views.view_tables import arrow_of, frame_of, html_of
from tensorlake_spark.query.views.view_values import first_values, output_values

if TYPE_CHECKING:
    from tensorlake_spark.datasets.dataset import Dataset
    from tensorlake_spark.loader.loader import Loader

Array = np.ndarray[Any, Any]


class View:
    """The result of a query: rows in an order. `query` makes it.

    The SQL on scalars and the conditions on tensors run when you first use the rows. Selected tensors are read and
    computed when you take them out.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("float32", (3,)), "label": "int32"})
    >>> ds.extend({"x": np.arange(12, dtype="f4").reshape(4, 3), "label": [0, 1, 0, 1]})
    >>> view = ds.query("SELECT x[:2] AS head, label FROM dataset WHERE array_mean(x) > 2 ORDER BY label")
    >>> view.names, len(view), view.sids.tolist()
    (['head', 'label'], 3, [2, 1, 3])
    >>> view[0]["head"].tolist(), int(view[0]["label"])
    ([6.0, 7.0], 0)
    """

    def __init__(
        self, plan: Plan, state: ViewRows | None = None, chosen: Array | None = None
    ) -> None:
        self._plan = plan
        self._state = ViewRows(plan) if state is None else state
        self._chosen = chosen
        self._part: pa.Table | None = None

    # ------------------------------------------------------------------ what it is

    @property
    def text(self) -> str:
        """The text of the query."""
        return self._plan.text

    @property
    def sources(self) -> dict[str, tuple[str, int | None]]:
        """The tables that the query reads, by their names in it: path or URL, and version."""
        return {
            self._plan.names[name]: (source.uri, source.version)
            for name, source in self._plan.sources.items()
        }

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._plan.result.outputs)

    @property
    def types(self) -> dict[str, Type]:
        """The type of each column: that of the dataset that it comes from, or one that fits computed values.

        The type of a computed column is guessed from its first values; without any it is that of nulls.
        """
        return {name: self._type(name) for name in self.names}

    @property
    def dataset(self) -> Dataset | None:
        """The dataset, at its version, if every row of the view is one of its samples; None otherwise."""
        leaf = self._key()
        return None if leaf is None else leaf[0].dataset

    @property
    def sids(self) -> Array | None:
        """The sids of the samples, in the order of the view; None if a row is not one sample of one dataset."""
        leaf = self._key()
        if leaf is None:
            return None
        if leaf[1] not in self._table.column_names:
            self._state.find_sids()
            self._part = None
        column = self._table.column(leaf[1])
        if column.null_count:
            return None
        return np.asarray(column.to_numpy(), np.int64)

    def _key(self) -> tuple[DatasetSource, str] | None:
        found = self._plan.key
        is_of_dataset = found is not None and isinstance(found[0], DatasetSource)
        return found if is_of_dataset else None  # type: ignore[return-value]

    @property
    def _table(self) -> pa.Table:
        if self._part is None:
            table = self._state.run.table
            self._part = table if self._chosen is None else table.take(pa.array(self._chosen))
        return self._part

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def explain(self) -> ReadReport:
        """Return a report of what the query reads: files, bytes, SQL for scalars, and expressions on tensors.

        To make it, scalars and the tensors in conditions are read. Selected tensors are not.

        Returns
        -------
        ReadReport
            ``print`` shows it.
        """
        return report_of(self._plan, self._state.run, self._table)

    # ------------------------------------------------------------------ rows

    def __getitem__(self, key: Any) -> Any:
        """Return a row as a dict, a column by its name, or a view of some rows."""
        if isinstance(key, str):
            return self._values(self._table, [key])[key]
        chosen = select_samples(key, len(self), "the view")
        if isinstance(chosen, int):
            return {
                n: v[0] for n, v in self._values(self._table.slice(chosen, 1), self.names).items()
            }
        rows = chosen if self._chosen is None else self._chosen[chosen]
        return View(self._plan, self._state, rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            for values in zip(*batch.values(), strict=True):
                yield dict(zip(batch, values, strict=True))

    def batches(
        self, columns: Sequence[str] | None = None, rows: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows in batches: for each column an array with the rows along its first axis, or a list.

        Parameters
        ----------
        columns : sequence of str, optional
            Names; all by default.
        rows : int, optional
            How many rows a batch has; by default as many as take about 16 MB.

        Raises
        ------
        InvalidQueryError
            If a value cannot be computed; it names the sample.
        UnknownLabelError
            If there is no such column.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> view = ds.query("SELECT size FROM dataset")
        >>> [batch["size"].tolist() for batch in view.batches(rows=2)]
        [[3, 4], [5]]
        """
        names = self._checked(columns)
        table = self._table
        lazies = [
            output for name in names if isinstance(output := self._plan.result.outputs[name], Lazy)
        ]
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise InvalidQueryError(f"rows={rows!r:.40} is not a number of rows above 0")
        evaluation = self._state.run.evaluation
        if rows is None:
            parts = evaluation.batches(lazies, table)
        else:
            parts = (table.slice(start, rows) for start in range(0, table.num_rows, rows))
        yield from evaluation.ahead(lazies, parts, lambda some: self._values(some, names))

    def _values(self, table: pa.Table, names: list[str]) -> dict[str, Any]:
        outputs = {name: self._plan.result.outputs[name] for name in self._checked(names)}
        return output_values(outputs, table, self._state.run.evaluation)

    def _checked(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return self.names
        if isinstance(columns, str) or not is_iterable(columns):
            raise InvalidOptionError(f"columns={columns!r:.80} is not a list; give a list of names")
        names = [*columns]  # once, because an iterator has them only once
        for name in names:
            if not isinstance(name, str) or name not in self._plan.result.outputs:
                raise UnknownLabelError(
                    f"the view has no column {name!r:.80}{did_you_mean(name, self.names)}"
                )
        return names

    def _type(self, name: str) -> Type:
        output = self._plan.result.outputs[name]
        if isinstance(output, Stored) and output.type is not None:
            return output.type
        if isinstance(output, Lazy) and output.bare is not None:
            leaf = output.bare
            return leaf.source.dataset.schema[leaf.column]
        if isinstance(output, Stored):
            return type_of_arrow(self._table.column(output.ref[1]).type, True)
        values = first_values(output, self._table, self._state.run.evaluation)
        if not values:
            return type_of_arrow(pa.null())
        if is_collected(output) and any(isinstance(one, list) for one in values):
            # A group is an array where its tensors are of one shape: beside lists it is a list, too.
            values = [[*one] if isinstance(one, np.ndarray) else one for one in values]
        return guess(name, values, "materialize with types=")

    # ------------------------------------------------------------------ other forms

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return columns as an Arrow table: scalars as they are, tensors as their types store them.

        Parameters
        ----------
        columns : sequence of str, optional
            Names; all by default.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        InvalidQueryError
            If a value cannot be computed; it names the sample.
        UnknownLabelError
            If there is no such column.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.query("SELECT size * 2 AS twice FROM dataset").to_arrow()["twice"].to_pylist()
        [6, 8, 10]
        """
        return arrow_of(self, self._checked(columns))

    def to_pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return columns as a DataFrame of decoded and computed values. Its index has the `sids`, if there are any.

        Parameters
        ----------
        columns : sequence of str, optional
            Names; all by default. Media are decoded into memory, so name only the columns that you need.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        InvalidQueryError
            If a value cannot be computed; it names the sample.
        UnknownLabelError
            If there is no such column.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": "int32"})
        >>> ds.extend({"label": [0, 2, 1]})
        >>> ds.query("SELECT label FROM dataset WHERE label > 0 ORDER BY label").to_pandas()
             label
        sid
        2        1
        1        2
        """
        return frame_of(self, self._checked(columns))

    def dataset_columns(self, names: Sequence[str]) -> dict[str, str]:
        """Return the columns that are stored tensors of `dataset`, and their names there."""
        outputs = self._plan.result.outputs
        bare = {n: o.bare for n in self._checked(names) if isinstance(o := outputs[n], Lazy)}
        key = self._key()
        return {
            name: leaf.column
            for name, leaf in bare.items()
            if leaf is not None and key is not None and leaf.key[1] == key[1]
        }

    def as_source(self, name: str) -> TableSource:
        """Return the view as a source of another query."""
        outputs = dict(self._plan.result.outputs)
        self.sids  # noqa: B018 # they are in the table from here on
        table = self._table
        shown = f"view of {self.text:.60}"
        made = TableSource(name, shown, None, table.schema, table.num_rows, table, None, outputs)
        made.key = self._plan.key
        return made

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 100 else f"{self.text[:97]}..."
        known = self._state.known if self._chosen is None else len(self._chosen)
        rows = "not run yet" if known is None else f"{known} rows"
        return f"<View {rows}, columns {', '.join(self.names)}: {shown}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    # ------------------------------------------------------------------ what becomes of it

    def loader(
        self, batch_size: int, columns: Sequence[str] | None = None, **options: Any
    ) -> Loader:
        """Return batches of the rows for training, in the order of the view if you do not shuffle.

        Parameters
        ----------
        batch_size, columns, **options
            As in `Dataset.loader`, with the names of the view's columns.

        Returns
        -------
        Loader
            Its ``len`` is the number of batches.

        Raises
        ------
        InvalidOptionError
            If the value of an option is not valid, or the view has no rows.
        UnknownLabelError
            If there is no such column.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": "int32"})
        >>> ds.extend({"label": [0, 2, 1]})
        >>> [batch["label"].tolist() for batch in ds.query("SELECT label FROM dataset ORDER BY label DESC").loader(2)]
        [[2, 1], [0]]
        """
        from tensorlake_spark.query.views.view_loading import loader_of_view

        return loader_of_view(self, batch_size, columns, **options)

    def query(
        self,
        sql: str,
        /,
        *,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
        **sources: Any,
    ) -> View:
        """Return the view of a query on this view. In the query, it is called ``dataset``; see `query.query`.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> view = ds.query("SELECT size * 2 AS twice FROM dataset")
        >>> view.query("SELECT max(twice) AS top FROM dataset")["top"].tolist()
        [10]
        """
        from tensorlake_spark.query.query import query

        return query(sql, parameters=parameters, seed=seed, **{"dataset": self, **sources})

    def materialize(
        self,
        uri: str | os.PathLike[str],
        workers: Any = None,
        *,
        types: Mapping[str, Any] | None = None,
        links: str = "fetch",
        storage_options: Mapping[str, str] | None = None,
        row_group_bytes: int | None = None,
    ) -> Dataset:
        """Make a dataset of the view: a sample for each row, in the order of the view, with the sids 0, 1, 2, ...

        Tensors and media of datasets are copied as they are stored, and the files of links are copied in. The other
        columns are computed. The samples become visible in one commit. `Dataset.lineage` of the new dataset says where
        they came from.

        Parameters
        ----------
        uri : str or path
            A place without a table. A name without a slash is a folder beside the view's dataset.
        workers : int or SparkSession, optional
            A number of threads, or a Spark session whose executors copy and compute.
        types : mapping of str to Type, optional
            New types of columns. A stored column is then decoded and encoded anew. The type of a computed column is no
            longer guessed from its first values.
        links : str
            ``"fetch"``, or ``"keep"`` for links as they are.
        storage_options : mapping, optional
            For the store of the new dataset; by default those of the view's dataset.
        row_group_bytes : int, optional
            Target size of a row group, 2 MiB by default.

        Returns
        -------
        Dataset
            The new one.

        Raises
        ------
        InvalidOptionError
            If there is a table at the place, or a dataset cannot have a column with this name or these values.
        InvalidSampleError
            If a computed value does not fit its type: name one in `types`.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("int32", (4,)), "label": "int32"})
        >>> ds.extend({"x": np.arange(12, dtype="int32").reshape(3, 4), "label": [0, 1, 0]})
        >>> new = ds.query("SELECT x, x[:2] AS head FROM dataset ORDER BY label DESC").materialize(tempfile.mkdtemp())
        >>> new["head"][:].tolist(), new.lineage.computed
        ([[4, 5], [0, 1], [8, 9]], ('head',))
        """
        from tensorlake_spark.query.views.materialization import materialized

        return materialized(
            self, uri, workers, types or {}, links, storage_options, row_group_bytes
        )
