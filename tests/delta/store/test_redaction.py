"""Credentials that a store repeats: hidden in every error, and in what led to it."""

import pickle
import traceback

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage, reaching

SECRET = "wJalr/XUtnFEMI"


GIVEN = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": "IQoJb3JpZ2lu",
    "proxy_url": "http://me:pass%2Fword@proxy:3128",
}  # fmt: skip


OTHERS = "of-a-role"  # what the clients found by themselves, so that nobody here knows it


ANSWER = (
    "Kernel error: <Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message>"
    f"<Token-0>IQoJb3JpZ2lu</Token-0><Token-0>{OTHERS}</Token-0><AWSAccessKeyId>{OTHERS}</AWSAccessKeyId>"
    f"<StringToSign>{OTHERS}\n</StringToSign><CanonicalRequest>PUT\nx-amz-security-token:{OTHERS}"
)


TOLD = [
    ANSWER, f"no host h for AKIAIOSFODNN7, wJalr%2FXUtnFEMI, {SECRET} or IQoJb3JpZ2lu",
    "no way through http://me:pass%2Fword@proxy:3128, with pass/word",
    f"GET https://h/x?X-Amz-Signature={OTHERS}&X-Amz-Security-Token={OTHERS}&sig={OTHERS}",
]  # fmt: skip


@pytest.mark.parametrize("said", TOLD)
@pytest.mark.parametrize("kind", [DeltaError, OSError, CommitFailedError])
def test_no_credential_that_a_store_repeats_is_in_an_error_or_behind_it(said, kind):
    """Not in its causes either, which a traceback shows, nor in those of errors that were made from them."""
    storage = Storage("s3://bucket/lake", GIVEN)

    def fails():
        try:
            raise OSError(5, said)
        except OSError:
            raise kind(said)  # noqa: B904 # as where a repeat fails too

    def opens():
        try:
            fails()
        except (OSError, DeltaError) as error:
            raise tl.FormatError(f"no table: {error}") from error

    for call, expected in ((fails, tl.StorageError), (opens, tl.FormatError)):
        with pytest.raises(expected) as caught, reaching(storage):
            call()
        assert "s3://bucket/lake" in str(caught.value) or expected is tl.FormatError
        shown = "".join(traceback.format_exception(caught.value))
        assert "direct cause" in shown
        shown += repr(caught.value) + str(pickle.dumps(caught.value))
        for hidden in (*list(GIVEN.values())[:3], "wJalr%2FXUtnFEMI", "pass", OTHERS):
            assert hidden not in shown
    if said is ANSWER:
        told = "ExpiredToken: The provided token has expired"
        with pytest.raises(tl.StorageError, match=told), reaching(storage):
            fails()


def test_words_are_no_short_secrets():
    """A key such as "s" is not cut out of every word."""
    storage = Storage("s3://b/x", {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "s"})
    with pytest.raises(tl.StorageError, match=r"some time passes \*\*\*$"), reaching(storage):
        raise OSError("some time passes me")
