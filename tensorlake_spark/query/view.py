"""What a query returns: rows in an order, of which nothing is read before it is asked for."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_selection import select_samples
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.guessing import guess
from tensorlake_spark.errors import InvalidQueryError, UnknownLabelError, did_you_mean
from tensorlake_spark.query.engine.evaluation import batch_rows
from tensorlake_spark.query.engine.leaf_values import stored_values
from tensorlake_spark.query.engine.read_report import ReadReport, report_of
from tensorlake_spark.query.engine.running import PlanRun
from tensorlake_spark.query.planning.plan import Plan
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import Lazy, Output, Stored
from tensorlake_spark.query.sources.table_source import TableSource
from tensorlake_spark.query.views.view_methods import ViewMethods

if TYPE_CHECKING:
    from tensorlake_spark.datasets.dataset import Dataset

Array = np.ndarray[Any, Any]

_SHOWN = 10


class View(ViewMethods):
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
        self, plan: Plan, state: _State | None = None, chosen: Array | None = None
    ) -> None:
        self._plan = plan
        self._state = _State(plan) if state is None else state
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

        The type of a computed column is guessed from its first values.
        """
        return {
            name: self._type(name, output) for name, output in self._plan.result.outputs.items()
        }

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
        return found if found is not None and isinstance(found[0], DatasetSource) else None  # type: ignore[return-value]

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
        step = rows or batch_rows(lazies, table.num_rows)
        parts = (table.slice(start, step) for start in range(0, table.num_rows, step))
        yield from self._state.run.evaluation.ahead(
            lazies, parts, lambda some: self._values(some, names)
        )

    def _values(self, table: pa.Table, names: list[str]) -> dict[str, Any]:
        names = self._checked(names)
        return {name: self._column(self._plan.result.outputs[name], table) for name in names}

    def _column(self, output: Output, table: pa.Table) -> Any:
        if isinstance(output, Stored):
            return stored_values(table.column(output.ref[1]), output.type)
        return self._state.run.evaluation.values(output, table)

    def _checked(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return self.names
        for name in columns:
            if name not in self._plan.result.outputs:
                raise UnknownLabelError(
                    f"the view has no column {name!r:.80}{did_you_mean(name, self.names)}"
                )
        return [*columns]

    def _type(self, name: str, output: Output) -> Type:
        if isinstance(output, Stored) and output.type is not None:
            return output.type
        if isinstance(output, Lazy) and output.bare is not None:
            leaf = output.bare
            return leaf.source.dataset.schema[leaf.column]
        if isinstance(output, Stored):
            from tensorlake_spark.datasets.types.plain import type_of_arrow

            return type_of_arrow(self._table.column(output.ref[1]).type, True)
        return guess(name, list(self._values(self._table.slice(0, 64), [name])[name]))

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
        names, outputs = self._checked(columns), self._plan.result.outputs
        kinds = {
            n: self._type(n, o) for n, o in outputs.items() if n in names and isinstance(o, Lazy)
        }
        parts: dict[str, list[Any]] = {name: [] for name in kinds}
        first = 0
        for batch in self.batches([*kinds]) if kinds else ():
            for name, values in batch.items():
                parts[name].append(kinds[name].encode(values, name, first))
            first += len(next(iter(batch.values())))
        columns_ = []
        for name in names:
            output = self._plan.result.outputs[name]
            if isinstance(output, Stored):
                columns_.append(self._table.column(output.ref[1]))
            else:
                columns_.append(pa.chunked_array(parts[name], kinds[name].storage()))
        return pa.table(columns_, names=names)

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
        names = self._checked(columns)
        parts: dict[str, list[Any]] = {name: [] for name in names}
        for batch in self.batches(names):
            for name, values in batch.items():
                parts[name].append(values)
        columns_ = {
            name: _series(self._plan.result.outputs[name], self._table, parts[name])
            for name in names
        }
        index = None if self.sids is None else pd.Index(self.sids, name="sid")
        frame: pd.DataFrame = pd.DataFrame(columns_, index=pd.RangeIndex(len(self)))
        return frame if index is None else frame.set_axis(index, axis=0)

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
        shown = f"{self.text:.100}" if len(self.text) <= 100 else f"{self.text[:97]}..."
        rows = (
            f"{self._state.known} rows"
            if self._chosen is None and self._state.known is not None
            else "not run yet"
        )
        if self._chosen is not None:
            rows = f"{len(self._chosen)} rows"
        return f"<View {rows}, columns {', '.join(self.names)}: {shown}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_brief(v))}</td>" for v in row.values()) + "</tr>"
            for row in self[:_SHOWN]
        )
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        return f"<p>{html.escape(self.text)}</p><table><tr>{head}</tr>{rows}</table><p>{len(self)} rows</p>"


class _State:
    """The rows of a query, found once; views of parts share them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._run: PlanRun | None = None
        self._lock = threading.Lock()

    @property
    def run(self) -> PlanRun:
        """What was found; it is found now, if it was not."""
        with self._lock:
            if self._run is None:
                self._run = PlanRun(self._plan, keyed=bool(self._plan.steps))
            return self._run

    def find_sids(self) -> None:
        """Run the query again, with the sids: they are not read where nobody asks for them."""
        with self._lock:
            self._run = PlanRun(self._plan, keyed=True)

    @property
    def known(self) -> int | None:
        """How many rows there are, None if that is not known yet."""
        return None if self._run is None else int(self._run.table.num_rows)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{value.dtype} of shape {value.shape}"
    return f"{value!s:.80}"


def _series(output: Output, table: pa.Table, parts: list[Any]) -> Any:
    if all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts) and parts:
        return np.concatenate(parts)
    flat = [value for part in parts for value in part]
    if isinstance(output, Stored):
        kind = table.column(output.ref[1]).type
        dtype: Any = (
            "Int64"
            if pa.types.is_integer(kind)
            else "float64"
            if pa.types.is_floating(kind)
            else "boolean"
            if pa.types.is_boolean(kind)
            else object
        )
        return pd.array(flat, dtype=dtype) if dtype is not object else pd.Series(flat, dtype=object)
    return pd.Series(flat, dtype=object)
