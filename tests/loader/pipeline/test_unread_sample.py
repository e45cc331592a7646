"""What is said of a sample that cannot be read: kind of error, what names it, and what to do."""

import pytest

from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    MissingDataError,
    MissingDependencyError,
    MissingLinkError,
    StorageError,
)
from tensorlake_spark.loader.pipeline.unread_sample import gone_file, public_kind, unread_error


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
        (InvalidOptionError("x"), InvalidOptionError),
        (Private("x"), MissingDataError),
    ],
)
def test_users_know_the_kind(error, kind):
    assert public_kind(error) is kind
    found = unread_error("sample 7", error, skips=False)
    assert type(found) is kind
    says_what_to_do = kind in (InvalidOptionError, MissingDataError)
    assert str(found).startswith("sample 7: x" if says_what_to_do else "sample 7: x; on_error=")
    assert str(found).endswith("x") is says_what_to_do


def test_it_is_one_line():
    said = str(unread_error("sample 7", ValueError("first\n  second"), skips=False))
    assert "sample 7: first second; on_error=" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (
            FileNotFoundError(2, "no such file", "/x/part-1.parquet"),
            "the file /x/part-1.parquet is",
        ),
        (FileNotFoundError(2, "cannot open '/x/part-1.parquet'."), "the file /x/part-1.parquet is"),
        (FileNotFoundError("y"), "the file is gone"),
    ],
)
@pytest.mark.parametrize("skips", [False, True])
def test_a_file_that_is_gone_is_named_and_nothing_else_helps(cause, says, skips):
    error = caused(StorageError("refused"), caused(OSError("x"), cause))
    assert gone_file(StorageError("refused")) is None
    found = unread_error("sample 7", error, skips)
    assert type(found) is MissingDataError
    assert says in str(found)
    assert str(found).endswith(
        "newer version of the dataset, or see what ds.check() of the newest says"
    )


def test_a_link_to_nothing_is_no_file_of_the_table():
    error = caused(
        MissingLinkError("/x/5.png is gone"), FileNotFoundError(2, "no file", "/x/5.png")
    )
    assert gone_file(error) is None
    found = unread_error("sample 7", error, skips=False)
    assert type(found) is MissingLinkError
    assert str(found).startswith("sample 7: /x/5.png is gone; on_error=")


def test_when_others_were_tried_too():
    assert "check()" in str(unread_error("sample 7", ValueError("x"), skips=True))


@pytest.mark.parametrize("skips", [False, True])
def test_a_package_that_is_missing_is_no_fault_of_the_sample(skips):
    """It said that on_error="skip" helps, or to check the dataset."""
    given = MissingDependencyError("images need the package pillow: pip install pillow")
    found = unread_error("sample 7", given, skips)
    assert type(found) is MissingDependencyError
    assert str(found) == f"sample 7: {given}"
