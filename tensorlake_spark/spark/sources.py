"""Which files an ingestion reads, and of which family they are."""

from __future__ import annotations

import glob
import os
import zipfile
from collections.abc import Iterator, Sequence

from tensorlake_spark.errors import InvalidOptionError, did_you_mean

IMAGES = (".png", ".jpg", ".jpeg")
TNS = (".tns", ".tns.gz", ".tns.zip")
MATRICES = (".mtx", ".mtx.gz")
CSV = (".csv", ".csv.gz", ".csv.zip", ".tsv", ".tsv.gz", ".tsv.zip")
PARQUET = (".parquet",)
SUFFIXES = (*IMAGES, ".npy", ".npz", *TNS, *MATRICES, *CSV, *PARQUET)

_FAMILIES = {"tns": TNS, "matrices": MATRICES, "csv": CSV, "parquet": PARQUET}
_BY_SPARK = ("tns", "csv", "parquet")

# Members of an .npz file that scipy.sparse.save_npz and sparse.save_npz write.
_SPARSE_MEMBERS = ({"format", "shape", "data"}, {"fill_value", "shape", "data"})


def expand(sources: Sequence[str]) -> list[str]:
    """Return the files that paths, globs and folders name, in their order; those of each source sorted.

    Raises
    ------
    InvalidOptionError
        If a source names no file, or a file that the job does not read.
    """
    out = []
    for source in sources:
        is_name = os.path.exists(source) or not glob.has_magic(source)
        found = [source] if is_name else sorted(glob.glob(source, recursive=True))
        found = [f for one in found for f in (_inside(one) if os.path.isdir(one) else [one])]
        found = [f for f in found if os.path.isfile(f)]
        if not found:
            raise InvalidOptionError(f"source {source!r} names no file")
        out += [os.path.abspath(f) for f in found]
    for path in out:
        if not path.lower().endswith(SUFFIXES):
            suffix = os.path.splitext(path)[1]
            raise InvalidOptionError(
                f"{path} is none of {', '.join(SUFFIXES)}, which this job reads"
                f"{did_you_mean(suffix, SUFFIXES) if suffix else ''}"
            )
    return out


def _inside(folder: str) -> Iterator[str]:
    """Yield the files of a folder that the job reads; Spark's own notes (``_SUCCESS``) are none."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith(("_", ".")):
                yield os.path.join(where, name)


def family_of(paths: Sequence[str]) -> str:
    """Return what files hold: ``arrays``, or cells as ``tns``, ``matrices``, ``csv`` or ``parquet``.

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
    lower = path.lower()
    if lower.endswith(".npz"):
        return "matrices" if is_sparse_npz(path) else "arrays"
    for family, suffixes in _FAMILIES.items():
        if lower.endswith(suffixes):
            return family
    return "arrays"


def is_sparse_npz(path: str) -> bool:
    """Whether an ``.npz`` file holds one sparse array, as scipy.sparse and the package sparse write it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {os.path.splitext(name)[0] for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False  # whoever reads it says what is wrong
    return any(wanted <= members for wanted in _SPARSE_MEMBERS)
