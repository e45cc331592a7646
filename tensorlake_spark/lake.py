"""TensorLake: a Delta table of tensors, opened from plain Python."""

from __future__ import annotations

import datetime as dt
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tensorlake_spark import edit
from tensorlake_spark.delta import catalog, maintenance
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.delta.write import create_table
from tensorlake_spark.edit import WriteOptions
from tensorlake_spark.errors import (
    InvalidOptionError,
    TableNotFoundError,
    TensorNotFoundError,
)
from tensorlake_spark.indexing.plan import size_text
from tensorlake_spark.progress import progress
from tensorlake_spark.ref import TensorRef
from tensorlake_spark.source import source_of


def open(  # noqa: A001 - tl.open() is the door's name
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    version: int | None = None,
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
    version, timestamp : int; str or datetime, optional
        Open the table as it was then, for reading only.
    create : bool
        Whether a path without a table is an empty lake, which the first write creates.
    verify : bool
        Whether full reads are held against the totals of the tensor. False reads a table whose rows
        somebody changed with plain Delta.

    Raises
    ------
    TableNotFoundError
        If there is no table, and `create` is False or a version is asked for.
    FormatError
        If the table is not a tensor table.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> lake.write("zeros", np.zeros((4, 4))).shape
    (4, 4)
    >>> list(lake)
    ['zeros']
    """
    storage = Storage(os.fspath(uri), storage_options or {})
    lake = TensorLake(storage, verify=verify)
    if version is not None or timestamp is not None:
        lake._pinned = Snapshot.open(storage, version, timestamp)
    else:
        try:
            Snapshot.open(storage)
        except TableNotFoundError:
            if not create:
                raise
    return lake


class TensorLake:
    """A Delta table of tensors: a mapping from id to `TensorRef`, with `write` and `delete`.

    Made by `open`. Every look-up sees the newest version, unless the lake was opened at one.
    """

    def __init__(self, storage: Storage, verify: bool = True) -> None:
        self._storage = storage
        self._verify = verify
        self._pinned: Snapshot | None = None

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self._storage.uri

    @property
    def version(self) -> int | None:
        """Version of the table that is shown, None while there is no table."""
        snapshot = self._snapshot()
        return None if snapshot is None else snapshot.version

    def _snapshot(self) -> Snapshot | None:
        if self._pinned is not None:
            return self._pinned
        try:
            return Snapshot.open(self._storage)
        except TableNotFoundError:
            return None

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
        """Return a table of all tensors, one row each.

        Returns
        -------
        pandas.DataFrame
            Columns ``id, shape, dtype, layout, block_shape, codec, axes, nnz, nbytes, stored_bytes,
            rows, attrs``; sizes in bytes.
        """
        columns = [
            "id", "shape", "dtype", "layout", "block_shape", "codec", "axes", "nnz", "nbytes",
            "stored_bytes", "rows", "attrs",
        ]  # fmt: skip
        snapshot = self._snapshot()
        rows = [
            (
                m.spec.id, m.spec.shape, m.spec.dtype.name, m.spec.layout, m.spec.block_shape,
                m.spec.codec, m.spec.axes, m.totals.nnz, m.spec.nbytes, m.totals.nbytes,
                m.totals.rows, dict(m.spec.attrs),
            )
            for m in (catalog.metas(snapshot) if snapshot is not None else ())
        ]  # fmt: skip
        table: pd.DataFrame = pd.DataFrame(rows, columns=columns)
        return table

    def write(
        self,
        tensor_id: str,
        data: Any,
        *,
        mode: str = "error",
        axis: int = 0,
        layout: str = "auto",
        block_shape: Sequence[int] | None = None,
        chunk_rank: int | None = None,
        codec: str = "auto",
        fill_value: Any = 0,
        axes: Sequence[str] | None = None,
        attrs: Mapping[str, Any] | None = None,
        transaction: tuple[str, int] | None = None,
        order: Sequence[int] | None = None,
        row_axes: Sequence[int] | None = None,
        duplicates: str = "error",
        threshold: float = edit.DENSE_FROM,
    ) -> TensorRef:
        """Write a tensor in one commit and return a reference to it.

        Memory is bounded by a few row groups, not by the tensor.

        Parameters
        ----------
        tensor_id : str
            Its name; ``/`` makes groups.
        data : array, array-like, or iterator
            An ndarray, a memory map, anything with ``shape``, ``dtype`` and ``__getitem__``, nested lists, or
            an iterator of slabs along `axis`.
        mode : {"error", "overwrite", "append"}
            What to do if the id is taken; an append to a tensor that is not there writes it.
        axis : int
            Where an append continues, and where slabs are joined.
        layout : str
            ``"auto"`` or a name of the README's table.
        block_shape : sequence of int, optional
            Shape of a chunk; chosen from shape and dtype if not given.
        chunk_rank : int, optional
            Instead of `block_shape`: the last so many axes whole, as the paper's FTSF (section IV-A).
        codec : str
            ``"auto"`` tries candidates on a sample.
        fill_value : scalar
            Chunks that are full of it are not stored.
        axes : sequence of str, optional
            Names of the axes.
        attrs : mapping, optional
            Your attributes, as JSON has them.
        transaction : (str, int), optional
            Application and number of a batch: if it, or a later one, is committed already, nothing is
            written.

        Raises
        ------
        TensorExistsError
            If the id is taken and the mode is ``"error"``.
        InvalidTensorError, UnsupportedDtypeError, InvalidOptionError
            If the data or an option will not do; nothing is written then.
        ConcurrentWriteError
            If another writer changed the same tensor meanwhile; nothing is committed then.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("days", np.ones((2, 3)), axes=("day", "x"))
        >>> lake.write("days", np.zeros((1, 3)), mode="append").shape
        (3, 3)
        """
        self._check_writable()
        source = source_of(data, axis)
        options = WriteOptions(
            layout, block_shape, chunk_rank, codec, fill_value, axes, attrs or {}, transaction,
            order, row_axes, duplicates, threshold,
        )  # fmt: skip
        edit.check_mode(mode)
        self._ensure_table(tensor_id, source, options)
        total = getattr(source, "data", None) is not None
        nbytes = _nbytes(source) if total else None
        with progress(f"write {tensor_id}", nbytes) as done:
            snapshot = edit.write(self._storage, tensor_id, source, mode, axis, options, done)
        return TensorRef(snapshot, catalog.get(snapshot, tensor_id), self._verify)

    def delete(self, tensor_id: str) -> None:
        """Delete a tensor; versions before this one keep it until `vacuum`.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        """
        self._check_writable()
        self[tensor_id]
        edit.delete(self._storage, tensor_id)

    def vacuum(self, retention_hours: float | None = None, *, dry_run: bool = False) -> list[str]:
        """Delete files that no version within the retention needs; orphans of crashed writers too.

        Parameters
        ----------
        retention_hours : float, optional
            The table's own retention (a week) by default. 0 also takes files of writers at work now.
        dry_run : bool
            Only name them.

        Returns
        -------
        list of str
            Paths of the files.
        """
        self._check_writable()
        return maintenance.vacuum(Snapshot.open(self._storage), retention_hours, dry_run)

    def _check_writable(self) -> None:
        if self._pinned is not None:
            raise InvalidOptionError(
                f"this lake shows version {self._pinned.version} of {self.uri}, for reading only; open it "
                "without version and timestamp to write"
            )

    def _ensure_table(self, tensor_id: str, source: Any, options: WriteOptions) -> None:
        """Create the table on the first write, but only for a write that could succeed."""
        try:
            Snapshot.open(self._storage)
        except TableNotFoundError:
            edit.new_spec(tensor_id, source, options)
            create_table(self._storage)

    def __repr__(self) -> str:
        version = self.version
        return f"TensorLake({self.uri!r}, version={version}, tensors={len(self)})"

    def _repr_html_(self) -> str:
        table = self.catalog()
        shown = table[["id", "shape", "dtype", "layout"]].assign(
            memory=table["nbytes"].map(size_text), stored=table["stored_bytes"].map(size_text)
        )
        body: str = shown.to_html(index=False)
        return f"<b>{html.escape(self.uri)}</b>, version {self.version}" + body


def _nbytes(source: Any) -> int:
    out = int(source.dtype.itemsize)
    for n in source.shape:
        out *= n
    return out
