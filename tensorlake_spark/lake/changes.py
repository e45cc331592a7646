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
    """The methods that change tensors, which a lake and a transaction have alike."""

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
        quantize: Any = None,
    ) -> TensorRef:
        """Write a tensor and return a reference to it; outside of a transaction by one commit.

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
            What to do if the id exists. An append to a tensor that does not exist writes it.
        axis : int or None
            The axis along which an append continues and slabs are joined. With None, an append adds elements to a
            sparse tensor at their coordinates, and its shape grows to hold them.
        layout : str
            ``"ftsf"`` is dense, and so is ``"window"``, for integers of rank 2 whose rows slide; ``"bsgs"``, ``"coo"``,
            ``"csr"``, ``"csc"`` and ``"csf"`` are sparse. ``"auto"`` takes ``"ftsf"`` if at least `threshold` of the
            elements are not zero, else ``"bsgs"``. The log (level INFO) says why. docs/layouts.md compares them.
        block_shape : sequence of int, optional
            Shape of a chunk or block. By default it is chosen from shape, dtype and density.
        chunk_rank : int, optional
            Instead of `block_shape`: this many last axes stay whole, as in the paper's FTSF (section IV-A).
        codec : str
            How values are coded. ``"auto"`` tries candidates on a sample; what is slow to decode must earn it.
            ``"smallest"`` tries all that are installed and takes the smallest. docs/layouts.md lists the codecs.
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
            For appends with ``axis=None``: what counts if a sparse tensor stores an element more than once.
        threshold : float
            For ``layout="auto"``: the share of non-zeros from which a tensor is stored dense. 10 % by default, as
            in the paper (Delta Tensor, section IV-B).
        labels : mapping, optional
            By axis name, what its indices stand for: a list, or regular bins such as
            ``{"start": "2013-01-01T00", "step": 1, "unit": "h"}``, which start at a whole unit and are a whole number
            of units long. For an append, the labels of the new indices.
        quantize : str or mapping, optional
            Store floats in fewer bits; a read still gives the dtype of `data`. ``"float16"``, ``"bfloat16"``,
            ``"float8_e4m3fn"`` and ``"float8_e5m2"`` are casts. ``"int8"`` has a scale for each row of the last
            axis: an element is off by half of it at most, and by the rounding to the dtype of `data` on top.
            ``{"error": 1e-3}`` keeps every element within this bound, ``{"relative": 1e-3}`` within this share of its
            own size. ``"split"`` loses nothing: the upper half of float32 can be read alone. An append
            keeps what the tensor has. docs/layouts.md tells more.

        Raises
        ------
        TensorExistsError
            If the id exists and the mode is ``"error"``.
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
            order, row_axes, duplicates, threshold, {} if labels is None else labels, quantize=quantize,
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
        quantize: Any = None,
    ) -> TensorRef:
        """Write a tensor anew in another layout; its elements stay the same, unless `quantize` changes them.

        The tensor is read and written slab by slab, so memory does not grow with it. Axis names, labels and
        attributes are kept. Duplicates are combined for good; later appends follow the same rule. Columns that
        users added are null in the new rows, because a new row holds parts of several old ones.

        Parameters
        ----------
        tensor_id : str
            Which tensor.
        layout, block_shape, chunk_rank, codec, order, row_axes, threshold
            As for `write`.
        quantize : str or mapping, optional
            As for `write`. By default the tensor keeps what it has; ``"none"`` stores the values as they are read.
            The scales of ``"int8"`` belong to blocks: with other blocks values are rounded once more. With
            ``{"error": e}``, a chunk that was stored without loss is rounded if other blocks make that worth it.
            Elements with ``{"error": e}`` stay as they are when they become chunks, and the bound of these is the
            greatest power of two up to e. Chunks with ``{"error": e}``, where e is no power of two, become sparse
            only with ``"none"``.

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
            quantize=ref.quantization if quantize is None else quantize,
        )  # fmt: skip
        with progress(f"convert {tensor_id}", ref.stored_bytes) as done:
            return self._convert(ref, options, done)

    def delete(self, tensor_id: str) -> None:
        """Delete a tensor. Old versions keep it until `vacuum`.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        """
        self._check_writable()
        self[tensor_id]
        self._delete(tensor_id)
