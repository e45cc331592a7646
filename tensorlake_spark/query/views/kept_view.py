"""A view as a dataset keeps it by name: text, sources, parameters, rows."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.datasets.dataset import Dataset, dataset
from tensorlake_spark.datasets.derived.saved_views import SavedView
from tensorlake_spark.delta.plain.plain_table import PlainTable
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, TensorLakeError
from tensorlake_spark.lake.lake import open as open_lake
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import Lazy

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View

_VERSIONED = re.compile(r" VERSION | AS OF |@")
_ARRAY = "__npy__"
_MOST_BYTES = 1 << 22  # of a parameter that is kept


def kept(view: View, owner: Dataset) -> SavedView:
    """Return what a dataset keeps of a view.

    Raises
    ------
    InvalidOptionError
        If the view does not read this dataset, or reads what is only in memory.
    """
    plan = view._plan
    sources: dict[str, tuple[str, int | None]] = {}
    for inner, source in plan.sources.items():
        name = plan.names[inner]
        if not isinstance(source, DatasetSource) and source.version is None and not source._paths:
            raise InvalidOptionError(
                f"the view reads {name!r}, which is only in memory; store it, as Parquet or in a dataset, and query "
                "that"
            )
        if name in sources and sources[name] != (source.uri, source.version):
            name = f"{name}@{source.version}"
        sources[name] = source.uri, source.version
    if owner.uri not in {uri for uri, _ in sources.values()}:
        raise InvalidOptionError(
            f"the view does not read {owner.uri}, but {', '.join(uri for uri, _ in sources.values())}; save it there"
        )
    main = None if view.dataset is None else view.dataset.uri
    computed = [
        name
        for name, one in plan.result.outputs.items()
        if isinstance(one, Lazy) and one.bare is None
    ]
    parameters = {name: _said(name, value) for name, value in plan.parameters.items()}
    if plan.seed:
        parameters["__seed__"] = plan.seed
    rows = None if view._chosen is None else np.asarray(view._chosen, np.int64)
    return SavedView(
        view.text, sources, tuple(view.names), tuple(computed), parameters, main,
        None if main is None else view.sids, rows=rows,
    )  # fmt: skip


def reopened(saved: SavedView, owner: Dataset) -> View:
    """Return the view that a dataset has kept; its sources are what they were.

    Raises
    ------
    InvalidOptionError
        If a version of a source is gone.
    """
    from tensorlake_spark.query.query import query

    sources: dict[str, Any] = {}
    for name, (uri, version) in sorted(saved.sources.items(), key=lambda item: len(item[0])):
        plain = _VERSIONED.split(name)[0]  # what the text itself gives a version is opened by it
        if plain not in sources:
            sources[plain] = _opened(name, uri, version if plain == name else None, owner)
    given = dict(saved.parameters)
    seed = int(given.pop("__seed__", 0))
    parameters = {name: _meant(value) for name, value in given.items()}
    view = query(saved.text, parameters=parameters, seed=seed, **sources)
    now = kept(view, owner).sources
    moved = [name for name, source in saved.sources.items() if now.get(name) != source]
    if moved:
        name = moved[0]
        raise InvalidOptionError(
            f"the view read {name!r} at version {saved.sources[name][1]}, and its text now means "
            f"{now.get(name, ('', 'another source'))[1]}: a tag was moved; save the view again"
        )
    if saved.rows is not None:
        view = type(view)(view._plan, view._state, saved.rows)
    return view


def _opened(name: str, uri: str, version: int | None, owner: Dataset) -> Any:
    options = owner._storage.options
    try:
        if uri == owner.uri:
            return dataset(uri, None, options, version, links=owner._rules)
        if version is None:
            return uri
        kind = PlainTable.kind(Storage(uri, options))
        if kind == "samples":
            return dataset(uri, None, options, version)
        if kind == "tensors":
            return open_lake(uri, storage_options=options, version=version, create=False)
        raise InvalidOptionError(
            "a plain Delta table is read at its newest version only; write VERSION in the query"
        )
    except TensorLakeError as error:
        raise InvalidOptionError(
            f"the view reads version {version} of {uri} as {name!r}, which no longer exists: {error}"
        ) from error


def _said(name: str, value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "O" or array.nbytes > _MOST_BYTES:
        raise InvalidOptionError(
            f"the parameter :{name} is {array.dtype} of {array.nbytes} bytes; at most {_MOST_BYTES} bytes of numbers "
            "or texts are kept with a view: store it as a column, and join it"
        )
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return {_ARRAY: base64.b64encode(out.getvalue()).decode()}


def _meant(value: Any) -> Any:
    if isinstance(value, Mapping) and _ARRAY in value:
        found = np.load(io.BytesIO(base64.b64decode(value[_ARRAY])), allow_pickle=False)
        return found if found.ndim else found[()]
    return value
