"""The runner: which rows are read, what is held against the totals, how much is in memory."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from computed import LAYOUTS, array_of, dense, equal, put

from tensorlake_spark.computing import thread_runner
from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operations.block_reductions import reduction
from tensorlake_spark.delta.files import scan
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.tensor.sparse import SparseTensor


class Looking(Fold):
    """A fold that keeps the places and shapes of blocks."""

    def map(self, place, block):
        return [(place, block.shape)]

    def combine(self, one, other):
        return one + other

    def finish(self, partial):
        return partial or []


def test_a_region_of_one_box_touches_only_its_rows(lake, monkeypatch):
    array = np.arange(64.0 * 40).reshape(64, 40) + 1
    ref = lake.write("x", array, block_shape=(4, 40))
    decoded = []
    fold_rows = thread_runner.fold_rows
    monkeypatch.setattr(
        thread_runner, "fold_rows", lambda *a: decoded.append(fold_rows(*a)) or decoded[-1]
    )
    assert ref.view[8:12, 3].sum() == array[8:12, 3].sum()
    assert sum(totals.rows for _, totals in decoded) == 1
    assert sum(totals.nnz for _, totals in decoded) == 4
    wide = ref.view[...].explain()
    narrow = ref.view[8:12].explain()
    assert narrow.n_rows <= wide.n_rows
    assert narrow.predicate.to_sql().count("lo.d0") == 1


def test_blocks_tile_the_selection(lake):
    array = np.arange(9 * 8).reshape(9, 8) + 1
    for key in (np.s_[...], np.s_[1::2, ::-3], np.s_[[5, 0, 5]], np.s_[None, 3]):
        stored = lake.write("x", array, block_shape=(2, 3), mode="overwrite").view[key]._stored
        seen = np.zeros(stored.shape, int)
        for place, shape in thread_runner.compute(Looking(), stored):
            mesh = np.ix_(
                *(np.arange(p.start, p.stop) if isinstance(p, slice) else p for p in place)
            )
            assert seen[mesh].shape == shape
            seen[mesh] += 1
        assert (seen == 1).all()


def test_neighbouring_rows_are_one_block(lake):
    ref = lake.write("x", np.arange(80).reshape(8, 10), block_shape=(2, 5))
    assert [shape for _, shape in thread_runner.compute(Looking(), ref._stored)] == [(8, 10)]


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_lost_rows_are_an_error_as_in_a_read(lake, layout, monkeypatch):
    ref = put(lake, array_of("f8", (9, 8), 1) + (layout == "ftsf"), layout)
    read_piece = scan.read_piece

    def loses(*args):
        for batch in read_piece(*args):
            yield batch.slice(1) if batch.num_rows > 1 else batch.slice(0, 0)

    monkeypatch.setattr(scan, "read_piece", loses)
    with pytest.raises(CorruptDataError, match="rows were lost"):
        ref.sum()


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_an_error_of_what_is_computed_is_not_one_of_the_file(lake, layout):
    ref = put(lake, array_of("f8", (9, 8), 1), layout)

    def broken(values):
        return values > (0 if len(values) == 1 else None)

    with pytest.raises(TypeError, match="NoneType") as error:
        ref.first_index(broken, axis=0)
    assert not isinstance(error.value, OSError)


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_rows_that_cannot_be_decoded_are_damage_of_a_file(lake, layout, monkeypatch):
    ref = put(lake, array_of("f8", (9, 8), 1), layout)
    read_piece = scan.read_piece

    def spoils(*args):
        for batch in read_piece(*args):
            at = batch.schema.get_field_index("values")
            yield batch.set_column(at, "values", pa.array([b"?"] * batch.num_rows, pa.binary()))

    monkeypatch.setattr(scan, "read_piece", spoils)
    with pytest.raises(CorruptDataError, match=r"data file .*parquet"):
        ref.sum(axis=0)


def test_a_selection_of_single_elements_is_one_block(lake):
    ref = lake.write("x", np.arange(20).reshape(4, 5))
    view = ref.view[[[0, 1], [3, 3]]]
    assert not view._stored.has_blocks
    assert np.array_equal(
        view.sum(axis=1), np.arange(20).reshape(4, 5)[[[0, 1], [3, 3]]].sum(axis=1)
    )


def test_nothing_is_read_of_nothing(lake, monkeypatch):
    monkeypatch.setattr(scan, "plan", None)
    ref = lake.write("x", np.zeros((0, 3)))
    assert ref.sum(axis=0).tolist() == [0, 0, 0]
    sparse = lake.write("y", SparseTensor(np.zeros((2, 0), int), np.zeros(0), (0, 3)))
    assert sparse.sum(axis=0).nnz == 0


def test_answers_do_not_depend_on_which_thread_was_faster(lake):
    ref = lake.write("x", np.random.default_rng(0).random((64, 4096)), block_shape=(1, 4096))
    assert len({float(ref.sum()) for _ in range(5)}) == 1
    assert reduction(ref._stored, "sum").is_scalar


@pytest.mark.soak
def test_4_gb_are_computed_in_512_mb(tmp_path):
    program = textwrap.dedent(
        """
        import sys
        import numpy as np
        import tensorlake_spark as tl
        lake = tl.open(sys.argv[1])
        slab = np.arange(8 * 1024 * 1024, dtype=np.float64).reshape(8, 1024, 1024)
        ref = lake.write("x", (slab for _ in range(64)), codec="delta(-1)+shuffle+zstd")
        assert ref.nbytes == 4 << 30
        assert ref.sum(axis=0).shape == (1024, 1024)
        assert ref.var(axis=2).shape == (512, 1024)
        assert ref.view[1:].argmax(axis=1).shape == (511, 1024)
        # VmHWM begins with the program; ru_maxrss would remember the process that started it.
        print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) <= 512


def mapped_now():
    """Bytes of files that are mapped and count as memory of this process."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssFile"))
    return int(line.split()[1]) * 1024


def test_files_that_were_computed_with_do_not_stay_in_memory(lake, monkeypatch):
    array = np.random.default_rng(0).integers(0, 256, (32, 1 << 20), np.uint8)
    ref = lake.write("x", array, block_shape=(1, 1 << 20), codec="raw")
    grown = []
    for most in (0, 1 << 40):
        monkeypatch.setattr(thread_runner, "_MAPPED_BYTES", most)
        before = mapped_now()
        assert np.array_equal(ref.sum(axis=1), array.sum(axis=1))
        grown.append(mapped_now() - before)
    assert grown[0] < 8 << 20
    assert grown[1] > 24 << 20


@pytest.mark.both_stores
@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_answers_of_which_every_row_has_a_part(lake, monkeypatch, layout):
    array = array_of("f8", (9, 8, 5), 1)
    ref = put(lake, array, layout)
    monkeypatch.setattr(thread_runner, "_LARGE_BYTES", 0)
    for view, x in ((ref, array), (ref.view[::-2, None, 2:], array[::-2, None, 2:])):
        equal(view.sum(axis=0), x.sum(axis=0))
        equal(view.var(axis=(0, 1), keepdims=True), x.var(axis=(0, 1), keepdims=True))
        equal(view.argmax(axis=0), x.argmax(axis=0))
        equal(view.max(axis=-1), x.max(axis=-1))
        np.testing.assert_allclose(
            dense(np.tensordot(view, view, (0, 0))), np.tensordot(x, x, (0, 0))
        )


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_a_tensor_without_axes_has_a_part_in_a_large_answer(lake, monkeypatch, layout):
    ref = lake.write("x", np.float64(7), layout=layout)
    monkeypatch.setattr(thread_runner, "_LARGE_BYTES", 0)
    vector = np.arange(5.0)
    equal(np.einsum("i,", vector, ref), 7 * vector)
    equal(np.tensordot(ref, vector, 0), 7 * vector)


def test_pieces_of_one_file_become_one_partial(lake, monkeypatch):
    """Of a reduction a thread makes one partial of many pieces, and reports each of them."""
    array = np.random.default_rng(0).integers(0, 255, (64, 512, 512)).astype("u1")
    ref = lake.write("x", array, block_shape=(1, 512, 512), codec="raw")
    stored = ref.view[...]._stored
    monkeypatch.setattr(scan, "JOB_BYTES", 1 << 20)
    counts = {}
    for size in (1 << 20, 1 << 30):
        monkeypatch.setattr(thread_runner, "_JOB_BYTES", size)
        fold = reduction(stored, "sum", 0)
        found = [*thread_runner.partials(fold, stored)]
        counts[size] = len(found)
        np.testing.assert_array_equal(fold.finish(fold.combine_all(found)), array.sum(axis=0))
    assert counts[1 << 30] <= scan.THREADS < counts[1 << 20]
    done = []
    plan = scan.plan(stored.snapshot, "x", stored.plain)
    visited = scan.each_piece(
        stored.snapshot, plan, ("lo", "hi", "nnz"), lambda b, _: len([*b]), done.append, 1 << 30
    )
    assert sum(visited) >= len(done) > scan.THREADS
    assert sum(done) > array.nbytes
