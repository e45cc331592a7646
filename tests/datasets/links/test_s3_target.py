"""Links to objects of a real S3 server: what a file's are, and secrets stay hidden."""

import traceback
import uuid

import pytest
from s3server import SECRET

from tensorlake_spark.datasets.links.fetching import describe_link, fetch_link, read_link
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.delta.store import s3_objects
from tensorlake_spark.errors import (
    ChangedLinkError,
    ForbiddenLinkError,
    MissingLinkError,
    StorageError,
)


@pytest.fixture
def put(s3):
    """Write an object, and return its link."""

    def write(data, name=None):
        key = f"bucket/{name or uuid.uuid4()}"
        with s3.filesystem().open_output_stream(key) as out:
            out.write(data)
        return f"s3://{key}"

    return write


@pytest.fixture(params=["boto3", "pyarrow"])
def rules(s3, request, monkeypatch):
    if request.param == "pyarrow":
        monkeypatch.setattr(s3_objects, "has_client", lambda: False)
    return LinkRules(storage_options=s3.options)


@pytest.mark.parametrize("name", ["a/b c.jpg", "100%25 sure?.jpg", "grün#1.jpg"])
def test_an_object_comes_back(put, rules, name):
    url = put(bytes(range(256)), f"{uuid.uuid4()}/{name}")
    facts = describe_link(url, rules)
    assert (facts.url, facts.size) == (url, 256)
    assert facts.etag.startswith('"')
    assert fetch_link(facts.url, facts.size, facts.etag, rules) == bytes(range(256))
    assert read_link(facts.url, facts.size, facts.etag, rules, 10, 20) == bytes(range(10, 20))
    assert read_link(facts.url, facts.size, facts.etag, rules, 250, 300) == bytes(range(250, 256))
    assert read_link(facts.url, facts.size, facts.etag, rules, 300, 301) == b""


def test_changed_and_gone(put, rules, s3):
    url = put(b"before")
    facts = describe_link(url, rules)
    put(b"behind", url.removeprefix("s3://bucket/"))
    now = describe_link(url, rules)
    assert now.etag != facts.etag
    with pytest.raises(ChangedLinkError) as caught:
        fetch_link(facts.url, facts.size, facts.etag, rules, "column 'image', sample 7")
    assert str(caught.value).startswith("column 'image', sample 7: ")
    assert repr(facts.etag) in str(caught.value)
    assert repr(now.etag) in str(caught.value)
    s3.filesystem().delete_file(url.removeprefix("s3://"))
    with pytest.raises(MissingLinkError, match=r"sample 7: .*6 bytes and the ETag"):
        fetch_link(facts.url, facts.size, facts.etag, rules, "sample 7")


def test_keys_of_the_environment_serve_too(put, s3_variables):
    facts = describe_link(put(b"data"), LinkRules())
    assert (facts.size, fetch_link(facts.url, 4, facts.etag, LinkRules())) == (4, b"data")


def test_what_the_rules_refuse(put, s3):
    url = put(b"data")
    with pytest.raises(ForbiddenLinkError, match="allow_s3"):
        describe_link(url, LinkRules(storage_options=s3.options, allow_s3=["other"]))
    facts = describe_link(url, LinkRules(storage_options=s3.options))
    small = LinkRules(storage_options=s3.options, max_bytes=3)
    closed = LinkRules(storage_options=s3.options, allow_s3=False)
    with pytest.raises(StorageError, match="max_bytes=3"):
        describe_link(url, small)
    with pytest.raises(StorageError, match="max_bytes=3"):
        fetch_link(url, facts.size, facts.etag, small)
    with pytest.raises(ForbiddenLinkError, match="allow_s3"):
        fetch_link(url, facts.size, facts.etag, closed)


def test_a_refusal_shows_no_secret(put, s3):
    wrong = {**s3.options, "AWS_SECRET_ACCESS_KEY": f"not-{SECRET}"}
    url = put(b"data")
    facts = describe_link(url, LinkRules(storage_options=s3.options))
    for act in (
        lambda rules: describe_link(url, rules),
        lambda rules: fetch_link(url, facts.size, facts.etag, rules),
    ):
        with pytest.raises(StorageError) as caught:
            act(LinkRules(storage_options=wrong))
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("verdict", ["", "refuse", "fail", "reset", "short", "trimmed", "drop"])
def test_a_link_takes_one_request_and_more_where_that_goes_wrong(put, s3, road, verdict):
    url = put(bytes(range(256)))
    facts = describe_link(url, LinkRules(storage_options=s3.options))
    rules = LinkRules(storage_options={**s3.options, "AWS_ENDPOINT_URL": road.endpoint})
    if verdict:
        road.fault(verdict, "^GET ", times=1)
    road.requests()
    assert fetch_link(url, facts.size, facts.etag, rules) == bytes(range(256))
    asked = [one.split()[0] for one in road.requests()]
    assert asked == ["GET"] + ["HEAD", "GET"] * bool(verdict)
    road.requests()
    assert read_link(url, facts.size, facts.etag, rules, 250, 300) == bytes(range(250, 256))
    assert [one.split()[0] for one in road.requests()] == ["GET"]
