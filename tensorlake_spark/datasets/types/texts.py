"""Texts, and values as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from tensorlake_spark.datasets.types.base import Place, Type, shown
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.errors import CorruptDataError

_STRING = Scalar("string")


@dataclass(frozen=True, repr=False)
class Text(Type):
    """A text in each sample.

    Examples
    --------
    >>> Text().encode(["a cat", None], "caption").to_pylist()
    ['a cat', None]
    """

    kind: ClassVar[str] = "text"

    def storage(self) -> pa.DataType:
        return pa.string()

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        found: list[Any] = array.to_pylist()
        return found

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        return _STRING._from_list(values, place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        return _STRING._from_arrow(values, place)


@dataclass(frozen=True, repr=False)
class Json(Type):
    """A value of JSON in each sample: a dict, list, text, number, True or False. None is null.

    Strings in a column of Arrow have to be JSON texts already; they are checked.

    Examples
    --------
    >>> column = Json().encode([{"a": [1, 2]}, None], "extra")
    >>> column.to_pylist(), Json().decode(column)
    (['{"a": [1, 2]}', None], [{'a': [1, 2]}, None])
    """

    kind: ClassVar[str] = "json"

    def storage(self) -> pa.DataType:
        return pa.string()

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        texts: list[Any] = array.to_pylist()
        if native:
            return texts
        try:
            return [None if text is None else json.loads(text) for text in texts]
        except (ValueError, RecursionError) as error:
            raise CorruptDataError(f"a column of JSON holds what is not JSON: {error}") from error

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        texts = []
        for number, value in enumerate(values):
            try:
                text = None if value is None else _dumps(value)
            except (TypeError, ValueError, RecursionError) as error:
                raise place.wrong_type(
                    number, "a value of JSON", shown(value), f"{error}", error
                ) from error
            texts.append(text)
        return _STRING._from_list(texts, place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_nested(values.type):
            return self._from_list(values.to_pylist(), place)
        out = _STRING._from_arrow(values, place)
        for number, text in enumerate(out.to_pylist()):
            try:
                if text is not None:
                    json.loads(text, parse_constant=_refused)
            except (ValueError, RecursionError) as error:
                raise place.wrong(number, "JSON", f"{text!r:.60}", f"{error}", error) from error
        return out


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON, which other readers of the table refuse")


def _dumps(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    _check_keys(value)
    return text


def _check_keys(value: Any) -> None:
    """Raise TypeError for a key that is no text: 1 would come back as "1", and take the place of one that is there."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(
                    f"the key {key!r:.40} is no text, as keys of JSON are; give str(key)"
                )
            _check_keys(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check_keys(inner)
