"""The layout window keeps the laws, finds what slides, and stores plainly what does not."""

import numpy as np
import pytest
from hypothesis import strategies as st
from timeline_kernel_law import by_loops

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing import Predicate, select, select_points
from tensorlake_spark.layouts import layout_of, window
from tensorlake_spark.layouts.testing.laws import LayoutLaws, bits
from tensorlake_spark.layouts.timelines import sliding as timelines
from tensorlake_spark.rows.row import corners, data_batch
from tensorlake_spark.tensor.spec import TensorSpec

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LAYOUT = layout_of("window")


def slid(count, width, seed, dtype="int64", most=1 << 62, edited=0.0, back=False, users=1):
    """Return rows of some users that slide by 0 to 3 places, the newest id first, or last with `back`."""
    rng = np.random.default_rng(seed)
    most = min(most, np.iinfo(dtype).max)
    parts = []
    for some in np.array_split(np.arange(count), users):
        at = np.cumsum(rng.integers(0, 4, len(some)))
        line = rng.integers(0, most, width + (at[-1] if len(at) else 0) + 1)
        parts.append(line[at[:, None] + np.arange(width)][:, slice(None, None, 1 if back else -1)])
    x = np.concatenate(parts).astype(dtype)
    places = rng.random(x.shape) < edited
    x[places] = rng.integers(0, most, np.count_nonzero(places)).astype(dtype)
    return x


class TestWindow(LayoutLaws):
    layout = LAYOUT

    def array(self, data):
        dtype = np.dtype(data.draw(st.sampled_from(INTEGERS), label="dtype"))
        shape = data.draw(st.tuples(st.integers(0, 40), st.integers(0, 12)), label="shape")
        seed = data.draw(st.integers(0, 2**32 - 1), label="seed")
        kind = data.draw(
            st.sampled_from(["slides", "shuffled", "noise", "few", "zeros"]), label="kind"
        )
        rng = np.random.default_rng(seed)
        if kind == "zeros":
            x = np.zeros(shape, dtype)
        elif kind == "noise":
            x = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
        elif kind == "few":
            x = rng.integers(0, 3, shape).astype(dtype)
        else:
            users = data.draw(st.integers(1, 4), label="users")
            edited = data.draw(st.sampled_from([0, 0, 0.02, 0.2]), label="edited")
            x = slid(*shape, seed, dtype, edited=edited, back=bool(seed % 2), users=users)
            x = x[rng.permutation(len(x))] if kind == "shuffled" else x
        if data.draw(st.booleans(), label="big endian"):
            x = x.astype(dtype.newbyteorder(">"))
        return x


class TestWindowByLoops(TestWindow):
    @pytest.fixture(autouse=True)
    def loops(self):
        with by_loops():
            yield


def encoded(x, block=None, codec="zstd"):
    spec = TensorSpec("x", x.shape, x.dtype, "window", block or LAYOUT.default_block(x.shape, x.dtype), codec=codec)  # fmt: skip
    selection = select(..., x.shape)
    rows = [row for box in LAYOUT.pieces(spec, selection.box) for row in LAYOUT.encode(x[box.slices()], box.lo, spec)]  # fmt: skip
    return spec, rows


def decoded(spec, rows, selection):
    result = LAYOUT.new_result(spec, selection, False)
    LAYOUT.decode(data_batch(spec, range(len(rows)), rows), spec, selection, result)
    return LAYOUT.finish(spec, selection, result)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("edited", [0, 0.001])
def test_rows_that_slide_either_way_are_stored_once(back, edited):
    x = slid(3000, 64, 1, back=back, edited=edited, users=5)
    spec, rows = encoded(x)
    assert all(row.index is not None for row in rows)
    assert sum(row.nbytes for row in rows) < x.nbytes / 20
    assert bits(decoded(spec, rows, select(..., x.shape))) == bits(x)


def test_an_edit_that_stays_is_one_patch():
    line = np.arange(1000, 1400)
    x = line[300 - np.arange(200)[:, None] + np.arange(100)]
    plain = encoded(x, codec="raw")[1]
    x[50:90][x[50:90] == 1300] = 7
    spec, rows = encoded(x, codec="raw")
    assert rows[0].nbytes - plain[0].nbytes <= 40
    assert bits(decoded(spec, rows, select(..., x.shape))) == bits(x)


def test_rows_of_a_user_that_stand_apart_share_a_timeline():
    x = slid(400, 64, 2, users=8)
    shuffled = x[np.random.default_rng(0).permutation(len(x))]
    spec, rows = encoded(shuffled)
    assert sum(row.nbytes for row in rows) < 2 * sum(row.nbytes for row in encoded(x)[1])
    assert bits(decoded(spec, rows, select(..., x.shape))) == bits(shuffled)


def test_what_does_not_slide_is_stored_as_plain_chunks_run_by_run(monkeypatch):
    monkeypatch.setattr(window, "PLAIN_BYTES", 100 * 64 * 8)
    monkeypatch.setattr(window, "SHORT_BYTES", 4000)
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 1 << 62, (350, 64))
    x = np.concatenate([slid(400, 64, 3, users=4), noise, slid(400, 64, 4, users=4)])
    spec, rows = encoded(x)
    plain = sorted((row.lo[0], row.hi[0]) for row in rows if row.index is None)
    assert plain[0][0] >= 400
    assert plain[-1][1] <= 850
    assert sum(b - a for a, b in plain) >= 200
    assert sum(row.nbytes for row in rows) < noise.nbytes * 1.3
    assert bits(decoded(spec, rows, select(..., x.shape))) == bits(x)
    lo, hi = corners(data_batch(spec, range(len(rows)), rows), 2)
    for first, stop in [(0, 1), (399, 402), (500, 700), (849, 852), (0, 1150)]:
        selection = select(slice(first, stop), x.shape)
        found = Predicate.of("x", selection).matches(lo, hi)
        assert found.sum() <= LAYOUT.row_bound(spec, selection)


def test_noise_costs_no_more_than_plain_chunks():
    x = np.random.default_rng(5).integers(0, 1 << 62, (500, 64))
    ftsf = layout_of("ftsf")
    _, rows = encoded(x)
    assert all(row.index is None for row in rows)
    other = TensorSpec("x", x.shape, x.dtype, "ftsf", x.shape)
    assert sum(row.nbytes for row in rows) == ftsf.encode(x, (0, 0), other)[0].nbytes


def test_rows_that_slide_are_stored_as_chunks_where_these_are_smaller():
    """A timeline has fewer ids here, and the codec makes less of those in chunks."""
    x = np.add.outer(np.arange(400), np.arange(64)) % 7
    spec, rows = encoded(x, codec="shuffle+zstd")
    assert all(row.index is None for row in rows)
    assert sum(row.nbytes for row in rows) < 60
    assert bits(decoded(spec, rows, select(..., x.shape))) == bits(x)
    placed = timelines.overlay(*timelines.place_chains(x, timelines.find_links(x)))
    assert LAYOUT._slid(x, (0, 0), placed, spec).nbytes > 60


def test_a_block_of_the_fill_value_is_not_stored_and_a_part_of_one_is():
    x = np.zeros((300, 8), np.int64)
    assert encoded(x)[1] == []
    x[250:] = np.random.default_rng(0).integers(1, 99, (50, 8))
    assert sum(row.nnz for row in encoded(x)[1]) == x.size
    assert sum(row.nnz for row in encoded(x, (100, 8))[1]) == 100 * 8


def test_what_replaces_a_row_is_one_row(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "SHORT_BYTES", 2000)
    monkeypatch.setattr(window, "PLAIN_BYTES", 8000)
    lake = tl.open(tmp_path)
    x = slid(900, 16, 12, users=60)
    lake.write("clicks", x, layout="window")
    rows = lake.catalog()["rows"][0]
    assert rows > 3
    x[100:400] = np.random.default_rng(1).integers(0, 1 << 60, (300, 16))
    x[500:800] = 0
    lake["clicks"][100:400] = x[100:400]
    lake["clicks"][500:800] = 0
    assert bits(lake["clicks"][...]) == bits(x)
    assert lake.check().ok
    assert lake.catalog()["rows"][0] == rows


def test_every_way_to_ask_for_edited_elements():
    x = slid(300, 32, 6, edited=0.05, users=3)
    spec, rows = encoded(x)
    assert any(row.index is not None for row in rows)
    rng = np.random.default_rng(7)
    some, other = rng.integers(0, 300, 90), rng.integers(0, 32, 40)
    for key in (
        np.s_[5:200:3, 2:30:4], np.s_[::-1, ::-2], np.s_[17], np.s_[:, 9], np.s_[some], np.s_[some, 3:9],
        np.s_[10:250, other], np.s_[::7, other],
    ):  # fmt: skip
        assert bits(decoded(spec, rows, select(key, x.shape))) == bits(x[key])
    points = rng.integers(0, 300, 500), rng.integers(0, 32, 500)
    assert bits(decoded(spec, rows, select_points(points, x.shape))) == bits(x[points])


@pytest.mark.parametrize("codec", ["raw", "zstd", "shuffle+zstd", "delta(-1)+shuffle+zstd", "delta(-2)+zstd"])  # fmt: skip
def test_codecs(codec):
    x = slid(200, 16, 8, "int32", most=1000, edited=0.01)
    spec, rows = encoded(x, codec=codec)
    assert bits(decoded(spec, rows, select(..., x.shape))) == bits(x)


def test_the_codec_is_chosen_for_the_timeline():
    x = slid(3000, 128, 9, most=10**6, users=30)
    rng = np.random.default_rng(9)
    ids = rng.integers(0, 10**6, 4096)  # a timeline is ids in no order
    assert LAYOUT.choose_codec(x) == layout_of("ftsf").choose_codec(ids)
    assert layout_of("ftsf").choose_codec(x) != LAYOUT.choose_codec(x)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros((4, 4)), UnsupportedDtypeError, r"float64 is not an integer dtype.*astype\('int64'\)"),
        (np.zeros((4, 4), bool), UnsupportedDtypeError, "bool is not an integer dtype"),
        (np.zeros((4, 4), "M8[s]"), UnsupportedDtypeError, "is not an integer dtype"),
        (np.zeros((2, 3, 4), int), InvalidTensorError, r"rank 2 .*\(2, 3, 4\) is not such a shape.*ftsf"),
        (np.zeros(4, int), InvalidTensorError, r"\(4,\) is not such a shape"),
    ],
)  # fmt: skip
def test_other_tensors_are_refused(tmp_path, x, error, message):
    lake = tl.open(tmp_path)
    with pytest.raises(error, match=message):
        lake.write("x", x, layout="window")
    lake.write("x", x)
    with pytest.raises(error, match=message):
        lake.convert("x", layout="window")
    assert "window" not in set(tl.estimate(x)["layout"])
    with pytest.raises(error, match=message):
        tl.estimate(x, layouts=["window"])


def test_options_that_window_has_not(tmp_path):
    x = slid(9, 4, 0)
    for option in ({"chunk_rank": 1}, {"order": (1, 0)}, {"duplicates": "last"}):
        with pytest.raises(InvalidOptionError, match=f"layout window has no {next(iter(option))}"):
            tl.open(tmp_path).write("x", x, layout="window", **option)


def test_a_life_in_a_lake(tmp_path):
    lake = tl.open(tmp_path)
    x = slid(500, 40, 10, users=5, edited=0.001)
    ref = lake.write("clicks", x[:300], layout="window", block_shape=(128, 40), fill_value=-1)
    assert ref.layout == "window"
    assert "window, blocks of (128, 40)" in str(ref.explain(7))
    lake.write("clicks", x[300:], mode="append")
    assert bits(lake["clicks"][...]) == bits(x)
    assert bits(lake["clicks"][295:305, 3:]) == bits(x[295:305, 3:])
    lake["clicks"][100:110, 5:7] = 42
    x[100:110, 5:7] = 42
    assert bits(lake["clicks"][90:120]) == bits(x[90:120])
    lake.write("clicks", x[:, :3], mode="append", axis=1)
    x = np.concatenate([x, x[:, :3]], axis=1)
    assert bits(lake["clicks"][...]) == bits(x)
    lake.optimize()
    assert bits(lake["clicks"][...]) == bits(x)
    assert lake.convert("clicks", layout="ftsf").layout == "ftsf"
    assert bits(lake["clicks"][...]) == bits(x)
    lake.convert("clicks", layout="window")
    assert bits(lake["clicks"][::3, ::-1]) == bits(x[::3, ::-1])


def test_a_sparse_tensor_may_become_one_that_slides(tmp_path):
    x = slid(200, 12, 13)
    x[50:60] = 0
    lake = tl.open(tmp_path)
    lake.write("x", tl.SparseTensor.from_dense(x), layout="coo")
    assert bits(lake.convert("x", layout="window")[...]) == bits(x)
    assert bits(lake.convert("x", layout="bsgs")[...].todense()) == bits(x)
    lake.write("y", tl.SparseTensor.from_dense(x), layout="window")
    assert bits(lake["y"][40:70]) == bits(x[40:70])


def test_estimate_knows_what_slides():
    found = tl.estimate(slid(3000, 64, 11, users=6)).set_index("layout")["bytes"]
    assert found["window"] < found["ftsf"]


def test_a_timeline_is_not_transposed(lake):
    with pytest.raises(
        InvalidOptionError, match=r"window has no step transpose.*take codec 'zstd'"
    ):
        lake.write("x", np.arange(12).reshape(4, 3), layout="window", codec="transpose+zstd")
    with pytest.raises(InvalidOptionError, match=r"unknown codec 'transpose\+'; did you mean"):
        lake.write("x", np.arange(12).reshape(4, 3), layout="window", codec="transpose+")
