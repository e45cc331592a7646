"""A view becomes a dataset: tensors and media are copied as they are stored, the rest is what the query computes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.dataset import Dataset
from tensorlake_spark.datasets.derived.column_plan import check_link_option
from tensorlake_spark.datasets.derived.dataset_copy import (
    Rows,
    Selection,
    check_beside,
    copy_dataset,
)
from tensorlake_spark.datasets.derived.lineage import Source
from tensorlake_spark.datasets.derived.sample_copying import Origin
from tensorlake_spark.datasets.types.base import Type, as_type
from tensorlake_spark.datasets.types.nested import link_in, target_of
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import Lazy, TensorLeaf
from tensorlake_spark.query.views.view_values import ViewValues

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View

Array = np.ndarray[Any, Any]


def materialized(
    view: View,
    uri: str | os.PathLike[str],
    workers: Any,
    types: Mapping[str, Any],
    links: str,
    storage_options: Mapping[str, str] | None,
    row_group_bytes: int | None,
) -> Dataset:
    """Return the dataset that is made of a view; see `View.materialize`."""
    check_link_option(links)
    for name in types:
        if name not in view.names:
            raise InvalidOptionError(
                f"the view has no column {name!r:.80}{did_you_mean(name, view.names)}"
            )
    base = _base(view)
    options = {} if storage_options is None else storage_options
    if storage_options is None and base is not None:
        options = base._storage.options
    storage = Storage(_place(uri, base), options)
    if base is not None:
        check_beside(storage, base.uri)
    tables, kinds, fetched = _columns(view, types, links)
    found = [(leaf, _origin(view, leaf, names, fetched)) for leaf, names in tables.values()]
    copied = {name for _, columns in tables.values() for name in columns}
    rest = {name: view._plan.result.outputs[name] for name in view.names if name not in copied}

    def rows() -> Rows:
        """Run the query."""
        positions = [_positions(view, leaf) for leaf, _ in found]
        computed = ViewValues(rest, view._table, view._plan.parameters) if rest else None
        return Rows(len(view), positions, computed)

    chosen = Selection(
        SampleSchema({name: kinds[name] for name in view.names}),
        [one for _, one in found],
        rows,
        view.text,
        _others(view, {name for _, (name, _) in found}),
    )
    tile_bytes = (base or Dataset(storage, None)).tile_bytes
    snapshot = copy_dataset(storage, chosen, tile_bytes, workers, row_group_bytes)
    return (
        Dataset(storage, snapshot)
        if base is None
        else Dataset(storage, snapshot, rules=base._rules)
    )


def _columns(
    view: View, types: Mapping[str, Any], links: str
) -> tuple[dict[Any, tuple[TensorLeaf, dict[str, str]]], dict[str, Type], set[str]]:
    """Return the columns that are copied, by the rows of datasets that they are from; all types; links to fetch."""
    tables: dict[Any, tuple[TensorLeaf, dict[str, str]]] = {}
    kinds: dict[str, Type] = {}
    fetched = set()
    for name, output in view._plan.result.outputs.items():
        leaf = output.bare if isinstance(output, Lazy) else None
        wanted = as_type(types[name]) if name in types else None
        if leaf is None:  # a type that was given is not guessed: the first values may not tell it
            kinds[name] = wanted or replace(view._type(name), apart=False)
            if kinds[name].storage() == pa.null():
                raise InvalidOptionError(
                    f"column {name!r} of the view has no value to tell its type by; give types={{{name!r}: ...}}"
                )
            continue
        kinds[name] = view._type(name)
        if link_in(kinds[name]) is not None and links == "fetch":
            kinds[name] = target_of(kinds[name])
            fetched.add(name)
        if wanted is not None and wanted != kinds[name]:
            kinds[name] = wanted
            fetched.discard(name)
        else:
            key = leaf.source_name, leaf.key
            tables.setdefault(key, (leaf, {}))[1][name] = leaf.column
    return tables, kinds, fetched


def _origin(
    view: View, leaf: TensorLeaf, columns: Mapping[str, str], fetched: set[str]
) -> tuple[str, Origin]:
    data = leaf.source.dataset
    name = view._plan.names.get(leaf.source_name, leaf.source_name)
    wanted = frozenset(fetched & columns.keys())
    origin = Origin(data.stored.snapshot, dict(columns), data._rules, wanted)
    return name, origin.opened(data.parts)


def _positions(view: View, leaf: TensorLeaf) -> Array:
    """Return which sample of its dataset each row of a view has; -1 where a join gave it none."""
    keys = view._table.column(leaf.key[1]).fill_null(-1).to_numpy()
    return leaf.source.dataset.stored.positions_of(np.asarray(keys, np.int64))


def _others(view: View, known: set[str]) -> list[Source]:
    """Return the sources from which nothing is copied as it is."""
    return [
        Source(name, uri, version)
        for name, (uri, version) in view.sources.items()
        if name not in known
    ]


def _base(view: View) -> Dataset | None:
    """Return the dataset that a view is of, or the first that it reads."""
    if view.dataset is not None:
        return view.dataset
    found = [s.dataset for s in view._plan.sources.values() if isinstance(s, DatasetSource)]
    return found[0] if found else None


def _place(uri: Any, base: Dataset | None) -> str:
    """Return the place of a new dataset: a name without a slash is a folder beside the dataset of the view.

    Examples
    --------
    >>> _place("/data/hard", None)
    '/data/hard'
    """
    if not isinstance(uri, (str, os.PathLike)):
        raise InvalidOptionError(f"uri={uri!r:.80} is neither a path, a URL nor a name")
    text = str(os.fspath(uri))
    if "/" in text or os.sep in text or base is None or text in ("", ".", ".."):
        return text
    return f"{base.uri.rpartition('/')[0]}/{text}"
