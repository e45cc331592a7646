"""Which version is meant: a number, a time, or a tag; what the log still has of it, and why it has no version."""

from __future__ import annotations

import datetime as dt
import operator
import re

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tensorlake_spark.delta.log.actions import (
    LAST_CHECKPOINT,
    all_transactions,
    commit_times,
    log_paths,
    missing_commits,
)
from tensorlake_spark.delta.store.storage import Storage, listed, reaching
from tensorlake_spark.errors import (
    FormatError,
    InvalidOptionError,
    UnsupportedFeatureError,
    check_text,
    did_you_mean,
)

TAG = "tag/"
"""A tag is an application transaction of this name and its own; its number is the version."""

LOG_KEPT = (
    "the log keeps versions for delta.logRetentionDuration, 30 days by default; a longer one, set "
    "with ALTER TABLE ... SET TBLPROPERTIES, keeps those that are still there"
)
"""What becomes of the log of old versions, for messages."""

FILES_KEPT = (
    "VACUUM deletes files that left the table longer ago than delta.deletedFileRetentionDuration, a week by "
    "default; a longer one keeps versions, and tag(name, version) keeps one from vacuum()"
)
"""What becomes of the data files of old versions, for messages."""


_UNKNOWN = re.compile(r"(?i)unsupported|max_catalog_version|reader.?version|table feature")
_EPOCH = dt.datetime.fromtimestamp(0, dt.timezone.utc)


def travel(table: DeltaTable, storage: Storage, to: int | str | dt.datetime) -> None:
    """Load another version of a table that is opened at its newest.

    Parameters
    ----------
    table : deltalake.DeltaTable
        What is loaded.
    storage : Storage
        Where it is.
    to : int, str, or datetime.datetime
        A version, a tag or a number as text, or a time.

    Raises
    ------
    InvalidOptionError
        If there is no such version, or no such tag, or if the log does not have it any more.
    """
    newest = int(table.version())
    what = f"version {to}"
    if isinstance(to, dt.datetime):
        what = f"a version at {to.isoformat()}"
        to = _at(to, newest, storage)
    elif isinstance(to, str) and not to.isdecimal():
        what = f"tag {to!r}"
        to = _tagged(table, storage, to)
        what += f", version {to}"
    else:
        to = int(to) if isinstance(to, str) else as_number(to)
    if isinstance(to, int) and not 0 <= to <= newest:
        raise InvalidOptionError(
            f"version {to} of {storage.uri} does not exist; it has versions 0 to {newest}"
        )
    with reaching(storage):
        try:
            listed(lambda: table.load_as_version(to))
        except DeltaError as error:
            raise no_longer(storage, what, f" ({error})") from error


def no_longer(storage: Storage, what: str, why: str = "") -> InvalidOptionError:
    """Return the error of a version that a log had."""
    return InvalidOptionError(f"the log of {storage.uri} no longer has {what}: {LOG_KEPT}{why}")


def as_number(version: object) -> int:
    """Return a version as the number that it is, or raise InvalidOptionError."""
    try:
        if isinstance(version, bool):
            raise TypeError
        return operator.index(version)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidOptionError(
            f"version={version!r} is neither a whole number nor a tag; history() has the versions"
        ) from None


def _at(time: dt.datetime, newest: int, storage: Storage) -> int:
    """Return the last version of a time or before it.

    deltalake takes any of those that were written at this very time, which of a store that keeps seconds
    may be many. A version that seems to be older than one before it is as young as that, as in Spark.
    """
    with reaching(storage):
        times = commit_times(storage)
    asked = (time - _EPOCH) // dt.timedelta(milliseconds=1)
    known = sorted(version for version in times if version <= newest)
    young = next((v for v in known if times[v] > asked), None)
    if young is None:
        return newest
    if young == known[0]:
        first = _EPOCH + dt.timedelta(milliseconds=times[young])
        raise InvalidOptionError(
            f"the log of {storage.uri} has no version at {time.isoformat()}: its first is of "
            f"{first.isoformat()}; {LOG_KEPT}"
        )
    return young - 1


def _tagged(table: DeltaTable, storage: Storage, name: str) -> int:
    check_text(name, "the version, which is neither an integer nor a tag:")
    with reaching(storage):
        version = table.transaction_version(TAG + name)
    if version is None or version < 0:
        known = tags_in(all_transactions(storage, int(table.version())) or {})
        raise InvalidOptionError(
            f"{name!r} is neither an integer nor a tag of {storage.uri}{did_you_mean(name, known)}"
        )
    return int(version)


def tags_in(transactions: dict[str, int]) -> dict[str, int]:
    """Return the tags among all application transactions; a removed one is left out."""
    return {
        app.removeprefix(TAG): version
        for app, version in sorted(transactions.items())
        if app.startswith(TAG) and version >= 0
    }


def moment_in(text: str) -> dt.datetime:
    """Return the time that a text says in the form of ISO 8601; raises ValueError if it says none.

    Python 3.10 takes no Z, and three or six digits of a second.

    Examples
    --------
    >>> moment_in("2026-01-31 12:00:00.2Z").isoformat()
    '2026-01-31T12:00:00.200000+00:00'
    """
    text = re.sub(r"(?<=\d)\s?[zZ]$", "+00:00", text.strip())
    text = re.sub(r"(?<=:\d\d)\.(\d{1,6})\d*", lambda part: f".{part[1]:0<6}", text)
    return dt.datetime.fromisoformat(text)


def as_time(timestamp: str | dt.datetime) -> dt.datetime:
    """Return a time in UTC; one without a zone is the machine's.

    Raises
    ------
    InvalidOptionError
        If it is no time, or one that UTC does not reach.
    """
    if isinstance(timestamp, str):
        try:
            timestamp = moment_in(timestamp)
        except ValueError as error:
            raise InvalidOptionError(
                f"timestamp {timestamp!r} is not of the form 2026-01-31T12:00:00+00:00"
            ) from error
    if not isinstance(timestamp, dt.datetime):
        raise InvalidOptionError(
            f"timestamp={timestamp!r} is no datetime, and no text of the form 2026-01-31T12:00:00+00:00"
        )
    # Delta's own readers take a time without a zone as the session's; here that is the machine's.
    try:
        plain = dt.datetime.combine(timestamp.date(), timestamp.timetz())  # pandas' refuses no zone
        return plain.astimezone(dt.timezone.utc)
    except (ValueError, OverflowError) as error:  # NaT of pandas; the year 1 east of Greenwich
        raise InvalidOptionError(f"timestamp={timestamp!r} is no time in UTC: {error}") from error


def not_opened(storage: Storage, error: Exception) -> FormatError:
    """Return the error of a table that deltalake does not open; its own names files in the words of its source."""
    said = str(error).split("\nStack", 1)[0].split(" 0: ", 1)[0].strip()
    if _UNKNOWN.search(said):
        return UnsupportedFeatureError(
            f"the table at {storage.uri} uses a Delta feature that deltalake does not read ({said}); "
            "spark.read.format('delta') does if it is as new as the table's writer, or drop the "
            "feature with ALTER TABLE ... DROP FEATURE"
        )
    if "found gap" in said:
        missing = missing_commits(log_paths(storage))
        said = f"its log lacks {', '.join(missing[:3])}{', ...' if missing[3:] else ''}; bring it back from a backup"
    elif "_last_checkpoint hint" in said:
        said = (
            f"{LAST_CHECKPOINT} names a checkpoint that is not there, or not whole; delete that file, for a log can do "
            "without it"
        )
    elif "Parquet error" in said:
        said = (
            f"a checkpoint in _delta_log is damaged ({said}); bring it back from a backup, or delete it and "
            f"{LAST_CHECKPOINT} if the log has all commits from version 0 on"
        )
    return FormatError(f"the table at {storage.uri} cannot be opened: {said}")
