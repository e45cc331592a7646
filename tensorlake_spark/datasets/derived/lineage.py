"""What a dataset keeps of where its samples came from: sources and versions, the query, digests.

The table's property `PROPERTY` says it as JSON, from its first version on. What is known only when all is written,
the digests and for each sample its number in the sources, lies in a file of `FOLDER`, whose name the property has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.derived.column_digests import whole_digest
from tensorlake_spark.datasets.samples.appending import COUNTER
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]

PROPERTY = "tensorlake.lineage"
"""The property of the table."""

FOLDER = "_lineage"
"""In which the files lie; readers of Delta and VACUUM leave it alone."""

_SAID = b"tensorlake.lineage"


@dataclass(frozen=True)
class Source:
    """A dataset, or another table, that samples came from.

    Attributes
    ----------
    name : str
        What the query calls it.
    uri : str
        Where it is.
    version : int, or None
        Which version was read; None of what has no versions.
    columns : dict of str to str
        For each column that was copied as it was stored, its name there.
    fetched : dict of str to str
        The same for columns of links, whose targets were copied in.
    table_id : str
        What Delta calls the table: one that is made anew at its place has another id.
    """

    name: str
    uri: str
    version: int | None
    columns: Mapping[str, str] = field(default_factory=dict)
    fetched: Mapping[str, str] = field(default_factory=dict)
    table_id: str = ""


@dataclass(frozen=True)
class Lineage:
    """Where the samples of a dataset came from; `Dataset.lineage` returns it.

    Attributes
    ----------
    sources : tuple of Source
        What was read.
    query : str, or None
        The text of the query; None of a plain copy.
    package : str
        The version of tensorlake_spark that made it.
    created : str
        When, in UTC.
    computed : tuple of str
        Columns that are values of the query's rows: what it computed, and plain columns. Others were copied.
    file : str
        The file with digests and numbers.
    samples : int
        How many were made; -1 while it is not complete.
    digests : dict of str to str
        SHA-256 of each column as it was made, see `column_digests`.
    """

    sources: tuple[Source, ...]
    query: str | None
    package: str
    created: str
    computed: tuple[str, ...] = ()
    file: str = ""
    samples: int = -1
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """One SHA-256 for all columns."""
        return whole_digest(self.digests)

    def to_json(self) -> str:
        """Return what the property has: all but samples and digests."""
        said = asdict(self)
        for name in ("samples", "digests"):
            del said[name]
        return json.dumps(said, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Lineage:
        """Return what `to_json` wrote; what a later version of the package adds is left out.

        Raises
        ------
        CorruptDataError
            If it is not of this form.
        """
        try:
            said = json.loads(text)
            sources = tuple(
                Source(**{name: one[name] for name in Source.__dataclass_fields__ if name in one})
                for one in said["sources"]
            )
            return cls(
                sources,
                said["query"],
                said["package"],
                said["created"],
                tuple(said["computed"]),
                said["file"],
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CorruptDataError(
                f"the table's property {PROPERTY} is {text[:80]!r}, which is not a lineage; another program wrote it"
            ) from error

    def __str__(self) -> str:
        lines = [
            f"{source.name:<10} {source.uri}"
            + ("" if source.version is None else f", version {source.version}")
            for source in self.sources
        ]
        if self.query is not None:
            lines.append(f"query      {' '.join(self.query.split())}")
        if self.computed:
            lines.append(f"by query   {', '.join(self.computed)}")
        lines.append(f"made       {self.created} by tensorlake_spark {self.package}")
        if self.samples >= 0:
            lines.append(f"samples    {self.samples}, sha256 {self.digest}")
        return "\n".join(lines)


def package_version() -> str:
    """Return the version of this package."""
    return str(sys.modules["tensorlake_spark"].__version__)


def is_unfinished(snapshot: Snapshot) -> bool:
    """Whether a table is a copy whose samples are not there yet: one is at work, or was killed.

    Parameters
    ----------
    snapshot : Snapshot
        The newest version.
    """
    return PROPERTY in snapshot.configuration and snapshot.transaction(COUNTER) is None


def lineage_of(snapshot: Snapshot) -> Lineage | None:
    """Return what a version of a dataset says of its lineage; None where it says nothing.

    Raises
    ------
    CorruptDataError
        If it cannot be read.
    """
    text = snapshot.configuration.get(PROPERTY)
    if text is None:
        return None
    found = Lineage.from_json(text)
    known = _read(snapshot.storage, found.file)
    if known is None:
        return found
    said = _said(known, found.file)
    return Lineage(
        found.sources,
        found.query,
        found.package,
        found.created,
        found.computed,
        found.file,
        int(said["samples"]),
        said["digests"],
    )


def source_sids(storage: Storage, lineage: Lineage) -> list[Array]:
    """Return for each source the numbers of the samples there, by the number here; -1 where it has none.

    Raises
    ------
    CorruptDataError
        If the file with them is gone.
    """
    found = _read(storage, lineage.file)
    if found is None:
        raise CorruptDataError(
            f"{storage.uri}/{FOLDER}/{lineage.file} is gone, which says where each sample came from; what else the "
            "lineage says is in the table's properties"
        )
    return [column.to_numpy() for column in found.columns]


def write_rows(
    storage: Storage, lineage: Lineage, sids: list[Array], found: Mapping[str, str], samples: int
) -> None:
    """Write the file with digests and numbers."""
    said = {"samples": samples, "digests": dict(found)}
    names = [f"source{number}" for number in range(len(sids))]
    table = pa.table([pa.array(one, pa.int64()) for one in sids], names=names)
    table = table.replace_schema_metadata({_SAID: json.dumps(said).encode()})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    with reaching(storage):
        storage.put_whole(f"{FOLDER}/{lineage.file}", sink.getvalue())


def _read(storage: Storage, name: str) -> pa.Table | None:
    with reaching(storage):
        data = storage.find_whole(f"{FOLDER}/{name}")
    if data is None:
        return None
    try:
        return pa.ipc.open_file(pa.py_buffer(data)).read_all()
    except pa.ArrowInvalid as error:
        raise CorruptDataError(
            f"{storage.uri}/{FOLDER}/{name} is not a file of Arrow: {error}"
        ) from error


def _said(table: pa.Table, name: str) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads((table.schema.metadata or {})[_SAID])
        return {"samples": said["samples"], "digests": said["digests"]}
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptDataError(f"{FOLDER}/{name} has no digests; it was changed") from error
