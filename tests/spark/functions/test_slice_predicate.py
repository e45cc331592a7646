"""slice_filter() keeps the rows whose boxes overlap the slice, and Delta and Parquet skip the others."""

import itertools

import numpy as np
import pytest
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.indexing import format_key
from tensorlake_spark.spark.functions import slice_filter

SHAPE = (12, 9, 7, 5)
BLOCK = (2, 4, 3, 5)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Several files of two dense tensors and a sparse one."""
    path = tmp_path_factory.mktemp("filter") / "lake"
    lake = tl.open(path)
    x = np.random.default_rng(0).integers(1, 99, SHAPE).astype("i2")
    for start in range(0, SHAPE[0], 4):
        lake.write("x", x[start : start + 4], mode="append", block_shape=None if start else BLOCK)
    lake.write("y", x[:3], block_shape=BLOCK)
    sparse = np.where(np.random.default_rng(1).random(SHAPE) < 0.05, x, 0)
    lake.write("s", tl.SparseTensor.from_dense(sparse), layout="coo")
    return str(path)


@pytest.fixture(scope="module")
def frame(spark, path):
    return spark.read.format("delta").load(path)


@pytest.fixture(scope="module")
def boxes(frame):
    """All data rows, as the oracle sees them."""
    rows = frame.where("nnz > 0").select("id", "seq", "lo", "hi").collect()
    return {(r.id, r.seq): (list(r.lo)[: len(SHAPE)], list(r.hi)[: len(SHAPE)]) for r in rows}


def needed(boxes, tensor_id, key, shape):
    """The rows that overlap the ranges from the first to the last index that NumPy picks on every axis."""
    parts = [part for part in key if part is not None]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    picked = [np.arange(n) for n in shape]
    for axis, part in enumerate(parts):
        picked[axis] = np.atleast_1d(picked[axis][part])
    out = set()
    for (name, seq), (lo, hi) in boxes.items():
        overlaps = all(
            len(p) and lo[k] <= p.max() and hi[k] > p.min() for k, p in enumerate(picked)
        )
        if name == tensor_id and overlaps:
            out.add((name, seq))
    return out


def kept(frame, conditions):
    """The rows that pass each of some conditions, found by one job."""
    columns = [c.alias(f"c{i}") for i, c in enumerate(conditions)]
    rows = frame.select("id", "seq", *columns).collect()
    return [{(r.id, r.seq) for r in rows if r[f"c{i}"]} for i in range(len(conditions))]


def axis_parts(n):
    half = n // 2
    return [
        0, n - 1, half, slice(None), slice(half, None), slice(None, half), slice(1, n - 1),
        slice(half, half), slice(0, n, 3), slice(1, None, 2), slice(2, 10**30),
        -1, -n, slice(-2, None), slice(None, -half), slice(None, None, -1), slice(half, 0, -2),
        slice(-1, -n, -3),
    ]  # fmt: skip


def from_the_end(key):
    """Whether a key has to know where axes end."""
    last = len(key) - 1
    return any(
        (part is Ellipsis and place < last)
        or (isinstance(part, int) and part < 0)
        or (isinstance(part, slice) and any(n is not None and n < 0 for n in (part.start, part.stop, part.step)))
        for place, part in enumerate(key)
    )  # fmt: skip


KEYS = [
    *((*(slice(None),) * axis, part) for axis, n in enumerate(SHAPE) for part in axis_parts(n)),
    *itertools.islice(itertools.product(*map(axis_parts, SHAPE)), 0, None, 9001),
    (), (Ellipsis,), (3, Ellipsis), (Ellipsis, 3), (2, Ellipsis, slice(1, 3)), (None, 4, None, slice(3, 5)),
]  # fmt: skip


@pytest.mark.parametrize("tensor_id", ["x", "s"])
def test_the_rows_are_those_whose_boxes_overlap(frame, boxes, tensor_id):
    found = kept(frame, [slice_filter(key, tensor_id, shape=SHAPE) for key in KEYS])
    for key, rows in zip(KEYS, found, strict=True):
        assert rows == needed(boxes, tensor_id, key, SHAPE), key


def test_without_a_shape_and_as_text_the_rows_are_the_same(frame, boxes):
    keys = [key for key in KEYS if not from_the_end(key)]
    assert len(keys) > 40
    texts = [slice_filter(format_key(key), "x") for key in keys]
    found = kept(frame, [*texts, *(slice_filter(key, "x") for key in keys)])
    for key, rows, same in zip(keys, found, found[len(keys) :], strict=False):
        assert rows == same, key
        want = needed(boxes, "x", key, SHAPE)
        # Where an axis ends is not known, so neither is the last index of a step to its end.
        open_step = any(isinstance(p, slice) and p.step and p.stop is None for p in key)
        assert rows >= want if open_step else rows == want, key


@pytest.mark.parametrize("key", [key for key in KEYS if from_the_end(key)][::7])
def test_what_counts_from_the_end_needs_the_shape(key):
    with pytest.raises(tl.InvalidKeyError, match="give shape="):
        slice_filter(key, "x", sql=True)


def test_an_index_list_counts_as_the_range_that_it_spans(frame, boxes):
    (rows,) = kept(frame, [slice_filter(np.s_[[7, 2, 2]], "x")])
    assert rows == needed(boxes, "x", np.s_[2:8,], SHAPE)
    mask = np.arange(12) == 5
    (rows,) = kept(frame, [slice_filter(mask, "x", shape=SHAPE)])
    assert rows == needed(boxes, "x", (5,), SHAPE)
    with pytest.raises(tl.InvalidKeyError, match="give shape="):
        slice_filter(mask, "x", sql=True)


def test_without_an_id_all_tensors_are_searched(frame, boxes):
    (rows,) = kept(frame, [slice_filter("0:2, 4:5")])
    assert rows == set().union(*(needed(boxes, i, np.s_[0:2, 4:5], SHAPE) for i in "xys"))
    assert {name for name, _ in rows} == {"x", "y", "s"}


def test_axes_may_have_names():
    by_name = slice_filter("y=3:5", "x", sql=True, axes=("image", "y"))
    assert by_name == slice_filter(":, 3:5", "x", sql=True)
    with pytest.raises(tl.InvalidSliceError, match="give axes="):
        slice_filter("y=3:5", "x", sql=True)
    with pytest.raises(tl.InvalidSliceError, match="did you mean 'image'"):
        slice_filter("imge=3:5", "x", sql=True, axes=("image", "y"))


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        ("9:x", tl.InvalidSliceError, "cannot be read"),
        (slice(0, 5, 0), tl.InvalidSliceError, "zero"),
        (slice(1.5, 3), tl.InvalidKeyError, "integers"),
        ("12", tl.InvalidKeyError, "out of bounds for axis 0 with size 12"),
        ("1, 2, 3, 4, 5", tl.InvalidKeyError, "too many indices"),
    ],
)
def test_a_key_that_does_not_fit_is_an_error(key, error, text):
    with pytest.raises(error, match=text):
        slice_filter(key, "x", sql=True, shape=SHAPE)


def test_out_of_bounds_without_a_shape_finds_nothing(frame):
    assert kept(frame, [slice_filter("99", "x"), slice_filter(f"{2**62}:", "x")]) == [set(), set()]


def test_axes_past_the_eighth_are_not_compared(spark, place):
    x = np.arange(2**9).reshape((2,) * 9)
    lake = tl.open(place)
    lake.write("deep", x, block_shape=(2,) * 7 + (1, 1))
    frame = spark.read.format("delta").load(lake.uri)
    text = slice_filter(np.s_[..., 0, 1], "deep", sql=True, shape=x.shape)
    assert "d7" in text
    assert "d8" not in text
    assert frame.where(text).count() == 2


IDS = [
    "it's",
    'a"b',
    "back\\slash",
    "x' OR '1' = '1",
    "x' -- ",
    "\\' OR 1=1",
    "`tick`",
    "$x",
    "ü{}",
]


def test_ids_are_quoted(spark, place):
    lake = tl.open(place)
    for number, name in enumerate(IDS):
        lake.write(name, np.full(3, number + 1))
    frame = spark.read.format("delta").load(lake.uri)
    texts = [slice_filter("0:2", name, sql=True) for name in IDS]
    found = kept(frame, [*(slice_filter("0:2", name) for name in IDS), *map(f.expr, texts)])
    assert [[name for name, _ in rows] for rows in found] == [[name] for name in IDS * 2]
    rows = frame.where(" OR ".join(f"({text})" for text in texts)).select("id")
    assert sorted(r.id for r in rows.collect()) == sorted(IDS)
    with pytest.raises(tl.InvalidTensorError, match="control character"):
        slice_filter("0:2", "a\nb", sql=True)


def scanned(frame):
    """Files and rows that the scan of an executed query read."""
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.executedPlan()
    leaf = plan.collectLeaves().apply(0)
    return tuple(leaf.metrics().apply(name).value() for name in ("numFiles", "numOutputRows"))


def test_delta_skips_files(frame):
    found = frame.where(slice_filter("5:7", "x")).select("seq")
    rows = found.collect()
    files, read = scanned(found)
    assert files == 1
    assert len(rows) <= read < 60
    everything = frame.select("seq")
    assert len(everything.collect()) == scanned(everything)[1]
    assert scanned(everything)[0] > 4


SIDE = 8
CORNERS = [*itertools.product((0, SIDE // 2), repeat=3)]


def write_here(spark, path, x):
    """A file for each eighth of a cube: every axis is cut."""
    lake = tl.open(path)
    lake.write("x", np.zeros_like(x), layout="ftsf", block_shape=(2, 2, 2))
    for corner in CORNERS:
        eighth = tuple(slice(a, a + SIDE // 2) for a in corner)
        lake["x"][eighth] = x[eighth]


def write_by_spark(spark, path, x):
    parts = [[slice(a, a + SIDE // 2) for a in corner] for corner in CORNERS]
    rows = [
        ([s.start for s in part], ("int16", [SIDE // 2] * 3, x[tuple(part)].tobytes()))
        for part in parts
    ]
    slabs = "lo array<bigint>, tensor struct<dtype: string, shape: array<bigint>, data: binary>"
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, len(rows)), slabs)
    options = {"id": "x", "shape": "8,8,8", "blockShape": "2,2,2"}
    frame.write.format("tensor").mode("append").options(**options).save(path)


def write_and_optimize(spark, path, x):
    write_here(spark, path, x)
    names = [f"spark.databricks.delta.optimize.{n}FileSize" for n in ("min", "max")]
    for name in names:
        spark.conf.set(name, "6000")
    try:
        spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (lo.d0, lo.d1, lo.d2)")
    finally:
        for name in names:
            spark.conf.unset(name)


KINDS = {"range": ("2:4", 2, 3), "step": ("1:4:2", 1, 3), "negative": ("-1", 7, 7), "reverse": ("6:4:-1", 5, 6)}  # fmt: skip
"""Parts of a key, and the first and the last index that they pick."""

GRID = [*itertools.product(range(3), KINDS)]


def every_third(k):
    """Of each axis one kind, such that three writers have them all."""
    return [(axis, [*KINDS][(axis + k) % 3]) for axis in range(3)]


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("write", "parts"),
    [
        pytest.param(write, parts, id=f"{write.__name__}-{len(parts)}", marks=marks)
        for k, write in enumerate([write_here, write_by_spark, write_and_optimize])
        for parts, marks in ((every_third(k), ()), (GRID, pytest.mark.soak))
    ],
)
def test_files_are_skipped_on_every_axis(spark, place, write, parts):
    x = np.random.default_rng(0).integers(1, 99, (SIDE,) * 3).astype("<i2")
    write(spark, place, x)
    assert np.array_equal(tl.open(place)["x"][...], x)
    frame = spark.read.format("delta").load(str(place))
    files = {}
    for r in frame.select("seq", "nnz", "lo", "hi", f.input_file_name().alias("file")).collect():
        files.setdefault(r.file, []).append(r)
    count = sum(map(len, files.values()))
    for axis, name in parts:
        part, first, last = KINDS[name]
        hit = {
            path: {
                r.seq for r in rows if r.nnz and r.lo[axis] <= last and r.hi[axis] > first
            }
            for path, rows in files.items()
        }  # fmt: skip
        found = frame.where(slice_filter(":, " * axis + part, "x", shape=x.shape)).select("seq")
        assert {r.seq for r in found.collect()} == set().union(*hit.values()), (axis, part)
        n_files, n_rows = scanned(found)
        needed = [len(files[path]) for path, seqs in hit.items() if seqs]
        assert n_files == len(needed) < len(files), (axis, part)
        assert n_rows <= sum(needed) < count, (axis, part)


@pytest.mark.parametrize(
    "statement",
    [
        None,
        "OPTIMIZE delta.`{0}`",
        pytest.param("OPTIMIZE delta.`{0}` ZORDER BY (seq)", marks=pytest.mark.soak),
    ],
)
def test_parquet_skips_row_groups(spark, place, statement):
    lake = tl.open(place)
    x = np.random.default_rng(0).integers(0, 256, (96, 256, 256), np.uint8)
    for start in range(0, 96, 48):
        block = None if start else (2, 256, 256)
        lake.write("x", x[start : start + 48], mode="append", block_shape=block)
    if statement:
        spark.sql(statement.format(lake.uri))
    found = spark.read.format("delta").load(lake.uri).where(slice_filter("50:53", "x"))
    found = found.select("seq")
    assert len(found.collect()) == 2
    files, rows = scanned(found)
    assert files == 1
    assert rows < (24 if statement is None else 48)
