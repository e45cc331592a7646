"""Refuses links of HDF5 and TIFF to other files, which a task would open with its own rights."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorlake_spark.errors import InvalidTensorError

_LINKS = 64
"""So many soft links are followed; HDF5 itself follows 16."""

_REMEDY = "and only what a file has inside is read; copy the data into one file first"


def dataset_of(file: Any, member: str) -> Any:
    """Return a dataset of an HDF5 file that has all of its elements inside.

    Raises
    ------
    InvalidTensorError
        If it is none, or it or a link to it names another file, which is not opened.
    """
    h5py = import_module("h5py")
    found, names, links = file, _names(member), 0
    while names:
        name = names.pop(0)
        link = found.get(name, getlink=True) if isinstance(found, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink):
            raise InvalidTensorError(f"{name!r} is a link to the file {link.filename!r}, {_REMEDY}")
        if isinstance(link, h5py.SoftLink):
            links += 1
            if links > _LINKS:
                raise InvalidTensorError(f"{name!r} is one of more than {_LINKS} links to links")
            found = file if link.path.startswith("/") else found
            names = _names(link.path) + names
        elif link is None:
            raise InvalidTensorError(f"there is no {name!r} in it")
        else:
            found = found[name]
    if not isinstance(found, h5py.Dataset):
        raise InvalidTensorError("it is not a dataset with elements")
    if found.is_virtual:  # before its shape, for which HDF5 would open the files
        others = sorted({source.file_name for source in found.virtual_sources()})
        raise InvalidTensorError(f"it is a view of the files {', '.join(others[:3])}, {_REMEDY}")
    if found.external:
        raise InvalidTensorError(
            f"its elements are in the file {found.external[0][0]!r}, {_REMEDY}"
        )
    if found.shape is None:
        raise InvalidTensorError("it is not a dataset with elements")
    return found


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def series_of(file: Any) -> list[Any]:
    """Return the series of a TIFF, which was opened so that tifffile reads no other file.

    Raises
    ------
    InvalidTensorError
        If its OME-XML has pages in other files.
    """
    found: list[Any] = file.series
    # Where a page is elsewhere, tifffile gives the pages as if there were no OME-XML.
    is_plain = any(series.kind not in ("ome", "shaped") for series in found)
    if file.is_ome and is_plain and "FileName" in file.ome_metadata:
        raise InvalidTensorError(
            f"its OME-XML has pages in files of other names, {_REMEDY}, or give this one its old name"
        )
    return found
