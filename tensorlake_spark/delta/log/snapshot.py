"""One version of a table: which files it has, and what the log says is in them."""

from __future__ import annotations

import datetime as dt
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.exceptions import TableNotFoundError as DeltaTableNotFound

from tensorlake_spark.delta.log import properties, requirements
from tensorlake_spark.delta.log.actions import all_transactions, commit_name, table_description
from tensorlake_spark.delta.log.deletion_vectors import kept_rows, vectors_of
from tensorlake_spark.delta.log.replaying.later_version import as_replayed, read_on
from tensorlake_spark.delta.log.replaying.live_files import (
    LEAST,
    Array,
    Files,
    numbers,
    statistics_of,
)
from tensorlake_spark.delta.log.replaying.remote_log import Mirror, bring, mark_of
from tensorlake_spark.delta.log.replaying.replay import (
    Replayed,
    Transactions,
    commit_mark,
    replay_all,
)
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.time_travel import as_number, as_time, not_opened, travel
from tensorlake_spark.delta.store.memory_maps.mapped_files import MappedFiles
from tensorlake_spark.delta.store.ranges import ANY_SIZE, Remote
from tensorlake_spark.delta.store.storage import Storage, listed, reaching
from tensorlake_spark.errors import (
    InvalidOptionError,
    TableNotFoundError,
    TensorLakeError,
    UnsupportedFeatureError,
    is_denied,
)
from tensorlake_spark.rows.row import SCHEMA

_MANY_APPS = 8

# A table may need them without a list of features, by its writer's version.
_IDENTITY = "identityColumns"

_met: set[str] = set()
"""Where this process has met a table: a listing of its log that shows nothing is looked at again."""

_kept: OrderedDict[tuple[object, ...], Snapshot] = OrderedDict()
"""By table and options of its store, the version that this process's last commit made, or in an object store read."""
_KEEP = 4


def _key(storage: Storage) -> tuple[object, ...]:
    # A child that was forked could read on, but not make checkpoints: it is refused before it writes, not after.
    pid = None if storage.is_local else os.getpid()
    return storage.uri, pid, *sorted(storage.options.items())


class Snapshot:
    """A table at one version.

    Parameters
    ----------
    storage : Storage
        Where it is.
    opened : deltalake.DeltaTable, Mirror or Replayed
        Opened at the version that is meant.
    kind : str, or None
        What it has to be, `TENSORS` or `SAMPLES`; None for any of them.

    Attributes
    ----------
    kind : str
        What it is.
    """

    def __init__(
        self,
        storage: Storage,
        opened: DeltaTable | Mirror | Replayed,
        kind: str | None = TENSORS,
    ) -> None:
        _met.add(storage.uri)
        self.storage = storage
        self._opened = opened
        log: Any = opened if isinstance(opened, DeltaTable) else opened.table
        self._log = log
        is_here = storage.is_local or isinstance(opened, DeltaTable)
        self._mark = None if is_here else opened.mark
        self.version = opened.version if isinstance(opened, Replayed) else int(self._log.version())
        self._pid = os.getpid()
        self._is_writable = False
        self._as_replayed: Replayed | None = None
        # Application transactions: all of them where the log was read for that, else those that were asked for.
        known = None if isinstance(opened, DeltaTable) else opened.transactions
        self._transactions: Transactions | dict[str, int] | None = known
        self._asked: dict[str, int | None] = {}
        protocol = self._log.protocol()
        self.reader_features = frozenset(protocol.reader_features or ())
        self.writer_version = int(protocol.min_writer_version)
        self.writer_features = frozenset(protocol.writer_features or ())
        self.kind = requirements.kind_of(self.configuration)
        asked = requirements.asked_of_readers(protocol, self.configuration)
        requirements.check_readable(storage.uri, asked)
        requirements.check_kind(storage.uri, kind, self._log.schema(), self.configuration)

    @cached_property
    def table(self) -> DeltaTable:
        """The table itself, for what was not read, or not kept, of its log."""
        if isinstance(self._opened, DeltaTable):
            return self._opened
        with reaching(self.storage):
            return listed(
                lambda: DeltaTable(
                    self.storage.uri, self.version, storage_options=self.storage.log_options
                ),
                True,
            )

    @cached_property
    def maps(self) -> MappedFiles:
        """Its data files as they are mapped for reads."""
        return MappedFiles()

    @cached_property
    def remote(self) -> Remote | None:
        """Its data files as `Remote` reads them, and the commits that `stamp` reads; None of a local table."""
        if self.storage.is_local:
            return None
        names = [commit_name(v) for v in (self.version, self.version + 1)]
        files = zip(self.files.path, self.files.size.tolist(), strict=True)
        return Remote(self.storage, {**dict.fromkeys(names, ANY_SIZE), **dict(files)}, self._pid)

    def reading_by(self, make: Callable[[Remote], Remote]) -> Snapshot:
        """Return the same version with what `make` makes of `remote`; itself if it is a local table."""
        if self.remote is None:
            return self
        out = object.__new__(Snapshot)
        out.__dict__.update(self.__dict__, remote=make(self.remote))
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        # A DeltaTable does not pickle: an executor opens the same version itself.
        return Snapshot.open, (self.storage, self.version, None, self.kind)

    @classmethod
    def open(
        cls,
        storage: Storage,
        version: int | str | None = None,
        timestamp: str | dt.datetime | None = None,
        kind: str | None = TENSORS,
    ) -> Snapshot:
        """Open a table, at its newest version unless one is named: by a number, a tag, or a time.

        Raises
        ------
        TableNotFoundError
            If there is no Delta table at that place.
        InvalidOptionError
            If the version, the tag or the time is not one that the log still has.
        FormatError
            If the table is not of the kind that is asked for.
        UnsupportedFeatureError
            If it has a Delta feature that this package cannot read.
        StorageError
            If the store refuses, or does not answer.
        """
        if version is not None and timestamp is not None:
            raise InvalidOptionError("version and timestamp exclude each other; give one of them")
        options = storage.log_options
        if version is not None and not isinstance(version, str):
            version = as_number(version)
        with reaching(storage):
            if storage.is_local and timestamp is None and not isinstance(version, str):
                read = replay_all(storage, version)
                if read is not None:
                    return cls(storage, read, kind)
            if timestamp is None and not (storage.is_local or isinstance(version, str)):
                mirror = bring(storage, version)
                if mirror is not None:
                    return cls(storage, mirror, kind)
            try:
                table = listed(
                    lambda: DeltaTable(storage.uri, storage_options=options), storage.uri in _met
                )
            except DeltaTableNotFound as error:
                requirements.check_folders(storage)
                raise TableNotFoundError(f"there is no Delta table at {storage.uri}") from error
            except (DeltaError, ValueError) as error:
                requirements.check_folders(storage)
                if isinstance(error, TensorLakeError) or is_denied(error):  # of a checkpoint
                    raise
                raise not_opened(storage, error) from error
        if version is not None:
            travel(table, storage, version)
        elif timestamp is not None:
            travel(table, storage, as_time(timestamp))
        return cls(storage, table, kind)

    @classmethod
    def newest(cls, storage: Storage, kind: str | None = TENSORS) -> Snapshot:
        """Open a table at its newest version, from the last one that this process has written where it can.

        Of a table in an object store one that it has read will do: to open it anew takes more round trips.

        The log is asked for later commits each time. Raises as `open`.
        """
        kept = _kept.get(_key(storage))
        later = None if kept is None else kept.read_on()
        if later is None or kind not in (None, later.kind):
            opened = cls.open(storage, kind=kind)
            return opened if storage.is_local else cls.keep(opened)
        return cls.keep(later)

    @staticmethod
    def keep(snapshot: Snapshot) -> Snapshot:
        """Keep a version of a table for `newest`, and return it."""
        _kept[_key(snapshot.storage)] = snapshot
        while len(_kept) > _KEEP:
            _kept.popitem(last=False)
        return snapshot

    def read_on(self) -> Snapshot | None:
        """Return the newest version, with later commits replayed on this one; None where it has to be opened."""
        if "deletionVectors" in self.reader_features:
            return None
        with reaching(self.storage):
            before = self._replayable()
            later = None if before is None else read_on(self.storage, before, self._pid)
        if later is None:
            return None
        return self if later is before else Snapshot(self.storage, later, self.kind)

    def _replayable(self) -> Replayed | None:
        """Return what later commits can be replayed on."""
        if isinstance(self._opened, Replayed):
            return self._opened
        if self._as_replayed is None and "v2Checkpoint" not in self.reader_features:
            self._as_replayed = as_replayed(self.storage, self._opened, self.version, self.files)
        return self._as_replayed

    @classmethod
    def expect(cls, storage: Storage, kind: str = TENSORS) -> Snapshot:
        """Open a table that should be there, for it could not be made: somebody else was first."""
        _met.add(storage.uri)
        try:
            return cls.newest(storage, kind)
        except TableNotFoundError:
            _met.discard(storage.uri)
            raise

    def check_writable(self) -> None:
        """Raise UnsupportedFeatureError if deltalake cannot commit to this table; looked at once."""
        if self._is_writable:
            return
        features = self.writer_features | ({_IDENTITY} if self.writer_version == 6 else set())
        requirements.check_writable(
            self.storage.uri, self.kind, self._log, features, self.configuration
        )
        self._is_writable = True

    @property
    def configuration(self) -> Mapping[str, str]:
        """Properties of the table."""
        found: Mapping[str, str] = self._log.metadata().configuration
        return found

    @property
    def table_id(self) -> str:
        """What Delta calls the table: one that is made anew at its place has another id."""
        found: str = self._log.metadata().id
        return found

    def described(
        self, schema: Schema, configuration: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return what a commit says of the table, with other columns, and maybe other properties."""
        found = self._log.metadata()
        return table_description(
            found.id,
            schema.to_json(),
            found.created_time,
            found.configuration if configuration is None else configuration,
            found.partition_columns,
            name=found.name,
            description=found.description,
        )

    @property
    def is_append_only(self) -> bool:
        """Whether rows may not leave the table."""
        found: str = self._log.metadata().configuration.get("delta.appendOnly", "")
        return found.lower() == "true"

    def check_removing(self, operation: str) -> None:
        """Raise UnsupportedFeatureError if rows may not leave the table."""
        if self.is_append_only:
            raise UnsupportedFeatureError(
                f"the table at {self.storage.uri} takes appends only, and a {operation} takes rows away; ALTER TABLE "
                "... SET TBLPROPERTIES ('delta.appendOnly' = 'false') allows it"
            )

    def stamp(self) -> int | None:
        """Return what marks this version while it is the newest, None if it is not, or cannot be told.

        Two names are looked at: the commit of this version, and that it has no successor.
        """
        known, self._mark = self._mark, None
        if known is not None:  # it was brought here just now
            return known
        if self.remote is not None:
            with reaching(self.storage):
                return mark_of(self.remote, self.version)
        with reaching(self.storage):
            mark = commit_mark(self.storage, self.version)
        if isinstance(self._opened, Replayed) and mark != self._opened.mark:
            return None
        return None if self.has_successor() else mark

    def has_successor(self) -> bool:
        """Whether the log has a later version now; one name is looked at."""
        with reaching(self.storage):
            (successor,) = self.storage.modified([commit_name(self.version + 1)])
        return successor is not None

    def newer(self) -> Snapshot:
        """Return the newest version, for a caller who drops this one: its log is read on from here."""
        if isinstance(self._opened, Replayed):
            return Snapshot.newest(self.storage, self.kind)
        if isinstance(self._opened, Mirror) and "table" not in self.__dict__:
            return Snapshot.open(self.storage, kind=self.kind)
        with reaching(self.storage):
            listed(self.table.update_incremental, True)
        if self.table.version() == self.version:
            return Snapshot.open(self.storage, kind=self.kind)
        return Snapshot(self.storage, self.table, self.kind)

    def transaction(self, app_id: str) -> int | None:
        """Return the last version that an application transaction committed, None before the first."""
        if self._transactions is not None:
            return self._transactions.get(app_id)
        if app_id not in self._asked:  # deltalake reads the log for it
            with reaching(self.storage):
                found = self.table.transaction_version(app_id)
            self._asked[app_id] = None if found is None else int(found)
        return self._asked[app_id]

    def transactions(self, app_ids: Sequence[str]) -> dict[str, int | None]:
        """Return `transaction` of several applications; of many by reading the log only once."""
        found = self._transactions
        if (
            found is None
            and len(app_ids) > _MANY_APPS
            and "v2Checkpoint" not in self.reader_features
        ):
            found = all_transactions(self.storage, self.version)
        if found is None:
            return {app_id: self.transaction(app_id) for app_id in app_ids}
        return {app_id: found.get(app_id) for app_id in app_ids}

    @cached_property
    def file_actions(self) -> pa.Table:
        """What the log says of every live file."""
        with reaching(self.storage):
            if not isinstance(self._opened, Replayed):
                return pa.table(self._log.get_add_actions(flatten=True))
            mirror = None if self.storage.is_local else bring(self.storage, self.version)
            table = self.table if mirror is None else mirror.table
            actions = pa.table(table.get_add_actions(flatten=True))
        # In the order of `files`.
        return actions.take(
            pc.index_in(pa.array(self.files.path, pa.string()), actions["path"].combine_chunks())
        )

    @cached_property
    def first_seq(self) -> Array:
        """For each file of `files` the least ``seq``, the least int64 where the log does not say."""
        return numbers(self.file_actions, "min.seq", LEAST)

    @cached_property
    def files(self) -> Files:
        """The live files with the log's statistics; UnsupportedFeatureError if the table is partitioned."""
        requirements.check_whole(self.storage.uri, self._log.metadata().partition_columns)
        if isinstance(self._opened, Replayed):
            return self._opened.files
        return Files.of(self.file_actions, self.storage.uri, self.kind)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each live file stands in `files`, by its path."""
        return {path: place for place, path in enumerate(self.files.path)}

    def size_of(self, path: str) -> int:
        """Return how many bytes a live file has."""
        return int(self.files.size[self.places[path]])

    def statistics(self, place: int) -> dict[str, Any]:
        """Return what the log says of our columns in one of `files`, in the form of the log."""
        return statistics_of(self.file_actions, place)

    @property
    def file_bytes(self) -> int:
        """Target size of new data files; raises FormatError if the table's property is none."""
        return properties.file_bytes(self._log.metadata().configuration, self.storage.uri)

    @property
    def retention(self) -> dt.timedelta:
        """How long files that left the table are kept; raises FormatError if the table's property is none."""
        return properties.retention(self._log.metadata().configuration, self.storage.uri)

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the table: our columns, then those that users added."""
        table: Any = pa.schema(self._log.schema().to_arrow())
        if self.kind == SAMPLES:
            return table
        extra = [field for field in table if field.name not in SCHEMA.names]
        return pa.schema([*SCHEMA, *extra])

    def kept(self, path: str) -> Array | None:
        """Return which rows of a data file are still there, None if it has no deletion vector."""
        return self.deletions.get(path)

    @cached_property
    def deletions(self) -> Mapping[str, Array]:
        """For each file with a deletion vector a mask of its rows that are still there."""
        if "deletionVectors" not in self.reader_features:
            return {}
        rows = dict(zip(self.files.path, self.files.rows.tolist(), strict=True))
        return kept_rows(self.storage, self.table, rows)

    def vectors(self, paths: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the deletion vectors of some data files as the log has them; files without one are left out."""
        marked = [path for path in paths if path in self.deletions]
        return vectors_of(self.storage, self.version, marked) if marked else {}
