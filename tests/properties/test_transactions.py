"""A block is what its changes are one by one, but for the number of commits; a block that fails is nothing."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.writing import overlay, uncommitted

IDS = st.sampled_from(["a", "b", "group/c", "z"])
LAYOUTS = st.sampled_from(["auto", "ftsf", "bsgs", "coo", "csr"])
SEEDS = st.integers(0, 2**31)

CHANGES = st.one_of(
    st.tuples(
        st.just("write"), IDS, SEEDS, st.tuples(st.integers(0, 5), st.integers(0, 4)), LAYOUTS,
        st.sampled_from(["error", "overwrite", "append"]),
    ),
    st.tuples(st.just("delete"), IDS),
    st.tuples(st.just("assign"), IDS, SEEDS),
    st.tuples(st.just("convert"), IDS, LAYOUTS),
    st.tuples(st.just("attrs"), IDS, SEEDS),
    st.tuples(st.just("read"), IDS),
)  # fmt: skip


def array_of(seed, shape):
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape).astype("i4")
    return np.where(rng.random(shape) < 0.4, 0, x).astype("i4")


def apply(door, change):
    """Make one change; return what came of it, an error's type included."""
    what, name, *rest = change
    try:
        if what == "write":
            seed, shape, layout, mode = rest
            door.write(name, array_of(seed, shape), layout=layout, mode=mode, block_shape=None)
        elif what == "delete":
            door.delete(name)
        elif what == "assign":
            ref = door[name]
            rng = np.random.default_rng(rest[0])
            lo = [int(rng.integers(0, n + 1)) for n in ref.shape]
            hi = [int(rng.integers(a, n + 1)) for a, n in zip(lo, ref.shape, strict=True)]
            key = tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))
            ref[key] = array_of(rest[0], [b - a for a, b in zip(lo, hi, strict=True)])
        elif what == "convert":
            door.convert(name, layout=rest[0])
        elif what == "attrs":
            door[name].update_attrs({"seed": rest[0]})
        else:
            return content(door[name])
    except tl.TensorLakeError as error:
        return type(error)
    return sorted(door)


def content(ref):
    x = ref[...]
    dense = x.todense() if isinstance(x, tl.SparseTensor) else x
    return ref.shape, ref.layout, ref.nnz, dict(ref.attrs), dense.tobytes()


def contents(lake):
    return {name: content(lake[name]) for name in lake}


def settled(lake):
    """What there is to commit from: tensors in files of their own, and two in one file."""
    lake.write("a", array_of(1, (4, 3)), layout="ftsf", block_shape=(2, 3))
    lake.write("group/c", array_of(2, (5, 4)), layout="bsgs")
    lake.optimize()
    lake.write("z", array_of(3, (2, 2)))


@pytest.mark.parametrize(
    ("small", "waiting"), [(4 << 20, 64 << 20), (3000, 6000), (0, 0)], ids=["wait", "some", "none"]
)
@settings(max_examples=6, deadline=None)
@given(changes=st.lists(CHANGES, max_size=8), fails=st.booleans(), is_new=st.booleans())
def test_a_block_is_its_changes_one_by_one(small, waiting, changes, fails, is_new):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlay, "SMALL_BYTES", small)
        patch.setattr(uncommitted, "WAITING_BYTES", waiting)
        one, two = tl.open(f"{folder}/one"), tl.open(f"{folder}/two")
        if not is_new:
            settled(one)
            settled(two)
        before, version = contents(two), two.version
        try:
            with two.transaction() as tx:
                for change in changes:
                    assert apply(tx, change) == apply(one, change), change
                assert contents(tx) == contents(one)
                assert contents(two) == before
                changed = tx._changes.changed
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            assert contents(two) == before
            assert two.version == version
        else:
            assert contents(two) == contents(one)
            if changed:
                assert two.version == (0 if version is None else version) + 1
                assert two.check().ok
            else:
                assert two.version == version
        live = set() if two.version is None else set(two._snapshot().files.path)
        new = {path.name for path in Path(folder, "two").glob("*.parquet")}
        assert live <= new
        assert fails or is_new is False or new == live
