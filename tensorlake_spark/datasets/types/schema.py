"""Which columns a dataset has, of which types, and in which order; with groups, as nested structs of Arrow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.types.base import Type, as_type, field_of
from tensorlake_spark.datasets.types.guessing import guess
from tensorlake_spark.datasets.types.plain import type_of_arrow
from tensorlake_spark.delta.samples.leaf_columns import has_views, leaf_columns
from tensorlake_spark.errors import FormatError, InvalidOptionError, did_you_mean

KEY = b"tensorlake.type"
"""Under which a field of Delta keeps the type of its column, as JSON."""

SID = "sid"
"""The column that numbers the samples; no other may have its name."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_REFUSED = re.compile(r"[ ,;{}()=]")  # by Parquet tables of Delta, as their names of columns
_MOST_GROUPS = 32  # around a column: delta-rs does not open a table whose types are 40 deep


class SampleSchema(Mapping[str, Type]):
    """Names of columns and their types, in an order.

    ``/`` in a name makes groups: ``training/boxes`` is the column ``boxes`` of the group ``training``, and is
    stored as a field of a struct.

    Parameters
    ----------
    columns : mapping or iterable of pairs
        Names, and types as `types.as_type` takes them. A mapping inside is a group.

    Raises
    ------
    InvalidOptionError
        If a name or a type is none.

    Examples
    --------
    >>> schema = SampleSchema({"label": "int64", "training/score": "float32"})
    >>> schema["training/score"], schema.groups()
    (Scalar('float32'), ['training'])
    >>> SampleSchema.from_arrow(schema.to_arrow()) == schema
    True
    """

    def __init__(self, columns: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        try:
            if not isinstance(columns, Mapping) and not columns:
                raise TypeError
            pairs = [
                (name, kind)
                for name, kind in (columns.items() if isinstance(columns, Mapping) else columns)
            ]
        except (TypeError, ValueError):
            raise InvalidOptionError(
                f"schema={columns!r} is {type(columns).__name__}; give a dict of names and types, such as "
                "{'label': 'int32'}"
            ) from None
        flat = [*_flat(pairs, "")]
        names = [name for name, _ in flat]
        check_columns(names)
        self._types: dict[str, Type] = {}
        for name, given in flat:
            try:
                self._types[name] = as_type(given)
            except InvalidOptionError as error:
                raise InvalidOptionError(f"column {name!r}: {error}") from error
        if any("." in name for name in names):
            _check_paths(self._whole)

    # ------------------------------------------------------------------ a mapping

    def __getitem__(self, name: str) -> Type:
        try:
            return self._types[name]
        except (KeyError, TypeError):
            near = did_you_mean(name, self._types) if isinstance(name, str) else ""
            raise KeyError(f"no column {name!r:.80}{near}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __eq__(self, other: object) -> bool:
        """Whether the columns are the same, and their order."""
        if not isinstance(other, SampleSchema):
            return NotImplemented
        return [*self._types.items()] == [*other._types.items()]

    def __hash__(self) -> int:
        return hash(tuple(self._types.items()))

    def __repr__(self) -> str:
        lines = "".join(f"\n    {name!r}: {kind}," for name, kind in self._types.items())
        return f"SampleSchema({{{lines}\n}})" if lines else "SampleSchema({})"

    def differences(self, other: SampleSchema) -> str:
        """Return in words where another schema has other columns than this one, whatever their order; "" if nowhere.

        Examples
        --------
        >>> there = SampleSchema({"label": "int32", "size": "int32"})
        >>> there.differences(SampleSchema({"size": "int64", "label": "int32"}))
        "'size' is Scalar('int32'), not Scalar('int64')"
        >>> there.differences(SampleSchema({"size": "int32", "name": "string"}))
        "it has no column 'name'; its column 'label' is not among them"
        """
        out = [
            f"{name!r} is {self[name]}, not {kind}"
            for name, kind in other.items()
            if name in self and self[name] != kind
        ]
        out += [f"it has no column {n!r}{did_you_mean(n, self)}" for n in other if n not in self]
        out += [f"its column {name!r} is not among them" for name in self if name not in other]
        return "; ".join(out if len(out) <= 3 else [*out[:3], f"and {len(out) - 3} more"])

    # ------------------------------------------------------------------ parts

    def select(self, names: Iterable[str]) -> SampleSchema:
        """Return a schema of some of the columns, in the order of `names`."""
        return SampleSchema({name: self[name] for name in names})

    def groups(self) -> list[str]:
        """Return the names of all groups, in the order in which they come."""
        found: dict[str, None] = {}
        for name in self._types:
            parts = name.split("/")
            found |= dict.fromkeys("/".join(parts[:n]) for n in range(1, len(parts)))
        return list(found)

    def group(self, name: str) -> SampleSchema:
        """Return the columns of a group, without its name.

        Raises
        ------
        KeyError
            If there is no such group.
        """
        if name not in self.groups():
            raise KeyError(f"no group {name!r:.80}{did_you_mean(name, self.groups())}")
        start = f"{name}/"
        return SampleSchema(
            {k.removeprefix(start): v for k, v in self._types.items() if k.startswith(start)}
        )

    # ------------------------------------------------------------------ Arrow

    def to_arrow(self, sid: bool = True) -> pa.Schema:
        """Return the schema of the table: the sid first, then a field for each column or group.

        Parameters
        ----------
        sid : bool
            Whether it has the column of sample numbers.
        """
        whole = self._whole  # each batch of an ingestion asks for it
        return whole if sid else whole.remove(0)

    @cached_property
    def _whole(self) -> pa.Schema:
        fields = [_field(name, inner) for name, inner in _tree(self._types).items()]
        return pa.schema([pa.field(SID, pa.int64(), False), *fields])

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> SampleSchema:
        """Return the schema of a table, which may have columns that others made.

        A field that has no type of ours gets one by its Arrow type; `types.Plain` where there is none.

        Raises
        ------
        FormatError
            If a type is not known, or a name is impossible.
        """
        found: dict[str, Type] = {}
        for field in schema:
            if field.name != SID:
                found |= dict(_columns(field, field.name))
        try:
            return cls(found)
        except InvalidOptionError as error:
            raise FormatError(f"the table is not a dataset: {error}") from error

    def to_batch(
        self, columns: Mapping[str, pa.Array], sids: pa.Array | None = None
    ) -> pa.RecordBatch:
        """Return columns as one record batch of the table's schema, groups as structs.

        Parameters
        ----------
        columns : mapping of str to pyarrow.Array
            One for every column, as `Type.encode` returns it, with views or not.
        sids : pyarrow.Array of int64, optional
            The first column.
        """
        arrays = [_nested(inner, columns) for inner in _names(self._types).values()]
        if sids is not None:
            arrays = [sids, *arrays]
        fields = [
            field.with_type(array.type) if has_views(array.type) else field
            for array, field in zip(arrays, self.to_arrow(sids is not None), strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    # ------------------------------------------------------------------ from samples

    @classmethod
    def infer(
        cls, samples: Any, declared: Mapping[str, Mapping[str, Type]] | None = None
    ) -> SampleSchema:
        """Return a schema that fits the first samples.

        Parameters
        ----------
        samples : mapping of columns, or sequence of mappings
            A dict of lists, or a list of dicts. What is null in all samples has no type.
        declared : mapping, optional
            What `declared_types` found. These columns of a dict of lists are not guessed.

        Raises
        ------
        InvalidOptionError
            If a column has no value, or values that no type takes.

        Examples
        --------
        >>> import numpy as np
        >>> SampleSchema.infer([{"x": np.zeros((2, 3), "f4"), "y": 1}, {"x": np.zeros((5, 3), "f4"), "y": 2}])
        SampleSchema({
            'x': Tensor('float32', (None, 3)),
            'y': Scalar('int64'),
        })
        """
        columns: dict[str, Any] = {}
        if isinstance(samples, Mapping):
            columns = dict(samples)
        else:
            for sample in samples:
                if not isinstance(sample, Mapping):
                    raise InvalidOptionError(f"a sample is a dict, not {type(sample).__name__}")
                for name, value in _flat(list(sample.items()), ""):
                    columns.setdefault(name, []).append(value)
        known = declared or {}
        types = [known.get(name) or {name: guess(name, columns[name])} for name in columns]
        return cls([pair for some in types for pair in some.items()] or {})


def declared_types(schema: pa.Schema) -> dict[str, dict[str, Type]]:
    """Return the columns of each field that has types of ours, as the fields of another dataset's table have.

    Raises
    ------
    FormatError
        If a type is not known.

    Examples
    --------
    >>> declared_types(SampleSchema({"box/xy": "f4"}).to_arrow())
    {'box': {'box/xy': Scalar('float32')}}
    """
    return {field.name: dict(_columns(field, field.name)) for field in schema if _is_group([field])}


def column_of(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    """Return a column of a batch or a table by its name with groups; null where its group is.

    Examples
    --------
    >>> column_of(pa.record_batch({"a": [{"b": 1}, None]}), "a/b").to_pylist()
    [1, None]
    """
    first, *rest = name.split("/")
    column = batch.column(first)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type
    for part in rest:
        chunks = [field_of(chunk, part) for chunk in chunks]
        kind = kind.field(part).type
    return pa.chunked_array(chunks, kind) if isinstance(column, pa.ChunkedArray) else chunks[0]


def check_columns(names: Iterable[str]) -> None:
    """Raise InvalidOptionError if names cannot be those of the columns of one dataset.

    Examples
    --------
    >>> check_columns(["image", "training/boxes"])
    >>> check_columns(["cat", "Cat"])
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidOptionError: columns 'cat' and 'Cat' differ only in case, which Spark does not see
    """
    columns: dict[str, str] = {}
    groups: dict[str, str] = {}
    for name in names:
        _check_name(name)
        folded = name.casefold()
        if folded in columns:
            other = columns[folded]
            if other == name:
                raise InvalidOptionError(f"column {name!r} is there twice")
            raise InvalidOptionError(
                f"columns {other!r} and {name!r} differ only in case, which Spark does not see"
            )
        columns[folded] = name
        parts = name.split("/")
        for count in range(1, len(parts)):
            group = "/".join(parts[:count])
            if groups.setdefault(group.casefold(), group) != group:
                other = groups[group.casefold()]
                raise InvalidOptionError(
                    f"groups {other!r} and {group!r} differ only in case, which Spark does not see"
                )
    for folded, name in columns.items():
        if folded in groups:
            raise InvalidOptionError(
                f"{name!r} is a column, and {groups[folded]!r} a group; give one another name"
            )


def _check_paths(schema: pa.Schema) -> None:
    """Raise InvalidOptionError if Parquet or the log could take one column for a part of another."""
    seen: dict[str, tuple[str, ...]] = {}
    for leaf in leaf_columns(schema):
        for path in {".".join(leaf.parts), leaf.path}:
            other = seen.setdefault(path.casefold(), leaf.parts)
            if other != leaf.parts:
                raise InvalidOptionError(
                    f"{'/'.join(other)!r} and {'/'.join(leaf.parts)!r} both have the path {path!r} in Parquet; give "
                    "their columns names without '.'"
                )


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise InvalidOptionError(
            f"the name of a column is a string, not {type(name).__name__}: {name!r:.80}"
        )
    if not 1 <= len(name) <= 512:
        raise InvalidOptionError(
            f"the name of a column has 1 to 512 characters, this has {len(name)}"
        )
    if name.count("/") > _MOST_GROUPS:
        raise InvalidOptionError(
            f"column {name!r:.80} lies in {name.count('/')} groups; there may be at most {_MOST_GROUPS}"
        )
    if _CONTROL.search(name):
        raise InvalidOptionError(f"column {name!r} has a control character, or half of a character")
    found = _REFUSED.search(name)
    if found:
        raise InvalidOptionError(
            f"column {name!r} has {found[0]!r}, which Delta does not allow in names; use '_'"
        )
    for segment in name.split("/"):
        if segment in ("", ".", ".."):
            raise InvalidOptionError(
                f"column {name!r} has the segment {segment!r}; segments between '/' may not be empty, '.' or '..'"
            )
    if name.split("/")[0].casefold() == SID:
        raise InvalidOptionError(
            f"column {name!r}: {SID!r} is the number of a sample; give another name"
        )


def _flat(pairs: list[tuple[str, Any]], before: str) -> Iterator[tuple[str, Any]]:
    """Yield names and values, those of mappings inside with the names of their groups."""
    for name, value in pairs:
        if isinstance(value, Mapping) and all(isinstance(k, str) for k in value) and value:
            yield from _flat(list(value.items()), f"{before}{name}/")
        else:
            yield (f"{before}{name}" if isinstance(name, str) else name), value


Tree = dict[str, Any]


def _tree(types: Mapping[str, Any]) -> Tree:
    """Return types by the parts of their names: a dict is a group."""
    out: Tree = {}
    for name, kind in types.items():
        *groups, last = name.split("/")
        inner = out
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = kind
    return out


def _names(types: Mapping[str, Any]) -> Tree:
    return _tree({name: name for name in types})


def _field(name: str, inner: Any) -> pa.Field:
    if isinstance(inner, dict):
        return pa.field(name, pa.struct([_field(k, v) for k, v in inner.items()]))
    # A field that may not be null would bar plain writers of Delta that do not name the column: only where it is meant.
    text = json.dumps(inner.to_json(), ensure_ascii=False, separators=(",", ":"))
    # An apart column is null here, for its values lie in a table of their own.
    return pa.field(name, inner.storage(), inner.nullable or inner.apart, {KEY: text.encode()})


def _nested(inner: Any, columns: Mapping[str, pa.Array]) -> pa.Array:
    if not isinstance(inner, dict):
        return columns[inner]
    arrays = [_nested(v, columns) for v in inner.values()]
    return pa.StructArray.from_arrays(arrays, names=[*inner])


def _columns(field: pa.Field, name: str) -> Iterator[tuple[str, Type]]:
    """Yield the columns of a field: itself, or those of a group."""
    if "/" in field.name:  # it would be taken for a column of a group
        raise FormatError(
            f"another program added a column {field.name!r}, with '/' in its name; RESTORE a version without it by SQL"
        )
    text = (field.metadata or {}).get(KEY)
    if text is not None:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(
                f"column {name!r} has a type that is not JSON: {text[:80]!r}"
            ) from error
        try:
            kind = Type.from_json(found)
        except FormatError as error:
            raise FormatError(f"column {name!r}: {error}") from error
        yield name, kind
    elif pa.types.is_struct(field.type) and _is_group(field.type):
        for inner in field.type:
            yield from _columns(inner, f"{name}/{inner.name}")
    else:
        yield name, type_of_arrow(field.type, field.nullable)


def _is_group(fields: Iterable[pa.Field]) -> bool:
    """Whether one of the fields, or of the fields of a struct among them, has a type of ours."""
    return any(
        KEY in (f.metadata or {}) or (pa.types.is_struct(f.type) and _is_group(f.type))
        for f in fields
    )
