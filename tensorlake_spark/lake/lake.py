"""TensorLake: a Delta table of tensors, opened from plain Python."""

from __future__ import annotations

import datetime as dt
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TableNotFoundError, TensorNotFoundError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.lake.upkeep import Upkeep
from tensorlake_spark.lake.versions import Versions
from tensorlake_spark.progress import progress
from tensorlake_spark.tensor.spec import dtype_name
from tensorlake_spark.upkeep.convert import convert
from tensorlake_spark.writing import write
from tensorlake_spark.writing.options import DENSE_FROM, WriteOptions, new_spec
from tensorlake_spark.writing.source import Source, source_of

if TYPE_CHECKING:
    import pandas as pd


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
        Open an old version, for reading only: by its number, by a tag, or by a time.
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
        If the version, the tag or the time is not one that the log still has.
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
    storage = Storage(os.fspath(uri), {} if storage_options is None else storage_options)
    lake = TensorLake(storage, verify=verify)
    if version is not None or timestamp is not None:
        lake._pinned = Snapshot.open(storage, version, timestamp)
    else:
        try:
            lake._show(Snapshot.open(storage))
        except TableNotFoundError:
            if not create:
                raise
    return lake


class TensorLake(Upkeep, Versions):
    """A lake, which is a Delta table of tensors: a mapping from id to `TensorRef`, with `write` and `delete`.

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
        axis: int | None = 0,
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
        threshold: float = DENSE_FROM,
        labels: Mapping[str, Any] | None = None,
    ) -> TensorRef:
        """Write a tensor in one commit and return a reference to it.

        Memory is bounded by a few row groups, not by the tensor.

        Parameters
        ----------
        tensor_id : str
            The name of the tensor. ``/`` makes groups.
        data : array, sparse tensor, array-like, or iterator
            Dense: an ndarray, a memory map, nested lists, anything with ``shape``, ``dtype`` and
            ``__getitem__``, or an iterator of slabs along `axis`. Sparse: a `SparseTensor`, a scipy.sparse matrix,
            or an array of the package ``sparse``. A PyTorch tensor, dense or sparse, from any device; its gradient
            is not stored.
        mode : {"error", "overwrite", "append"}
            What to do if the id is taken. An append to a tensor that does not exist writes it.
        axis : int or None
            The axis along which an append continues and slabs are joined. With None, an append adds elements to a
            sparse tensor at their coordinates, and its shape grows to hold them.
        layout : str
            ``"ftsf"`` is dense; ``"bsgs"``, ``"coo"``, ``"csr"``, ``"csc"`` and ``"csf"`` are sparse. ``"auto"`` takes
            ``"ftsf"`` if at least `threshold` of the elements are not zero, else ``"bsgs"``. The log (level INFO)
            says why. docs/layouts.md compares them.
        block_shape : sequence of int, optional
            Shape of a chunk or block. By default it is chosen from shape, dtype and density.
        chunk_rank : int, optional
            Instead of `block_shape`: this many last axes stay whole, as in the paper's FTSF (section IV-A).
        codec : str
            How values are coded. ``"auto"`` tries candidates on a sample.
        fill_value : scalar
            The value of chunks that are not stored.
        axes : sequence of str, optional
            Names of the axes.
        attrs : mapping, optional
            Your attributes, as JSON values.
        transaction : (str, int), optional
            Name and number of a batch. If this number or a later one is committed already, nothing is written.
        order : sequence of int, optional
            For ``"csf"``, the axes from the root of the tree to its leaves. For ``"bsgs"``, the order of the axes
            inside a block.
        row_axes : sequence of int, optional
            For ``"csr"`` and ``"csc"``, the axes that form the rows of the matrix. By default the first half.
        duplicates : {"error", "sum", "last"}
            What an element means that a sparse tensor stores more than once, in appends with ``axis=None``.
        threshold : float
            For ``layout="auto"``: the share of non-zeros from which a tensor is stored dense. 10 % by default, as
            in the paper (Delta Tensor, section IV-B).
        labels : mapping, optional
            By axis name, what its indices stand for: a list, or regular bins such as
            ``{"start": "2013-01-01T00", "step": 1, "unit": "h"}``. For an append, the labels of the new indices.

        Raises
        ------
        TensorExistsError
            If the id is taken and the mode is ``"error"``.
        InvalidTensorError, UnsupportedDtypeError, InvalidOptionError
            If the data or an option is not valid. Nothing is written then.
        ConcurrentWriteError
            If another writer changed the same tensor meanwhile; nothing is committed then.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("days", np.ones((2, 3)), axes=("day", "x"))
        >>> lake.write("days", np.zeros((1, 3)), mode="append").shape
        (3, 3)
        >>> rides = tl.SparseTensor([[0, 2], [5, 1]], [3, 1], (4, 6))
        >>> lake.write("rides", rides)[2]
        SparseTensor(shape=(6,), dtype=int64, nnz=1, density=0.167)
        """
        self._check_writable()
        axis = write.check_axis(axis)
        source = source_of(data, axis or 0)
        options = WriteOptions(
            layout, block_shape, chunk_rank, codec, fill_value, axes,
            {} if attrs is None else attrs, transaction,
            order, row_axes, duplicates, threshold, {} if labels is None else labels,
        )  # fmt: skip
        write.check_mode(mode)
        options = self._ensure_table(tensor_id, source, options)
        nbytes = source.nbytes
        with progress(f"write {tensor_id}", nbytes) as done:
            snapshot = write.write(self._storage, tensor_id, source, mode, axis, options, done)
        return self._ref(snapshot, tensor_id)

    def convert(
        self,
        tensor_id: str,
        *,
        layout: str = "auto",
        block_shape: Sequence[int] | None = None,
        chunk_rank: int | None = None,
        codec: str = "auto",
        order: Sequence[int] | None = None,
        row_axes: Sequence[int] | None = None,
        threshold: float = DENSE_FROM,
    ) -> TensorRef:
        """Write a tensor anew in another layout, in one commit; its elements stay the same.

        The tensor is read and written slab by slab, so memory does not grow with it. Axis names, labels and
        attributes are kept. Duplicates are combined for good; later appends follow the same rule. Columns that
        users added are null in the new rows, because a new row holds parts of several old ones.

        Parameters
        ----------
        tensor_id : str
            Which tensor.
        layout, block_shape, chunk_rank, codec, order, row_axes, threshold
            As for `write`.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        CorruptDataError
            If rows of the tensor were lost, unless the lake is opened with ``verify=False``.
        ConcurrentWriteError
            If another writer changed the tensor meanwhile; nothing is committed then.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("eye", np.eye(4), layout="ftsf")
        >>> lake.convert("eye", layout="csr")[1]
        SparseTensor(shape=(4,), dtype=float64, nnz=1, density=0.25)
        """
        self._check_writable()
        ref = self[tensor_id]
        options = WriteOptions(
            layout, block_shape, chunk_rank, codec, ref.fill_value, ref.axes, dict(ref.attrs), None,
            order, row_axes, "error", threshold, ref._meta.spec.labels,
        )  # fmt: skip
        with progress(f"convert {tensor_id}", ref.stored_bytes) as done:
            snapshot = convert(ref._snapshot, tensor_id, options, done, verify=self._verify)
        return self._ref(snapshot, tensor_id)

    def delete(self, tensor_id: str) -> None:
        """Delete a tensor in one commit. Old versions keep it until `vacuum`.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        """
        self._check_writable()
        self[tensor_id]
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
        table = self.catalog()
        shown = table[["id", "shape", "dtype", "layout"]].assign(
            memory=table["nbytes"].map(size_text), stored=table["stored_bytes"].map(size_text)
        )
        body: str = shown.to_html(index=False)
        return f"<b>{html.escape(self.uri)}</b>, version {self.version}" + body
