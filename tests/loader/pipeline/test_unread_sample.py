"""What is said of a sample that cannot be read: kind of error, what names it, and what to do."""

import pytest

from tensorlake_spark.errors import CorruptDataError, MissingDataError, StorageError
from tensorlake_spark.loader.pipeline.unread_sample import is_gone, public_kind, unread_error


class Private(MissingDataError):
    pass


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), CorruptDataError),
        (OSError("x"), CorruptDataError),
        (StorageError("x"), StorageError),
        (Private("x"), MissingDataError),
    ],
)
def test_users_know_the_kind(error, kind):
    assert public_kind(error) is kind
    found = unread_error("sample 7", error, skips=False)
    assert type(found) is kind
    assert str(found).startswith("sample 7: x; on_error=")


def test_it_is_one_line():
    said = str(unread_error("sample 7", ValueError("first\n  second"), skips=False))
    assert "sample 7: first second; on_error=" in said
    assert "\n" not in said


def test_a_file_that_is_gone_is_said_to_be_gone():
    error = caused(StorageError("refused"), caused(OSError("x"), FileNotFoundError("y")))
    assert is_gone(error)
    assert not is_gone(StorageError("refused"))
    found = unread_error("sample 7", error, skips=False)
    assert type(found) is MissingDataError
    assert "the file is gone" in str(found)
    assert "open a newer version" in str(found)


def test_when_others_were_tried_too():
    assert "check()" in str(unread_error("sample 7", ValueError("x"), skips=True))
