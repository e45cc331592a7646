"""TensorLake: a Delta table of tensors, opened from plain Python."""

from __future__ import annotations

import datetime as dt
import html
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlake_spark.columns.feature_table import FeatureTable
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TableNotFoundError, TensorNotFoundError, check_flag
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.lake.changes import Changes
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.lake.transaction import Transaction
from tensorlake_spark.lake.upkeep import Upkeep
from tensorlake_spark.lake.versions import Versions
from tensorlake_spark.tensor.spec import dtype_name
from tensorlake_spark.upkeep.convert import convert
from tensorlake_spark.writing import write
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import Source

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 60
"""Tensors that a notebook shows of a lake: as many rows as pandas shows of a table."""


def open(  # noqa: A001 - tl.open() is the door's name
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    version: int | str | None = None,
    timestamp: str | dt.datetime | None = None,
    create: bool = True,
    verify: bool = True,
) -> TensorLake:
    """Open a lake: a Delta table of tensors.

    Parameters
    ----------
    uri : str or path
        A local path, or a URL such as ``s3://bucket/lake``.
    storage_options : mapping of str to str, optional
        Credentials and endpoint, under the names that deltalake uses (``AWS_ACCESS_KEY_ID``, ...).
    version, timestamp : int or str; str or datetime, optional
        Open an old version, for reading only: by its number, by a tag, or by a time. A time means the last version
        that was committed by then.
    create : bool
        Whether a path without a table is an empty lake, whose table the first write creates. With False it is
        an error.
    verify : bool
        Whether full reads are checked against the tensor's totals. Use False to read a table whose rows somebody
        changed with plain Delta.

    Raises
    ------
    TableNotFoundError
        If there is no table, and `create` is False or you ask for a version.
    InvalidOptionError
        If an option is not valid, or the log no longer has the version, tag or time.
    FormatError
        If the table is not a tensor table.
    UnsupportedFeatureError
        If the table uses a Delta feature that this package cannot read.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> lake.write("zeros", np.zeros((4, 4))).shape
    (4, 4)
    >>> list(lake)
    ['zeros']
    """
    check_flag("create", create)
    storage = Storage.at(uri, storage_options)
    lake = TensorLake(storage, verify=check_flag("verify", verify))
    if version is not None or timestamp is not None:
        lake._pinned = Snapshot.open(storage, version, timestamp)
    else:
        try:
            lake._show(Snapshot.open(storage))
        except TableNotFoundError:
            if not create:
                raise
    return lake


class TensorLake(Upkeep, Versions, Changes):
    """A lake, which is a Delta table of tensors: ``lake[id]`` is a `TensorRef`, and ``write`` makes one.

    `open` makes it. Every look-up sees the newest version, unless you opened the lake at an old one.
    """

    def __getitem__(self, tensor_id: str) -> TensorRef:
        snapshot = self._snapshot()
        if snapshot is None:
            raise TensorNotFoundError(
                f"there is no tensor {tensor_id!r}: there is no table at {self.uri} yet"
            )
        return TensorRef(snapshot, catalog.get(snapshot, tensor_id), self._verify)

    def __contains__(self, tensor_id: object) -> bool:
        snapshot = self._snapshot()
        return (
            isinstance(tensor_id, str)
            and snapshot is not None
            and catalog.find(snapshot, tensor_id) is not None
        )

    def __iter__(self) -> Iterator[str]:
        snapshot = self._snapshot()
        return iter(() if snapshot is None else catalog.ids(snapshot))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def catalog(self) -> pd.DataFrame:
        """Return a DataFrame with one row for each tensor.

        Returns
        -------
        pandas.DataFrame
            Columns ``id, shape, dtype, layout, block_shape, codec, axes, nnz, nbytes, stored_bytes,
            rows, attrs``. Sizes are in bytes.
        """
        return self._catalog()

    def _catalog(self, most: int | None = None) -> pd.DataFrame:
        import pandas as pd  # late: it takes longer to import than all the rest

        columns = [
            "id", "shape", "dtype", "layout", "block_shape", "codec", "axes", "nnz", "nbytes",
            "stored_bytes", "rows", "attrs",
        ]  # fmt: skip
        snapshot = self._snapshot()
        rows = [
            (
                m.spec.id, m.spec.shape, dtype_name(m.spec.dtype), m.spec.layout, m.spec.block_shape,
                m.spec.codec, m.spec.axes, m.totals.nnz, m.spec.nbytes, m.totals.nbytes,
                m.totals.rows, dict(m.spec.attrs),
            )
            for m in (catalog.metas(snapshot, most) if snapshot is not None else ())
        ]  # fmt: skip
        table: pd.DataFrame = pd.DataFrame(rows, columns=columns)
        return table

    def transaction(self, transaction: tuple[str, int] | None = None) -> Transaction:
        """Begin a transaction: changes of many tensors in one commit, all of them or none.

        Data files are written while the block runs, and the commit follows at its end. If an exception leaves
        the block, nothing is committed.

        Parameters
        ----------
        transaction : (str, int), optional
            Name and number of a batch. If the table has this number or a later one already, the block changes
            nothing.

        Returns
        -------
        Transaction
            The object that the block writes to and reads from. It is for one ``with`` statement and one thread.

        Raises
        ------
        InvalidOptionError
            If the lake is opened at a version, or the name or number of the batch is not valid.
        ConcurrentWriteError
            At the end of the block, if another writer changed one of the tensors meanwhile; nothing is
            committed then.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> with lake.transaction() as tx:
        ...     _ = tx.write("images", np.zeros((2, 8, 8)))
        ...     _ = tx.write("labels", np.array([3, 4]))
        ...     tx["images"][0] = 1
        >>> list(lake), lake.version
        (['images', 'labels'], 1)
        """
        self._check_writable()
        return Transaction(self._storage, self._verify, transaction, self._show)

    def features(self, name: str) -> FeatureTable:
        """Return a table of named features: thousands of columns of numbers, read by their names.

        Parameters
        ----------
        name : str
            Name of the table. Its tensors have ids such as ``NAME/float32``. It need not be there yet: `write`
            makes it.

        Raises
        ------
        InvalidTensorError
            If tensors cannot have such a name.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> lake.features("ctr").write(pa.table({"age": [31, 40], "score": [0.5, 0.25]}))
        FeatureTable('ctr', rows=2, features=2, version=1)
        >>> lake.features("ctr").read(["score"])["score"].to_pylist()
        [0.5, 0.25]
        """
        snapshot = self._snapshot()
        return FeatureTable(
            self._storage, name, snapshot, self._verify, self._check_writable, self._show
        )

    def _write(
        self,
        tensor_id: str,
        source: Source,
        mode: str,
        axis: int | None,
        options: WriteOptions,
        done: Callable[[int], None],
    ) -> TensorRef:
        options = self._ensure_table(tensor_id, source, options)
        snapshot = write.write(self._storage, tensor_id, source, mode, axis, options, done)
        return self._ref(snapshot, tensor_id)

    def _convert(
        self, ref: TensorRef, options: WriteOptions, done: Callable[[int], None]
    ) -> TensorRef:
        snapshot = convert(ref._snapshot, ref.id, options, done, verify=self._verify)
        return self._ref(snapshot, ref.id)

    def _delete(self, tensor_id: str) -> None:
        write.delete(self._storage, tensor_id)

    def _ensure_table(self, tensor_id: str, source: Source, options: WriteOptions) -> WriteOptions:
        """Create the table on the first write, but only for a write that could succeed.

        Return the options, with what was chosen to find that out.
        """
        if self._snapshot() is not None:
            return options
        spec = new_spec(tensor_id, source, options)
        create_table(self._storage)
        return replace(options, chosen=spec)

    def __repr__(self) -> str:
        version = self.version
        return f"TensorLake({self.uri!r}, version={version}, tensors={len(self)})"

    def _repr_html_(self) -> str:
        table = self._catalog(_SHOWN)
        shown = table[["id", "shape", "dtype", "layout"]].assign(
            memory=table["nbytes"].map(size_text), stored=table["stored_bytes"].map(size_text)
        )
        body: str = shown.to_html(index=False)
        left = len(self) - len(table)
        more = f"{left:,} more tensors; lake.catalog() has them all" if left > 0 else ""
        return f"<b>{html.escape(self.uri)}</b>, version {self.version}{body}{more}"
