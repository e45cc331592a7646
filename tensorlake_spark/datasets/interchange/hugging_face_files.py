"""Samples of Hugging Face's `datasets`: their files as they are, not as the library decodes them, and their types."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.media.image_headers import format_of
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.media.recordings import Audio, Video, sound_format
from tensorlake_spark.datasets.types.media.video_facts import video_format
from tensorlake_spark.datasets.types.nested import Sequence
from tensorlake_spark.datasets.types.plain import type_of_numbers
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.datasets.types.tensors import Tensor
from tensorlake_spark.errors import InvalidSampleError


def is_hugging_face(samples: Any) -> bool:
    """Return whether something is a dataset of Hugging Face, streamed or not."""
    hf = sys.modules.get("datasets")  # who has one has imported it
    return hf is not None and isinstance(samples, (hf.Dataset, hf.IterableDataset))


def guessed_schema(samples: Any, count: int) -> SampleSchema | None:
    """Return columns that fit the first samples of a dataset of Hugging Face, None where it is none.

    Classes, arrays and numbers are what their features say. Their values say less: a class is only a number there. The
    samples that are looked at come again, as such a dataset may be gone through many times.
    """
    if not is_hugging_face(samples):
        return None
    features = {} if _is_formatted(samples) else samples.features or {}
    known = {name: {name: kind} for name, kind in _declared(features, "")}
    return SampleSchema.infer(list(islice(with_files(samples, None), count)), known)


def _declared(features: Mapping[str, Any], before: str) -> Iterator[tuple[str, Type]]:
    for name, feature in features.items():
        if isinstance(feature, dict):
            yield from _declared(feature, f"{before}{name}/")
        elif (kind := _type_of(feature)) is not None:
            yield f"{before}{name}", kind


def _type_of(feature: Any) -> Type | None:
    hf = sys.modules["datasets"]
    if isinstance(feature, hf.ClassLabel):
        return ClassLabel(tuple(feature.names)) if feature.names else Scalar("int64")
    if isinstance(feature, (hf.Array2D, hf.Array3D, hf.Array4D, hf.Array5D)):
        return Tensor(feature.dtype, tuple(feature.shape))
    if isinstance(feature, hf.Value):
        return type_of_numbers(feature.pa_type)
    inner = _type_of(feature.feature) if hasattr(feature, "feature") else None
    return inner and Sequence(inner)


def with_files(samples: Any, schema: Mapping[str, Type] | None) -> Any:
    """Return samples in which images, sounds and videos are bytes, where a column keeps these bytes as they are.

    Others are decoded by the library, as it does without this: files of another format than the column has, images
    that it has to convert, and all of a dataset that has a format or a transform of its own. For files in groups and
    lists, the library keeps a copy of the samples in its folder, unless they are streamed.

    Parameters
    ----------
    samples : object
        As a user gave them; what is no dataset of Hugging Face is returned as it is.
    schema : mapping of str to Type, or None
        The columns. None where they are to be guessed: then all known formats are kept.

    Returns
    -------
    iterable of dict, or `samples`
    """
    if not is_hugging_face(samples) or _is_formatted(samples):
        return samples
    takes: dict[str, Any] = {}
    known = None if schema is None else dict(schema)
    for name, feature in (samples.features or {}).items():
        if found := _kept(feature, known, name):
            samples = samples.cast_column(name, _undecoded(feature, found))
            takes[name] = found
    return _read(samples, takes) if takes else samples


def _read(samples: Any, takes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for number, sample in enumerate(samples):
        for name, kept in takes.items():
            try:
                sample[name] = _taken(sample.get(name), kept)
            except (OSError, ValueError, SyntaxError, RuntimeError) as error:  # as Pillow has them
                raise InvalidSampleError(
                    f"column {name!r}, sample {number}: Hugging Face's library cannot decode a file: {error}; mend "
                    "it, or leave the sample out"
                ) from error
        yield sample


@dataclasses.dataclass(frozen=True)
class _Files:
    """A feature of files, and which of them a column keeps."""

    feature: Any
    takes: Callable[[bytes], bool]


def _kept(feature: Any, kinds: dict[str, Type] | Type | None, name: str) -> Any:
    """Return what is kept in a feature: `_Files`, a dict of such for a group, or a list of one for lists; else None.

    `kinds` are the columns by their names, or the type of what lies in a list; None where they are to be guessed.
    """
    if isinstance(feature, dict):
        found = {key: _kept(one, kinds, f"{name}/{key}") for key, one in feature.items()}
        return {key: one for key, one in found.items() if one} if isinstance(kinds, dict) else None
    kind = kinds.get(name) if isinstance(kinds, dict) else kinds
    if hasattr(feature, "feature"):
        inner = _kept(feature.feature, kind.of, name) if isinstance(kind, Sequence) else None
        return [inner] if inner else None
    takes = _taker(feature, kind, kinds is None) if _is_file(feature) else None
    return takes and _Files(feature, takes)


def _undecoded(feature: Any, kept: Any) -> Any:
    """Return a feature that gives the bytes of the files that may be kept."""
    if isinstance(kept, dict):
        return {**feature, **{name: _undecoded(feature[name], one) for name, one in kept.items()}}
    if isinstance(kept, list):
        return dataclasses.replace(feature, feature=_undecoded(feature.feature, kept[0]))
    return dataclasses.replace(feature, decode=False)


def _taken(value: Any, kept: Any) -> Any:
    """Return a value with bytes for the files that are kept; others are decoded by the library."""
    if value is None:
        return None
    if isinstance(kept, dict):
        return {**value, **{name: _taken(value.get(name), one) for name, one in kept.items()}}
    if isinstance(kept, list):
        return [_taken(one, kept[0]) for one in value]
    return _value(value, kept.feature, kept.takes)


def _value(file: dict[str, Any], feature: Any, takes: Callable[[bytes], bool]) -> Any:
    data, path = file.get("bytes"), file.get("path")
    if data is None and path is not None and os.path.isfile(path):
        data = Path(path).read_bytes()
    return data if data is not None and takes(data) else feature.decode_example(file)


def _is_formatted(samples: Any) -> bool:
    said = getattr(samples, "format", None)  # of one that is not streamed
    kind = said["type"] if isinstance(said, Mapping) else getattr(samples, "_formatting", None)
    return kind is not None


def _is_file(feature: Any) -> bool:
    hf = sys.modules["datasets"]
    if not isinstance(feature, (hf.Image, hf.Audio, hf.Video)) or not feature.decode:
        return False
    # Whether the library changes more than the form of what the file has.
    return all(getattr(feature, name, None) is None for name in ("mode", "sampling_rate"))


def _taker(feature: Any, kind: Type | None, guessed: bool) -> Callable[[bytes], bool] | None:
    """Return what says whether a column keeps a file as it is; None where it keeps none."""
    hf = sys.modules["datasets"]
    if isinstance(feature, hf.Image) and (guessed or type(kind) is Image):
        wanted = {kind.format} if isinstance(kind, Image) else {"jpeg", "png", "webp"}
        return lambda data: format_of(data) in wanted
    if isinstance(feature, hf.Audio) and (guessed or isinstance(kind, Audio)):
        wanted = {kind.format} if isinstance(kind, Audio) else {"wav", "flac", "mp3"}
        return lambda data: sound_format(data) in wanted
    if isinstance(feature, hf.Video) and (guessed or isinstance(kind, Video)):
        return lambda data: video_format(data) is not None
    return None
