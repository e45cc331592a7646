"""TensorRef: a tensor of the lake at one version, read when it is indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tensorlake_spark.computing.methods import Computing
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.tensor_view import Composer
from tensorlake_spark.computing.writing_results import write_result
from tensorlake_spark.delta.files import catalog, scan
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidOptionError,
    UnknownLabelError,
    did_you_mean,
)
from tensorlake_spark.html_table import html_table
from tensorlake_spark.indexing import (
    Indexer,
    ReadPlan,
    Selection,
    named_key,
    parse_key,
    select,
    select_blocks,
    select_orthogonal,
    select_points,
    select_simple,
)
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.lake.tensor_extensions import DoorMethods
from tensorlake_spark.layouts import AnySelection, grid_of, stored_layout
from tensorlake_spark.layouts.quantization.kinds import Quantization, quantization_in
from tensorlake_spark.layouts.quantization.native_blocks import native_dtype
from tensorlake_spark.reading.conversions import Conversions
from tensorlake_spark.reading.output import array_over
from tensorlake_spark.reading.read import native_columns, read, read_native
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing import write
from tensorlake_spark.writing.editing.assignment import assign
from tensorlake_spark.writing.editing.sparse_assignment import assign_elements
from tensorlake_spark.writing.options import check_mapping
from tensorlake_spark.writing.source import Source


class TensorRef(DoorMethods, Conversions, Computing, NDArrayOperatorsMixin):
    """A tensor of a lake at one version. It reads nothing before you index it.

    Indexing is NumPy's: integers, slices with steps of either sign, Ellipsis, newaxis, integer arrays that
    broadcast and masks of any rank. `oindex` and `vindex` mean what they mean in Zarr. Only the chunks that a
    key needs are read.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> ref = lake.write("x", np.arange(12).reshape(3, 4))
    >>> ref[1:, ::-1].tolist()
    [[7, 6, 5, 4], [11, 10, 9, 8]]
    >>> ref[[0, 2], [1, 3]].tolist(), ref[ref[...] % 5 == 0].tolist()
    ([1, 11], [0, 5, 10])
    """

    # Two references are one if they are the same object; `view` compares elements.
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def __init__(self, snapshot: Snapshot, meta: Meta, verify: bool = True) -> None:
        self._snapshot = snapshot
        self._meta = meta
        self._verify = verify

    @property
    def id(self) -> str:
        """Name of the tensor in the lake."""
        return self._meta.spec.id

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._meta.spec.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._meta.spec.ndim

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        return self._meta.spec.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in the machine's byte order."""
        return self._meta.spec.dtype

    @property
    def layout(self) -> str:
        """How the tensor is stored, such as ``"ftsf"``."""
        return self._meta.spec.layout

    @property
    def block_shape(self) -> tuple[int, ...] | None:
        """Shape of a whole chunk or block; None if the layout has no blocks."""
        block = self._meta.spec.block_shape
        return None if self.ndim and not block else block

    @property
    def codec(self) -> str:
        """How the values are coded, such as ``"delta(-2)+zstd"``."""
        return self._meta.spec.codec

    @property
    def quantization(self) -> Quantization | None:
        """How values are quantised, with the bound; None where they are stored as they were written.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> lake.write("x", np.linspace(0, 1, 9), quantize={"error": 0.01}).quantization
        Quantization(kind='error', bound=0.01)
        """
        return quantization_in(self._meta.spec)

    @property
    def axes(self) -> tuple[str, ...] | None:
        """Names of the axes; None if they have no names."""
        return self._meta.spec.axes

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The user's attributes; `update_attrs` changes them."""
        return MappingProxyType(dict(self._meta.spec.attrs))

    @property
    def fill_value(self) -> Any:
        """The value of chunks that are not stored."""
        return self._meta.spec.fill_value[()]

    @property
    def nnz(self) -> int:
        """Number of stored elements. Chunks full of the fill value are not stored.

        If a sparse tensor combines duplicates, each of them counts.
        """
        return self._meta.totals.nnz

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor as one array in memory."""
        return self._meta.spec.nbytes

    @property
    def stored_bytes(self) -> int:
        """Bytes that its elements take in the table."""
        return self._meta.totals.nbytes

    @property
    def version(self) -> int:
        """Version of the table that this reference shows."""
        return self._snapshot.version

    def __getitem__(self, key: Any) -> Any:
        return self._read(select(key, self.shape))

    def __setitem__(self, key: Any, values: Any) -> None:
        self._assign(select(key, self.shape), values)

    @property
    def view(self) -> Composer:
        """Parts that are read only when they are needed: ``ref.view[30:40, :, ::2]`` is a `TensorView`.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.arange(12).reshape(3, 4))
        >>> ref.view[1:].max(axis=1)
        array([ 7, 11])
        """
        return Composer(self, select(..., self.shape))

    @property
    def oindex(self) -> Indexer:
        """Orthogonal indexing: ``ref.oindex[[0, 2], :, mask]`` takes each axis on its own."""
        return Indexer(lambda key: select_orthogonal(key, self.shape), self._read, self._assign)

    @property
    def vindex(self) -> Indexer:
        """Coordinate indexing: ``ref.vindex[[0, 2], [1, 5]]`` is two elements. A mask of the whole shape works too."""
        return Indexer(lambda key: select_points(key, self.shape), self._read, self._assign)

    @property
    def blocks(self) -> Indexer:
        """Block indexing: ``ref.blocks[0, -1]`` is one whole block, ``ref.blocks[1:3]`` those of two numbers.

        As in Zarr, a key has integers and slices with step 1. They count blocks along each axis; negative ones
        count from the last block. An integer keeps its axis. A slice may end behind the last block, but has to
        begin at a block. So an axis of length 0 has no valid key.

        A block is as long as `block_shape`, and shorter at the end of an axis. If an append starts where a block
        is not full, it begins a new block, and the one before it stays shorter. Blocks that no row stores, because
        they hold only zeros or the fill value, count too.

        Raises
        ------
        InvalidKeyError
            If a key names no block, or the layout has no blocks.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.arange(10), block_shape=(4,))
        >>> ref.blocks[1].tolist(), ref.blocks[-1].tolist()
        ([4, 5, 6, 7], [8, 9])
        >>> ref.blocks[1:] = 0
        >>> ref[...].tolist()
        [0, 1, 2, 3, 0, 0, 0, 0, 0, 0]
        """
        return Indexer(self._select_blocks, self._read, self._assign)

    def _select_blocks(self, key: Any) -> Selection:
        if self.block_shape is None:
            raise InvalidKeyError(
                f"layout {self.layout} of tensor {self.id!r} has no blocks; index it with ref[...], or give it "
                f"blocks with lake.convert({self.id!r}, layout='bsgs')"
            )
        return select_blocks(key, grid_of(self._meta.spec))

    def isel(self, **picks: Any) -> Any:
        """Read by the names of the axes: ``ref.isel(image=slice(30, 40), y=5)``.

        Raises
        ------
        InvalidSliceError
            If no axis has this name; the message offers the nearest one.
        """
        return self._read(select_simple(named_key(self.axes, picks), self.shape))

    def labels(self, axis: str) -> np.ndarray[Any, Any]:
        """Return the labels of an axis; for bins, the start of each.

        Raises
        ------
        UnknownLabelError
            If the axis has no labels.
        """
        names = self.axes or ()
        found = self._meta.spec.labels.get(axis) if isinstance(axis, str) else None
        if found is None:
            known = tuple(self._meta.spec.labels)
            raise UnknownLabelError(
                f"axis {axis!r} of tensor {self.id!r} has no labels{did_you_mean(str(axis), known)}; "
                f"axes with labels: {', '.join(known) or 'none'}"
            )
        return found.array(self.shape[names.index(axis)])

    def sel(self, **picks: Any) -> Any:
        """Read by labels: ``ref.sel(carrier="UA", day=slice("2013-01-05", "2013-01-11"))``.

        A slice includes both ends, as in pandas. A time that is coarser than the bins stands for all bins in it: with
        daily bins, ``"2013-01"`` is a month. A slice may reach past the first or last bin. An axis without labels
        takes indices, as in `isel`.

        Raises
        ------
        UnknownLabelError
            If an axis has no such label; the message offers the nearest one. Also if it has no labels at all.
        InvalidSliceError
            If no axis has this name.
        """
        lengths = dict(zip(self.axes or (), self.shape, strict=False))
        labels = self._meta.spec.labels
        for name, value in picks.items():
            if name in lengths and name not in labels and isinstance(value, str):
                raise UnknownLabelError(
                    f"axis {name!r} of tensor {self.id!r} has no labels, so {value!r:.80} names nothing on it: give an "
                    f"index; axes with labels: {', '.join(labels) or 'none'}"
                )
        return self.isel(
            **{k: labels[k].index(v, lengths[k]) if k in labels else v for k, v in picks.items()}
        )

    def slice(self, text: str) -> Any:
        """Read by a slice as text: ``"30:40, :, ::2"`` or ``"image=30:40, y=5"``.

        Raises
        ------
        InvalidSliceError
            If the text cannot be read.
        """
        return self._read(select_simple(parse_key(text, self.axes), self.shape))

    def read(self, key: Any = ..., out: Any = None, native: bool | str = False) -> Any:
        """Read like ``ref[key]``, or into memory that you give.

        Parameters
        ----------
        key : object
            As in ``ref[key]``.
        out : ndarray, or object with the buffer protocol, optional
            Where the result goes; it is also what is returned. It may be an array with the shape and dtype of the
            result, contiguous or not. It may be a flat, contiguous buffer with as many elements or bytes, such as a
            ``bytearray``, ``memoryview``, ``array.array``, ``mmap`` or ``SharedMemory.buf``. Or it may be a PyTorch
            tensor in main memory. Dense chunks are decoded straight into it. After an error its content is undefined.
        native : bool or str
            With True, read what is stored of a quantised tensor. That is an array of the dtype that it was cast to;
            for ``"int8"`` the pair ``(codes, scales)``, whose product is the tensor; for ``"error"`` int64
            integers that count ``ref.quantization.step``. NaN, infinities and other elements that are kept apart
            are 0 among codes and integers. Where there is no other form, it is a plain read. The name of a dtype
            asks for that one: of a tensor that was split, ``"bfloat16"`` reads half of the bytes. `out` does not go
            with it.

        Raises
        ------
        InvalidTensorError
            If `out` is none of these, cannot be written to, or has another shape, dtype or size.
        InvalidOptionError
            If `native` is another dtype than what is stored, or comes with `out`.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.arange(6, dtype="u1").reshape(2, 3))
        >>> ref.read(np.s_[:, 1:], out=bytearray(4))
        bytearray(b'\\x01\\x02\\x04\\x05')
        """
        selection = select(key, self.shape)
        kind = native_dtype(self._meta.spec, native)
        if kind is not None:
            if out is not None:
                raise InvalidOptionError(
                    f"native={native!r} is not for a read with out; leave one of them out"
                )
            return read_native(self._snapshot, self._meta, selection, kind, self._verify)
        if out is None:
            return self._read(selection)
        answer = array_over(out, selection.result_shape, self.dtype)
        stage = None if stored_layout(self._meta.spec).is_sparse else selection.staged(answer)
        found = self._read(selection, stage)
        if isinstance(found, SparseTensor) and found.ndim:
            answer[...] = np.zeros((), self.dtype)
            answer[tuple(found.coords)] = found.values
        elif stage is None:
            answer[...] = found
        return out

    def explain(self, key: Any = ..., native: bool | str = False) -> ReadPlan:
        """Return the plan of ``ref[key]``: what it would read and skip. Print it to see it.

        With `native` it is that of ``ref.read(key, native=native)``, whose bytes are those of the columns it needs.
        """
        if isinstance(key, str):
            selection: AnySelection = select_simple(parse_key(key, self.axes), self.shape)
        else:
            selection = select(key, self.shape)
        is_native = native_dtype(self._meta.spec, native) is not None
        columns = native_columns(self._meta.spec) if is_native else None
        found = scan.plan(self._snapshot, self.id, selection, columns)
        stored = stored_layout(self._meta.spec).arrangement(self._meta.spec)
        known = self.quantization
        return replace(found, stored=stored if known is None else f"{stored}; {known}")

    def update_attrs(self, attrs: Mapping[str, Any]) -> TensorRef:
        """Add or replace attributes (JSON values) and return the reference at the new version.

        Raises
        ------
        InvalidOptionError
            If `attrs` is not a mapping.
        InvalidTensorError
            If a value is not JSON.
        """
        check_mapping("attrs", attrs)
        self._snapshot = write.describe(
            self._snapshot.storage,
            self.id,
            lambda spec: replace(spec, attrs={**spec.attrs, **attrs}),
        )
        self._meta = catalog.get(self._snapshot, self.id)
        return self

    @property
    def _stored(self) -> Stored:
        return self._selected(select(..., self.shape))

    def _selected(self, selection: AnySelection) -> Stored:
        return Stored(self._snapshot, self._meta, selection, self._verify)

    def _written(self, tensor_id: str, source: Source, layout: str) -> TensorRef:
        after = write_result(self._snapshot, tensor_id, source, layout)
        return TensorRef(after, catalog.get(after, tensor_id), self._verify)

    def _read(self, selection: AnySelection, out: np.ndarray[Any, Any] | None = None) -> Any:
        return read(self._snapshot, self._meta, selection, self._verify, out)

    def _assign(self, selection: AnySelection, values: Any) -> None:
        """Write values into the elements of a selection, in one commit."""
        put = assign_elements if stored_layout(self._meta.spec).is_sparse else assign
        self._snapshot = put(self._snapshot, self._meta, selection, values)
        self._meta = catalog.get(self._snapshot, self.id)

    def __repr__(self) -> str:
        names = f", axes={self.axes}" if self.axes else ""
        return (
            f"TensorRef({self.id!r}, shape={self.shape}, dtype={self.dtype}, layout={self.layout!r}, "
            f"block_shape={self.block_shape}{names}, version={self.version})"
        )

    def _repr_html_(self) -> str:
        blocks = f"blocks of {self.block_shape}, " if self.block_shape else ""
        return html_table(
            {
                "id": self.id,
                "shape": self.shape,
                "axes": self.axes or "-",
                "dtype": self.dtype,
                "layout": f"{self.layout}, {blocks}{self.codec}",
                "in memory": size_text(self.nbytes),
                "stored": size_text(self.stored_bytes),
                "version": self.version,
                **{f"attrs[{k!r}]": v for k, v in self.attrs.items()},
            }
        )
