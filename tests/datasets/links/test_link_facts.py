"""A change is noticed by size or ETag, and both are told."""

import pytest

from tensorlake_spark.datasets.links.link_facts import LinkFacts, is_etag
from tensorlake_spark.errors import ChangedLinkError


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ((3, '"x"'), (3, '"x"')),
        ((None, '"x"'), (5, '"x"')),
        ((3, None), (3, '"x"')),
        ((3, '"x"'), (None, '"x"')),
    ],
)
def test_what_is_the_same(stored, now):
    LinkFacts("/a", *stored).check(*now, "/a")


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ((3, '"x"'), (3, '"y"')),
        ((3, '"x"'), (3, None)),
        ((3, None), (4, None)),
        ((3, '"x"'), (4, '"x"')),
    ],
)
def test_what_has_changed(stored, now):
    with pytest.raises(ChangedLinkError) as caught:
        LinkFacts("/a", *stored).check(*now, "/a")
    for part in (*stored, *now):
        assert ("unknown" if part is None else repr(part)) in str(caught.value)


def test_an_etag_is_no_date():
    assert [is_etag(t) for t in ('"a"', 'W/"a"', "Tue, 15 Nov 1994 12:45:26 GMT")] == [
        True,
        True,
        False,
    ]
