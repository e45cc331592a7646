"""The kinds of sources, and which of them lies at a path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tensorlake_spark.datasets.sources.annotated.coco import Coco
from tensorlake_spark.datasets.sources.annotated.yolo import Yolo
from tensorlake_spark.datasets.sources.cifar import Cifar
from tensorlake_spark.datasets.sources.folder import folder_of
from tensorlake_spark.datasets.sources.image_folder import ImageFolder
from tensorlake_spark.datasets.sources.mnist import Mnist
from tensorlake_spark.datasets.sources.sample_source import NotThisKind, SampleSource
from tensorlake_spark.datasets.sources.tables.hf_parquet import HuggingFaceParquet
from tensorlake_spark.datasets.sources.tables.link_table import LinkTable
from tensorlake_spark.datasets.sources.tar_shards import TarShards
from tensorlake_spark.errors import InvalidOptionError, did_you_mean

KINDS: dict[str, type[SampleSource]] = {
    "webdataset": TarShards,
    "coco": Coco,
    "yolo": Yolo,
    "mnist": Mnist,
    "cifar": Cifar,
    "urls": LinkTable,
    "huggingface": HuggingFaceParquet,
    "imagefolder": ImageFolder,
}
"""The kinds by their names, in the order in which they are looked for: what is told apart most surely comes first."""


def source_of(
    path: str | os.PathLike[str],
    kind: str = "auto",
    *,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> SampleSource:
    """Return the samples that lie at a path.

    Parameters
    ----------
    path : str or path
        A folder, a file, a glob (``shards/*.tar``) or names with braces (``train-{000..146}.tar``), of this machine or
        of a store (``s3://``).
    kind : str
        One of `KINDS`, or ``"auto"``: the first of them that lies there.
    storage_options : mapping, optional
        Of the store.
    **options
        Of the kind; the class of each lists them.

    Returns
    -------
    SampleSource
        With ``schema``, ``pieces()`` and ``samples(piece)``.

    Raises
    ------
    InvalidOptionError
        If nothing of that kind lies there, or of no kind; the text says why not, for each.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat", "dog"):
    ...     (folder / name).mkdir()
    ...     Image.new("RGB", (4, 3)).save(folder / name / "1.png")
    >>> source = source_of(folder)
    >>> source.kind, found_at(folder)
    ('imagefolder', 'imagefolder: 2 images in 2 classes')
    >>> [sample["label"] for piece in source.pieces() for sample in source.samples(piece)]
    ['cat', 'dog']
    """
    check_kind(kind)
    folder = folder_of(path, storage_options)
    if kind != "auto":
        try:
            return KINDS[kind].of(folder, **options)
        except NotThisKind as error:
            raise InvalidOptionError(
                f"{folder.uri} has no samples of the kind {kind!r}: {error}"
            ) from error
    return KINDS[_kind_of(folder)[0]].of(folder, **options)


def check_kind(kind: str) -> None:
    """Raise InvalidOptionError if there is no such kind of source."""
    if not isinstance(kind, str) or kind not in ("auto", *KINDS):
        raise InvalidOptionError(
            f"kind={kind!r} is not a kind of source{did_you_mean(kind, KINDS)}; there are auto, {', '.join(KINDS)}"
        )


def found_at(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> str:
    """Return which kind of source lies at a path, and what of it.

    Raises
    ------
    InvalidOptionError
        If none does.
    """
    return ": ".join(_kind_of(folder_of(path, storage_options)))


def _kind_of(folder: Any) -> tuple[str, str]:
    reasons = []
    for name, kind in KINDS.items():
        try:
            return name, kind.found(folder)
        except NotThisKind as error:
            reasons.append(f"{name}: {error}")
    raise InvalidOptionError(
        f"{folder.uri} has samples of no kind that is known ({len(folder.sizes)} files). "
        + "; ".join(reasons)
    )
