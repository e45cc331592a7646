"""Views that a dataset keeps by name: the query's text, its sources, and the numbers of the samples in their order.

Each is a file of Arrow in the folder `FOLDER`, which readers of Delta and VACUUM leave alone. Tags keep the versions
of this dataset that it reads from vacuum; versions of other datasets it only names.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.derived.lineage import package_version
from tensorlake_spark.delta.log import tags
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import TAG
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    InvalidTensorError,
    did_you_mean,
)
from tensorlake_spark.tensor.spec import check_id

Array = np.ndarray[Any, Any]

FOLDER = "_views"
"""In which the files lie."""

_PLAIN = re.compile(r"[\w-]")
_ENCODED = re.compile(r"~([0-9a-f]+)~")
_SUFFIX = ".arrow"
_LONGEST = 255  # of the name of a file on common file systems
_SAID = b"tensorlake.view"


@dataclass(frozen=True)
class SavedView:
    """What a dataset keeps of a view; `Dataset.views` has them by name.

    Attributes
    ----------
    text : str
        The query.
    sources : dict of str to (str, int or None)
        By the names in the query where each source is, and its version.
    columns : tuple of str
        What the query gives.
    computed : tuple of str
        Those of them that it computes.
    parameters : dict
        The parameters that are no arrays.
    main : str, or None
        The source whose samples are the rows; None where a row is no sample.
    sids : int64 ndarray, or None
        The numbers of these samples, in order.
    created, package : str
        When it was saved, in UTC, and by which version of tensorlake_spark.
    rows : int64 ndarray, or None
        Which rows of the query's answer these are, in order; None for all.
    """

    text: str
    sources: Mapping[str, tuple[str, int | None]]
    columns: tuple[str, ...]
    computed: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    main: str | None = None
    sids: Array | None = field(default=None, repr=False, compare=False)
    created: str = ""
    package: str = ""
    rows: Array | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return 0 if self.sids is None else len(self.sids)


def save(storage: Storage, name: str, view: SavedView, replace: bool) -> None:
    """Keep a view by a name, and the versions of the dataset that it reads.

    Raises
    ------
    InvalidOptionError
        If the name is taken or impossible, or a version is gone.
    """
    check_name(name)
    before = _find(storage, name)
    if before is not None and not replace:
        raise InvalidOptionError(
            f"the dataset at {storage.uri} has a view {name!r} already; replace=True puts this one in its place"
        )
    kept = _tags(storage, name, view)
    for tag, version in kept.items():
        tags.tag(storage, tag, version, replace=True)
    now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    said = {**asdict(view), "created": now, "package": package_version()}
    table = pa.table(
        {
            name: pa.array(array, pa.int64())
            for name in ("sids", "rows")
            if (array := said.pop(name)) is not None
        }
    )
    table = table.replace_schema_metadata({_SAID: json.dumps(said).encode()})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    with reaching(storage):
        storage.put_whole(_path(name), sink.getvalue())
    if before is not None:
        _untag(storage, _tags(storage, name, before).keys() - kept.keys())


def find(storage: Storage, name: str) -> SavedView:
    """Return the view of a name.

    Raises
    ------
    InvalidOptionError
        If there is none.
    CorruptDataError
        If its file is damaged.
    """
    check_name(name)
    found = _find(storage, name)
    if found is None:
        raise InvalidOptionError(
            f"the dataset at {storage.uri} has no view {name!r}{did_you_mean(name, names(storage))}"
        )
    return found


def names(storage: Storage) -> list[str]:
    """Return the names of all views."""
    with reaching(storage):
        found = [info.base_name for info in storage.files_in(FOLDER)]
    return sorted(
        _ENCODED.sub(lambda code: chr(int(code[1], 16)), name.removesuffix(_SUFFIX))
        for name in found
        if name.endswith(_SUFFIX) and not name.startswith(".")
    )


def delete(storage: Storage, name: str) -> None:
    """Forget a view; the versions that it kept are then like any other.

    Raises
    ------
    InvalidOptionError
        If there is none.
    """
    found = find(storage, name)
    with reaching(storage):
        storage.delete(_path(name))
    _untag(storage, {*_tags(storage, name, found)})


def check_name(name: Any) -> str:
    """Return `name` if it may name a view: what a tag may be; raises InvalidOptionError otherwise."""
    if not isinstance(name, str):
        raise InvalidOptionError(f"the name of a view is a text, not {name!r:.80}")
    try:
        check_id(name)
    except InvalidTensorError as error:
        raise InvalidOptionError(str(error).replace("tensor id", "view", 1)) from None
    tags.check_tag(f"view/{name}")
    return name


def _tags(storage: Storage, name: str, view: SavedView) -> dict[str, int]:
    """Return the tags that keep the versions of this dataset that a view reads."""
    return {
        f"view/{name}/{source}": version
        for source, (uri, version) in view.sources.items()
        if uri == storage.uri and version is not None
    }


def _untag(storage: Storage, gone: Any) -> None:
    for tag in sorted(gone):
        if (Snapshot.open(storage, kind=None).transaction(TAG + tag) or -1) >= 0:
            tags.untag(storage, tag)


def _path(name: str) -> str:
    plain = (c if _PLAIN.match(c) and c.isascii() else f"~{ord(c):x}~" for c in name)
    return f"{FOLDER}/{''.join(plain)}{_SUFFIX}"


def _find(storage: Storage, name: str) -> SavedView | None:
    length = len(_path(name)) - len(FOLDER) - 1
    if storage.is_local and length > _LONGEST:
        raise InvalidOptionError(
            f"view {name!r:.40} would be a file whose name has {length} characters, and {_LONGEST} is the most; "
            "choose a shorter name (a character that is no letter of A to Z, digit or - takes several)"
        )
    with reaching(storage):
        data = storage.find_whole(_path(name))
    if data is None:
        return None
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        said = json.loads(table.schema.metadata[_SAID])
        sources = {key: (uri, version) for key, (uri, version) in said["sources"].items()}
        found = dict(zip(table.column_names, table.columns, strict=True))
        sids, rows = (found[n].to_numpy() if n in found else None for n in ("sids", "rows"))
        return SavedView(
            said["text"], sources, tuple(said["columns"]), tuple(said["computed"]),
            said["parameters"], said["main"], sids, said["created"], said["package"], rows,
        )  # fmt: skip
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise CorruptDataError(
            f"{storage.uri}/{_path(name)} holds no view: {error}; delete the file and save the view again"
        ) from error
