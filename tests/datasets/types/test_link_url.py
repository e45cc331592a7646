"""What may be stored as a link: no relative path, no credentials, and none is ever shown."""

import pathlib

import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types.link_url import LONGEST, parse_link, shown
from tensorlake_spark.errors import InvalidLinkError, TensorLakeError

SECRET = "S3cr3t-wJalrXUtnFEMI"


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ("/data/a b.jpg", "file", "/data/a b.jpg"),
        ("/data/100%.jpg", "file", "/data/100%.jpg"),
        (pathlib.Path("/data/a.jpg"), "file", "/data/a.jpg"),
        ("file:///data/a%20b.jpg", "file", "/data/a b.jpg"),
        ("file:/data/a.jpg", "file", "/data/a.jpg"),
        ("FILE://localhost/data/a.jpg", "file", "/data/a.jpg"),
        ("s3://bucket/a/b.jpg", "s3", "s3://bucket/a/b.jpg"),
        ("s3a://bucket/a%20b?c.jpg", "s3", "s3://bucket/a%20b?c.jpg"),
        ("https://example.org", "http", "https://example.org"),
        (
            "HTTPS://example.org:8443/a.jpg?id=7&author=me#top",
            "http",
            "HTTPS://example.org:8443/a.jpg?id=7&author=me#top",
        ),
        ("https://example.org/?key=photos", "http", "https://example.org/?key=photos"),
    ],
)
def test_what_is_taken_and_how_it_is_stored(given, kind, text):
    link = parse_link(given)
    assert (link.kind, link.text) == (kind, text)
    assert parse_link(link.text) == link, "what is stored is read as the same"


@pytest.mark.parametrize(
    "given",
    [
        "", "  ", None, 7, b"/data/a.jpg", "a.jpg", "./a.jpg", "../a.jpg", "~/a.jpg", "file:a.jpg", "file://host/a.jpg",
        "gs://bucket/a", "ftp://host/a", "data:image/png;base64,AAAA", "javascript:alert(1)", "s3://bucket", "s3://bucket/",
        "s3:///a", "s3://bucket/../b", "http://", "http:///a", "https://example.org:port/a", "http://[::1/a",
        "/data/a\n.jpg", "https://example.org/a\r\nHost: b", "file:///a%00b", "/data/\ud800", "/" + "a" * LONGEST,
        "http://good.org\\@evil.org/",
    ],
)  # fmt: skip
def test_what_is_refused(given):
    with pytest.raises(InvalidLinkError):
        parse_link(given)


def test_a_bucket_that_cannot_be_is_told_with_what_can():
    """As of s3://b/a.jpg, which has the form of the message that it got."""
    with pytest.raises(
        InvalidLinkError, match=r"s3://b/a\.jpg is not .*, with a bucket of two or more"
    ):
        parse_link("s3://b/a.jpg")


@pytest.mark.parametrize(
    "url",
    [
        f"https://me:{SECRET}@example.org/a.jpg",
        f"https://{SECRET}@example.org/a.jpg",
        f"http://me:a/{SECRET}@example.org/a.jpg",
        f"http://me:{SECRET}?a@example.org/a.jpg",
        f"http://me:{SECRET}#a@example.org/a.jpg",
        f"s3://me:{SECRET}@bucket/a.jpg",
        f"s3://AKIA:abc/{SECRET}@bucket/a.jpg",
        f"https://b.s3.amazonaws.com/a?X-Amz-Algorithm=A&X-Amz-Signature={SECRET}",
        f"https://b.s3.amazonaws.com/a?AWSAccessKeyId=me&Expires=1&Signature={SECRET}",
        f"https://b.s3.amazonaws.com/a?x-amz-security-token={SECRET}",
        f"https://storage.googleapis.com/b/a?X-Goog-Signature={SECRET}",
        f"https://me.blob.core.windows.net/c/a?sv=2020&sig={SECRET}",
        f"https://d.cloudfront.net/a?Policy=x&Key-Pair-Id={SECRET}",
        f"https://example.org/a?id=7&access_token={SECRET}",
        f"https://example.org/a?apikey={SECRET}",
        f"https://example.org/a?x-api-key={SECRET}",
        f"https://example.org/a?key=AIza{SECRET}",
        f"https://example.org/a?id=7;token={SECRET}",
        f"https://example.org/a?%74oken={SECRET}",
        f"https://example.org/a#token={SECRET}",
        f"s3://bucket/a?X-Amz-Signature={SECRET}",
    ],
)
def test_credentials_are_refused_and_not_shown(url):
    with pytest.raises(InvalidLinkError) as caught:
        parse_link(url)
    assert SECRET not in str(caught.value)
    assert "credentials to the reader" in str(caught.value) or "not a URL" in str(caught.value)
    assert SECRET not in shown(url)


def test_errors_are_those_of_the_package():
    with pytest.raises(TensorLakeError, match=r"os.path.abspath"):
        parse_link("photos/a.jpg")
    with pytest.raises(TensorLakeError, match=r"os.path.expanduser"):
        parse_link("~/photos/a.jpg")
    assert issubclass(InvalidLinkError, ValueError)
    assert tl is not None
