"""What users give becomes batches that are bounded."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.datasets.samples import sample_input
from tensorlake_spark.datasets.samples.sample_input import batches_of, nbytes_of


def joined(batches, name):
    return [one for batch in batches for one in list(batch[name])]


@given(st.lists(st.integers(0, 300), max_size=60), st.booleans())
def test_batches_have_all_samples_in_order_and_are_bounded(sizes, one_by_one):
    blobs = [bytes(size) for size in sizes]
    whole = {"data": blobs, "n": np.arange(len(blobs))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_input, "BATCH_BYTES", 500)
        given_ = [{"data": b, "n": n} for n, b in enumerate(blobs)] if one_by_one else whole
        found = [*batches_of(given_, ["data", "n"])]
    assert joined(found, "data") == blobs
    assert joined(found, "n") == [*range(len(blobs))]
    if one_by_one:
        assert all(sum(map(len, batch["data"][:-1])) < 500 for batch in found)


def test_large_columns_are_taken_in_small_batches():
    blobs = [bytes(1 << 20)] * 200
    counts = [len(batch["data"]) for batch in batches_of({"data": blobs}, ["data"])]
    assert sum(counts) == 200
    assert max(counts[1:]) <= sample_input.BATCH_BYTES >> 20


def test_a_sample_without_a_column_has_none():
    (batch,) = batches_of([{"a": 1}, {"b": 2}], ["a", "b"])
    assert batch == {"a": [1, None], "b": [None, 2]}


@pytest.mark.parametrize(
    ("value", "nbytes"),
    [
        (b"abc", 3),
        (np.zeros(4), 32),
        (np.array([b"ab", b"c"], object), 3),
        (pa.array([1, 2]), 16),
        (None, 8),
    ],
)
def test_bytes_of_values(value, nbytes):
    assert nbytes_of(value) == nbytes
