"""New samples: encoded, numbered, written, and made visible by one commit."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import stored_name
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter, SplitSamples
from tensorlake_spark.datasets.apart.pinning import Written, pins
from tensorlake_spark.datasets.samples.sample_encoding import encoded, numbered
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import (
    ATTEMPTS,
    Change,
    RepeatedBatch,
    StaleChange,
    commit,
    transaction_done,
)
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_numbers import greatest_sid, taken_sid
from tensorlake_spark.delta.samples.sample_writer import SORTED, SampleWriter
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    CorruptDataError,
    InvalidOptionError,
    TensorLakeError,
    outrun,
)
from tensorlake_spark.rows.row_sizes import nbytes_of
from tensorlake_spark.writing.app_transaction import check_transaction, pair_of

logger = logging.getLogger("tensorlake_spark")

COUNTER = "dataset/sid"
"""The application transaction whose number is the next sid."""

HELD_BYTES = 64 << 20
"""A smaller append gets its numbers by its own commit; a larger one reserves them by another commit."""

RESERVED = 1 << 32
"""Numbers that an append of unknown length reserves; those it did not need go back, if nobody else came after."""

_LAST = 1 << 62

_Checked = tuple[SplitSamples, dict[str, pa.Array], int]


def check_batch(transaction: Any) -> None:
    """Raise InvalidOptionError unless it is None, or the name of an application and the number of a batch.

    A dataset counts its own things under names that begin with ``dataset/``.

    Examples
    --------
    >>> check_batch(("nightly", 7))
    """
    check_transaction(transaction)
    if transaction is not None and transaction[0].startswith("dataset/"):
        raise InvalidOptionError(
            f"the name {transaction[0]!r:.200} of who writes the batches begins with 'dataset/', under which a dataset "
            "counts its samples and parts; choose another name"
        )


def batch_of(app: str | None, version: int | None) -> tuple[str, int] | None:
    """Return the name of a writer and the number of its batch as one, None if neither is given.

    Raises
    ------
    InvalidOptionError
        If one of them is missing, or will not do.

    Examples
    --------
    >>> batch_of("nightly", 7)
    ('nightly', 7)
    """
    pair = pair_of(app, version, "txn_app_id and txn_version")
    check_batch(pair)
    return pair


def next_sid(snapshot: Snapshot) -> int:
    """Return the number that the next sample gets: above all that were given, and those of rows that others added.

    Raises
    ------
    CorruptDataError
        If others gave numbers that leave none above them.
    """
    found = snapshot.transaction(COUNTER) or 0
    if all(path.startswith(SORTED) for path in snapshot.files.path):
        return found
    # A plain writer of Delta gives numbers without the counter.
    most = greatest_sid(snapshot)
    if most >= _LAST:
        raise CorruptDataError(
            f"{snapshot.storage.uri} has a row with {SID} {most}, which another writer added; numbers above {_LAST} "
            "are not given: give it a smaller one by Delta's SQL"
        )
    return max(found, most + 1)


def kept_counter(snapshot: Snapshot) -> dict[str, tuple[int | None, int]]:
    """Return what a commit that takes files out does to the counter, as `Change.counters` has it; mostly nothing.

    A number that a plain writer gave is told by its file alone, and could be given again once that file is gone.
    """
    given = snapshot.transaction(COUNTER)
    try:
        following = next_sid(snapshot)
    except CorruptDataError:  # the row with that number has to be removable
        return {}
    return {} if following == (given or 0) else {COUNTER: (given, following)}


def _still_next(snapshot: Snapshot, first: int) -> Callable[[Snapshot], None]:
    """Return what raises StaleChange for a later version in which a plain writer has given the next numbers."""

    def check(newest: Snapshot) -> None:
        if newest.version != snapshot.version and next_sid(newest) != first:
            raise StaleChange(None, newest)

    return check


def check_free(files: Sequence[DataFile], newest: Snapshot) -> None:
    """Raise ConcurrentWriteError if a plain writer has given numbers that were reserved for the samples of files."""
    stats = [json.loads(file.stats) for file in files]
    taken = taken_sid(newest, [(s["minValues"][SID], s["maxValues"][SID]) for s in stats])
    if taken is not None:
        raise ConcurrentWriteError(
            f"another writer added a row with {SID} {taken} to {newest.storage.uri}, which was reserved; nothing was "
            "committed: give that row a number that is free, or delete it, by Delta's SQL, and do it again"
        )


def append(
    storage: Storage,
    snapshot: Snapshot,
    schema: SampleSchema,
    batches: Iterable[dict[str, Any]],
    operation: str,
    transaction: tuple[str, int] | None = None,
) -> Snapshot:
    """Add samples in one commit, and return the version that has them.

    Parameters
    ----------
    storage : Storage
        The dataset.
    snapshot : Snapshot
        A version of it.
    schema : SampleSchema
        Its columns.
    batches : iterable of dict
        Columns of samples as the user gave them, see `sample_input.batches_of`.
    operation : str
        What it is, for the history.
    transaction : (str, int), optional
        The caller's own application transaction: a repeated batch changes nothing.

    Raises
    ------
    InvalidSampleError
        If a sample does not fit. Nothing is committed then.
    ConcurrentWriteError
        If other writers won every attempt.
    """
    if transaction_done(snapshot, transaction):
        logger.info("%s has the batch %s already; nothing was written", storage.uri, transaction)
        return snapshot
    snapshot.check_writable()
    try:
        return _appended(storage, snapshot, schema, batches, operation, transaction)
    except RepeatedBatch as done:  # another run of the batch was faster
        logger.info("%s", done)
        return done.snapshot


def _appended(
    storage: Storage,
    snapshot: Snapshot,
    schema: SampleSchema,
    batches: Iterable[dict[str, Any]],
    operation: str,
    transaction: tuple[str, int] | None,
) -> Snapshot:
    parts = PartsWriter(storage, snapshot, schema)
    first = next_sid(snapshot)
    given = 0
    rest = iter(batches)
    with ExitStack() as stack:
        writer = stack.enter_context(_writer(storage, schema, snapshot))
        if not parts.has_apart:
            for given_columns in rest:
                columns = parts.opened(given_columns, given)
                if parts.has_large(columns):  # its tiles have its number in their name
                    rest = chain(iter([columns]), rest)
                    break
                count = count_of(columns)
                arrays = encoded(columns, schema, given, count)
                # With the numbers that they have if no other writer is faster.
                writer.add(numbered(arrays, schema, first + given))
                given += count
                del arrays  # Arrow uses its memory again
                if writer.given_bytes > HELD_BYTES:
                    break
            else:
                files = writer.finish()
                stack.pop_all()  # from here on they are the commit's
                return _commit_numbered(storage, snapshot, schema, files, operation, transaction)
            columns = given_columns = {}  # they may be large
        checked = _checked(parts, schema, rest, given)
        # What is wrong with the first samples is told before numbers are taken, which is a commit of its own.
        waiting = _first_of(checked, writer.given_bytes)
        if not (given or waiting):
            return snapshot
        snapshot, reserved = reserve(storage, snapshot, RESERVED)
        if reserved != first:
            early, writer = writer, stack.enter_context(_writer(storage, schema, snapshot))
            _add_again(writer, early.finish(), reserved)
            early.abort()  # with the files that were read
        stack.enter_context(parts)
        at = reserved + given
        for some, arrays, rows in chain(_taken(waiting), checked):
            parts.write(some, range(at, at + rows))
            writer.add(numbered(arrays, schema, at))
            at += rows
            del some, arrays  # before the next batch is made
        files = writer.finish()
        ends = reserved + RESERVED, at
        return commit_files(
            storage, files, operation, parts.finish(), ends, transaction, schema, parts.names
        )


def _checked(
    parts: PartsWriter, schema: SampleSchema, batches: Iterator[dict[str, Any]], given: int
) -> Iterator[_Checked]:
    """Yield batches of samples that fit their columns, with their rows and how many they are."""
    for columns in batches:
        rows = count_of(columns)
        some = parts.split(parts.opened(columns, given), rows, given)
        arrays = encoded(some.left, schema, given, rows)
        given += rows
        yield some, arrays, rows
        del columns, some, arrays  # before the next batch is made


def _first_of(batches: Iterator[_Checked], nbytes: int) -> deque[_Checked]:
    """Take batches until they have `HELD_BYTES`, with some bytes before them.

    Large samples that are no larger than that are looked at whole.
    """
    out: deque[_Checked] = deque()
    for some, arrays, rows in batches:
        out.append((some, arrays, rows))
        nbytes += sum(map(nbytes_of, chain(arrays.values(), some.apart.values())))
        for sample in some.large_samples():
            nbytes += sample.nbytes
            if sample.nbytes <= HELD_BYTES:
                sample.check()
        if nbytes > HELD_BYTES:
            break
    return out


def _taken(batches: deque[_Checked]) -> Iterator[_Checked]:
    while batches:
        yield batches.popleft()


def _writer(storage: Storage, schema: SampleSchema, snapshot: Snapshot) -> SampleWriter:
    return SampleWriter(storage, schema.to_arrow(), snapshot.file_bytes)


def _add_again(writer: SampleWriter, files: Sequence[DataFile], first: int) -> None:
    """Add samples that are in files already, with numbers from `first` on."""
    place = writer.schema.get_field_index(SID)
    for file in files:
        with reaching(writer.storage), writer.storage.open_parquet(file.path) as stored:
            for group in range(stored.num_row_groups):
                rows = stored.read_row_group(group).cast(writer.schema)
                sids = pa.array(np.arange(first, first + len(rows)))
                writer.add(rows.set_column(place, writer.schema.field(place), sids))
                first += len(rows)


def _written_again(
    storage: Storage, snapshot: Snapshot, schema: SampleSchema, files: Sequence[DataFile]
) -> list[DataFile]:
    """Write samples again with the next numbers of a version, and delete their files."""
    try:
        check_columns_there(schema, snapshot)
        with _writer(storage, schema, snapshot) as writer:
            _add_again(writer, files, next_sid(snapshot))
            return writer.finish()
    finally:
        discard(storage, [file.path for file in files])


def _commit_numbered(
    storage: Storage,
    snapshot: Snapshot,
    schema: SampleSchema,
    files: list[DataFile],
    operation: str,
    transaction: tuple[str, int] | None,
) -> Snapshot:
    """Commit samples that have the next numbers: written again with others where another writer was faster."""
    count = sum(file.rows for file in files)
    if not count:
        return snapshot
    for _ in range(ATTEMPTS):
        first = next_sid(snapshot)
        counters = {COUNTER: (snapshot.transaction(COUNTER), first + count)}
        change = Change(
            {}, files, (), operation, transaction,
            counters=counters, columns=snapshot.schema, kind=SAMPLES, check=_still_next(snapshot, first),
        )  # fmt: skip
        try:
            return commit(storage, change)
        except StaleChange as stale:
            snapshot = stale.snapshot
        except TensorLakeError:
            discard(storage, [file.path for file in files])
            raise
        files = _written_again(storage, snapshot, schema, files)
    discard(storage, [file.path for file in files])
    raise outrun(storage.uri, ATTEMPTS)


def reserve(storage: Storage, snapshot: Snapshot, count: int) -> tuple[Snapshot, int]:
    """Take so many numbers for samples that are not written yet, and return the first of them."""
    for _ in range(ATTEMPTS):
        first = next_sid(snapshot)
        counters = {COUNTER: (snapshot.transaction(COUNTER), first + count)}
        change = Change(
            {}, (), (), "reserve sids",
            data_change=False, counters=counters, kind=SAMPLES, check=_still_next(snapshot, first),
        )  # fmt: skip
        try:
            return commit(storage, change), first
        except StaleChange as stale:
            snapshot = stale.snapshot
    raise outrun(storage.uri, ATTEMPTS)


def count_of(columns: Mapping[str, Any]) -> int:
    """Return how many samples are in columns of equal length."""
    return len(next(iter(columns.values()), ()))


def check_columns_there(
    schema: SampleSchema, snapshot: Snapshot, names: Mapping[str, str] | None = None
) -> None:
    """Raise ConcurrentWriteError if a version has not the columns that samples were written for.

    Those that were added since are null in these samples, so that they have to take nulls. `names` says by which names
    parts of columns were stored: those of a column that was dropped and added again have another one.
    """
    now = SampleSchema.from_arrow(snapshot.schema)
    wrong = [name for name, kind in schema.items() if now.get(name) != kind]
    for name, known in (names or {}).items():
        if name in now and stored_name(snapshot.schema, name) != known:
            wrong.append(name)
    wrong += [name for name, kind in now.items() if name not in schema and not kind.nullable]
    if wrong:
        raise ConcurrentWriteError(
            f"another writer changed column {wrong[0]!r} of {snapshot.storage.uri} in version {snapshot.version} or "
            "before; nothing was committed, refresh() and do it again"
        )


def commit_files(
    storage: Storage,
    files: list[DataFile],
    operation: str,
    written: Sequence[Written] = (),
    reserved: tuple[int, int] | None = None,
    transaction: tuple[str, int] | None = None,
    schema: SampleSchema | None = None,
    names: Mapping[str, str] | None = None,
) -> Snapshot:
    """Make files with samples visible that have numbers of their own, and return the version that has them.

    Parameters
    ----------
    storage : Storage
        The dataset.
    files : list of DataFile
        Its new files.
    operation : str
        What it is, for the history.
    written : sequence of Written
        What belongs to the samples and lies in inner tables.
    reserved : (int, int), optional
        The end of the numbers that were reserved, and of those that were used: the rest goes back.
    transaction : (str, int), optional
        The caller's own application transaction.
    schema : SampleSchema, optional
        The columns of the files: that the dataset has them still is checked.
    names : mapping of str to str, optional
        For columns the names by which their parts were stored.

    Raises
    ------
    RepeatedBatch
        If another run has committed the transaction; nothing was committed.
    ConcurrentWriteError
        If the dataset does not have the columns any more, or other writers won every attempt.
    """
    snapshot = Snapshot.newest(storage, SAMPLES)
    if schema is not None:
        check_columns_there(schema, snapshot, names)
    for _ in range(ATTEMPTS):
        counters: dict[str, tuple[int | None, int]] = {}
        if reserved is not None and next_sid(snapshot) == reserved[0]:
            counters[COUNTER] = reserved
        counters |= pins(storage, snapshot, written)
        change = Change(
            {}, files, (), operation, transaction,
            counters=counters, columns=snapshot.schema, kind=SAMPLES, check=partial(check_free, files),
        )  # fmt: skip
        try:
            return commit(storage, change)
        except StaleChange as stale:
            snapshot = stale.snapshot
            if schema is not None:
                check_columns_there(schema, snapshot, names)
    raise outrun(storage.uri, ATTEMPTS)
