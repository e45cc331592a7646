"""COCO annotations: images beside JSON files with boxes, regions, keypoints and captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from tensorlake_spark.datasets.sources.annotated.coco_survey import Survey, survey, whole
from tensorlake_spark.datasets.sources.annotated.json_stream import items_of
from tensorlake_spark.datasets.sources.annotated.region_masks import mask_of, polygons_of
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
    list_option,
)
from tensorlake_spark.datasets.types import (
    BinaryMask,
    BoundingBox,
    ClassLabel,
    Image,
    Keypoints,
    Polygon,
    Text,
    as_type,
)
from tensorlake_spark.datasets.types import Sequence as SequenceOf
from tensorlake_spark.datasets.types.base import check_one_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

_IMAGES = 4096  # of a piece: each reads the annotations from front to back once
_MASK_BYTES = 1 << 31  # of all masks of an image
_LOOK = 32  # files that may be annotations
_MOST = 3e38  # a number of 32 bits
_BOXES = BoundingBox("xywh")
_REGIONS = ("masks", "polygons", "none")


@dataclass(frozen=True)
class Coco(SampleSource):
    """Images, and for each the list of what is in it.

    Columns: ``image``, ``image_id``, ``file_name``; if they are there ``boxes`` (x, y, width, height), ``label``,
    ``crowd``, ``masks``, ``keypoints`` (x, y, visibility), ``captions``. Options: ``annotations`` (names of JSON files
    of the same images; else there has to be one), ``images`` (their folder), ``regions`` (``"masks"``, ``"polygons"``
    for lists of polygons, of which run lengths are none, or ``"none"``), ``image_format``.
    """

    kind: ClassVar[str] = "coco"

    annotations: tuple[str, ...] = ()
    images: str = ""
    categories: tuple[tuple[int, int], ...] = ()  # id in the file, number of the class
    joints: int = 0
    image_format: str = "jpeg"
    convert: bool = False

    @classmethod
    def found(cls, folder: Folder) -> str:
        return f"COCO annotations in {', '.join(_candidates(folder))}"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> Coco:
        check_options(cls.kind, options, ("annotations", "images", "regions", "image_format"))
        names = _annotations(folder, options.get("annotations"))
        if folder.named and folder.uri.rpartition("/")[2] == "annotations":
            folder, names = _above(folder), [f"annotations/{name}" for name in names]
        elif folder.named:
            folder = Folder(folder.uri, folder.options)
        regions = options.get("regions", "masks")
        check_one_of(regions, _REGIONS, "regions")
        seen = survey(folder, names)
        images = _images(folder, names[0], seen, options.get("images"))
        wanted = options.get("image_format")
        formats = (suffix_format(name) or "" for _, name, _, _ in seen.images)
        image_format = column_format(formats, wanted, folder.at(names[0]))
        schema = _schema(seen, regions, image_format, folder.at(names[0]))
        numbers = tuple((key, n) for n, (key, _) in enumerate(seen.categories))
        joints = len(seen.joints)
        made = cls(
            folder, schema, tuple(names), images, numbers, joints, image_format, wanted is not None
        )
        made.__dict__["survey"] = seen
        return made

    @cached_property
    def survey(self) -> Survey:
        """What the annotations say of all images."""
        return survey(self.folder, self.annotations)

    @cached_property
    def image_kind(self) -> Image:
        """The type of the images."""
        return Image(self.image_format)

    def pieces(self) -> list[Piece]:
        records = self.survey.images
        made = []
        sizes = self.folder.sizes
        for first in range(0, len(records), _IMAGES):
            part = tuple(records[first : first + _IMAGES])
            last = first + len(part)
            names = (f"{self.images}{record[1]}" for record in part)
            there = [name for name in names if name in sizes]
            mark = self.folder.mark([*self.annotations, *there])
            made.append(
                Piece(
                    f"{self.annotations[0]}#{first}-{last}",
                    mark,
                    self.annotations,
                    first,
                    last,
                    part,
                    nbytes=sum(sizes[name] for name in there),
                    rows=len(part),
                )
            )
        return made

    def makers(self, piece: Piece) -> Iterator[Maker]:
        of_image: dict[Any, list[dict[str, Any]]] = {record[0]: [] for record in piece.items}
        for name in piece.files:
            with self.folder.open(name) as stream:
                for key, item in items_of(stream, self.folder.at(name)):
                    if key == "annotations" and isinstance(item, dict):
                        of_image.get(whole(item.get("image_id")), []).append(item)
        for record in piece.items:
            yield partial(self._sample, record, of_image.pop(record[0], []))

    def _sample(self, record: tuple[Any, str, Any, Any], found: list[dict[str, Any]]) -> Sample:
        key, name, height, width = record
        where = f"{self.folder.at(self.annotations[0])}, image {key!r:.40}"
        inner = self.folder.check_inside(f"{self.images}{name}", where)
        data = self.folder.read(inner)
        value = image_value(data, self.image_kind, self.folder.at(inner), self.convert)
        sample: Sample = {"image": value, "image_id": key, "file_name": name}
        objects = [one for one in found if "category_id" in one]
        try:
            self._add(sample, objects, height, width)
        except InvalidSampleError as error:
            raise InvalidSampleError(f"{where}: {error}") from error
        if "captions" in self.schema:
            captions = (one.get("caption") for one in found)
            sample["captions"] = [str(one) for one in captions if one is not None]
        return sample

    def _add(self, sample: Sample, objects: list[dict[str, Any]], height: Any, width: Any) -> None:
        if "label" in self.schema:
            numbers = dict(self.categories)
            sample["label"] = [_number(numbers, one["category_id"]) for one in objects]
            sample["crowd"] = [bool(one.get("iscrowd", 0)) for one in objects]
        if "boxes" in self.schema:
            sample["boxes"] = rows = _table([one.get("bbox") for one in objects], 4, "bbox")
            bad, expected, _ = _BOXES.wrong(rows)
            if bad.any():
                raise InvalidSampleError(f"bbox {rows[bad][0].tolist()} where {expected} belong")
        if "keypoints" in self.schema:
            none = [0] * (3 * self.joints)
            rows = _table([one.get("keypoints") or none for one in objects], len(none), "keypoints")
            sample["keypoints"] = rows.reshape(-1, self.joints, 3)
        if "polygons" in self.schema:
            regions = (one.get("segmentation") for one in objects)
            sample["polygons"] = [
                polygons_of(one) if isinstance(one, list) else [] for one in regions
            ]
        if "masks" in self.schema:
            if not (
                isinstance(height, int) and isinstance(width, int) and height > 0 and width > 0
            ):
                raise InvalidSampleError(
                    f"height {height!r:.40} and width {width!r:.40} are not lengths"
                )
            if height * width * max(len(objects), 1) > _MASK_BYTES:
                raise InvalidSampleError(
                    f"{len(objects)} masks of {height} x {width}, more than {_MASK_BYTES} bytes; leave them out by "
                    "regions='none', or take regions='polygons'"
                )
            sample["masks"] = [
                mask_of(one.get("segmentation") or [], height, width) for one in objects
            ]


def _number(numbers: Mapping[Any, int], key: Any) -> int:
    number = numbers.get(whole(key))
    if number is None:
        raise InvalidSampleError(f"category {key!r:.40} is not among the categories of the file")
    return number


def _table(rows: Sequence[Any], length: int, what: str) -> np.ndarray:
    for row in rows:
        if not (
            isinstance(row, list)
            and len(row) == length
            and all(type(one) in (int, float) and abs(one) <= _MOST for one in row if one == one)
        ):
            raise InvalidSampleError(f"{what} is a list of {length} numbers, not {row!r:.80}")
    return np.asarray(rows, np.float32).reshape(len(rows), length)


def _schema(seen: Survey, regions: str, image_format: str, where: str) -> dict[str, Any]:
    texts = {type(key) for key, _, _, _ in seen.images} == {str}
    schema: dict[str, Any] = {
        "image": Image(image_format),
        "image_id": Text() if texts else as_type("int64"),
        "file_name": Text(),
    }
    if "category_id" in seen.fields:
        if not seen.categories:
            raise InvalidOptionError(
                f"{where} has no categories, and annotations have a category_id"
            )
        names = [name for _, name in seen.categories]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidOptionError(
                f"{where}: two categories have the name {twice!r:.60}; rename one of them"
            )
        schema["label"] = SequenceOf(ClassLabel(tuple(names)))
        schema["crowd"] = SequenceOf(as_type(bool))
    if "bbox" in seen.fields:
        schema["boxes"] = BoundingBox("xywh")
    if "segmentation" in seen.fields and regions == "masks":
        schema["masks"] = SequenceOf(BinaryMask())
    if "segmentation" in seen.fields and regions == "polygons":
        schema["polygons"] = SequenceOf(Polygon())
    if "keypoints" in seen.fields and seen.joints:
        schema["keypoints"] = Keypoints(seen.joints)
    if "caption" in seen.fields:
        schema["captions"] = SequenceOf(Text())
    return schema


def _annotations(folder: Folder, said: Any) -> list[str]:
    """Return the names of the JSON files."""
    if said is not None:
        names = [said] if isinstance(said, str) else list_option("annotations", said) or []
        if not names:
            raise InvalidOptionError("annotations=[] names no file; leave it out, or name one")
        names = [name.removeprefix(f"{folder.uri}/").removeprefix("./") for name in names]
        for name in names:
            if name not in folder.sizes:
                raise InvalidOptionError(
                    f"annotations={name!r:.300}: there is no such file in {folder.uri}; name the file as seen from "
                    "the source"
                )
        return names
    names = _candidates(folder)
    if len(names) > 1:
        raise InvalidOptionError(
            f"{len(names)} files of annotations; say which by annotations=, several only of the same images: "
            f"{', '.join(names[:8])}"
        )
    return names


def _candidates(folder: Folder) -> list[str]:
    names = [name for name in folder.sizes if name.endswith(".json")]
    largest = sorted(names, key=folder.sizes.__getitem__)[
        -_LOOK:
    ]  # each image may have one beside it
    found = sorted(name for name in largest if _is_coco(folder, name))
    if not found:
        raise NotThisKind("no .json with images and annotations")
    return found


def _is_coco(folder: Folder, name: str) -> bool:
    """Whether a JSON file begins as COCO's do: with one of its lists."""
    with folder.open(name) as stream:
        begin = stream.read(1 << 16)
    known = (b'"images"', b'"annotations"', b'"categories"', b'"licenses"', b'"info"')
    return begin.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and any(
        one in begin for one in known
    )


def _said_images(folder: Folder, said: Any) -> str:
    """Return the folder that a user gave for the images, as `_images` does."""
    if not isinstance(said, str):
        raise InvalidOptionError(f"images={said!r:.100} is not the name of a folder")
    name = f"{said.rstrip('/') or said or '.'}/".removeprefix(f"{folder.uri}/") or "."
    try:
        inner = folder.check_inside(name, "images=").strip("/")
    except InvalidSampleError as error:
        raise InvalidOptionError(
            f"images={said!r:.300} lies outside of {folder.uri}, and nothing outside of it is read; name a folder in "
            "it, or make the folder around both the source"
        ) from error
    start = "" if inner in ("", ".") else f"{inner}/"
    if not any(one.startswith(start) and suffix_format(one) for one in folder.sizes):
        raise InvalidOptionError(
            f"images={said!r:.300}: there is no image in {folder.at(start) if start else folder.uri}; name the folder "
            "as seen from the source"
        )
    return start


def _above(folder: Folder) -> Folder:
    return Folder(folder.uri.rpartition("/")[0] or "/", folder.options)


def _images(folder: Folder, annotations: str, seen: Survey, said: str | None) -> str:
    """Return the folder of the images, with a slash at its end unless it is the source's own."""
    if said is not None:
        return _said_images(folder, said)
    place, _, base = annotations.rpartition("/")
    split = base.removesuffix(".json").rpartition("_")[2]
    here = [place, "", "images", split, f"images/{split}", f"{place}/images".lstrip("/")]
    first = seen.images[0][1]
    tried = dict.fromkeys(f"{one}/" if one else "" for one in here)
    for one in tried:
        if folder.has(folder.check_inside(f"{one}{first}", folder.at(annotations))):
            return one
    for one in tried:  # the first image is not there, others may be
        if any(f"{one}{name}" in folder.sizes for _, name, _, _ in seen.images):
            return one
    raise InvalidOptionError(
        f"{folder.at(annotations)} names the image {first!r:.200}, which is in none of "
        f"{', '.join(repr(one or '.') for one in tried)} of {folder.uri}; name its folder by images="
    )
