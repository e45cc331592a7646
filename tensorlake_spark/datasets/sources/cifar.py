"""CIFAR-10 and CIFAR-100 in their binary version: records of one or two labels and 3,072 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    NotThisKind,
    Piece,
    Sample,
    SampleSource,
    check_options,
)
from tensorlake_spark.datasets.types import ClassLabel, Image
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

_PIXELS = 3 * 32 * 32
_SAMPLES = 4096  # of a piece
_TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_PICKLED = ("batches.meta", "data_batch_1", "data_batch_2", "test_batch", "meta", "train", "test")


@dataclass(frozen=True)
class Cifar(SampleSource):
    """Colour images of 32 x 32 and their classes; of CIFAR-100 fine and coarse ones.

    Options: ``split`` (``"train"`` or ``"test"``), ``image_format`` (``"png"``, or ``"raw"``: larger, and faster to
    write).
    """

    kind: ClassVar[str] = "cifar"

    batches: tuple[tuple[str, str], ...] = ()  # split, file
    labels: tuple[str, ...] = ()

    @classmethod
    def found(cls, folder: Folder) -> str:
        labels, batches = _batches(folder)
        return f"{len(batches)} binary file(s) of CIFAR-{10 if len(labels) == 1 else 100}"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> Cifar:
        check_options(cls.kind, options, ("split", "image_format"))
        labels, batches = _batches(folder)
        splits, split = list(dict.fromkeys(name for name, _ in batches)), options.get("split")
        if split is not None:
            if split not in splits:
                raise InvalidOptionError(
                    f"{folder.uri} has no split {split!r}; it has {', '.join(splits)}"
                )
            batches = [batch for batch in batches if batch[0] == split]
        schema: dict[str, Any] = {"image": Image(options.get("image_format", "png"), channels=3)}
        for label, count in zip(labels, (10,) if len(labels) == 1 else (20, 100)):
            schema[label] = ClassLabel(tuple(_names(folder, label, count)))
        if split is None and len(splits) > 1:
            schema["split"] = ClassLabel(tuple(splits))
        return cls(folder, schema, tuple(batches), labels)

    def pieces(self) -> list[Piece]:
        made, record = [], len(self.labels) + _PIXELS
        for _, name in self.batches:
            count, rest = divmod(self.folder.sizes[name], record)
            mark = self.folder.mark((name,))
            for first in range(0, count + bool(rest), _SAMPLES):
                last = min(first + _SAMPLES, count + bool(rest))
                size = (last - first) * record
                made.append(
                    Piece(
                        f"{name}#{first}-{last}", mark, (name,), first, last, (), size, last - first
                    )
                )
        return made

    def makers(self, piece: Piece) -> Iterator[Maker]:
        (name,), record = piece.files, len(self.labels) + _PIXELS
        split = next(split for split, batch in self.batches if batch == name)
        with self.folder.open(name) as stream:
            stream.seek(piece.first * record)
            for place in range(piece.first, piece.last):
                where = f"{self.folder.at(name)}, record {place}"
                yield partial(self._sample, stream.read(record), split, where)

    def _sample(self, record: bytes, split: str, where: str) -> Sample:
        if len(record) < len(self.labels) + _PIXELS:
            raise InvalidSampleError(
                f"{where}: the file breaks off after {len(record)} bytes of it"
            )
        sample: Sample = {}
        for label, number in zip(self.labels, record):
            known = len(self.schema[label].names)  # type: ignore[attr-defined]
            if number >= known:
                raise InvalidSampleError(
                    f"{where}: {label} {number}, and there are {known} classes"
                )
            sample[label] = number
        planes = np.frombuffer(record, np.uint8, offset=len(self.labels)).reshape(3, 32, 32)
        sample["image"] = np.ascontiguousarray(planes.transpose(1, 2, 0))
        return sample | ({"split": split} if "split" in self.schema else {})


def _batches(folder: Folder) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Return the columns of labels, and the files with their splits."""
    ten = [n for n in folder.sizes if _base(n).startswith("data_batch_") and n.endswith(".bin")]
    ten_test = [n for n in folder.sizes if _base(n) == "test_batch.bin"]
    if ten or ten_test:
        return ("label",), [("train", n) for n in ten] + [("test", n) for n in ten_test]
    hundred = [n for n in folder.sizes if _base(n) in ("train.bin", "test.bin")]
    if hundred:
        pairs = [(_base(n).removesuffix(".bin"), n) for n in hundred]
        return ("coarse_label", "label"), sorted(pairs, reverse=True)
    pickled = [
        name for name in folder.sizes if _base(name) in _PICKLED and _is_pickle(folder, name)
    ]
    if pickled:
        raise InvalidOptionError(
            f"{folder.at(pickled[0])} is a Python pickle, and unpickling runs what somebody wrote: it is not "
            "read; get the binary version of CIFAR (cifar-10-binary.tar.gz, cifar-100-binary.tar.gz)"
        )
    raise NotThisKind("no data_batch_1.bin, test_batch.bin, train.bin or test.bin")


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _is_pickle(folder: Folder, name: str) -> bool:
    with folder.open(name) as stream:
        return stream.read(1) == b"\x80"


def _names(folder: Folder, label: str, count: int) -> list[str]:
    files = {"coarse_label": "coarse_label_names.txt", "label": "fine_label_names.txt"}
    wanted = "batches.meta.txt" if count == 10 else files[label]
    for name in folder.sizes:
        if _base(name) == wanted:
            lines = folder.read(name).decode("utf-8", "replace").split()
            if len(lines) != count:
                raise InvalidOptionError(f"{folder.at(name)} has {len(lines)} names, not {count}")
            return lines
    return [*_TEN] if count == 10 else [str(number) for number in range(count)]
