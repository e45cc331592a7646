"""Types as features of Hugging Face's `datasets`, where it has one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tensorlake_spark.datasets.types.annotations import BoundingBox, Keypoints, Polygon
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.media.masks import BinaryMask, SegmentMask
from tensorlake_spark.datasets.types.media.medical import Dicom
from tensorlake_spark.datasets.types.media.recordings import Audio, Video
from tensorlake_spark.datasets.types.nested import Link, Sequence
from tensorlake_spark.datasets.types.plain import Plain
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.datasets.types.tensors import ArrayType, Embedding, PointCloud
from tensorlake_spark.datasets.types.texts import Json, Text
from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError

_VALUES = {
    "bytes": "binary", "date": "date32", "timestamp": "timestamp[us, tz=UTC]", "timestamp_ntz": "timestamp[us]",
    "bfloat16": "float32",
}  # fmt: skip


def to_features(schema: Mapping[str, Type]) -> Any:
    """Return ``datasets.Features`` for the columns of a dataset; groups become nested features.

    Parameters
    ----------
    schema : mapping of str to Type
        Such as a `SampleSchema`.

    Raises
    ------
    InvalidOptionError
        If there is no feature for a column; names it.
    MissingDependencyError
        If the package ``datasets`` is not installed.
    """
    hf = hugging_face()
    out: dict[str, Any] = {}
    for name, kind in schema.items():
        *groups, last = name.split("/")
        inner = out
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = _feature(kind, name, hf)
    return hf.Features(out)


def hugging_face() -> Any:
    """Return the library `datasets`; raises MissingDependencyError where it is not installed."""
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        raise MissingDependencyError(
            "features of Hugging Face need the package datasets: pip install datasets"
        ) from error


def _feature(kind: Type, name: str, hf: Any) -> Any:
    found = _FEATURES.get(type(kind))
    if found is not None:
        return found(kind, hf)
    if isinstance(kind, ArrayType):
        return _array(kind, name, hf)
    if isinstance(kind, Sequence):
        return _list(hf, _feature(kind.of, name, hf))
    raise InvalidOptionError(
        f"Hugging Face has no feature for column {name!r}, {kind}; leave it out"
    )


def _scalar(kind: Any, hf: Any) -> Any:
    name = kind.dtype
    return hf.Value(
        name.replace("decimal", "decimal128") if "(" in name else _VALUES.get(name, name)
    )


_FEATURES: dict[type[Type], Callable[[Any, Any], Any]] = {
    Scalar: _scalar,
    Text: lambda kind, hf: hf.Value("string"),
    Json: lambda kind, hf: hf.Value("string"),
    ClassLabel: lambda kind, hf: hf.ClassLabel(names=list(kind.names)),
    Image: lambda kind, hf: _image(kind, hf),
    BinaryMask: lambda kind, hf: hf.Image(),
    SegmentMask: lambda kind, hf: hf.Image(),
    Audio: lambda kind, hf: hf.Audio(),
    Video: lambda kind, hf: hf.Video(),
    Dicom: lambda kind, hf: hf.Value("binary"),
    Embedding: lambda kind, hf: _list(hf, hf.Value(_VALUES.get(kind.dtype, kind.dtype)), kind.size),
    BoundingBox: lambda kind, hf: _rows(kind, 4, hf),
    PointCloud: lambda kind, hf: _rows(kind, len(kind.fields), hf),
    Keypoints: lambda kind, hf: _list(hf, _list(hf, _rows(kind, 3, hf).feature, len(kind.names))),
    Polygon: lambda kind, hf: _list(hf, _list(hf, _list(hf, hf.Value("float32"), 2))),
    Link: lambda kind, hf: hf.Value("string"),
    Plain: lambda kind, hf: hf.features.features.generate_from_arrow_type(kind.arrow),
}


def _image(kind: Image, hf: Any) -> Any:
    if kind.format == "raw" and kind.dtype != "uint8":
        raise InvalidOptionError(
            f"Hugging Face has no feature for {kind}: its images have 8 bits; leave the column out"
        )
    return hf.Image()


def as_written(feature: Any, hf: Any) -> Any:
    """Return the features that the library takes samples by, before it casts them.

    It takes bytes of sounds only with PyTorch, so these are structs. It makes an int64 of any whole number, so those of
    uint64 are decimals.
    """
    if isinstance(feature, hf.Audio):
        return {"bytes": hf.Value("binary"), "path": hf.Value("string")}
    if isinstance(feature, hf.Value) and feature.dtype == "uint64":
        return hf.Value("decimal128(20, 0)")
    if isinstance(feature, dict):
        return type(feature)({name: as_written(one, hf) for name, one in feature.items()})
    if hasattr(feature, "feature"):
        return _list(hf, as_written(feature.feature, hf), feature.length)
    return feature


def _rows(kind: Any, width: int, hf: Any) -> Any:
    """Return the feature of arrays with any number of rows of one width."""
    return _list(hf, _list(hf, hf.Value(_VALUES.get(kind.dtype, kind.dtype)), width))


def _list(hf: Any, feature: Any, length: int = -1) -> Any:
    """Return a feature of lists, by its name in this version of the package."""
    return (hf.List if hasattr(hf, "List") else hf.Sequence)(feature, length=length)


def _array(kind: ArrayType, name: str, hf: Any) -> Any:
    dtype, shape = kind.fixed()
    if dtype.startswith(("complex", "datetime64", "timedelta64")):
        raise InvalidOptionError(
            f"Hugging Face has no feature for column {name!r}, {kind}: it has no arrays of {dtype}; leave it out"
        )
    value = hf.Value(_VALUES.get(dtype, dtype))
    if shape is not None and len(shape) == 0:
        return value
    if shape is not None and len(shape) == 1:
        return _list(hf, value, -1 if shape[0] is None else shape[0])
    if shape is not None and len(shape) <= 5 and None not in shape[1:]:
        return getattr(hf, f"Array{len(shape)}D")(shape=shape, dtype=value.dtype)
    if shape is not None:
        for length in reversed(shape):
            value = _list(hf, value, -1 if length is None else length)
        return value
    raise InvalidOptionError(
        f"Hugging Face has no feature for column {name!r}, {kind}: its number of axes is free; declare its shape"
    )
