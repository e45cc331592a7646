"""What COCO annotations say of all images: read once, before the schema is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorlake_spark.datasets.sources.annotated.json_stream import items_of
from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.errors import InvalidOptionError

Record = tuple[Any, str, Any, Any]
"""Id, name of the file, height, width."""

_FIELDS = ("bbox", "segmentation", "keypoints", "caption", "category_id")


@dataclass(frozen=True)
class Survey:
    """What there is.

    Attributes
    ----------
    images : tuple of Record
        In the order of the first file.
    categories : tuple of (int, str)
        Ids and names, in the order of the files; the number of a class is its place here.
    fields : frozenset of str
        What annotations have.
    joints : tuple of str
        Names of keypoints.
    """

    images: tuple[Record, ...]
    categories: tuple[tuple[int, str], ...]
    fields: frozenset[str]
    joints: tuple[str, ...]


def survey(folder: Folder, names: Sequence[str]) -> Survey:
    """Return what files of annotations of the same images say of them.

    Raises
    ------
    InvalidOptionError
        If there are no images, two of one id, a file whose annotations are all of no image, files of different
        images, or categories that disagree.
    InvalidSampleError
        If a file is no JSON.
    """
    images: dict[Any, Record] = {}
    categories: dict[Any, str] = {}
    fields, joints = set[str](), tuple[str, ...]()
    for number, name in enumerate(names):
        where = folder.at(name)
        of_images: dict[Any, None] = {}
        with folder.open(name) as stream:
            for key, item in items_of(stream, where):
                if key not in ("images", "annotations", "categories"):
                    continue
                if not isinstance(item, dict):
                    raise InvalidOptionError(
                        f"{where}: {key} has {item!r:.60}, which is not an object"
                    )
                if key == "annotations":
                    if "image_id" not in item:  # as of an object in the place of a list
                        raise InvalidOptionError(
                            f"{where}: an annotation without image_id: {item!r:.100}"
                        )
                    fields.update(one for one in _FIELDS if one in item)
                    of_images[whole(item["image_id"])] = None
                elif key == "images" and number:
                    _check_known(images, _record(item, where), where, folder.at(names[0]))
                elif key == "images":
                    record = _record(item, where)
                    if images.setdefault(record[0], record) is not record:
                        raise InvalidOptionError(
                            f"{where}: two images have the id {record[0]!r:.60}"
                        )
                elif key == "categories":
                    _add(categories, item, where)
                    joints = _joints(joints, item, where)
        if images and of_images and images.keys().isdisjoint(of_images):
            raise InvalidOptionError(
                f"{where}: no annotation is of an image: the first has the image_id {next(iter(of_images))!r:.60}, and "
                f"the first image the id {next(iter(images))!r:.60}; an image_id has to be such an id, a number or "
                "a text as it is"
            )
    if not images:
        raise InvalidOptionError(f"{folder.at(names[0])} has no images")
    return Survey(tuple(images.values()), tuple(categories.items()), frozenset(fields), joints)


def whole(key: Any) -> int | str | None:
    """Return an id, None if it is none; JSON has one number for 7 and 7.0, which pandas makes of ids.

    Examples
    --------
    >>> whole(7), whole(7.0), whole("x"), whole(7.5), whole([7])
    (7, 7, 'x', None, None)
    """
    if isinstance(key, float) and key.is_integer():
        return int(key)
    return key if isinstance(key, (int, str)) else None


def _record(item: dict[str, Any], where: str) -> Record:
    key, name = whole(item.get("id")), item.get("file_name")
    if key is None or not isinstance(name, str):
        raise InvalidOptionError(f"{where}: an image without id or file_name: {item!r:.100}")
    return key, name, item.get("height"), item.get("width")


def _check_known(images: dict[Any, Record], record: Record, where: str, first: str) -> None:
    """Raise InvalidOptionError for an image of a further file that the first has not, or has by another name.

    It would be left out, or get the annotations of another one.
    """
    known = images.get(record[0])
    if known is None or known[1] != record[1]:
        what = "is not" if known is None else f"is {known[1]!r:.100}"
        raise InvalidOptionError(
            f"{where}: image {record[0]!r:.60} is {record[1]!r:.100}, and {what} in {first}; several files of "
            "annotations have the same images, so ingest this one by a run of its own"
        )


def _add(categories: dict[Any, str], item: dict[str, Any], where: str) -> None:
    key, name = whole(item.get("id")), item.get("name")
    if key is None or not isinstance(name, str):
        raise InvalidOptionError(f"{where}: a category without id or name: {item!r:.100}")
    if categories.setdefault(key, name) != name:
        raise InvalidOptionError(
            f"{where}: category {key!r:.60} is {name!r:.60} and {categories[key]!r:.60}"
        )


def _joints(known: tuple[str, ...], item: dict[str, Any], where: str) -> tuple[str, ...]:
    names = item.get("keypoints")
    if not isinstance(names, list) or not names:
        return known
    found = tuple(map(str, names))
    if known and known != found:
        raise InvalidOptionError(
            f"{where}: categories have different keypoints, {known!r:.100} and {found!r:.100}; one column holds one "
            "kind"
        )
    return found
