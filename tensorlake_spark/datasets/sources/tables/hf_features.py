"""Features of Hugging Face's datasets, as the types of columns, and where in a batch their values lie."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.sources.array_bytes import is_list
from tensorlake_spark.datasets.sources.image_bytes import column_format, format_of
from tensorlake_spark.datasets.sources.tables.arrow_columns import (
    dtype_of,
    is_number,
    leaf_of,
    tensor_shape,
    type_of,
)
from tensorlake_spark.datasets.types import Audio, ClassLabel, Image, Tensor, Type
from tensorlake_spark.datasets.types import Sequence as SequenceOf
from tensorlake_spark.datasets.types.media.recordings import sound_format
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.rows.extension_arrays import axes_of

_DEEP = 32  # levels of features in features
_LISTS = ("Sequence", "List", "LargeList")


@dataclass(frozen=True)
class Leaf:
    """A column of samples, and the way to its values in a batch.

    Attributes
    ----------
    type : Type
        What it holds.
    path : tuple of str
        The column of the table, and fields of structs.
    inside : str or None
        The field of the structs in lists, if the values are such lists.
    """

    type: Type
    path: tuple[str, ...]
    inside: str | None = None

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return its values, or the lists around them; null where a struct around them is."""
        found = batch.column(self.path[0])
        for name in self.path[1:]:
            found = pc.struct_field(found, name)
        return found


@dataclass(frozen=True)
class _Look:
    """Some rows, which tell the formats of images and sounds."""

    rows: pa.RecordBatch | None
    image_format: str | None
    where: str

    def leaves(
        self, column: str, feature: Any, arrow: pa.DataType, path: tuple[str, ...]
    ) -> Iterator[tuple[str, Leaf]]:
        if len(path) > _DEEP:
            raise InvalidOptionError(f"{self.where}: {column!r:.200} has more than {_DEEP} levels")
        if isinstance(arrow, pa.FixedShapeTensorType):
            shape = tuple(arrow.shape[axis] for axis in axes_of(arrow))
            yield column, Leaf(Tensor(dtype_of(arrow.value_type), shape), path)
            return
        if isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        if pa.types.is_struct(arrow) and not _is_media(feature, arrow):
            for field in arrow:
                yield from self.leaves(
                    f"{column}/{field.name}",
                    _below(feature, field.name),
                    field.type,
                    (*path, field.name),
                )
        elif (
            is_list(arrow)
            and pa.types.is_struct(arrow.value_type)
            and not _is_media(_item(feature), arrow.value_type)
        ):
            for field in arrow.value_type:
                inner = _below(_item(feature), field.name)
                listed = pa.list_(field.type)
                kind = self._type(
                    {"_type": "List", "feature": inner} if inner else None, listed, column, path
                )
                yield f"{column}/{field.name}", Leaf(kind, path, field.name)
        else:
            yield column, Leaf(self._type(feature, arrow, column, path), path)

    def _type(self, feature: Any, arrow: pa.DataType, column: str, path: tuple[str, ...]) -> Type:
        name = feature.get("_type") if isinstance(feature, Mapping) else None
        if name == "ClassLabel":
            names = feature.get("names") or [
                str(n) for n in range(int(feature.get("num_classes") or 0))
            ]
            return ClassLabel(tuple(names)) if names else type_of(arrow, column)
        if name in ("Array2D", "Array3D", "Array4D", "Array5D"):
            return Tensor(feature["dtype"], tuple(feature["shape"]))
        if (
            pa.types.is_struct(arrow)
            or pa.types.is_binary(arrow)
            or pa.types.is_large_binary(arrow)
        ):
            return self._media(feature, arrow, column, path)
        if not is_list(arrow):
            return type_of(arrow, column)
        inner, shape = _item(feature), tensor_shape(arrow)
        if shape is None and _length(inner) and is_number(leaf_of(arrow)):
            shape = (
                _length(feature),
                _length(inner),
            )  # Hugging Face knows the length, Arrow does not
            shape = shape if not is_list(arrow.value_type.value_type) else None
        if shape is not None and not _is_label(inner):
            return Tensor(dtype_of(leaf_of(arrow)), shape)
        return SequenceOf(self._type(inner, arrow.value_type, column, path))

    def _media(self, feature: Any, arrow: pa.DataType, column: str, path: tuple[str, ...]) -> Type:
        name = feature.get("_type") if isinstance(feature, Mapping) else None
        data = self._first_bytes(path)
        image = format_of(data) if data else None
        if name == "Image" or (name is None and image):
            return Image(
                column_format([image or "jpeg"], self.image_format, f"{self.where}, {column}")
            )
        sound = sound_format(data or b"")
        if name == "Audio" or (name is None and sound):
            if sound is None:
                raise InvalidOptionError(
                    f"{self.where}: {column!r} has sounds that are not wav, flac or mp3"
                )
            return Audio(sound)
        return type_of(arrow, column)

    def _first_bytes(self, path: tuple[str, ...]) -> bytes | None:
        if self.rows is None:
            return None
        found: Any = Leaf(Type(), path).values(self.rows)
        while is_list(found.type):
            found = found.flatten()
        if pa.types.is_struct(found.type):
            if found.type.get_field_index("bytes") < 0:
                return None
            found = pc.struct_field(found, "bytes")
        if not (pa.types.is_binary(found.type) or pa.types.is_large_binary(found.type)):
            return None
        return next((bytes(one.as_py()) for one in found.drop_null()[:1]), None)


def leaves_of(
    schema: pa.Schema,
    names: Mapping[str, str],
    first: pa.RecordBatch | None,
    image_format: str | None,
    where: str,
) -> dict[str, Leaf]:
    """Return the columns of samples of a Parquet file.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the file, with Hugging Face's metadata if there is any.
    names : mapping of str to str
        The columns that are wanted, and what each is to be called.
    first : pyarrow.RecordBatch, optional
        Some rows, which tell the formats of images and sounds.
    image_format : str, optional
        The format that images are to have.
    where : str
        For messages.

    Raises
    ------
    InvalidOptionError
        If a column has a type that no dataset holds, or the metadata is damaged.
    """
    features, look = _features(schema, where), _Look(first, image_format, where)
    try:
        return {
            column: leaf
            for name, to in names.items()
            for column, leaf in look.leaves(
                to, features.get(name), schema.field(name).type, (name,)
            )
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidOptionError):
            if str(error).startswith(where):
                raise
            raise InvalidOptionError(f"{where}: {error}") from error
        raise InvalidOptionError(
            f"{where}: Hugging Face's features do not fit the columns: {error!r}"
        ) from error


def _features(schema: pa.Schema, where: str) -> Mapping[str, Any]:
    text = (schema.metadata or {}).get(b"huggingface")
    if text is None:
        return {}
    try:
        found = json.loads(text)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidOptionError(
            f"{where}: Hugging Face's metadata is damaged: {error!r}"
        ) from error
    return found if isinstance(found, dict) else {}


def _is_media(feature: Any, arrow: pa.DataType) -> bool:
    if isinstance(feature, Mapping) and "_type" in feature:
        return feature["_type"] in ("Image", "Audio")
    return {field.name for field in arrow} in ({"bytes", "path"}, {"bytes"})


def _item(feature: Any) -> Any:
    """Return the feature of the items of a list, None if it is not known."""
    if isinstance(feature, list) and feature:
        return feature[0]
    return feature.get("feature") if isinstance(feature, Mapping) else None


def _below(feature: Any, name: str) -> Any:
    """Return the feature of a field; of a list of structs, which is stored as a struct of lists, a list."""
    if not isinstance(feature, Mapping):
        return None
    if feature.get("_type") in _LISTS:
        inner = _item(feature)
        below = inner.get(name) if isinstance(inner, Mapping) else None
        return None if below is None else {**feature, "feature": below}
    return feature.get(name)


def _is_label(feature: Any) -> bool:
    return isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel"


def _length(feature: Any) -> int | None:
    length = feature.get("length", -1) if isinstance(feature, Mapping) else -1
    return length if isinstance(length, int) and length > 0 else None
