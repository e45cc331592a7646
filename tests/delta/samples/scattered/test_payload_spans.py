"""Where the payloads of a file lie: learned row group by row group, the same as the file itself says."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.scattered.payload_spans import PayloadSpans


@pytest.fixture
def stored(tmp_path):
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("uint8", (None,)), "k": "int32"})
    values = [None if k == 3 else np.full(700_000 + k, k, np.uint8) for k in range(12)]
    ds.extend({"x": values, "k": np.arange(12)})
    return tl.dataset(tmp_path, create=False).parts.stored


def test_only_row_groups_that_are_asked_for_are_learned(stored):
    file, leaf = stored.files[0], stored.leaf(("x", "data"))
    assert len(file.starts) > 3
    spans = PayloadSpans(file, leaf)
    assert (spans.lengths == -1).all()
    rows = np.array([11, 0, 11])
    groups = file.groups_of(rows)
    assert spans.learn(groups, True)
    assert spans.lengths[rows].tolist() == [700_011, 700_000, 700_011]
    middle = int(file.starts[1])
    assert spans.lengths[middle] == -1
    for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
        start, length = file.place(row, leaf)
        assert (int(spans.firsts[group] + spans.starts[row]), int(spans.lengths[row])) == (
            start,
            length,
        )
        first = int(spans.starts[row])
        assert set(bytes(spans.region(group)[first : first + length])) == {row}


def test_all_rows_with_a_null_and_what_is_given_back(stored):
    file = stored.files[0]
    spans = PayloadSpans(file, stored.leaf(("x", "data")))
    groups = file.groups_of(np.arange(12))
    assert spans.learn(groups, False)
    assert spans.lengths.tolist() == [-1 if k == 3 else 700_000 + k for k in range(12)]
    assert spans.nbytes == 12 * 16
    spans.regions[0], spans.used[0] = spans.region(0), 5
    assert spans.give_back(0) == spans.sizes[0]
    assert (spans.regions[0], spans.used[0]) == (None, 0)
