"""What is said of a sample that cannot be read: one line that names it, and what to do."""

from __future__ import annotations

import re

from tensorlake_spark.errors import (
    ChangedLinkError,
    CorruptDataError,
    InvalidOptionError,
    MissingDataError,
    MissingDependencyError,
    TensorLakeError,
)

_GONE = (
    " is gone; a vacuum deleted it, or somebody did: open a newer version of the dataset, or see what ds.check() of "
    "the newest says"
)


def unread_error(sample: str, error: Exception, skips: bool) -> Exception:
    """Return the error for a sample that cannot be read.

    Parameters
    ----------
    sample : str
        What names it.
    error : Exception
        What reading it raised.
    skips : bool
        Whether others took its place, which could not be read either.

    Examples
    --------
    >>> unread_error("sample 7", ValueError("no JPEG"), skips=False)
    CorruptDataError('sample 7: no JPEG; on_error="skip" takes another sample in its place')
    """
    kind, said, gone = public_kind(error), " ".join(str(error).split()), gone_file(error)
    if gone is not None and kind is not MissingDataError:
        kind = MissingDataError
        said = f"the file {gone}".rstrip() + _GONE
    if kind in (InvalidOptionError, MissingDataError, MissingDependencyError):
        # It says what to change; no other sample can be read either.
        return kind(f"{sample}: {said}")
    remedy = (
        "those that were tried in its place cannot be read either: check the dataset by check()"
        if skips
        else 'on_error="skip" takes another sample in its place'
    )
    return kind(f"{sample}: {said}; {remedy}")


def public_kind(error: BaseException) -> type[Exception]:
    """Return the error that users know for one of ours, or for what a library raised."""
    known = (one for one in type(error).__mro__ if one.__module__ == TensorLakeError.__module__)
    return next(known, CorruptDataError)  # type: ignore[arg-type]


def gone_file(error: BaseException | None) -> str | None:
    """Return the file of the table that is not there, if an error came of one; "" where nothing names it.

    Examples
    --------
    >>> gone_file(FileNotFoundError(2, "No such file or directory", "/lake/part-0.parquet"))
    '/lake/part-0.parquet'
    """
    while error is not None and not isinstance(
        error, ChangedLinkError
    ):  # a link is no file of the table
        if isinstance(error, FileNotFoundError):
            quoted = re.search(r"'([^']+)'", str(error))  # Arrow says it in its message alone
            return str(error.filename or (quoted[1] if quoted else ""))
        error = error.__cause__
    return None
