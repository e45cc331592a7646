"""What becomes of a view, as methods: batches for training, another query, a dataset of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tensorlake_spark.datasets.dataset import Dataset
    from tensorlake_spark.loader.loader import Loader
    from tensorlake_spark.query.view import View


class ViewMethods:
    """Methods of a view that lead out of it."""

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

        return loader_of_view(cast("View", self), batch_size, columns, **options)

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
        uri: str,
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
        uri : str
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
            cast("View", self), uri, workers, types or {}, links, storage_options, row_group_bytes
        )
