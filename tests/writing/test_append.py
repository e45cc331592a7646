"""What an append cannot change: said again it is fine; something else is refused, or warned of where only storage differs."""

import numpy as np
import pytest

import tensorlake_spark as tl

X = np.arange(24.0).reshape(2, 3, 4)
DENSE = {
    "layout": "ftsf", "block_shape": (1, 3, 4), "codec": "shuffle+zstd", "fill_value": 9,
    "axes": ("t", "y", "x"),
}  # fmt: skip


STORAGE = ("block_shape", "chunk_rank", "codec", "order", "row_axes")


@pytest.fixture
def kept(caplog):
    """Return what sees that an append keeps something, and either stops or says so."""

    def check(lake, data, option, value, **more):
        if option not in STORAGE:
            refused(lake, data, option, value, **more)
            return
        before = lake["x"]
        caplog.clear()
        after = lake.write("x", data, mode="append", **{option: value}, **more)
        (record,) = [r for r in caplog.records if r.levelname == "WARNING"]
        assert f"whatever {option}=" in record.message
        assert (after.block_shape, after.codec) == (before.block_shape, before.codec)
        assert after._meta.spec.params == before._meta.spec.params

    return check


def refused(lake, data, option, value, **more):
    version = lake.version
    with pytest.raises(tl.InvalidOptionError, match="an append keeps it; leave out") as told:
        lake.write("x", data, mode="append", **{option: value}, **more)
    assert f"{option}={value!r}" in str(told.value)
    assert lake.version == version


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("layout", "coo"), ("block_shape", (2, 3, 4)), ("chunk_rank", 1), ("codec", "raw"), ("fill_value", 8),
        ("axes", ("t", "x", "y")),
    ],
)  # fmt: skip
def test_a_dense_tensor_keeps_its_options(lake, kept, option, value):
    for _ in range(3):
        lake.write("x", X, mode="append", **DENSE)
    kept(lake, X, option, value)
    lake.write("x", X, mode="append", chunk_rank=2)
    assert len(lake["x"]) in (8, 10)
    np.testing.assert_array_equal(lake["x"][:], np.concatenate([X] * (len(lake["x"]) // 2)))


@pytest.mark.parametrize("chunk_rank", range(4))
def test_the_same_chunk_rank_is_fine_as_the_tensor_grows(lake, kept, caplog, chunk_rank):
    for _ in range(3):
        lake.write("x", X, mode="append", chunk_rank=chunk_rank)
    assert lake["x"].shape == (6, 3, 4)
    assert not caplog.records
    kept(lake, X, "chunk_rank", (chunk_rank + 2) % 4)


@pytest.mark.parametrize(
    ("options", "option", "value"),
    [
        ({"layout": "bsgs", "order": (2, 1, 0), "duplicates": "sum"}, "duplicates", "last"),
        ({"layout": "bsgs", "order": (2, 1, 0)}, "order", [0, 1, 2]),
        ({"layout": "csf"}, "order", [2, 1, 0]),
        ({"layout": "csr", "row_axes": (0,)}, "row_axes", [0, 1]),
        ({"layout": "coo", "codec": "raw"}, "codec", "zstd"),
        ({"layout": "coo"}, "block_shape", (1, 1, 1)),
        ({"layout": "coo"}, "axes", ("t", "y", "x")),
        ({"layout": "coo"}, "fill_value", 1),
    ],
)
def test_a_sparse_tensor_keeps_its_options(lake, kept, options, option, value):
    for _ in range(2):
        lake.write("x", X, mode="append", **options)
    kept(lake, X, option, value)
    if option not in (*STORAGE, "duplicates"):
        kept(lake, X, option, value, axis=None)


def test_elements_that_are_added_may_bring_a_rule(lake):
    lake.write("x", tl.SparseTensor([[0], [0]], [1], (2, 3)), layout="coo")
    more = tl.SparseTensor([[0], [0]], [4], (2, 3))
    lake.write("x", more, mode="append", axis=None, duplicates="sum")
    assert lake["x"][0, 0] == 5


def test_an_unknown_codec_and_a_block_that_is_none(lake):
    lake.write("x", X)
    with pytest.raises(tl.InvalidOptionError, match="unknown codec 'nonsense'"):
        lake.write("x", X, mode="append", codec="nonsense")
    with pytest.raises(tl.InvalidTensorError, match="not a sequence of whole numbers"):
        lake.write("x", X, mode="append", block_shape=3)


def test_elements_where_the_tensor_grows_are_new(lake):
    """In the shape before, (0, 5) would be the place of (1, 2)."""
    lake.write("x", tl.SparseTensor([[1], [2]], [5.0], (2, 3)), layout="coo")
    more = tl.SparseTensor([[0, 3], [5, 0]], [7.0, 9.0], (4, 6))
    lake.write("x", more, mode="append", axis=None)
    found = lake["x"][:]
    assert found.coords.T.tolist() == [[0, 5], [1, 2], [3, 0]]
    assert found.values.tolist() == [7, 5, 9]


@pytest.mark.parametrize(
    ("data", "axis"),
    [
        (np.ones((1, 3), "f4"), 0),
        (tl.SparseTensor([[0], [0]], np.ones(1, "f4"), (1, 3)), 0),
        (tl.SparseTensor([[0], [0]], np.ones(1, "i8"), (1, 3)), None),
    ],
)
def test_another_dtype_is_refused_and_not_converted(lake, data, axis):
    lake.write("x", tl.SparseTensor([[1], [2]], [5.0], (2, 3)), layout="coo")
    with pytest.raises(tl.InvalidTensorError, match=r"\.astype\('float64'\)"):
        lake.write("x", data, mode="append", axis=axis)
    assert lake["x"].shape == (2, 3)
