"""A view in other forms: a table of Arrow, a DataFrame, HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.query.sources.source_columns import Lazy, Output, Stored

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View

_SHOWN = 10


def arrow_of(view: View, names: Sequence[str]) -> pa.Table:
    """Return columns of a view as a table, tensors as their types store them."""
    outputs, table = view._plan.result.outputs, view._table
    lazies = {name: one for name in names if isinstance(one := outputs[name], Lazy)}
    kinds = {name: view._type(name) for name in lazies}
    parts: dict[str, list[Any]] = {name: [] for name in kinds}
    first = 0
    for batch in view.batches([*kinds]) if kinds else ():
        for name, values in batch.items():
            parts[name].append(kinds[name].encode(values, name, first))
        first += len(next(iter(batch.values())))
    columns = []
    for name in names:
        output = outputs[name]
        if isinstance(output, Stored):
            columns.append(table.column(output.ref[1]))
        else:
            columns.append(pa.chunked_array(parts[name], kinds[name].storage()))
    return pa.table(columns, names=list(names))


def frame_of(view: View, names: Sequence[str]) -> pd.DataFrame:
    """Return columns of a view as a DataFrame of values."""
    outputs = view._plan.result.outputs
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for batch in view.batches(names):
        for name, values in batch.items():
            parts[name].append(values)
    columns = {name: _series(outputs[name], view._table, parts[name]) for name in names}
    index = None if view.sids is None else pd.Index(view.sids, name="sid")
    frame: pd.DataFrame = pd.DataFrame(columns, index=pd.RangeIndex(len(view)))
    return frame if index is None else frame.set_axis(index, axis=0)


def html_of(view: View) -> str:
    """Return the text and the first rows of a view, for a notebook; or why these cannot be read."""
    try:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_brief(v))}</td>" for v in row.values()) + "</tr>"
            for row in view[:_SHOWN]
        )
    except TensorLakeError as error:
        rows = f"<tr><td colspan={len(view.names)}><i>{html.escape(str(error))}</i></td></tr>"
    head = "".join(f"<th>{html.escape(name)}</th>" for name in view.names)
    return f"<p>{html.escape(view.text)}</p><table><tr>{head}</tr>{rows}</table><p>{len(view)} rows</p>"


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
