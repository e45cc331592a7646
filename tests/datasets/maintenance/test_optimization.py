"""Fewer files of all tables of a dataset, in an order that is asked for."""

import numpy as np
import pytest
from whole_datasets import contents, replace_parts, samples_of

import tensorlake_spark as tl


def test_an_order_changes_files_and_not_positions(made):
    ds = made.ds
    order = np.random.default_rng(0).permutation(ds.sids)
    ds.optimize(order=order.tolist())
    assert contents(ds) == made.at_first
    assert contents(tl.dataset(made.path)) == made.at_first
    stored = ds.stored
    assert stored._stored_sids.tolist() == order.tolist()
    apart = ds.parts.table_of("image")
    assert apart._stored_sids.tolist() == [s for s in order.tolist() if s in set(apart.sids)]
    # Samples that come later stay behind, in their files.
    ds.extend(samples_of(made.jpegs, range(20, 25)))
    ds.extend(samples_of(made.jpegs, range(25, 30)))
    ds.optimize()
    assert contents(ds)[:20] == made.at_first
    assert ds.sids.tolist() == sorted(ds.sids.tolist())
    assert ds.stored._stored_sids[:20].tolist() == order.tolist()
    ds.optimize(order=ds.sids)
    assert ds.stored.is_sorted
    assert contents(ds)[:20] == made.at_first


@pytest.mark.parametrize(
    "order", [[0], [*range(19), 18], list(range(21)), [0.5] * 20, "all", [[1, 2]]]
)
def test_an_order_that_is_none(made, order):
    version = made.ds.version
    with pytest.raises(tl.InvalidOptionError, match="order"):
        made.ds.optimize(order=order)
    assert made.ds.version == version


@pytest.mark.parametrize("file_bytes", [0, -1, 1.5, True])
def test_a_size_that_is_none(made, file_bytes):
    with pytest.raises(tl.InvalidOptionError, match="file_bytes"):
        made.ds.optimize(file_bytes=file_bytes)


def test_a_change_of_a_killed_writer_is_not_moved(made, monkeypatch):
    """It replaced values and never pinned them: it is undone, and the rest is made into fewer files."""
    from tensorlake_spark.datasets.apart import pinning
    from tensorlake_spark.datasets.apart.parts_writer import PartsWriter

    monkeypatch.setattr(pinning, "PATIENCE", 0.0)
    ds = made.ds
    parts = PartsWriter(ds._storage, ds.stored.snapshot, ds.schema, replaces=True)
    parts.take({"image": [made.jpegs[0]]}, [4], 0)
    parts.finish()
    ds.optimize()
    assert contents(ds) == made.at_first
    replace_parts(ds, [4], {"image": [made.jpegs[1]]})
    assert ds["image"].encoded(4) == made.jpegs[1]
