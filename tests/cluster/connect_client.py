"""What a client of Spark Connect does; test_connect.py runs it in a process of its own, without Java."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf

DOCS = Path(__file__).resolve().parents[2] / "docs"
TENSOR = "struct<dtype: string, shape: array<bigint>, data: binary>"


def execute(page, names):
    """Run the code of a page as it stands."""
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "page", "exec"), names)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(tmp_path_factory.mktemp("connect") / "lake")


@pytest.fixture(scope="module")
def connect(path):
    """The session of docs/connect.md, whose code runs as it stands."""
    given = {key: os.environ[f"CONNECT_{key.upper()}"] for key in ("url", "archive")}
    names = {**given, "path": path}
    execute((DOCS / "connect.md").read_text(), names)
    yield names["spark"]
    names["spark"].stop()


def value(x):
    x = np.ascontiguousarray(x)
    return (x.dtype.name, list(x.shape), x.tobytes())


def save(frame, path, mode="append", **options):
    frame.write.format("tensor").options(**options).mode(mode).save(path)


def load(connect, path, **options):
    return connect.read.format("tensor").options(**options).load(path)


def dense(frame, shape, dtype):
    """What the rows of the view ``cells`` make up."""
    out = np.zeros(shape, dtype)
    for *place, element in frame.collect():
        out[tuple(place)] = element
    return out


def test_what_the_page_wrote_is_there(connect, path):
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(tl.open(path)["slabs"][:], np.concatenate([rows] * 4))
    expected = np.zeros((40, 24))
    np.add.at(expected, (np.arange(960) % 40, np.arange(960) % 24), 1)
    np.testing.assert_array_equal(tl.open(path)["hits"][:].todense(), expected)


def test_the_session_is_a_client_without_java(connect):
    assert type(connect).__module__ == "pyspark.sql.connect.session"
    assert not Path(os.environ["JAVA_HOME"]).exists()


def test_slabs_appended_and_read_by_every_view(connect, path):
    x = np.random.default_rng(0).integers(0, 256, (9, 5, 7), np.uint8)
    for part in (x[:5], x[5:]):
        rows = [([i, 0, 0], value(part[i : i + 2])) for i in range(0, len(part), 2)]
        frame = connect.createDataFrame(rows, f"lo array<bigint>, tensor {TENSOR}")
        save(frame, path, id="x", axes="t,y,x")
    np.testing.assert_array_equal(tl.open(path)["x"][:], x)
    out = np.zeros_like(x[2:8, :, 1:4])
    for row in load(connect, path, id="x", slice="2:8, :, 1:4").collect():
        block = np.frombuffer(row.tensor.data, row.tensor.dtype).reshape(row.tensor.shape)
        out[tuple(slice(o, o + n) for o, n in zip(row.offset, block.shape, strict=True))] = block
    np.testing.assert_array_equal(out, x[2:8, :, 1:4])
    cells = load(connect, path, id="x", view="cells", slice="t=3")
    assert cells.columns == ["t", "y", "x", "value"]
    assert cells.agg({"value": "sum"}).collect()[0][0] == int(x[3].sum())
    assert cells.where("y = 2").agg({"value": "sum"}).collect()[0][0] == int(x[3, 2].sum())
    catalog = {row.id: tuple(row.shape) for row in load(connect, path, view="catalog").collect()}
    assert catalog["x"] == (9, 5, 7)


def test_tensors_a_row_and_overwrite(connect, path):
    kind = f"id string, tensor {TENSOR}"
    first, second = np.arange(6.0).reshape(2, 3), np.arange(4, dtype=np.int16)
    save(connect.createDataFrame([("a", value(first)), ("b", value(second))], kind), path)
    np.testing.assert_array_equal(tl.open(path)["a"][:], first)
    save(connect.createDataFrame([("a", value(second))], kind), path, mode="overwrite")
    np.testing.assert_array_equal(tl.open(path)["a"][:], second)
    np.testing.assert_array_equal(tl.open(path)["b"][:], second)


@pytest.mark.soak  # the page writes cells, and slabs are read as cells
def test_cells_appended_and_read_back(connect, path):
    shape, rng = (30, 40), np.random.default_rng(1)
    expected = np.zeros(shape)
    for _ in range(2):
        i, j = rng.integers(0, [[30], [40]], (2, 200))
        v = rng.integers(1, 9, 200).astype(float)
        np.add.at(expected, (i, j), v)
        rows = [(int(a), int(b), float(c)) for a, b, c in zip(i, j, v, strict=True)]
        frame = connect.createDataFrame(rows, "i0 long, i1 long, value double")
        save(frame, path, id="c", shape="30,40", duplicates="sum")
    got = dense(load(connect, path, id="c", view="cells"), shape, float)
    np.testing.assert_array_equal(got, expected)
    got = dense(load(connect, path, id="c", view="cells", slice="3:9, ::2"), shape, float)
    np.testing.assert_array_equal(got[3:9, ::2], expected[3:9, ::2])
    assert np.count_nonzero(got) == np.count_nonzero(expected[3:9, ::2])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"id": "slabz"}, "'slabs'"),
        ({"id": "slabs", "slice": "9:, 99"}, "out of bounds for axis 1"),
        ({"id": "slabs", "vieww": "cells"}, "unknown option 'vieww'"),
    ],
)
def test_errors_of_reading_are_ours(connect, path, options, said):
    with pytest.raises(PySparkException) as told:
        load(connect, path, **options).collect()
    assert said in str(told.value)


def test_errors_of_writing_are_ours(connect, path):
    version = tl.open(path).version
    with pytest.raises(PySparkException, match="coordinate -1 in column 'i0' is below 0"):
        save(connect.sql("SELECT -1L AS i0, 1.0D AS value"), path, id="wrong")
    with pytest.raises(PySparkException, match="neither cells"):
        save(connect.sql("SELECT 1 AS what"), path, id="wrong")
    assert tl.open(path).version == version


def test_plain_delta_is_beside_it(connect, path):
    connect.range(7).write.format("delta").save(f"{path}-delta")
    assert connect.sql(f"SELECT count(*) FROM delta.`{path}-delta`").collect()[0][0] == 7


def test_functions_on_plain_delta(connect, path):
    """The server's Python has the package of the client's archive, where the functions run."""
    x = np.arange(24.0).reshape(6, 4)
    tl.open(path).write("f", x, block_shape=(2, 4))
    rows = connect.read.format("delta").load(path).where(tf.slice_filter("1:3, 2", "f"))
    assert {row.lo.d0 for row in rows.where("nnz > 0").collect()} == {0, 2}
    decoded = tf.tensor_decode(f.struct("*"), "1:3, 2")
    sums = rows.select(tf.tensor_sum(decoded).alias("s")).where("s IS NOT NULL").collect()
    assert sum(row.s for row in sums) == x[1:3, 2].sum()
    blocks = tf.read_tensor(connect, path, "f", "1:5, ::3")
    np.testing.assert_array_equal(tf.collect_tensor(blocks), x[1:5, ::3])
    tf.register(connect)
    (total,) = load(connect, path, id="f").selectExpr("sum(tensor_sum(tensor))").first()
    assert total == x.sum()


@pytest.mark.soak  # make test runs streams in classic sessions
def test_a_stream_of_cells(connect, tmp_path):
    """The function of foreachBatch runs on the server, in a Python that lacks the package."""
    (tmp_path / "source").mkdir()
    lines = [json.dumps({"day": i % 9, "hour": i % 24}) for i in range(100)]
    (tmp_path / "source" / "0.json").write_text("\n".join(lines))
    names = {name: str(tmp_path / name) for name in ("source", "checkpoint", "path")}
    page = (DOCS / "streaming.md").read_text()
    execute(page[: page.index("## Slabs")], {"spark": connect, **names})
    expected = np.zeros((365, 24), np.int64)
    np.add.at(expected, (np.arange(100) % 9, np.arange(100) % 24), 1)
    np.testing.assert_array_equal(tl.open(names["path"])["hits"][:].todense(), expected)
