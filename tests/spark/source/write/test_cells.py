"""Cells of a DataFrame in every sparse layout, shuffled or grouped by block, held against NumPy."""

import numpy as np
import pyarrow as pa
import pytest
from examples import mostly
from writing import files_in_order, write_here

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import Grid
from tensorlake_spark.spark import group_cells
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.source.read.overlapping_rows import numbers_of
from tensorlake_spark.spark.source.schemas import TENSOR

SHAPE, BLOCK = (12, 20, 16), (4, 8, 8)
SIZE = int(np.prod(SHAPE))
TASKS = 3
OPTIONS = {
    "bsgs": {"blockShape": "4,8,8", "order": "1,0,2"},
    "coo": {},
    "csr": {"rowAxes": "1,2"},
    "csc": {"rowAxes": "0,2"},
    "csf": {"order": "2,0,1"},
}
PARAMS = {
    "bsgs": {"order": [1, 0, 2]},
    "coo": {},
    "csr": {"row_axes": [1, 2]},
    "csc": {"row_axes": [0, 2]},
    "csf": {"order": [2, 0, 1]},
}
KEYS = (np.s_[3], np.s_[:, 5:9], np.s_[..., 7], np.s_[2:11:3, ::-1, 4:12], np.s_[1, 2, 3])


@pytest.fixture(scope="module")
def places():
    """Where the elements lie, in no order; only some blocks have one."""
    x = np.random.default_rng(4).random(SHAPE) < 0.3
    x[4:8, :8], x[:, 16:] = False, False
    return np.random.default_rng(5).permutation(np.flatnonzero(x))


@pytest.fixture
def tasks(spark):
    """A session that makes a few tasks of small data too."""
    conf = {
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    before = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def cells(spark, places):
    """Cells that are shuffled over tasks, each the number of its place and one."""
    columns = dict(zip(("i0", "i1", "i2"), np.unravel_index(places, SHAPE), strict=True))
    return spark.createDataFrame(pa.table({**columns, "value": places + 1.0})).repartition(TASKS)


def dense(places):
    out = np.zeros(SIZE)
    out[places] = places + 1
    return out.reshape(SHAPE)


def save(frame, path, **options):
    given = {"id": "x", "shape": ",".join(map(str, SHAPE)), **options}
    with plain_errors():
        frame.write.format("tensor").mode("append").options(**given).save(path)


CASES = [(layout, is_grouped) for layout in OPTIONS for is_grouped in (False, True)]
CHOSEN = [("bsgs", True), ("coo", False), ("csr", True), ("csc", False), ("csf", False)]


@pytest.mark.parametrize(("layout", "is_grouped"), mostly(CASES, CHOSEN))
def test_cells_in_every_layout(tasks, place, places, layout, is_grouped):
    frame = cells(tasks, places)
    if is_grouped:
        frame = group_cells(frame, SHAPE, BLOCK if layout == "bsgs" else (1, 1, 1))
    save(frame, place, layout=layout, **OPTIONS[layout])
    ref, x = tl.open(place)["x"], dense(places)
    assert (ref.layout, ref.nnz, ref._meta.spec.params) == (layout, len(places), PARAMS[layout])
    np.testing.assert_array_equal(ref[...].todense(), x)
    for key in KEYS:
        got = ref[key]
        np.testing.assert_array_equal(got.todense() if np.ndim(x[key]) else got, x[key])
    files = files_in_order(Storage(place), 3)
    assert len(files) == TASKS, "every task wrote"
    rows = sum(len(ids) for ids, _, _ in files.values())
    if layout == "bsgs":
        assert ref.block_shape == BLOCK
    if is_grouped and layout == "bsgs":
        grid = Grid(SHAPE, BLOCK, ref._meta.spec.segments)
        blocks = {*numbers_of(grid, np.array(np.unravel_index(places, SHAPE))).tolist()}
        assert rows == len(blocks) == 10, "a row for each block that has an element"
        held = [{tuple(corner) for corner in lo.tolist()} for _, lo, _ in files.values()]
        assert len(set().union(*held)) == rows, "no block is in two files"
    report = tl.open(place).check()
    assert report.ok, report


@pytest.mark.parametrize("layout", mostly([(name,) for name in OPTIONS], [("csc",), ("csf",)]))
def test_an_append_of_cells(tasks, place, places, layout):
    first, second = places[::2], places[1::2]
    save(cells(tasks, first), place, layout=layout, **OPTIONS[layout])
    save(cells(tasks, second), place)
    ref = tl.open(place)["x"]
    np.testing.assert_array_equal(ref[...].todense(), dense(places))
    assert ref._meta.spec.params == PARAMS[layout]
    files_in_order(Storage(place), 3)


@pytest.mark.parametrize(("rule", "layout"), [("sum", "csf"), ("last", "csc"), ("error", "csr")])
def test_cells_that_several_tasks_have(tasks, place, rule, layout):
    """Every task has all cells: they are added up, those of the last partition hold, or it is an error."""
    frame = tasks.range(0, 3 * 200, 1, TASKS).selectExpr(
        "id % 200 div 20 as i0", "id % 20 as i1", "0L as i2", "double(id) as value"
    )
    if rule == "error":
        with pytest.raises(tl.InvalidTensorError, match="is given more than once"):
            save(frame, place, layout=layout)
        assert list(tl.open(place)) == []
        return
    save(frame, place, layout=layout, duplicates=rule)
    values = np.arange(600.0).reshape(3, 10, 20)
    want = np.zeros(SHAPE)
    want[:10, :, 0] = values.sum(0) if rule == "sum" else values[-1]
    np.testing.assert_array_equal(tl.open(place)["x"][...].todense(), want)
    np.testing.assert_array_equal(tl.open(place)["x"][3:5, ::3].todense(), want[3:5, ::3])


def value(x):
    return (x.dtype.name, list(x.shape), np.ascontiguousarray(x).tobytes())


@pytest.mark.parametrize("layout", OPTIONS)
def test_slabs_and_tensors_in_every_layout(spark, place, places, layout):
    """Their zeros are left out; slabs of another task and of an append continue the tensor."""
    x = dense(places)
    kind = TENSOR.simpleString()
    slabs = [([i, 0, 0], value(x[i : i + 5])) for i in range(0, len(x), 5)]
    given = {"path": place, "layout": layout, **OPTIONS[layout]}
    for _ in range(2):
        write_here(slabs, f"lo array<bigint>, tensor {kind}", {**given, "id": "x"})
    tensors = [(name, value(x[k:])) for k, name in enumerate(("z/b", "z/a"))]
    write_here(tensors, f"id string, tensor {kind}", given)
    lake = tl.open(place)
    want = {"x": np.concatenate([x, x]), "z/a": x[1:], "z/b": x}
    for name, array in want.items():
        ref = lake[name]
        assert (ref.layout, ref.nnz) == (layout, np.count_nonzero(array))
        assert ref._meta.spec.params == PARAMS[layout]
        np.testing.assert_array_equal(ref[...].todense(), array)
        np.testing.assert_array_equal(ref[1:9, 3, ::2].todense(), array[1:9, 3, ::2])
    files_in_order(Storage(place), 3)
    assert lake.check().ok


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layout": "csf", "order": "0,1"}, "order"),
        ({"layout": "coo", "order": "0,1,2"}, "order"),
        ({"layout": "csr", "rowAxes": "0,3"}, "row_axes"),
        ({"layout": "bsgs", "rowAxes": "0"}, "row_axes"),
        ({"layout": "csf", "order": "a,b,c"}, "option order='a,b,c' is not a list of integers"),
    ],
)
def test_an_order_that_the_layout_does_not_have(spark, place, options, says):
    given = {"path": place, "id": "x", "shape": "3,4,5", **options}
    with pytest.raises(tl.TensorLakeError, match=says):
        write_here([(0, 0, 0, 1.0)], "i0 int, i1 int, i2 int, value double", given)
    with pytest.raises(tl.TableNotFoundError):
        tl.open(place, create=False)
