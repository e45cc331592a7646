"""Which files an ingestion reads, and of which family they are."""

from __future__ import annotations

import glob
import os
import zipfile
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit
from urllib.request import url2pathname

from tensorlake_spark.delta.store.redaction import hide
from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.spark.ingest.outcome import Skipped
from tensorlake_spark.spark.ingest.source_files import exists, files_of, is_object, open_file

IMAGES = (".png", ".jpg", ".jpeg")
TIFF = (".tif", ".tiff")
HDF5 = (".h5", ".hdf5", ".he5", ".nc", ".nc4")
ZARR = (".zarr",)
TNS = (".tns", ".tns.gz", ".tns.zip")
MATRICES = (".mtx", ".mtx.gz")
CSV = (".csv", ".csv.gz", ".csv.zip", ".tsv", ".tsv.gz", ".tsv.zip")
PARQUET = (".parquet",)
SUFFIXES = (*IMAGES, *TIFF, ".npy", ".npz", *HDF5, *ZARR, *TNS, *MATRICES, *CSV, *PARQUET)

_FAMILIES = {"tns": TNS, "matrices": MATRICES, "csv": CSV, "parquet": PARQUET}
_WITH_MEMBERS = (".npz", *HDF5, *ZARR, *TIFF)
_MEMBER = "::"
_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
_BY_SPARK = ("tns", "csv", "parquet", "delta")

# Members of an .npz file that scipy.sparse.save_npz and sparse.save_npz write.
_SPARSE_MEMBERS = ({"format", "shape", "data"}, {"fill_value", "shape", "data"})


def expand(sources: Sequence[str], gone: list[Skipped] | None = None) -> list[str]:
    """Return the files that paths, globs, folders and lists name, in their order; those of each sorted.

    ``@list.txt`` stands for the sources in a file, one a line; blank lines and those that begin with ``#``
    are left out. A ``file:`` URI is the path that it names; ``s3://`` (or ``s3a://``) an object. Files that are named
    and not there are added to `gone` if that is given.

    Raises
    ------
    InvalidOptionError
        If a source names no file, or a file that the job does not read; of a list it names the line.
    """
    out: list[str] = []
    for source in sources:
        named = [("", source)]
        if source.startswith("@"):
            named = [(f"{source[1:]}, line {k}: ", one) for k, one in _listed(source[1:])]
        for place, one in named:
            if gone is not None and _is_gone(one, place):
                gone.append(Skipped(one, f"{place}source {one!r} names no file"))
            else:
                out += _expanded(one, place)
    return out


def _is_gone(source: str, place: str) -> bool:
    """Whether a source is the name of a file that is not there."""
    path = _local(split(source)[0], place)
    return not exists(path) and not glob.has_magic(path)


def _listed(path: str) -> list[tuple[int, str]]:
    """Return line numbers and sources of a list."""
    try:
        with open_file(path) as file:
            lines = file.read().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidOptionError(f"the list of sources {path} cannot be read: {said}") from None
    numbered = [(k + 1, line.strip()) for k, line in enumerate(lines)]
    out = [(k, line) for k, line in numbered if line and not line.startswith("#")]
    if not out:
        raise InvalidOptionError(f"the list of sources {path} names no source")
    return out


def split(source: str) -> tuple[str, str]:
    """Return the file that a source names, and which of its arrays: ``file.h5::/group/x``.

    Examples
    --------
    >>> split("day.h5::/wind/u"), split("day.h5")
    (('day.h5', 'wind/u'), ('day.h5', ''))
    """
    if _MEMBER not in source or exists(source):
        return source, ""
    path, _, member = source.partition(_MEMBER)
    return path, member.strip("/")


def has_channels(source: str) -> bool:
    """Whether a source, as `expand` returns it, is of a kind that says which axis the colours are."""
    return split(source)[0].lower().endswith((*IMAGES, *TIFF))


def is_zarr(path: str) -> bool:
    """Whether a folder is a Zarr store."""
    if not files_of(path).is_folder(path):
        return False
    is_named = path.lower().rstrip("/").endswith(ZARR)
    return is_named or any(exists(os.path.join(path, name)) for name in _ZARR_FILES)


def is_delta(path: str) -> bool:
    """Whether a folder is a Delta table."""
    files = files_of(path)
    return files.is_folder(path) and files.is_folder(os.path.join(path, "_delta_log"))


def _is_unit(path: str) -> bool:
    """Whether a folder is one source, and not a folder of them."""
    return is_zarr(path) or is_delta(path)


def _expanded(source: str, place: str) -> list[str]:
    """Return the files that a path, a glob, a folder or a URI names; `place` begins what errors say."""
    path, member = split(source)
    path = _local(path, place)
    files = files_of(path)
    is_name = not glob.has_magic(path) or exists(path)
    found = [path] if is_name else files.find(path)
    found = [
        f
        for one in found
        for f in (_inside(one) if files.is_folder(one) and not _is_unit(one) else [one])
    ]
    found = [f for f in found if files.is_file(f) or _is_unit(f)]
    if not found:
        raise InvalidOptionError(f"{place}source {source!r} names no file")
    for path in found:
        if not path.lower().endswith(SUFFIXES) and not _is_unit(path):
            suffix = os.path.splitext(path)[1]
            raise InvalidOptionError(
                f"{place}{path} is not one of {', '.join(SUFFIXES)}, which this job reads"
                f"{did_you_mean(suffix, SUFFIXES) if suffix else ''}"
            )
        if member and not (path.lower().endswith(_WITH_MEMBERS) or is_zarr(path)):
            raise InvalidOptionError(
                f"{place}source {source!r}: {path} holds one array, which has no name; leave out "
                f"{_MEMBER}{member}"
            )
    chosen = f"{_MEMBER}{member}" if member else ""
    return [(f if is_object(f) else os.path.abspath(f)) + chosen for f in found]


def _local(source: str, place: str) -> str:
    """Return the path that a source is, or that a URI names; objects begin with ``s3://``."""
    if is_object(source):
        return f"s3://{source.partition('://')[2].rstrip('/')}"
    scheme, rest = source.partition("://")[::2]
    if not rest or os.path.exists(source):
        return source
    parts = urlsplit(source)
    if scheme.lower() != "file":
        shown = hide(source.partition("?")[0], {})  # a URL may be signed, or have a password
        raise InvalidOptionError(
            f"{place}source {shown!r}: this job reads s3://, and files that executors see under a path, not "
            f"{scheme}://; mount the store, or copy the files first"
        )
    if parts.netloc not in ("", "localhost"):
        raise InvalidOptionError(
            f"{place}source {source!r} is a file of the machine {parts.netloc!r}; write file:///path"
        )
    return url2pathname(parts.path)


def _inside(folder: str) -> Iterator[str]:
    """Yield the files of a folder that the job reads; Spark's own notes (``_SUCCESS``) are none."""
    for where, folders, names in files_of(folder).walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        stores = [name for name in folders if _is_unit(os.path.join(where, name))]
        folders[:] = [name for name in folders if name not in stores]
        yield from (os.path.join(where, name) for name in stores)
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith(("_", ".")):
                yield os.path.join(where, name)


def family_of(paths: Sequence[str]) -> str:
    """Return what files hold: ``arrays``, or cells as ``tns``, ``matrices``, ``csv``, ``parquet`` or ``delta``.

    Raises
    ------
    InvalidOptionError
        If they are of more than one family, or Spark would not see one of them.
    """
    found: dict[str, str] = {}
    for path in paths:
        family = _family(path)
        found.setdefault(family, path)
        name = os.path.basename(path)
        if family in _BY_SPARK and (name.startswith(("_", ".")) or ":" in name):
            raise InvalidOptionError(
                f"{path}: Spark does not read files whose name begins with '_' or '.', or has a ':'; "
                "rename it"
            )
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise InvalidOptionError(
            f"{first} ({one}) and {second} ({other}) do not go into one tensor; run the job for each"
        )
    return next(iter(found))


def _family(path: str) -> str:
    path = split(path)[0]
    lower = path.lower()
    if is_delta(path):
        return "delta"
    if lower.endswith(".npz"):
        return "matrices" if is_sparse_npz(path) else "arrays"
    for family, suffixes in _FAMILIES.items():
        if lower.endswith(suffixes):
            return family
    return "arrays"


def is_sparse_npz(path: str) -> bool:
    """Whether an ``.npz`` file holds one sparse array, as scipy.sparse and the package sparse write it."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            members = {os.path.splitext(name)[0] for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False  # whoever reads it says what is wrong
    return any(wanted <= members for wanted in _SPARSE_MEMBERS)
