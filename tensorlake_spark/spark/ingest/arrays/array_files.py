"""Files that hold arrays, opened so that a part can be read without the rest.

``.npy`` is memory-mapped, of S3 read by ranges, as ``.npz`` is; Zarr, HDF5 and NetCDF-4 are read chunk by chunk, a TIFF
page by page; an image comes whole. Packages are imported when a file needs them: executors have to have those of the
extra ``ingest``.
"""

from __future__ import annotations

import json
import math
import os
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError, TensorLakeError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.spark.ingest.arrays.external_links import dataset_of, series_of
from tensorlake_spark.spark.ingest.limits import (
    bounded_pixels,
    check_archive,
    check_bytes,
    check_pixels,
)
from tensorlake_spark.spark.ingest.npy import PICKLED, Member, Ranges, read_header
from tensorlake_spark.spark.ingest.source_files import (
    check_reached,
    files_of,
    is_object,
    open_file,
    seekable,
)
from tensorlake_spark.spark.ingest.sources import HDF5, TIFF
from tensorlake_spark.tensor.spec import dtype_name

Array = np.ndarray[Any, Any]

_SHARD_BYTES = 64 << 20
_IMAGES = ("PNG", "JPEG")  # Pillow knows many more, some of which run programs


class Stored(Protocol):
    """An array in a file.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    chunks : tuple of int
        What is read at once; empty where any part can be read alone.
    is_whole : bool
        Whether a part costs as much as the whole.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    is_whole: bool

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        ...


class Sliced:
    """What gives its elements for slices: NumPy, Zarr, h5py; see `Stored`."""

    def __init__(self, data: Any, chunks: Sequence[int] | None = None, is_whole: bool = False):
        self.data = data
        self.shape: tuple[int, ...] = tuple(int(n) for n in data.shape)
        self.dtype: np.dtype[Any] = np.dtype(data.dtype)
        self.chunks: tuple[int, ...] = tuple(chunks or ())
        self.is_whole = is_whole

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        key = tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))
        return np.asarray(self.data[key] if key else self.data[()])


class Pages:
    """A series of TIFF pages; see `Stored`. One page at a time is in memory, if it may be as large as it says."""

    def __init__(self, series: Any):
        _check_page(series.keyframe)
        self.pages = series.pages
        self.shape: tuple[int, ...] = tuple(int(n) for n in series.shape)
        self.dtype: np.dtype[Any] = np.dtype(series.dtype)
        self.lead = len(self.shape) - len(series.pages[0].shape)
        self.chunks: tuple[int, ...] = (*(1,) * self.lead, *self.shape[self.lead :])
        self.is_whole = self.lead == 0
        self._last: tuple[int, Array] | None = None

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        out = np.empty([b - a for a, b in zip(lo, hi, strict=True)], self.dtype)
        inside = tuple(slice(a, b) for a, b in zip(lo[self.lead :], hi[self.lead :], strict=True))
        for place in np.ndindex(*out.shape[: self.lead]):
            leading = [a + p for a, p in zip(lo, place)]
            number = int(np.ravel_multi_index(leading, self.shape[: self.lead])) if leading else 0
            out[place] = self._page(number)[inside]
        return out

    def _page(self, number: int) -> Array:
        if self._last is None or self._last[0] != number:
            page = self.pages[number]
            if page is None:
                raise InvalidTensorError(f"page {number} of the series is missing")
            _check_page(page.keyframe)
            self._last = number, np.asarray(page.asarray())
        return self._last[1]


def _check_page(page: Any) -> None:
    """Raise InvalidTensorError if a page, or one of its tiles, is too large to be unpacked."""
    if page.dtype is None:
        raise InvalidTensorError("its pixels are of no type that tifffile knows")
    pixels = page.imagedepth * page.imagelength * page.imagewidth
    if page.is_tiled:
        pixels = max(pixels, page.tiledepth * page.tilelength * page.tilewidth)
    if not page.is_contiguous:
        check_pixels(pixels)
    check_bytes(pixels * page.samplesperpixel * page.dtype.itemsize, "a page")


class ChannelsFirst:
    """An array whose last axis comes before the two others of an image; see `Stored`."""

    def __init__(self, inner: Stored):
        self.inner = inner
        self.shape = _turned(inner.shape)
        self.dtype = inner.dtype
        self.chunks = _turned(inner.chunks) if inner.chunks else ()
        self.is_whole = inner.is_whole

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        found = self.inner.read(*((*c[:-3], *c[-2:], c[-3]) for c in (tuple(lo), tuple(hi))))
        return np.moveaxis(found, -1, -3)


def _turned(lengths: tuple[int, ...]) -> tuple[int, ...]:
    return (*lengths[:-3], lengths[-1], *lengths[-3:-1])


@contextmanager
def opened(path: str, member: str = "", channels_first: bool = False) -> Iterator[Stored]:
    """Open one array of a file.

    Parameters
    ----------
    path : str
        A file, or the folder of a Zarr store.
    member : str
        Which array: of an ``.npz`` file its name, of HDF5, NetCDF and Zarr its path, of a TIFF the number of
        the series.
    channels_first : bool
        Give colour images the axes (channel, y, x) instead of (y, x, channel).

    Raises
    ------
    InvalidTensorError
        If the file cannot be read as what its name says; names the file.
    MissingDependencyError
        If a package is missing; names the extra.
    """
    with _said(path, member):
        lower = path.lower()
        if files_of(path).is_folder(path):
            yield _zarr(path, member)
        elif lower.endswith(HDF5):
            with _hdf5(path) as file:
                data = dataset_of(file, member)
                yield _chunked(data, data.chunks)
        elif lower.endswith(TIFF):
            with _tiff(path) as file:
                series = series_of(file)[int(member or 0)]
                stored = _series(path, file, series)
                turned = channels_first and series.axes.endswith("S") and len(stored.shape) >= 3
                yield ChannelsFirst(stored) if turned else stored
        elif lower.endswith(".npy"):
            yield _npy(path)
        elif lower.endswith(".npz"):
            with _npz(path) as archive:
                check_archive(archive.zip)
                if member not in archive.files:
                    raise InvalidTensorError(
                        f"there is no {member!r} in it; its arrays are {', '.join(archive.files) or 'none'}"
                    )
                with closing(Member(archive.zip, _in_archive(archive.zip, member))) as found:
                    # What lies in Fortran's order has a little of each band in all places.
                    yield Sliced(archive[member], is_whole=True) if found.is_fortran else found
        else:
            array = Sliced(_image(path), is_whole=True)
            turned = channels_first and len(array.shape) == 3
            yield ChannelsFirst(array) if turned else array


def members_of(path: str) -> list[str]:
    """Return the arrays of a file that can be tensors, as `opened` knows them; ``[""]`` where it has no names.

    Of a NetCDF file the coordinates of its dimensions are left out.
    """
    with _said(path, ""):
        lower = path.lower()
        if files_of(path).is_folder(path):
            found = _zarr_node(path, "")
            if hasattr(found, "shape"):
                return [""]
            return sorted(k for k, v in _arrays_inside(found) if _is_tensor(v.dtype))
        if lower.endswith(HDF5):
            out: list[str] = []

            def look(name: str, item: Any) -> None:
                # HDF5 opens other files for the shape of a virtual dataset, which `opened` refuses.
                is_data = hasattr(item, "is_virtual") and (
                    item.is_virtual or item.shape is not None
                )
                if is_data and not item.is_scale and _is_tensor(item.dtype):
                    out.append(name)

            with _hdf5(path) as file:
                file.visititems(look)
            return out
        if lower.endswith(TIFF):
            with _tiff(path) as file:
                count = len(series_of(file))
            return [""] if count == 1 else [str(k) for k in range(count)]
        if lower.endswith(".npz"):
            with _npz(path) as archive:
                return list(archive.files)
    return [""]


@contextmanager
def _said(path: str, member: str) -> Iterator[None]:
    """Name the file in whatever goes wrong while it is read."""
    where = f"{path}::{member}" if member else path
    try:
        yield
    except MissingDependencyError:
        raise
    except TensorLakeError as error:
        if str(error).startswith(path):
            raise
        raise type(error)(f"{where} cannot be read: {error}") from error
    except Exception as error:  # five packages, each with errors of its own
        check_reached(path, error)
        said = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, KeyError):
            said += " is missing"
        elif "allow_pickle" in said:
            said = PICKLED
        raise InvalidTensorError(f"{where} cannot be read: {said}") from error


def _needed(name: str, path: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = {"PIL.Image": "Pillow"}.get(name, name)
        raise MissingDependencyError(
            f"{path} needs {package}: pip install 'tensorlake-spark[ingest]', on executors too"
        ) from error


def _npy(path: str) -> Stored:
    if is_object(path):
        return Ranges(open_file(path))
    with open_file(path) as stream:
        shape, _, dtype = read_header(stream)
        there = os.path.getsize(path) - stream.tell()
    size = math.prod(shape) * dtype.itemsize
    if there < size:
        raise InvalidTensorError(
            f"it was cut off: its header promises {size_text(size)} of elements, and {size_text(there)} are there"
        )
    return Sliced(np.load(path, mmap_mode="r", allow_pickle=False))


@contextmanager
def _npz(path: str) -> Iterator[Any]:
    # np.load takes what is no archive for a pickle, and advises to load it unsafely.
    with open_file(path) as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as archive:
        yield archive


def _in_archive(archive: zipfile.ZipFile, member: str) -> str:
    """Return the name of a member, which NumPy shortens."""
    name = f"{member}.npy"
    return name if name in archive.namelist() else member


def _image(path: str) -> Array:
    images = _needed("PIL.Image", path)
    # Pillow warns between once and twice its limit; the halved one leaves a warning that says nothing.
    with warnings.catch_warnings(), bounded_pixels(images):
        warnings.simplefilter("ignore", images.DecompressionBombWarning)
        try:
            with images.open(seekable(path), formats=_IMAGES) as image:
                return np.asarray(image)
        except images.UnidentifiedImageError:
            raise InvalidTensorError(
                f"it is no {' or '.join(_IMAGES)} file, as its name says; convert it to one, or rename it"
            ) from None


def _zarr_node(path: str, member: str) -> Any:
    zarr = _needed("zarr", path)
    store: Any = path
    if is_object(path):
        if int(zarr.__version__.split(".")[0]) < 3:
            raise MissingDependencyError(
                f"{path} needs Zarr 3, and with it Python 3.11: pip install 'zarr>=3', on executors too"
            )
        from tensorlake_spark.spark.ingest.arrays.zarr_store import ObjectStore

        store = ObjectStore(path)
    try:
        return zarr.open(store=store, mode="r", path=member.strip("/") or None)
    except FileNotFoundError:
        what = repr(member) if member else "array or group of Zarr"
        raise InvalidTensorError(f"there is no {what} in it") from None
    except json.JSONDecodeError as error:
        raise InvalidTensorError(f"what describes it is not JSON: {error}") from None


def _zarr(path: str, member: str) -> Sliced:
    found = _zarr_node(path, member)
    if not hasattr(found, "shape"):
        raise InvalidTensorError(f"it is a group; its arrays are {_names(_arrays_inside(found))}")
    shards = getattr(found, "shards", None)
    is_small = shards and math.prod(shards) * found.dtype.itemsize <= _SHARD_BYTES
    return _chunked(found, shards if is_small else found.chunks)


def _chunked(data: Any, chunks: Sequence[int] | None) -> Sliced:
    """Return an array of which chunks are unpacked whole, if they may be as large as they say."""
    check_bytes(math.prod(chunks or ()) * data.dtype.itemsize, "a chunk")
    return Sliced(data, chunks)


def _arrays_inside(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a Zarr group and of the groups in it."""
    for name, array in group.arrays():
        yield f"{prefix}{name}", array
    for name, inner in group.groups():
        yield from _arrays_inside(inner, f"{prefix}{name}/")


def _names(arrays: Iterator[tuple[str, Any]]) -> str:
    return ", ".join(sorted(name for name, _ in arrays)) or "none"


def _hdf5(path: str) -> Any:
    h5py = _needed("h5py", path)
    with open_file(path) as file:
        if file.read(3) == b"CDF":
            raise InvalidTensorError(
                "it is a classic NetCDF file, and NetCDF-4 is read; convert it with nccopy -k nc4"
            )
    return h5py.File(seekable(path), "r")


def _tiff(path: str) -> Any:
    """Open a TIFF so that no other file is looked for, as the formats OME, MMStack and NDTiff would have it."""
    tifffile = _needed("tifffile", path)
    own = {"_multifile": False, "is_mmstack": False, "is_ndtiff": False}
    return tifffile.TiffFile(seekable(path), name=os.path.basename(path), **own)


def _series(path: str, file: Any, series: Any) -> Stored:
    """Return a series of a TIFF: mapped if it lies in the file as it is, else page by page."""
    if series.dataoffset is not None and not is_object(path):
        dtype = np.dtype(f"{file.byteorder}{series.dtype.char}")
        return Sliced(np.memmap(path, dtype, "r", series.dataoffset, series.shape))
    pages = Pages(series)
    if math.prod(pages.shape[: pages.lead]) != len(series.pages):
        check_bytes(math.prod(pages.shape) * pages.dtype.itemsize, "a series")
        for page in filter(None, series.pages):
            _check_page(page.keyframe)
        return Sliced(series.asarray(), is_whole=True)
    return pages


def _is_tensor(dtype: Any) -> bool:
    try:
        dtype_name(np.dtype(dtype))
    except (InvalidTensorError, TypeError):
        return False
    return True
