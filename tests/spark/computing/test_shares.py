"""Shares of a selection: only what overlaps it, each row once, and the answer is that of the whole."""

import itertools
import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.block_reductions import reduction
from tensorlake_spark.computing.operations.first_indices import first_index
from tensorlake_spark.computing.operations.index_searches import search
from tensorlake_spark.computing.operations.products import contractions
from tensorlake_spark.computing.thread_runner import compute
from tensorlake_spark.indexing import select
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.computing.shares import RegionShare, count_of, shares_of

KEYS = {"all": np.s_[...], "part": np.s_[3:9, ::-2], "points": np.s_[[7, 2, 7], :, 4:]}
FACTORS = [np.random.default_rng(k).random((n, 3)) for k, n in enumerate((12, 6, 10))]


@pytest.fixture
def stored(path):
    """What a key picks of a tensor of the lake."""

    def of(tensor_id, key=...):
        ref = tl.open(path)[tensor_id]
        return Stored(ref._snapshot, ref._meta, select(key, ref.shape))

    return of


def folds(stored):
    """Return folds of several families."""
    for axis in (0, 1):
        for name in ("sum", "prod", "var", "max", "min", "nanmin", "any", "all", "count_nonzero"):
            yield reduction(stored, name, axis)
        yield from (search(stored, name, axis) for name in ("argmax", "argmin"))
    yield contractions.ttv(stored, np.arange(stored.shape[1]), 1)
    yield contractions.tensordot(stored, np.arange(2.0 * stored.shape[0]).reshape(-1, 2), (0, 0))
    yield first_index(stored, (">", 20), 0)


def by_shares(fold, shares, count=1):
    """Fold shares as tasks do: all of it travels, and parts of partials are combined two by two."""
    sent = (pickle.loads(pickle.dumps((fold, share))) for share in shares)
    found = [pickle.loads(pickle.dumps(share.fold(fold))) for fold, share in sent]
    parts = {}
    for partial, _ in found:
        cut = [] if partial is None else fold.cut(partial, count) if count > 1 else [(0, partial)]
        for number, part in cut:
            parts.setdefault(number, []).append(pickle.loads(pickle.dumps(fold.packed(part))))
    partials = []
    for some in parts.values():
        while len(some) > 1:
            pairs = [some[k : k + 2] for k in range(0, len(some), 2)]
            some = [fold.combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        partials += some
    return fold.finish(fold.combine_all(partials)), sum((t for _, t in found), Totals())


def dense_of(found):
    if not hasattr(found, "coords"):
        return np.asarray(found)
    out = np.zeros(found.shape, found.dtype)
    out[tuple(found.coords)] = found.values
    return out


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("tensor_id", ["dense", "filled", "thin", "twice"])
def test_folded_by_shares_the_answer_is_that_of_the_whole(stored, small_shares, tensor_id, key):
    some = stored(tensor_id, KEYS[key])
    shares = shares_of(some, 2)
    for fold, count in itertools.product(folds(some), (1, 4)):
        found, _ = by_shares(fold, shares, count)
        np.testing.assert_allclose(dense_of(found), dense_of(compute(fold, some)), rtol=1e-6)


@pytest.mark.parametrize("tensor_id", ["dense", "thin"])
def test_shares_have_every_row_once(stored, small_shares, tensor_id):
    some = stored(tensor_id)
    shares = shares_of(some, 2)
    assert len(shares) > 2
    _, totals = by_shares(reduction(some, "sum"), shares)
    assert totals == some.meta.totals


@pytest.mark.parametrize("tensor_id", ["dense", "thin"])
def test_shares_name_only_row_groups_that_overlap(stored, small_shares, tensor_id):
    some = stored(tensor_id, np.s_[5:7])
    named = {(p.path, g) for s in shares_of(some, 2) for p in s.pieces for g in p.row_groups}
    plan = some.plan()
    assert named == {(file.path, g) for file in plan.files for g in file.row_groups}
    assert len(plan.files) < plan.total_files


def test_what_no_row_stores_is_shared_too(stored, small_shares):
    boxes = [box for share in shares_of(stored("filled"), 2) for box in share.fills]
    assert sorted(box.lo for box in boxes) == [(a, 0, c) for a in (2, 6, 10) for c in (0, 5)]
    assert not any(share.fills for share in shares_of(stored("filled", np.s_[4:6]), 2))


def test_elements_that_several_rows_hold_are_read_together(stored, small_shares):
    shares = shares_of(stored("twice"), 2)
    assert all(isinstance(share, RegionShare) for share in shares)


def test_tasks_are_some_for_every_core_and_read_a_gigabyte_at_the_most():
    assert [count_of(n, 4) for n in (0, 1 << 20, 64 << 20, 1 << 33, 1 << 35)] == [1, 1, 4, 8, 32]


def test_a_selection_of_the_product_of_a_decomposition_is_folded(stored, small_shares):
    some = stored("thin")
    fold = contractions.mttkrp(some, FACTORS, 1)
    found, _ = by_shares(fold, shares_of(some, 2))
    want = np.einsum("abc,ar,cr->br", some.read().todense(), FACTORS[0], FACTORS[2])
    np.testing.assert_allclose(found, want, rtol=1e-6)
