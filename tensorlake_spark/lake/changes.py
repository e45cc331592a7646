"""Changes of tensors, as a lake and a transaction offer them: each by one commit, or many by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.progress import progress
from tensorlake_spark.writing import write
from tensorlake_spark.writing.options import DENSE_FROM, WriteOptions
from tensorlake_spark.writing.source import Source, source_of


class Changes(ABC):
    """What changes tensors. How a change is committed is another's."""

    @abstractmethod
    def __getitem__(self, tensor_id: str) -> TensorRef:
        """Return a reference to a tensor."""

    @abstractmethod
    def _check_writable(self) -> None:
        """Raise InvalidOptionError if nothing can be written here."""

    @abstractmethod
    def _write(
        self,
        tensor_id: str,
        source: Source,
        mode: str,
        axis: int | None,
        options: WriteOptions,
        done: Callable[[int], None],
    ) -> TensorRef:
        """Write a tensor; `done` takes the bytes of every region."""

    @abstractmethod
    def _convert(
        self, ref: TensorRef, options: WriteOptions, done: Callable[[int], None]
    ) -> TensorRef:
        """Write a tensor anew."""

    @abstractmethod
    def _delete(self, tensor_id: str) -> None:
        """Delete a tensor that is there."""

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
        """Write a tensor and return a reference to it; outside of a transaction by one commit.

        Memory is bounded by a few row groups, not by the tensor.

        Parameters
        ----------
        tensor_id : str
            Its name; ``/`` makes groups.
        data : array, sparse tensor, array-like, or iterator
            An ndarray, a memory map, anything with ``shape``, ``dtype`` and ``__getitem__``, nested lists, an
            iterator of slabs along `axis`; a `SparseTensor`, a matrix of scipy.sparse, an array of the
            package ``sparse``; a tensor of torch, dense or sparse, from any device and without its gradient.
        mode : {"error", "overwrite", "append"}
            What to do if the id is taken; an append to a tensor that is not there writes it.
        axis : int or None
            Where an append continues, and where slabs are joined. With None an append adds elements to a
            sparse tensor where they lie; its shape grows to hold them.
        layout : str
            A name of the README's table, or ``"auto"``: dense chunks if at least `threshold` of the elements
            are not zero, else sparse blocks. The log (level INFO) says why.
        block_shape : sequence of int, optional
            Shape of a chunk or block; chosen from shape, dtype and density if not given.
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
        order : sequence of int, optional
            For ``"csf"`` the order of the levels of the tree, for ``"bsgs"`` that of the axes inside a block.
        row_axes : sequence of int, optional
            For ``"csr"`` and ``"csc"`` the axes that are the rows of the matrix; the first half by default.
        duplicates : {"error", "sum", "last"}
            What an element means that a sparse tensor stores more than once, in appends with ``axis=None``.
        threshold : float
            For ``layout="auto"``; 10 % as in the paper (Delta Tensor, section IV-B).
        labels : mapping, optional
            By the name of an axis what its indices stand for: a list, or regular bins such as
            ``{"start": "2013-01-01T00", "step": 1, "unit": "h"}``. An append gives those of new indices.

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
        with progress(f"write {tensor_id}", source.nbytes) as done:
            return self._write(tensor_id, source, mode, axis, options, done)

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
        """Write a tensor anew in another layout; its elements stay what they are.

        It is read and written slab by slab, so memory does not grow with the tensor. Axis names, labels and
        attributes are kept; duplicates are combined for good, and later appends go by the same rule. Columns
        that users added are null in the new rows, for each stands for parts of several old ones.

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
            return self._convert(ref, options, done)

    def delete(self, tensor_id: str) -> None:
        """Delete a tensor; versions before this one keep it until `vacuum`.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        """
        self._check_writable()
        self[tensor_id]
        self._delete(tensor_id)
