"""Folders of classes: ``cats/1.jpg``, ``dogs/2.jpg``, also below ``train`` and ``val``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.datasets.sources.image_bytes import (
    column_format,
    image_value,
    suffix_format,
)
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    NotThisKind,
    Piece,
    Sample,
    SampleSource,
    check_options,
    file_pieces,
    flag_option,
)
from tensorlake_spark.datasets.types import ClassLabel, Image, Text
from tensorlake_spark.errors import InvalidOptionError

SPLITS = ("train", "val", "valid", "validation", "dev", "test")
"""Names of folders that are parts of a data set and no classes."""


@dataclass(frozen=True)
class ImageFolder(SampleSource):
    """Images whose class is the first folder on the way to them.

    Options: ``image_format`` (converts images of other formats), ``split`` (only this one), ``file_names`` (a column
    ``file``).
    """

    kind: ClassVar[str] = "imagefolder"
    names_classes: ClassVar[bool] = True

    split: str | None = None
    has_splits: bool = False
    image_format: str = "jpeg"
    convert: bool = False
    classes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def found(cls, folder: Folder) -> str:
        names = _images(folder)
        if not names:
            raise NotThisKind("no images")
        classes = _classes(names, _has_splits(names))
        return f"{len(names)} images" + (f" in {len(classes)} classes" if classes else "")

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> ImageFolder:
        check_options(cls.kind, options, ("image_format", "split", "file_names"))
        wanted, split = options.get("image_format"), options.get("split")
        cls.found(folder)
        names = _images(folder)
        has_splits = _has_splits(names)
        splits = _splits(names) if has_splits else []
        if split is not None and split not in splits:
            raise InvalidOptionError(
                f"{folder.uri} has no split {split!r}; it has {', '.join(splits) or 'none'}"
            )
        classes = _classes(names, has_splits)
        used = [name for name in names if split is None or name.startswith(f"{split}/")]
        formats = (suffix_format(name) or "" for name in used)
        image_format = column_format(formats, wanted, folder.uri)
        schema: dict[str, Any] = {"image": Image(image_format)}
        if classes:
            schema["label"] = ClassLabel(tuple(classes))
        if has_splits and split is None:
            schema["split"] = ClassLabel(tuple(splits))
        if flag_option("file_names", options.get("file_names")):
            schema["file"] = Text()
        return cls(
            folder, schema, split, has_splits, image_format, wanted is not None, tuple(classes)
        )

    @cached_property
    def image_kind(self) -> Image:
        """The type of the images."""
        return Image(self.image_format)

    def pieces(self) -> list[Piece]:
        names = _images(self.folder)
        if self.split is not None:
            names = [name for name in names if name.startswith(f"{self.split}/")]
        return file_pieces(self.folder, [(None, (name,)) for name in names], self.split or "images")

    def makers(self, piece: Piece) -> Iterator[Maker]:
        for name in piece.files:
            yield partial(self._sample, name)

    def _sample(self, name: str) -> Sample:
        data = self.folder.read(name)
        where = self.folder.at(name)
        sample: Sample = {"image": image_value(data, self.image_kind, where, self.convert)}
        parts = name.split("/")
        if "split" in self.schema:
            sample["split"] = parts[0]
        if self.classes:
            below = parts[1:] if self.has_splits else parts
            sample["label"] = below[0] if len(below) > 1 else None
        if "file" in self.schema:
            sample["file"] = name
        return sample


def _images(folder: Folder) -> list[str]:
    return [name for name in folder.sizes if suffix_format(name)]


def _splits(names: list[str]) -> list[str]:
    return sorted({name.partition("/")[0] for name in names}, key=SPLITS.index)


def _has_splits(names: list[str]) -> bool:
    """Whether all folders at the top are parts of a data set.

    Examples
    --------
    >>> _has_splits(["train/cat/1.jpg", "val/cat/2.jpg"]), _has_splits(["cat/1.jpg"])
    (True, False)
    """
    return bool(names) and all("/" in n and n.partition("/")[0] in SPLITS for n in names)


def _classes(names: list[str], has_splits: bool) -> list[str]:
    below = (name.split("/")[1:] if has_splits else name.split("/") for name in names)
    return sorted({parts[0] for parts in below if len(parts) > 1})
