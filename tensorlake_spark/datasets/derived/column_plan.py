"""Which columns a new dataset has, and how each comes there: copied as it is, fetched from links, or encoded anew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, pinned
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.derived.sample_copying import Origin
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.maintenance.value_check import tiled_samples
from tensorlake_spark.datasets.samples.sample_reading import read_column, values_of
from tensorlake_spark.datasets.types.base import Type, as_type
from tensorlake_spark.datasets.types.nested import link_in, target_of
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, did_you_mean, listed_columns
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Recoded:
    """Columns whose values are decoded, to be encoded by another type.

    Attributes
    ----------
    origin : Origin
        Where they are, by their new names.
    positions : int64 ndarray
        Of the samples.
    """

    origin: Origin
    positions: Array

    def __call__(self, start: int, stop: int) -> dict[str, Any]:
        """Return the values of some of the samples."""
        parts, at = self._parts, self.positions[start:stop]
        return {
            new: values_of(parts, old, read_column(parts, old, at), at, stack=False)
            for new, old in self.origin.columns.items()
        }

    def tiled_bytes(self, start: int, stop: int) -> Array:
        """Return for each of some samples how many bytes of tiles are read for it."""
        parts, at = self._parts, self.positions[start:stop]
        out = np.zeros(len(at), np.int64)
        if pinned(parts.stored.snapshot, TENSORS_FOLDER) is None:
            return out
        for old in self.origin.columns.values():
            kind = parts.schema[old]
            if is_tileable(kind):
                for row, said in tiled_samples(kind, read_column(parts, old, at)):
                    out[row] += math.prod(said.shape) * dtype_of(said.dtype).itemsize
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return Recoded, (self.origin, self.positions)

    @cached_property
    def _parts(self) -> StoredParts:
        return self.origin.parts


def check_link_option(links: Any) -> None:
    """Raise InvalidOptionError unless it says what a copy does with links."""
    if not isinstance(links, str) or links not in ("fetch", "keep"):
        raise InvalidOptionError(
            f"links={links!r:.80} is neither 'fetch', which copies what they lead to, nor 'keep'"
        )


def chosen_types(
    schema: SampleSchema,
    columns: Sequence[str] | None,
    links: str,
    types: Mapping[str, Any] | None,
    uri: str,
) -> tuple[SampleSchema, frozenset[str], frozenset[str]]:
    """Return the columns of a copy, those of them whose links are fetched, and those that are encoded anew.

    Raises
    ------
    InvalidOptionError
        If there is no such column, or an option is none.
    """
    check_link_option(links)
    given = [*schema] if columns is None else listed_columns(columns)
    if types is not None and not isinstance(types, Mapping):
        raise InvalidOptionError(
            f"types={types!r:.80} does not map names of columns to types; give {{name: type}}"
        )
    names = list(dict.fromkeys(given))
    for name in (*names, *(types or {})):
        if name not in schema:
            raise InvalidOptionError(
                f"the dataset at {uri} has no column {name!r}{did_you_mean(name, schema)}"
            )
    if not names:
        raise InvalidOptionError("columns is empty; a dataset has at least one column")
    out: dict[str, Type] = {}
    fetched, anew = set[str](), set[str]()
    for name in names:
        kind = schema[name]
        if link_in(kind) is not None and links == "fetch":
            fetched.add(name)
            kind = target_of(kind)
        if types is not None and name in types and as_type(types[name]) != kind:
            anew.add(name)
            kind = as_type(types[name])
        out[name] = kind
    return SampleSchema(out), frozenset(fetched - anew), frozenset(anew)


def origins_of(
    snapshot: Snapshot,
    rules: LinkRules,
    schema: SampleSchema,
    fetched: frozenset[str],
    anew: frozenset[str],
    positions: Array,
) -> tuple[Origin, Recoded | None]:
    """Return where the columns of a copy come from: as they are stored, and decoded."""
    as_is = {name: name for name in schema if name not in anew}
    origin = Origin(snapshot, as_is, rules, fetched)
    if not anew:
        return origin, None
    return origin, Recoded(Origin(snapshot, {n: n for n in sorted(anew)}, rules), positions)
