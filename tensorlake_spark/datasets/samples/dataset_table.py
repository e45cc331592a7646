"""Where a dataset is, and which version of it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import with_stored_names
from tensorlake_spark.datasets.apart.large_samples import TILE_BYTES, TILE_PROPERTY, tile_bytes_of
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.links.link_columns import looked_up
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.nested import check_links, link_in
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    InvalidOptionError,
    TableNotFoundError,
    UnknownLabelError,
    did_you_mean,
    listed_columns,
)

if TYPE_CHECKING:
    from tensorlake_spark.datasets.samples.sample_selection import Where

Array = np.ndarray[Any, Any]


class DatasetTable:
    """A dataset at one version.

    It shows the version that was the newest when it was opened, moves on with what is written through it, and
    with `refresh`.

    Parameters
    ----------
    storage : Storage
        Where it is.
    snapshot : Snapshot, or None
        The version; None while there is no table.
    pinned : bool
        Whether it was opened at a version that was named, and is for reading only.
    tile_bytes : int
        The bound for `tile_bytes` if the table is created.
    rules : LinkRules, optional
        What links may do.
    """

    def __init__(
        self,
        storage: Storage,
        snapshot: Snapshot | None,
        pinned: bool = False,
        tile_bytes: int = TILE_BYTES,
        rules: LinkRules | None = None,
    ) -> None:
        self._rules = LinkRules() if rules is None else rules
        self._storage = storage
        self._pinned = pinned
        self._tile_bytes = tile_bytes
        self._stored: StoredSamples | None = None
        self._parts: StoredParts | None = None
        self._schema = SampleSchema({})
        self._fields: pa.Schema | None = None
        if snapshot is not None:
            self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        self._stored = StoredSamples(snapshot)
        fields = snapshot.schema
        # Most commits leave the columns as they are, and to make a class of 100,000 names anew takes 0.2 s.
        if self._fields is None or not fields.equals(self._fields, check_metadata=True):
            self._schema, self._fields = SampleSchema.from_arrow(fields), fields
        self._parts = StoredParts(self._stored, self._schema, self._rules)
        self._tile_bytes = tile_bytes_of(snapshot.configuration)

    @property
    def uri(self) -> str:
        """Where the dataset is."""
        return self._storage.uri

    @property
    def version(self) -> int | None:
        """The version that is shown; None while there is no table."""
        return None if self._stored is None else self._stored.snapshot.version

    @property
    def stored(self) -> StoredSamples:
        """What is stored; raises TableNotFoundError while there is no table."""
        if self._stored is None:
            raise TableNotFoundError(
                f"the dataset at {self.uri} has no samples yet, and so no columns; extend it first"
            )
        return self._stored

    @property
    def parts(self) -> StoredParts:
        """What is stored, with the tables inside; raises TableNotFoundError while there is no table."""
        self.stored  # noqa: B018 # raises
        assert self._parts is not None  # nosec B101 # for mypy
        return self._parts

    @property
    def tile_bytes(self) -> int:
        """Bytes above which an array, or a raw image, is kept as tiles.

        A part of such a sample is read by its tiles alone. It is a property of the table, so that all writers do
        the same.
        """
        return self._tile_bytes

    @property
    def schema(self) -> SampleSchema:
        """The columns and their types, by name; without ``sid``."""
        return self._schema

    @property
    def sids(self) -> Array:
        """The numbers of all samples, in order: int64, read-only. A number is never given twice."""
        return np.zeros(0, np.int64) if self._stored is None else self._stored.sids

    def _sids_of(self, positions: Array) -> Array:
        return self.sids[positions] if self._stored is None else self._stored.sids_of(positions)

    def __len__(self) -> int:
        return 0 if self._stored is None else len(self._stored)

    def refresh(self) -> None:
        """Show the newest version.

        Raises
        ------
        InvalidOptionError
            If the dataset was opened at a version.
        """
        self._check_writable()
        self._show(Snapshot.newest(self._storage, SAMPLES))

    def type_of(self, name: str) -> Type:
        """Return the type of a column; raises UnknownLabelError, a KeyError, if there is none."""
        if name not in self._schema:
            raise UnknownLabelError(
                f"the dataset at {self.uri} has no column {name!r}{did_you_mean(name, self._schema)}; "
                + (
                    f"its columns are {', '.join(self._schema)}"
                    if self._schema
                    else "it has none yet: extend it first"
                )
            )
        return self._schema[name]

    def _names(self, columns: Sequence[str] | None, sid: bool = False) -> list[str]:
        if columns is None:
            return list(self.schema)
        found = listed_columns(columns)
        for name in found:
            if not isinstance(name, str):
                raise InvalidOptionError(f"columns has {name!r:.80} in it, which is not a name")
            if not (sid and name == SID):
                self.type_of(name)
        return found

    def _looked_up(self, name: str, kind: Type, values: Any, first: int = 0) -> Any:
        """Return values that a user gave for a column: links with what is known of their targets."""
        if link_in(kind) is None:
            return values
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            values = values.to_pylist()
        return looked_up(values, kind, self._rules, name, first)

    def positions_where(self, where: str) -> Array:
        """Return the positions of the samples for which a condition is true, in order.

        Parameters
        ----------
        where : str
            SQL on the scalar columns and on the fields of media, such as ``image.height > 512 AND label = 'cat'``.

        Raises
        ------
        InvalidOptionError
            If it is not such a condition; the message shows the place, and what is allowed.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.positions_where("size > 3").tolist()
        [1, 2]
        """
        found = self.parsed(where)
        return np.zeros(0, np.int64) if self._parts is None else found.positions(self._parts)

    def parsed(self, where: str) -> Where:
        """Return a parsed condition; raises as `positions_where`."""
        from tensorlake_spark.datasets.samples.where import parse_where  # sqlglot takes a while

        stored = self._stored
        table = self._schema.to_arrow() if stored is None else stored.schema
        return parse_where(where, self._schema, table)

    def _check_writable(self) -> None:
        if self._pinned:
            raise InvalidOptionError(
                f"this dataset shows version {self.version} of {self.uri}, for reading only; open it without "
                "version and timestamp to write"
            )

    def _created(self, schema: SampleSchema) -> Snapshot:
        """Return the table's version that is shown, made first where there is none."""
        if self._stored is None:
            check_links(schema)
            properties = {TILE_PROPERTY: str(self._tile_bytes)}
            columns = with_stored_names(schema.to_arrow())
            self._show(create_samples_table(self._storage, columns, properties))
        assert self._stored is not None  # nosec B101 # for mypy
        return self._stored.snapshot
