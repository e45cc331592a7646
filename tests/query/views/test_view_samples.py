"""Rows of a view as samples: bytes, blocks and names."""

import copy

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.views.view_samples import ViewSamples


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    schema = {"x": tl.types.Tensor("int32", (4,)), "label": "int32"}
    found = tl.dataset(str(tmp_path_factory.mktemp("ds")), schema)
    found.extend({"x": np.arange(12_000, dtype="i4").reshape(3000, 4), "label": np.arange(3000)})
    return found.query("SELECT x, label, label * 2 AS twice FROM dataset ORDER BY label DESC")


@pytest.fixture
def samples(view):
    return ViewSamples(view, ["twice", "x"], view.dataset_columns(["twice", "x"]), {}, 1 << 20)


def test_rows_by_position(samples):
    read = samples.fetch(np.array([2, 0, 2]))
    values = read.values({})
    assert list(values) == ["twice", "x"]
    assert np.asarray(values["twice"]).tolist() == [2 * 2997, 2 * 2999, 2 * 2997]
    assert values["x"][:, 0].tolist() == [4 * 2997, 4 * 2999, 4 * 2997]
    assert read.nbytes >= values["x"].nbytes
    assert samples.draws() == {}


def test_blocks_cover_the_rows(samples):
    assert samples.starts.tolist() == [0, 1024, 2048, 3000]
    assert samples.sample_bytes >= 16
    assert not samples.is_remote
    assert samples.reserved == 0


def test_a_row_is_named_with_its_sample(samples, view):
    assert samples.described(1).startswith("row 1 of the view of SELECT x, label")
    assert "which is sample 2998 of the dataset at" in samples.described(1)
    computed = ViewSamples(view, ["twice"], {}, {}, 1 << 20)
    assert computed.described(1).endswith("ORDER BY label DESC")


@pytest.mark.parametrize("change", [copy.copy, lambda one: one.for_worker(3)])
def test_copies_have_the_same_rows_and_a_reader_of_their_own(samples, change):
    other = change(samples)
    assert other.identity == samples.identity
    assert other._samples is not samples._samples
    some = np.array([7, 5])
    mine, theirs = (one.fetch(some).values({}) for one in (samples, other))
    np.testing.assert_array_equal(mine["x"], theirs["x"])


def test_other_rows_are_another_identity(view):
    whole, part = (
        ViewSamples(one, ["x"], one.dataset_columns(["x"]), {}, 1 << 20).identity
        for one in (view, view[:2000])
    )
    assert whole != part
