"""What is said of a sample that cannot be read: one line that names it, and what to do."""

from __future__ import annotations

from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    MissingDataError,
    TensorLakeError,
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
    kind, said = public_kind(error), " ".join(str(error).split())
    if kind is not MissingDataError and is_gone(error):
        kind = MissingDataError
        said = "the file is gone; a vacuum deleted it, or somebody did: open a newer version of the dataset"
    if kind is InvalidOptionError:  # it says what to change
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


def is_gone(error: BaseException | None) -> bool:
    """Return whether an error came of a file that is not there."""
    while error is not None:
        if isinstance(error, FileNotFoundError):
            return True
        error = error.__cause__
    return False
