"""Where the payloads of a column lie in a file, learned row group by row group."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.scattered.payload_spans import PayloadSpans

VALUES = np.random.default_rng(0).integers(0, 256, (18, 1 << 20), np.uint8)
NULL = 5


@pytest.fixture
def spans(place):
    ds = tl.dataset(place, {"x": tl.types.Tensor("uint8", (1 << 20,))})
    ds.extend({"x": [None if k == NULL else value for k, value in enumerate(VALUES)]})
    stored = tl.dataset(place, create=False).parts.stored
    return PayloadSpans(stored.files[0], stored.leaf(("x", "data")))


def payload(spans, row):
    group = int(spans.file.groups_of(np.array([row]))[0])
    start = int(spans.starts[row])
    return bytes(spans.region(group)[start : start + int(spans.lengths[row])])


@pytest.mark.both_stores
def test_payloads_lie_where_it_says_and_a_null_has_no_length(spans):
    rows = np.array([17, 0, NULL, 8, 8])
    assert spans.learn(spans.file.groups_of(rows), keeps_pages=False)
    assert spans.lengths[NULL] == -1
    for row in (17, 0, 8):
        assert payload(spans, row) == VALUES[row].tobytes()


def test_only_the_row_groups_that_are_asked_for_are_learned_and_each_once(spans, monkeypatch):
    looked, inner = [], spans.file.spans
    monkeypatch.setattr(
        spans.file, "spans", lambda group, *rest: looked.append(group) or inner(group, *rest)
    )
    last = len(spans.sizes) - 1
    for groups in ([last, last], [last], [0, last]):
        assert spans.learn(np.array(groups), keeps_pages=True)
    assert looked == [last, 0]
    assert np.flatnonzero(spans.sizes).tolist() == [0, last]


def test_a_region_that_is_given_back_is_no_longer_in_use_and_can_be_read_again(spans):
    assert spans.learn(np.array([0]), keeps_pages=True)
    spans.regions[0], spans.used[0] = spans.region(0), 1
    assert spans.give_back(0) == spans.sizes[0]
    assert (spans.regions[0], spans.used[0]) == (None, 0)
    assert payload(spans, 0) == VALUES[0].tobytes()
