"""``.npz`` files of scipy.sparse and of the package sparse, read by ranges of what they store."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import IO, Any

import numpy as np

from tensorlake_spark.ops.elements import nonzero_bits
from tensorlake_spark.spark.ingest.limits import check_archive
from tensorlake_spark.spark.ingest.npy import read_header
from tensorlake_spark.spark.ingest.source_files import seekable
from tensorlake_spark.tensor.spec import dtype_name, native

Array = np.ndarray[Any, Any]

_SMALL_BYTES = 1 << 16  # of a member that says what the others are, which the driver reads
_SKIP = 1 << 20
_PLACES = ("row", "col", "coords", "indices", "indptr", "offsets", "compressed_axes")


@contextmanager
def open_sparse(path: str) -> Iterator[SparseArchive]:
    """Open a file whose members may be unpacked."""
    with zipfile.ZipFile(seekable(path)) as archive:
        check_archive(archive)
        with ExitStack() as streams:
            yield SparseArchive(archive, streams)


class SparseArchive:
    """A sparse array as its file stores it.

    Only what says where rows begin is held whole: ``indptr`` of CSR, CSC, BSR and GCXS.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
        Of the elements, in the byte order of the machine.
    count : int
        Units of `read`: stored elements, blocks of BSR, places of the diagonals of DIA.
    width : int
        Elements of a unit.
    nbytes : int
        What the file holds of them, unpacked.

    Raises
    ------
    ValueError
        If the members are not those of a sparse array, or do not go together.
    """

    def __init__(self, archive: zipfile.ZipFile, streams: ExitStack):
        self._archive, self._open = archive, streams
        sizes = {
            i.filename[:-4]: i.file_size for i in archive.infolist() if i.filename[-4:] == ".npy"
        }
        self._sizes, self.nbytes = sizes, sum(sizes.values())
        data = self._data = self._member("data")
        self.dtype = native(np.empty(0, data.dtype)).dtype
        dtype_name(self.dtype)
        shape = self._small("shape")
        if shape.ndim != 1 or (shape.dtype.kind not in "iu" and shape.size):
            raise ValueError(f"its shape is {shape!r}, not some integers")
        self.shape = tuple(int(n) for n in shape)
        if "fill_value" in sizes and nonzero_bits(fill := self._small("fill_value")).any():
            raise ValueError(f"its fill value is {fill!r}, and only zero can be left out")
        self.width = math.prod(data.shape[1:]) if len(data.shape) == 3 else 1
        self.count = math.prod(data.shape[:1] if len(data.shape) == 3 else data.shape)

    def read(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return coordinates (int64, ndim x n) and values of some units; each call begins where the last one ended.

        Raises
        ------
        ValueError
            If a member ends too early, or an element lies outside of the shape.
        """
        coords, values = self._form(start, stop)
        coords = coords.astype(np.int64)
        ends = np.array(self.shape)[:, None]
        if coords.size and (coords.min() < 0 or (coords.max(axis=1, keepdims=True) >= ends).any()):
            outside = ((coords < 0) | (coords >= ends)).any(axis=0)
            at = tuple(coords[:, np.argmax(outside)].tolist())
            raise ValueError(f"its element {at} lies outside of its shape {self.shape}")
        return coords, native(values)

    @cached_property
    def _form(self) -> Callable[[int, int], tuple[Array, Array]]:
        """Return what reads units, once the members are known to go together."""
        for name in filter(self._sizes.__contains__, _PLACES):
            member = self._member(name)
            if member.dtype.kind not in "iu" and 0 not in member.shape:
                raise ValueError(f"its {name} are of dtype {member.dtype}, and not integers")
        if "offsets" in self._sizes:
            self._check_data(2)
            offsets = self._counted("offsets", self._data.shape[:1]).all()
            return partial(self._diagonals, offsets.astype(np.int64))
        if {"indices", "indptr"} <= self._sizes.keys():
            return self._find_rows()
        self._check_data(1)
        if "coords" in self._sizes:
            return partial(self._coords, self._counted("coords", (len(self.shape), self.count)))
        if {"row", "col"} <= self._sizes.keys():
            places = [self._counted(name, (self.count,)) for name in ("row", "col")]
            return partial(self._listed, places)
        raise ValueError(
            f"it holds no sparse array: its members are {', '.join(sorted(self._sizes))}"
        )

    def _find_rows(self) -> Callable[[int, int], tuple[Array, Array]]:
        indices, ends = self._counted("indices", (self.count,)), self._member("indptr").all()
        if ends.ndim != 1:
            raise ValueError(f"its indptr has the shape {ends.shape}, not one of 1 axis")
        if ends.size and (ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] != self.count):
            raise ValueError(
                f"its indptr does not rise from 0 to {self.count}, the number of its indices"
            )
        if "compressed_axes" in self._sizes:
            axes = np.atleast_1d(self._small("compressed_axes")).tolist()
        else:
            form = self._small("format")[()] if "format" in self._sizes else None
            form = form.decode() if isinstance(form, bytes) else form
            if form not in ("csr", "csc", "bsr") or len(self.shape) > 2:
                raise ValueError(
                    f"its format is {form!r} of {len(self.shape)} axes, which nobody saves"
                )
            if form == "bsr":
                self._check_data(3)
                return partial(self._blocks, indices, ends)
            axes = [] if len(self.shape) == 1 else [0] if form == "csr" else [1]
        self._check_data(1)
        order = [*axes, *(k for k in range(len(self.shape)) if k not in axes)]
        if sorted(order) != list(range(len(self.shape))):
            raise ValueError(
                f"its compressed axes {axes} are not some of its {len(self.shape)} axes"
            )
        if len(self.shape) == 1:  # one row, of which GCXS has no indptr
            return partial(self._listed, [indices])
        self._check_rows(ends, math.prod(self.shape[k] for k in axes))
        return partial(self._compressed, indices, ends, axes, order)

    def _check_data(self, ndim: int) -> None:
        if len(self._data.shape) != ndim:
            raise ValueError(f"its data has the shape {self._data.shape}, and not {ndim} axes")

    def _check_rows(self, ends: Array, count: int) -> None:
        if len(ends) != count + 1:
            raise ValueError(f"its indptr is of {len(ends) - 1} rows, of which it has {count}")

    def _listed(self, places: list[_Member], start: int, stop: int) -> tuple[Array, Array]:
        coords = np.stack([member.read(start, stop) for member in places])
        return coords, self._data.read(start, stop)

    def _coords(self, coords: _Member, start: int, stop: int) -> tuple[Array, Array]:
        ndim, count = coords.shape
        if coords.is_fortran:
            flat = coords.read(start * ndim, stop * ndim)
            return flat.reshape(stop - start, ndim).T, self._data.read(start, stop)
        axes = [coords.read(k * count + start, k * count + stop, stream=k) for k in range(ndim)]
        return np.reshape(axes, (ndim, stop - start)), self._data.read(start, stop)

    def _compressed(
        self,
        indices: _Member,
        ends: Array,
        axes: list[int],
        order: list[int],
        start: int,
        stop: int,
    ) -> tuple[Array, Array]:
        """Rows of some axes, with indices among the others: CSR, CSC and GCXS."""
        rows, columns = ([self.shape[k] for k in some] for some in (axes, order[len(axes) :]))
        row, index = _rows(ends, start, stop), indices.read(start, stop).astype(np.int64)
        if index.size and not 0 <= index.min() <= index.max() < math.prod(columns):
            odd = index.min() if index.min() < 0 else index.max()
            raise ValueError(f"its index {odd} lies outside of the {math.prod(columns)} of a row")
        coords = [*np.unravel_index(row, rows), *np.unravel_index(index, columns)]
        return np.stack(coords)[np.argsort(order)], self._data.read(start, stop)

    def _blocks(self, indices: _Member, ends: Array, start: int, stop: int) -> tuple[Array, Array]:
        data = self._data
        if 0 in data.shape[1:] or len(self.shape) != 2 or data.is_fortran:
            raise ValueError(f"its blocks have the shape {data.shape}, or lie in Fortran's order")
        high, wide = data.shape[1:]
        self._check_rows(ends, self.shape[0] // high)
        size = high * wide
        values = data.read(start * size, stop * size).reshape(-1, high, wide)
        row = _rows(ends, start, stop)[:, None, None] * high + np.arange(high)[:, None]
        column = indices.read(start, stop).astype(np.int64)[:, None, None] * wide + np.arange(wide)
        places = [np.broadcast_to(at, values.shape).ravel() for at in (row, column)]
        return np.stack(places), values.ravel()

    def _diagonals(self, offsets: Array, start: int, stop: int) -> tuple[Array, Array]:
        """The elements of DIA that are not zero, and inside: SciPy takes memory for every row that its shape has."""
        values, place = self._data.read(start, stop), np.arange(start, stop)
        order: Any = "F" if self._data.is_fortran else "C"
        which, column = np.unravel_index(place, self._data.shape, order)
        row = column - offsets[which]
        inside = (
            (row >= 0) & (row < self.shape[0]) & (column < self.shape[1]) & nonzero_bits(values)
        )
        return np.stack([row[inside], column[inside]]), values[inside]

    def _member(self, name: str) -> _Member:
        if name not in self._sizes:
            raise ValueError(
                f"it has no {name!r}, as a sparse array has; its members are "
                f"{', '.join(sorted(self._sizes)) or 'none'}"
            )
        return _Member(self._archive, name, self._open)

    def _counted(self, name: str, shape: tuple[int, ...]) -> _Member:
        member = self._member(name)
        if member.shape != shape:
            raise ValueError(
                f"it has {self.count} values, and {name} of shape {member.shape} in place of {shape}"
            )
        return member

    def _small(self, name: str) -> Array:
        member = self._member(name)
        if self._sizes[name] > _SMALL_BYTES:
            raise ValueError(
                f"its {name} has {self._sizes[name]} bytes, and no array has so many axes"
            )
        return member.all()


class _Member:
    """An array of an archive, read onwards in the order in which it is stored."""

    def __init__(self, archive: zipfile.ZipFile, name: str, streams: ExitStack):
        self._archive, self._name, self._open = archive, name, streams
        self._streams: dict[int, IO[bytes]] = {}
        with archive.open(f"{name}.npy") as stream:
            self.shape, self.is_fortran, self.dtype = read_header(stream)
            self._start = stream.tell()

    def read(self, start: int, stop: int, stream: int = 0) -> Array:
        """Return elements of the flat array by a stream of its own; it goes on from where that one is."""
        if stream not in self._streams:
            opened = self._archive.open(f"{self._name}.npy")
            self._streams[stream] = self._open.enter_context(opened)
        source, size = self._streams[stream], self.dtype.itemsize
        # Not by seek(), which leaves out the checksum from Python 3.13 on: whoever reads the end checks it.
        left = self._start + start * size - source.tell()
        while left > 0 and (skipped := source.read(min(left, _SKIP))):
            left -= len(skipped)
        data = source.read((stop - start) * size)
        if len(data) < (stop - start) * size:
            raise ValueError(f"its {self._name} end before the last one")
        return np.frombuffer(data, self.dtype)

    def all(self) -> Array:
        """Return the whole array."""
        order: Any = "F" if self.is_fortran else "C"
        return self.read(0, math.prod(self.shape)).reshape(self.shape, order=order)


def _rows(ends: Array, start: int, stop: int) -> Array:
    """Return the row of each of some elements, from where each row ends.

    Examples
    --------
    >>> _rows(np.array([0, 2, 2, 5]), 1, 4)
    array([0, 2, 2])
    """
    first = max(0, int(np.searchsorted(ends, start, "right")) - 1)
    last = int(np.searchsorted(ends, stop, "left"))
    inside: Array = np.clip(ends[first : last + 1].astype(np.int64), start, stop)
    counts: Array = inside[1:] - inside[:-1]
    return np.repeat(np.arange(first, first + len(counts)), counts)
