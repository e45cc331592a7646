"""The door to queries: SQL on datasets, their tensors, and tables beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorlake_spark.query.planning.known_plans import plan_of
from tensorlake_spark.query.sources.source_opening import checked_parameters
from tensorlake_spark.query.view import View


def query(
    sql: str,
    /,
    *,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    **sources: Any,
) -> View:
    """Return the view of a query.

    Parameters
    ----------
    sql : str
        A SELECT on the sources by their names; docs/query-language.md has the language.
    parameters : mapping of str to object, optional
        Values of ``:name`` in the text: numbers, texts, times, lists, arrays.
    seed : int
        For SAMPLE BY: the same seed draws the same rows.
    **sources
        The tables that the query reads: a Dataset, a View, a TensorLake (its catalog), a pyarrow.Table, a
        pandas.DataFrame, or the path or URL of a dataset, a lake, a Delta table, a Parquet file or a folder of Parquet
        files. Datasets are read at the version that they show now.

    Returns
    -------
    View
        Nothing is read before its first row is asked for.

    Raises
    ------
    InvalidQueryError
        If the query has a mistake, or names something that does not exist; the message shows the place.
    InvalidOptionError
        If a query cannot take a source or a parameter of this type.
    TableNotFoundError
        If there is nothing at the place of a source.

    Examples
    --------
    >>> import tempfile, pandas as pd, tensorlake_spark as tl
    >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("int32", (None,)), "label": "int32"})
    >>> ds.extend({"x": [[1, 2], [5], [7, 8, 9]], "label": [0, 1, 0]})
    >>> names = pd.DataFrame({"label": [0, 1], "name": ["cat", "dog"]})
    >>> view = tl.query(
    ...     "SELECT name, array_max(x) AS top FROM ds JOIN names USING (label) ORDER BY top DESC",
    ...     ds=ds, names=names)
    >>> view.to_pandas()["name"].tolist()
    ['cat', 'dog', 'cat']
    """
    return View(plan_of(sql, sources, checked_parameters(parameters, seed), seed))
