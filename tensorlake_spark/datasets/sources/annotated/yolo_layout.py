"""Where a YOLO data set has its images and labels: by its ``data.yaml``, or by a file with the classes."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any

from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.datasets.sources.image_bytes import suffix_format
from tensorlake_spark.datasets.sources.sample_source import NotThisKind
from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError

_SPLITS = ("train", "val", "test")
_CLASSES = ("classes.txt", "obj.names", "classes.names", "_darknet.labels")
_MOST_YAML = 1 << 20  # bytes

Entry = tuple[str, str, str | None]
"""Split, image, and its file of labels if there is one."""


@dataclass(frozen=True)
class Layout:
    """Classes, and the images with their labels."""

    classes: tuple[str, ...]
    images: tuple[Entry, ...]


def layout_of(folder: Folder) -> Layout:
    """Return what a folder has, or what a named ``data.yaml`` or file of classes belongs to.

    Raises
    ------
    InvalidOptionError
        If it is no YOLO data set, or its ``data.yaml`` makes no sense.
    """
    whole = Folder(folder.uri, folder.options) if folder.named else folder
    yamls = [n for n in folder.sizes if "/" not in n and n.endswith((".yaml", ".yml"))]
    for name in yamls:
        found = _yaml(whole, name)
        if "names" in found:
            return _of_yaml(whole, name, found)
    # Of files that are named one has to say that they are YOLO's, and not what lies beside them.
    for name in folder.sizes:
        if name.rpartition("/")[2] in _CLASSES:
            images = _images(whole, "", "images")
            if any(label for _, _, label in images):
                return Layout(_listed_classes(whole, name), tuple(images))
    said = "; name the folder, and not some files of it" if folder.named else ""
    raise NotThisKind(f"no data.yaml with names, and no {_CLASSES[0]} with labels{said}")


def lines_of(folder: Folder, name: str) -> list[str]:
    """Return the lines of a text file, without the mark that some editors put before the first one."""
    return folder.read(name).decode("utf-8-sig", "replace").splitlines()


def _listed_classes(folder: Folder, name: str) -> tuple[str, ...]:
    """Return the classes of a file that has one in each line; their numbers are those of the lines."""
    lines = [line.strip() for line in lines_of(folder, name)]
    while lines and not lines[-1]:
        lines.pop()
    where = folder.at(name)
    if "" in lines or not lines:
        what = f"line {lines.index('') + 1} is blank" if lines else "it is empty"
        raise InvalidOptionError(f"{where}: {what}; each line names a class, from class 0 on")
    _check_names(lines, where)
    return tuple(lines)


def _of_yaml(folder: Folder, name: str, found: dict[str, Any]) -> Layout:
    where, base = folder.at(name), ""
    root = found.get("path")
    if isinstance(root, str) and _inner("", root) is not None:
        base = _inner("", root) or ""
        if base and not any(one.startswith(f"{base}/") for one in folder.sizes):
            base = ""  # a place of the machine that the file was written on
    images: list[Entry] = []
    for split in _SPLITS:
        said = found.get(split, found.get("valid") if split == "val" else None)
        for place in said if isinstance(said, list) else [said] if said else []:
            images += _images(folder, _place(folder, base, str(place), where), split)
    if not images:
        places = {split: found[split] for split in (*_SPLITS, "valid") if split in found}
        raise InvalidOptionError(
            f"{where} names no folder with images: "
            + (
                f"there are none in {places!r:.200}"
                if places
                else f"it has {', '.join(found)}, and no train"
            )
        )
    classes = _classes(found, where)
    if not any(label for _, _, label in images):
        tried = _label_names(images[0][1])
        raise InvalidOptionError(
            f"{where}: none of its {len(images)} image(s) has a file of labels; that of {images[0][1]!r:.200} would be "
            f"{' or '.join(repr(one) for one in tried)}"
        )
    return Layout(classes, tuple(images))


def _classes(found: dict[str, Any], where: str) -> tuple[str, ...]:
    names = found["names"]
    if isinstance(names, dict):
        if sorted(names) != list(range(len(names))):
            raise InvalidOptionError(
                f"{where}: the classes are not numbered from 0 to {len(names) - 1}"
            )
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list) or not names:
        raise InvalidOptionError(f"{where}: names is a list of classes, not {names!r:.100}")
    if found.get("nc") not in (None, len(names)):
        raise InvalidOptionError(
            f"{where}: nc is {found['nc']!r:.40}, and there are {len(names)} names"
        )
    _check_names(names, where)
    return tuple(str(one) for one in names)


def _check_names(names: list[Any], where: str) -> None:
    """Raise InvalidOptionError for a class without a name, or one of two; YAML takes yes and no for bools."""
    wrong = [
        one
        for one in names
        if not isinstance(one, (str, int, float)) or one is True or one is False
    ]
    twice = [one for one in names if names.count(one) > 1]
    if wrong or twice:
        what = f"{wrong[0]!r:.60}, which is no name" if wrong else f"{twice[0]!r:.60} twice"
        quotes = ", in quotes" if wrong else ""
        raise InvalidOptionError(
            f"{where}: names has {what}; give each class a name of its own{quotes}"
        )


def _place(folder: Folder, base: str, said: str, where: str) -> str:
    """Return a folder, or a list of images, that the YAML names, as seen from the folder of the source."""
    inner = _inner(base, said)
    if inner is None:  # Roboflow writes ../train/images for what is beside the file
        stripped = said.replace("\\", "/")
        while stripped.startswith("../"):
            stripped = stripped[3:]
        inner = _inner(base, stripped)
        if inner is None or not any(one.startswith(f"{inner}/") for one in folder.sizes):
            raise InvalidOptionError(
                f"{where} names {said!r:.200}, which is not inside of {folder.uri}; nothing outside of it is read: "
                "copy it there, or write the name as seen from that folder"
            )
    return inner


def _inner(base: str, said: str) -> str | None:
    """Return a path inside of the source, None if it leads out of it.

    Examples
    --------
    >>> _inner("data", "./images/"), _inner("data", "../x"), _inner("data", "../../x"), _inner("", "/etc")
    ('data/images', 'x', None, None)
    """
    said = said.replace("\\", "/")
    joined = posixpath.normpath(posixpath.join(base, said))
    if joined.startswith(("/", "../")) or joined == ".." or ":" in joined.partition("/")[0]:
        return None
    return "" if joined == "." else joined


def _images(folder: Folder, place: str, split: str) -> list[Entry]:
    if place.endswith(".txt"):
        return _listed(folder, place, split)
    start = f"{place}/" if place else ""
    names = [one for one in folder.sizes if one.startswith(start) and suffix_format(one)]
    return [(split, name, _label(folder, name)) for name in names]


def _listed(folder: Folder, place: str, split: str) -> list[Entry]:
    """Return the images that a text file lists."""
    if place not in folder.sizes:
        raise InvalidOptionError(f"{folder.at(place)}: there is no such list of images")
    found = []
    base = posixpath.dirname(place)
    for line in lines_of(folder, place):
        name = line.strip()
        if name:
            inner = [_inner(one, name) for one in dict.fromkeys((base, ""))]
            there = next((one for one in inner if one in folder.sizes), None)
            if there is None:
                raise InvalidOptionError(
                    f"{folder.at(place)} lists {name!r:.200}, which is not inside of {folder.uri}"
                )
            found.append((split, there, _label(folder, there)))
    return found


def _label(folder: Folder, image: str) -> str | None:
    """Return the file with the labels of an image."""
    return next((name for name in _label_names(image) if name in folder.sizes), None)


def _label_names(image: str) -> list[str]:
    """Return where the labels of an image may be: in ``labels`` where it is in ``images``, or beside it.

    Examples
    --------
    >>> _label_names("images/train/1.jpg"), _label_names("x/1.png")
    (['labels/train/1.txt', 'images/train/1.txt'], ['x/1.txt'])
    """
    stem = image.rpartition(".")[0]
    before, mark, after = f"/{stem}".rpartition("/images/")
    return [*([f"{before}/labels/{after}.txt"[1:]] if mark else []), f"{stem}.txt"]


def _yaml(folder: Folder, name: str) -> dict[str, Any]:
    where = folder.at(name)
    if folder.sizes[name] > _MOST_YAML:
        raise InvalidOptionError(f"{where} has more than {_MOST_YAML} bytes")
    try:
        import yaml
    except ImportError as error:
        raise MissingDependencyError(
            f"{where}: YAML needs PyYAML: pip install 'tensorlake-spark[spark]', or write the names of the classes "
            "into classes.txt"
        ) from error
    text = folder.read(name).decode("utf-8", "replace")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise InvalidOptionError(
                f"{where} has aliases (*name), which are not read; write the values out"
            )
        found = yaml.safe_load(text)
    except InvalidOptionError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InvalidOptionError(f"{where} is not YAML: {said:.300}") from error
    return found if isinstance(found, dict) else {}
