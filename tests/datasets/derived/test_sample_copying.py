"""Shares of a copy."""

import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived import sample_copying
from tensorlake_spark.datasets.derived.column_digests import BLOCK
from tensorlake_spark.datasets.derived.sample_copying import (
    Origin,
    SampleCopying,
    even_step,
    shares,
)
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.parametrize(("count", "rows"), [(0, 10), (1, 10), (1000, 1), (1000, 300), (512, 9999)])
def test_shares_have_every_row_once_and_begin_at_a_block(count, rows):
    at = np.arange(count) * 2
    found = shares(count, [at], rows)
    assert [*at] == [n for share in found for n in share.positions[0]]
    assert all(share.start % BLOCK == 0 for share in found)
    assert [s.start for s in found[1:]] == [s.stop for s in found[:-1]]


def test_shares_are_alike():
    sizes = [one.stop - one.start for one in shares(2004, [], 1040)]
    assert sizes == [1024, 980]
    assert [one.stop - one.start for one in shares(1100, [], 1040)] == [1100]


@pytest.mark.parametrize("most", [1, 7, 1000])
@pytest.mark.parametrize("rows", [1, 2, 10, 999, 1001, 1499, 1501, 2600])
def test_batches_are_alike(rows, most):
    step = even_step(rows, most)
    sizes = np.diff([*range(0, rows, step), rows])
    assert max(sizes) <= 1.5 * most
    assert sum(sizes) == rows
    assert max(sizes) - min(sizes) < len(sizes)
    assert even_step(0, most) == 1


def test_a_share_is_copied_in_batches_that_are_alike(made, tmp_path, monkeypatch):
    origin = Origin(made.ds.stored.snapshot, {"label": "label"}, LinkRules())
    work = SampleCopying(
        Storage(tmp_path / "new"), made.ds.schema.select(["label"]), {"label": "label"}, (origin,),
        None, 0, 1 << 20, 1 << 20, 1 << 20, "m-",
    )  # fmt: skip
    monkeypatch.setattr(sample_copying, "BATCH_BYTES", 9 * work.row_bytes([np.arange(20)]))
    (share,) = shares(20, [np.arange(20)], 1000)
    assert [*work._batches(share)] == [(0, 10), (10, 20)]


def test_what_travels_to_executors(made, tmp_path):
    origin = Origin(made.ds.stored.snapshot, {"label": "label"}, LinkRules())
    assert origin.row_bytes(np.arange(20)) > 0  # opened
    work = SampleCopying(
        Storage(tmp_path / "new"), made.ds.schema.select(["label"]), {"label": "label"}, (origin,),
        None, 0, 1 << 20, 1 << 20, 1 << 20, "m-",
    )  # fmt: skip
    again = pickle.loads(pickle.dumps(work))
    (share,) = shares(20, [np.arange(20)[::-1]], 1000)
    done = again(share)
    assert sum(file.rows for file in done.files) == 20
    assert [file.path.startswith("samples-m-") for file in done.files] == [True]
    assert [*done.digests] == ["label"]


def test_rows_without_a_sample_are_null(made, tmp_path):
    origin = Origin(made.ds.stored.snapshot, {"n": "label", "s": "scan"}, LinkRules())
    schema = type(made.ds.schema)({"n": made.ds.schema["label"], "s": made.ds.schema["scan"]})
    names = {name: name for name in schema}
    work = SampleCopying(
        Storage(tmp_path / "new"), schema, names, (origin,), None, 0, 1000, 1 << 20, 1 << 20, "m-"
    )
    (share,) = shares(3, [np.array([3, -1, 6])], 1000)
    found = work._arrays(share, 0, 3, np.arange(3), _NoTiles())
    assert found["n"].to_pylist() == [3, None, 6]
    assert [one is None for one in found["s"].to_pylist()] == [False, True, False]


class _NoTiles:
    """Takes the tiles of samples, and keeps nothing."""

    def copy(self, ref, name, sid):
        assert ref.shape == (60, 50)
        assert (name, sid) in (("s", 0), ("s", 2))


def test_the_size_of_a_row_is_that_of_samples_that_are_copied(tmp_path):
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("uint8")})
    for size in (1, 1000):
        ds.extend({"x": [np.zeros(size, np.uint8)] * 50})
    origin = Origin(ds.stored.snapshot, {"x": "x"}, LinkRules())
    assert origin.row_bytes(np.arange(60, 90)) > 1000
    assert [file.is_opened for file in origin.parts.stored.files] == [False, True]
    assert origin.row_bytes(np.array([-1, 3, -1])) < 100
    assert origin.row_bytes(np.array([-1, -1])) == 1
