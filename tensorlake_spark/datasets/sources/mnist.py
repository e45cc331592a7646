"""MNIST and what has its form: ``train-images-idx3-ubyte`` beside ``train-labels-idx1-ubyte``, also with ``.gz``."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, ClassVar

import numpy as np

from tensorlake_spark.datasets.sources.folder import Folder, check_end, check_size, damaged
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    NotThisKind,
    Piece,
    Sample,
    SampleSource,
    check_options,
    list_option,
)
from tensorlake_spark.datasets.types import ClassLabel, Image
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

_IMAGES = re.compile(r"images[-.]idx3-ubyte(\.gz)?$")
_SAMPLES = 16_384  # of a piece: a packed file is read from its beginning for each
_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


@dataclass(frozen=True)
class Mnist(SampleSource):
    """Grey images and their classes in pairs of idx files.

    Options: ``split`` (``"train"`` or ``"test"``), ``classes`` (names; the digits as a default), ``image_format``
    (``"png"``, or ``"raw"``: larger, and faster to write).
    """

    kind: ClassVar[str] = "mnist"

    pairs: tuple[tuple[str, str, str], ...] = ()  # split, images, labels

    @classmethod
    def found(cls, folder: Folder) -> str:
        pairs = _pairs(folder)
        return f"{len(pairs)} pair(s) of idx files: {', '.join(images for _, images, _ in pairs)}"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> Mnist:
        check_options(cls.kind, options, ("split", "classes", "image_format"))
        pairs, split = _pairs(folder), options.get("split")
        splits = list(dict.fromkeys(name for name, _, _ in pairs))
        if split is not None:
            if split not in splits:
                raise InvalidOptionError(
                    f"{folder.uri} has no split {split!r}; it has {', '.join(splits)}"
                )
            pairs = [pair for pair in pairs if pair[0] == split]
        classes: Any = list_option("classes", options.get("classes"))
        if classes is None:
            most = max(_most_label(folder, labels) for _, _, labels in pairs)
            classes = map(str, range(max(most + 1, 10)))
        schema: dict[str, Any] = {
            "image": Image(options.get("image_format", "png"), channels=1),
            "label": ClassLabel(tuple(classes)),
        }
        if split is None and len(splits) > 1:
            schema["split"] = ClassLabel(tuple(splits))
        return cls(folder, schema, tuple(pairs))

    def pieces(self) -> list[Piece]:
        made = []
        for _, images, labels in self.pairs:
            count, height, width = _lengths(self.folder, images, 3)
            (known,) = _lengths(self.folder, labels, 1)
            if known != count:  # the labels would be those of other images
                raise InvalidSampleError(
                    f"{self.folder.at(labels)} has {known} labels, and {images} beside it {count} images; they do not "
                    "belong together, or one of them is damaged"
                )
            if not count:  # no piece would find bytes behind the header
                idx_array(self.folder, images, 0, 0)
            mark = self.folder.mark((images, labels))
            for first in range(0, count, _SAMPLES):
                last = min(first + _SAMPLES, count)
                size = (last - first) * height * width
                made.append(
                    Piece(
                        f"{images}#{first}-{last}",
                        mark,
                        (images, labels),
                        first,
                        last,
                        (),
                        size,
                        last - first,
                    )
                )
        return made

    def makers(self, piece: Piece) -> Iterator[Maker]:
        images, labels = (
            idx_array(self.folder, name, piece.first, piece.last) for name in piece.files
        )
        split = next(pair[0] for pair in self.pairs if pair[1] == piece.files[0])
        at = self.folder.at(piece.files[0])
        for place, (image, label) in enumerate(zip(images, labels), piece.first):
            yield partial(self._sample, image, int(label), split, f"{at}, sample {place}")
        for name, there in zip(piece.files, (images, labels)):
            if len(there) < piece.last - piece.first:
                raise _cut_short(self.folder.at(name), piece.first + len(there))

    def _sample(self, image: np.ndarray, label: int, split: str, where: str) -> Sample:
        known = len(self.schema["label"].names)  # type: ignore[attr-defined]
        if label >= known:
            raise InvalidSampleError(f"{where}: label {label}, and there are {known} classes")
        sample: Sample = {"image": image, "label": label}
        return sample | ({"split": split} if "split" in self.schema else {})


def _pairs(folder: Folder) -> list[tuple[str, str, str]]:
    pairs = []
    for images in filter(_IMAGES.search, folder.sizes):
        if images.removesuffix(".gz") != images and images.removesuffix(".gz") in folder.sizes:
            continue  # it is the packed one of two, and its images would be there twice
        labels = re.sub(r"images([-.])idx3", r"labels\1idx1", images)
        other = labels.removesuffix(".gz") if labels.endswith(".gz") else f"{labels}.gz"
        there = next((name for name in (labels, other) if name in folder.sizes), None)
        if there is None:
            raise InvalidOptionError(f"{images} has no {labels} beside it")
        pairs.append((_split(images), images, there))
    if not pairs:
        raise NotThisKind("no file that ends with images-idx3-ubyte or images-idx3-ubyte.gz")
    return sorted(pairs, key=lambda pair: (pair[0] != "train", pair[1]))


def _split(images: str) -> str:
    """Return the split that the name of a file tells, or of its folder if that has a name of no split.

    Examples
    --------
    >>> _split("train/t10k-images-idx3-ubyte"), _split("train/images-idx3-ubyte")
    ('test', 'train')
    """
    base = images.rpartition("/")[2]
    is_told = any(name in base for name in ("train", "t10k", "test"))
    return "train" if "train" in (base if is_told else images) else "test"


def _lengths(folder: Folder, name: str, ndim: int) -> tuple[int, ...]:
    """Return the shape of an idx file of images or labels."""
    where = folder.at(name)
    with folder.open_unpacked(name) as stream:
        dtype, shape = idx_header(stream, where)
    if len(shape) != ndim or (ndim == 1 and dtype.kind == "f"):
        what = "labels are integers on 1 axis" if ndim == 1 else "images have 3 axes"
        raise InvalidSampleError(
            f"{where}: {what}, and this file has {dtype} of shape {shape}; is it another file of another name?"
        )
    return shape


def idx_header(stream: IO[bytes], where: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and shape of an idx file, and leave the stream at its first element.

    Raises
    ------
    InvalidSampleError
        If it is none, or breaks off.
    """
    try:
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _DTYPES or not 1 <= head[3] <= 8:
            raise InvalidSampleError(f"{where}: this is not an idx file, it begins with {head!r}")
        lengths = stream.read(4 * head[3])
    except (EOFError, OSError, zlib.error) as error:
        raise damaged(where, "the file cannot be unpacked", error) from error
    if len(lengths) < 4 * head[3]:
        raise InvalidSampleError(f"{where}: the file breaks off in its header")
    return np.dtype(_DTYPES[head[2]]), struct.unpack(f">{head[3]}I", lengths)


def idx_array(folder: Folder, name: str, first: int, last: int) -> np.ndarray:
    """Return the elements [first, last) along the first axis of an idx file; fewer where the file breaks off.

    Raises
    ------
    InvalidSampleError
        If the file cannot be unpacked, has fewer elements, or more bytes than its header says.
    """
    where = folder.at(name)
    with folder.open_unpacked(name) as stream:
        dtype, shape = idx_header(stream, where)
        each = dtype.itemsize
        for length in shape[1:]:
            each *= length
        check_size((last - first) * each, where)
        if last > shape[0]:
            raise InvalidSampleError(
                f"{where}: {shape[0]} elements, and {last} of the file beside it"
            )
        try:
            stream.seek(first * each, 1)
            data = stream.read((last - first) * each)
            more = len(stream.read(1 << 20)) if last == shape[0] else 0
        except (EOFError, OSError, zlib.error) as error:
            raise damaged(where, "the file cannot be unpacked", error) from error
        if last == shape[0]:
            check_end(stream, where)
    if more:  # its header, or what follows, is that of another file
        raise InvalidSampleError(
            f"{where}: the header says {shape} of {dtype.name}, which are {shape[0] * each} bytes, and "
            f"{'at least ' if more == 1 << 20 else ''}{shape[0] * each + more} follow it; get the file again, or give "
            "the one that belongs to this header"
        )
    count = len(data) // each if each else last - first
    return np.frombuffer(data, dtype, count * (each // dtype.itemsize)).reshape(count, *shape[1:])


def _cut_short(where: str, count: int) -> InvalidSampleError:
    return InvalidSampleError(
        f"{where}: the file breaks off after {count} elements, and its header says that it has more"
    )


def _most_label(folder: Folder, name: str) -> int:
    shape = _lengths(folder, name, 1)
    labels = idx_array(folder, name, 0, shape[0])
    if len(labels) < shape[0]:
        raise _cut_short(folder.at(name), len(labels))
    return int(labels.max()) if labels.size else 0
