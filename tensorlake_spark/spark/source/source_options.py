"""The options of ``format("tensor")``, parsed once into typed objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.indexing.coords import DUPLICATES
from tensorlake_spark.spark.cluster.s3a import completed
from tensorlake_spark.spark.source.task_notes import Resumption
from tensorlake_spark.tensor.spec import check_id, dtype_of
from tensorlake_spark.writing.app_transaction import check_transaction, pair_of
from tensorlake_spark.writing.options import DENSE_FROM, WriteOptions, check_names, integers

VIEWS = ("blocks", "cells", "catalog", "features")
STORAGE_PREFIX = "storage."

_NONE: Mapping[str, str] = {}
_SHARED = ("path", "id")
_READ = (
    *_SHARED, "slice", "view", "labels", "pushFilters", "versionAsOf", "timestampAsOf", "maxPartitionBytes",
    "columns",
)  # fmt: skip
_WRITE = (
    *_SHARED, "layout", "blockShape", "chunkRank", "codec", "fillValue", "axes", "attrs", "labels", "axis",
    "shape", "dtype", "order", "rowAxes", "duplicates", "threshold", "quantize", "txnAppId", "txnVersion",
    "lastChange", "resumption", "view",
)  # fmt: skip
_OF_SPARK = {
    "location": "Spark gives it for CREATE TABLE, which does not keep other options; CREATE TEMPORARY VIEW does",
    "paths": "load() takes one path; union() the DataFrames of several lakes",
}
_OF_FEATURES = ("path", "id", "view", "codec", "txnAppId", "txnVersion")


def _checked(options: Mapping[str, str], known: tuple[str, ...], doing: str) -> dict[str, str]:
    """Return the options under their proper names; Spark hands them over in lower case."""
    proper = {name.lower(): name for name in known}
    out = {}
    for name, value in options.items():
        if name.lower().startswith(STORAGE_PREFIX):
            continue
        if name.lower() not in proper:
            told = _OF_SPARK.get(name.lower())
            near = f"; {told}" if told else did_you_mean(name.lower(), proper)
            raise InvalidOptionError(
                f"unknown option {name!r} for {doing} format('tensor'){near}; known are {', '.join(known)} and "
                f"{STORAGE_PREFIX}*"
            )
        out[proper[name.lower()]] = value
    if "path" not in out:
        raise InvalidOptionError(
            f"{doing} format('tensor') needs a path: .load(path) or .save(path); a table made by CREATE "
            "TABLE loses its options in Spark, a temporary view keeps them"
        )
    return out


def _integer(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    try:
        return int(options[name])
    except ValueError:
        raise InvalidOptionError(f"option {name}={options[name]!r} is not an integer") from None


def _integers(options: Mapping[str, str], name: str) -> tuple[int, ...] | None:
    if name not in options:
        return None
    return integers(options[name], f"option {name}")


def _storage(options: Mapping[str, str], path: str, s3a: Mapping[str, str]) -> Storage:
    prefix = len(STORAGE_PREFIX)
    store = {k[prefix:]: v for k, v in options.items() if k.lower().startswith(STORAGE_PREFIX)}
    return Storage(path, completed(store, s3a, path))


@dataclass(frozen=True)
class ReadOptions:
    """Options of a read.

    Attributes
    ----------
    storage : Storage
        The table (``path``, and ``storage.*`` as deltalake names them).
    id : str, or None
        The tensor; None for the view ``catalog``, which lists all.
    slice : str
        Key as text, empty for the whole tensor.
    view : str
        One of `VIEWS`.
    labels : bool
        Whether the view ``cells`` shows the labels of axes in place of indices.
    version, timestamp : str, or None
        ``versionAsOf`` and ``timestampAsOf``, as Delta has them; the version may be a tag.
    partition_bytes : int
        Bytes of stored data that one partition reads at the most.
    push_filters : bool
        Whether filters on the coordinates of the view ``cells`` narrow the slice.
    columns : tuple of str, or None
        Of the view ``features`` which are read; None for all.
    """

    storage: Storage
    id: str | None
    slice: str
    view: str
    labels: bool
    version: str | None
    timestamp: str | None
    partition_bytes: int
    push_filters: bool = False
    columns: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str], s3a: Mapping[str, str] = _NONE) -> ReadOptions:
        """Parse Spark's options; an unknown one is an error that names the nearest.

        What they leave open of an S3 store is taken from `s3a`, see `tensorlake_spark.spark.cluster.s3a.settings_of`.
        """
        given = _checked(options, _READ, "reading")
        view = given.get("view", "blocks")
        if view not in VIEWS:
            raise InvalidOptionError(
                f"unknown view {view!r}{did_you_mean(view, VIEWS)}; known are {', '.join(VIEWS)}"
            )
        if view != "catalog" and "id" not in given:
            raise InvalidOptionError(
                f"the view {view!r} needs the option id, the tensor's name; view='catalog' lists them"
            )
        flags = {name: given.get(name, "false").lower() for name in ("labels", "pushFilters")}
        for name, flag in flags.items():
            if flag not in ("true", "false"):
                raise InvalidOptionError(
                    f"option {name}={given[name]!r} is neither 'true' nor 'false'"
                )
            if flag == "true" and view != "cells":
                raise InvalidOptionError(
                    f"option {name}={given[name]!r} goes with view='cells', not with {view!r}"
                )
        odd = [name for name in ("id", "slice") if view == "catalog" and name in given]
        if odd:
            raise InvalidOptionError(
                f"option {odd[0]}={given[odd[0]]!r} is for one tensor, and the view 'catalog' lists all of them; "
                f"leave it out, or .where(\"id = '...'\") afterwards"
            )
        if view != "features" and "columns" in given:
            raise InvalidOptionError(
                f"option columns={given['columns']!r:.200} goes with view='features', not with {view!r}"
            )
        size = _integer(given, "maxPartitionBytes")
        if size is not None and size < 1:
            raise InvalidOptionError(f"option maxPartitionBytes={size} is below 1")
        return cls(
            storage=_storage(options, given["path"], s3a),
            id=given.get("id"),
            slice=given.get("slice", ""),
            view=view,
            labels=flags["labels"] == "true",
            version=given.get("versionAsOf"),
            timestamp=given.get("timestampAsOf"),
            partition_bytes=size or 32 << 20,
            push_filters=flags["pushFilters"] == "true",
            columns=_names(given["columns"]) if "columns" in given else None,
        )


@dataclass(frozen=True)
class SparkWriteOptions:
    """Options of a write.

    Attributes
    ----------
    storage : Storage
        The table.
    id : str, or None
        The tensor; None where every row brings its own.
    axis : int
        Along which slabs follow each other, and an append continues.
    shape : tuple of int, or None
        Shape of what the slabs make up, needed where they do not span all axes but `axis`; of cells
        the tensor's, by default the least that holds all of them.
    dtype : numpy.dtype, or None
        Of a tensor of cells; that of the column ``value`` by default.
    duplicates : str, or None
        What a cell means that is given twice, as in ``write``; None where nobody said, which an append to a
        tensor with a rule of its own takes as that.
    write : WriteOptions
        How it is stored.
    last_change : int, or None
        What ``jobs/ingest.py`` saw as the number of the tensor's last change, -1 where there was none: the
        write holds only if that is still so. None where nobody has looked.
    resumption : Resumption, or None
        What ``jobs/ingest.py --resume`` knows of earlier runs, for slabs of a given shape and for tensors.
    is_features : bool
        Whether columns are features, ``view="features"``.
    """

    storage: Storage
    id: str | None
    axis: int
    shape: tuple[int, ...] | None
    dtype: np.dtype[Any] | None
    duplicates: str | None
    write: WriteOptions
    last_change: int | None = None
    resumption: Resumption | None = None
    is_features: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], s3a: Mapping[str, str] = _NONE) -> SparkWriteOptions:
        """Parse Spark's options; an unknown one is an error that names the nearest.

        What they leave open of an S3 store is taken from `s3a`, see `tensorlake_spark.spark.cluster.s3a.settings_of`.
        """
        given = _checked(options, _WRITE, "writing")
        tensor_id = given.get("id")
        if tensor_id is not None:
            check_id(tensor_id)
        axes = given.get("axes")
        _check_view(given)
        return cls(
            storage=_storage(options, given["path"], s3a),
            id=tensor_id,
            axis=_integer(given, "axis") or 0,
            shape=_integers(given, "shape"),
            dtype=dtype_of(given["dtype"]) if "dtype" in given else None,
            duplicates=_one_of(given, "duplicates", DUPLICATES),
            write=WriteOptions(
                layout=given.get("layout", "auto"),
                block_shape=_integers(given, "blockShape"),
                chunk_rank=_integer(given, "chunkRank"),
                codec=given.get("codec", "auto"),
                fill_value=_number(given.get("fillValue", "0")),
                axes=None if axes is None else [a.strip() for a in axes.split(",")],
                attrs=_json(given, "attrs"),
                transaction=transaction_of(given),
                order=_integers(given, "order"),
                row_axes=_integers(given, "rowAxes"),
                duplicates=given.get("duplicates", "error"),
                labels=_json(given, "labels"),
                threshold=_share(given, "threshold", DENSE_FROM),
                quantize=given.get("quantize"),
            ),
            last_change=_integer(given, "lastChange"),
            resumption=(
                Resumption.from_json(given["resumption"]) if "resumption" in given else None
            ),
            is_features="view" in given,
        )


def check_values(options: Mapping[str, str]) -> None:
    """Raise an error for an option of a write that no tensor can have; no table and no tensor is looked at.

    Parameters
    ----------
    options : mapping
        Options of ``format("tensor")`` without the path.
    """
    check_names(SparkWriteOptions.parse({"path": "/", **options}).write)


def _check_view(given: Mapping[str, str]) -> None:
    """Raise InvalidOptionError if a write has another view than ``features``, or options that go not with it."""
    if "view" not in given:
        return
    if given["view"] != "features":
        raise InvalidOptionError(
            f"option view={given['view']!r} is not a view that can be written; leave it out for cells, slabs and "
            "tensors, or write columns as features with view='features'"
        )
    if "id" not in given:
        raise InvalidOptionError(
            "the view 'features' needs the option id, the name of the features"
        )
    odd = [name for name in given if name not in _OF_FEATURES]
    if odd:
        raise InvalidOptionError(
            f"option {odd[0]}={given[odd[0]]!r:.100} is not one of the view 'features', which has "
            f"{', '.join(_OF_FEATURES)}"
        )


def _names(text: str) -> tuple[str, ...]:
    """Return the names that an option lists, as ``a,b,c`` or as a JSON array.

    Examples
    --------
    >>> _names("a, b"), _names('["a, b", "c"]')
    (('a', 'b'), ('a, b', 'c'))
    """
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidOptionError(f"option columns={text!r:.200} is not JSON: {error}") from None
        if all(isinstance(name, str) for name in found):
            return tuple(found)
        raise InvalidOptionError(f"option columns={text!r:.200} is not a JSON array of strings")
    return tuple(name.strip() for name in text.split(","))


def transaction_of(options: Mapping[str, str]) -> tuple[str, int] | None:
    """Return name and number of a batch, None if it has none.

    Raises
    ------
    InvalidOptionError
        If one of them is missing, or will not do.
    """
    app, number = options.get("txnAppId"), _integer(options, "txnVersion")
    pair = pair_of(app, number, "txnAppId and txnVersion")
    check_transaction(pair)
    return pair


def _share(options: Mapping[str, str], name: str, usual: float) -> float:
    try:
        return float(options.get(name, usual))
    except ValueError:
        raise InvalidOptionError(
            f"option {name}={options[name]!r} is not a share between 0 and 1"
        ) from None


def _number(text: str) -> Any:
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    raise InvalidOptionError(f"option fillValue={text!r} is not a number")


def _one_of(options: Mapping[str, str], name: str, known: Sequence[str]) -> str | None:
    value = options.get(name)
    if value is not None and value not in known:
        raise InvalidOptionError(
            f"unknown {name} {value!r}{did_you_mean(value, known)}; known are {', '.join(known)}"
        )
    return value


def _json(options: Mapping[str, str], name: str) -> dict[str, Any]:
    text = options.get(name, "{}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidOptionError(f"option {name}={text!r:.200} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidOptionError(f"option {name}={text!r} is not a JSON object")
    return value
