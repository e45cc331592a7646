"""WebDataset: tar files whose members of one key are one sample, ``000.jpg`` and ``000.cls``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from tensorlake_spark.datasets.sources.array_bytes import array_of
from tensorlake_spark.datasets.sources.column_names import column_names
from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.datasets.sources.image_bytes import (
    SUFFIXES,
    column_format,
    format_of,
    image_value,
)
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    NotThisKind,
    Piece,
    Sample,
    SampleSource,
    check_options,
    list_option,
    mapping_option,
)
from tensorlake_spark.datasets.sources.tar_members import members
from tensorlake_spark.datasets.types import (
    Audio,
    ClassLabel,
    Image,
    Json,
    Tensor,
    Text,
    Type,
    Video,
    as_type,
)
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError, TensorLakeError

TARS = (".tar", ".tar.gz", ".tgz")
_LOOK = 64  # samples that the schema is taken from
_ALIKE = {"jpeg": "jpg", "text": "txt"}
_INTEGERS = ("cls", "cls2", "index", "inx", "id", "count")
_TEXTS = ("txt", "transcript", "caption", "md", "html", "xml", "csv", "url")
_PICKLES = ("pyd", "pickle", "pkl", "pth", "pt", "ten", "tb", "npz", "mp", "msg", "cbor")
_SOUNDS, _FILMS = ("flac", "wav", "mp3"), ("mp4", "mkv", "avi", "webm", "mov")


@dataclass(frozen=True)
class TarShards(SampleSource):
    """Samples in tar files, each next to each: members whose names are alike up to the first dot.

    Options: ``schema`` (extension to type; else by the first samples), ``columns`` (extension to name), ``classes``
    (names for the numbers of ``cls``), ``image_format`` (converts images of other formats).
    """

    kind: ClassVar[str] = "webdataset"

    shards: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()  # extension, column
    image_format: str | None = None

    @classmethod
    def found(cls, folder: Folder) -> str:
        return f"{len(_shards(folder))} tar file(s)"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> TarShards:
        check_options(cls.kind, options, ("schema", "columns", "classes", "image_format"))
        shards, wanted = _shards(folder), options.get("image_format")
        given: Mapping[str, Any] | None = mapping_option("schema", options.get("schema"))
        if given is not None:
            types = {_ALIKE.get(name, name): as_type(kind) for name, kind in given.items()}
        else:
            types = _types(folder, shards, wanted)
            classes = list_option("classes", options.get("classes"))
            if classes is not None:
                if "cls" not in types:
                    raise InvalidOptionError(
                        f"classes are given, and {folder.at(shards[0])} has no .cls"
                    )
                types["cls"] = ClassLabel(tuple(classes))
        said = {
            _ALIKE.get(name, name): to
            for name, to in (mapping_option("columns", options.get("columns")) or {}).items()
        }
        unknown = sorted(said.keys() - types.keys())
        if unknown:
            raise InvalidOptionError(
                f"columns names {unknown[0]!r}, and the samples have {', '.join(types)}"
            )
        columns = column_names(["__key__", *types], {"__key__": "key", **said}, folder.uri)
        schema = {columns[name]: kind for name, kind in {"__key__": Text(), **types}.items()}
        return cls(folder, schema, tuple(shards), tuple(columns.items()), wanted)

    def pieces(self) -> list[Piece]:
        sizes = self.folder.sizes
        return [Piece(n, self.folder.mark((n,)), (n,), nbytes=sizes[n]) for n in self.shards]

    def makers(self, piece: Piece) -> Iterator[Maker]:
        for key, parts in samples_of(self.folder, piece.files[0]):
            yield partial(self._sample, key, parts, self.folder.at(piece.files[0]))

    def _sample(self, key: str, parts: dict[str, bytes], shard: str) -> Sample:
        where = f"{shard}: sample {key!r:.200}"
        names = dict(self.columns)
        sample: Sample = dict.fromkeys(self.schema)
        sample[names["__key__"]] = key
        for extension, data in parts.items():
            column = names.get(extension)
            if column is None:
                raise InvalidSampleError(
                    f"{where} has a .{extension}, which neither schema= nor the first samples have; give schema= "
                    "with a type for every extension"
                )
            sample[column] = self._value(extension, data, self.schema[column], where)
        return sample

    def _value(self, extension: str, data: bytes, kind: Type, where: str) -> Any:
        where = f"{where}, .{extension}"
        if isinstance(kind, Image):
            return image_value(data, kind, where, self.image_format is not None)
        if isinstance(kind, (Audio, Video)):
            return data
        if isinstance(kind, Tensor):
            return array_of(data, where)
        try:
            if isinstance(kind, Json):
                return json.loads(data)
            if kind == as_type("bytes"):
                return data
            text = data.decode("utf-8")
            if isinstance(kind, Text):
                return text
            if isinstance(kind, ClassLabel):
                return int(text) if _is_integer(data) else text.strip()
            return int(text) if _is_integer(data) else json.loads(text)  # JSON has no 003
        except (ValueError, RecursionError) as error:
            raise InvalidSampleError(
                f"{where}: {data[:40]!r} does not fit {kind}: {error}"
            ) from error


def _shards(folder: Folder) -> list[str]:
    names = [name for name in folder.sizes if name.endswith(TARS)]
    if not names:
        raise NotThisKind("no .tar, .tar.gz or .tgz")
    return names


def samples_of(folder: Folder, shard: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield keys and members of the samples of a shard; one sample is in memory.

    Raises
    ------
    InvalidSampleError
        If the file is no tar, breaks off, or a sample has two members of one extension, or members in two places.
    """
    where, key, parts = folder.at(shard), "", dict[str, bytes]()
    before: dict[str, tuple[str, ...]] = {}  # keys of the shard, and the extensions of each
    with folder.open_unpacked(shard) as stream:
        for name, data in members(stream, where):
            place, _, base = name.removeprefix("./").rpartition("/")
            stem, dot, extension = base.partition(".")
            if not dot or not stem:
                continue  # a file without an extension, or a hidden one
            extension = _ALIKE.get(extension.lower(), extension.lower())
            here = f"{place}/{stem}" if place else stem
            if here != key and parts:
                _check_whole(key, parts, before, where)
                yield key, parts
                parts = {}
            if extension in parts:
                raise InvalidSampleError(f"{where}: sample {here!r:.200} has .{extension} twice")
            key, parts[extension] = here, data
    if parts:
        _check_whole(key, parts, before, where)
        yield key, parts


def _check_whole(
    key: str, parts: Mapping[str, bytes], before: dict[str, tuple[str, ...]], where: str
) -> None:
    """Raise InvalidSampleError for the rest of a sample that came before, which is no sample of its own."""
    known = before.setdefault(key, tuple(parts))
    if {*known}.isdisjoint(parts):
        raise InvalidSampleError(
            f"{where}: sample {key!r:.200} has .{known[0]} in one place and .{next(iter(parts))} in another, with "
            "other samples between; write the tar sorted by name, as tar --sort=name does"
        )


def _types(folder: Folder, shards: Sequence[str], wanted: str | None) -> dict[str, Type]:
    """Return the types of the first samples of the first shard that has some.

    What is wrong with a shard is told when its samples are read, which may leave them out.
    """
    first: TensorLakeError | None = None
    for shard in shards:
        where, seen = folder.at(shard), dict[str, list[bytes]]()
        wrong: TensorLakeError = InvalidOptionError(
            f"{where} has no samples: no member with an extension"
        )
        try:
            for _, parts in islice(samples_of(folder, shard), _LOOK):
                for extension, data in parts.items():
                    seen.setdefault(extension, []).append(data)
        except InvalidSampleError as error:
            wrong = error
        if seen:
            return {one: _type(one, datas, where, wanted) for one, datas in seen.items()}
        first = first or wrong
    assert first is not None  # nosec: there is a shard
    raise first


def _type(extension: str, datas: list[bytes], where: str, wanted: str | None) -> Type:
    last = extension.rpartition(".")[2]  # of seg.png
    if last in _PICKLES:
        raise InvalidOptionError(
            f"{where} has members .{extension}, which may run what somebody wrote when they are read; give schema= "
            "with a type for every extension, and 'bytes' for the bytes of this one as they are"
        )
    if f".{last}" in SUFFIXES:
        found = next(filter(None, map(format_of, datas)), SUFFIXES[f".{last}"])
        return Image(column_format([found], wanted, f"{where}, .{extension}"))
    if last in _SOUNDS:
        return Audio(last)
    if last in _FILMS:
        return Video()
    if last == "npy":
        arrays = _arrays(datas, f"{where}, .{extension}")
        if len({array.dtype for array in arrays}) > 1 or len({array.ndim for array in arrays}) > 1:
            raise InvalidOptionError(
                f"{where}: arrays .{extension} differ in dtype or rank; give schema="
            )
        lengths = (set(lengths) for lengths in zip(*(array.shape for array in arrays)))
        shape = tuple(one.pop() if len(one) == 1 else None for one in lengths)
        return Tensor(str(arrays[0].dtype), shape)
    if last == "json":
        return Json()
    if last in _INTEGERS and all(map(_is_integer, datas)):
        return as_type("int64")
    if last in (*_TEXTS, *_INTEGERS):
        return Text()
    return as_type("bytes")


def _arrays(datas: list[bytes], where: str) -> list[np.ndarray]:
    """Return those of some arrays that can be read; raises for the first one if none can."""
    arrays = []
    for data in datas:
        with suppress(InvalidSampleError):
            arrays.append(array_of(data, where))
    return arrays or [array_of(datas[0], where)]


def _is_integer(data: bytes) -> bool:
    """Whether a text is a whole number, perhaps with zeros before it.

    Examples
    --------
    >>> _is_integer(b"-007"), _is_integer(b"1.5"), _is_integer(b"--1")
    (True, False, False)
    """
    return data.strip().removeprefix(b"-").isdigit()
