"""Plans are run."""

import os
import signal
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.engine.running import PlanRun, narrowed
from tensorlake_spark.query.planning.queries import plan_query
from tensorlake_spark.threads import THREADS


def test_sids_are_read_only_where_somebody_needs_them(shapes):
    plan = plan_query("SELECT labels FROM d WHERE training.score > 0.5", {"d": shapes.ds})
    assert "sid" not in PlanRun(plan).statements[0]
    assert "sid" in PlanRun(plan, keyed=True).statements[0]


def test_steps_have_the_rows_that_conditions_before_them_leave(shapes):
    plan = plan_query(
        "SELECT labels FROM d WHERE labels = 1 AND array_max(emb) > 1 AND array_min(emb) < -1",
        {"d": shapes.ds},
    )
    run = PlanRun(plan)
    first = shapes.labels == 1
    second = first & (shapes.vectors.max(1) > 1)
    assert [*run.rows.values()] == [first.sum(), second.sum()]
    assert run.table.num_rows == (second & (shapes.vectors.min(1) < -1)).sum()


def test_sums_are_64_bits_wide_where_they_fit():
    table = pa.table(
        {
            "n": pa.array([Decimal(2) ** 70], pa.decimal128(38, 0)),
            "m": pa.array([Decimal(2)], pa.decimal128(38, 0)),
        }
    )
    assert narrowed(table).schema.types == [pa.decimal128(38, 0), pa.int64()]


def test_what_duckdb_refuses_is_an_error_of_the_query(shapes):
    ds = shapes.ds
    with pytest.raises(tl.InvalidQueryError, match=r"^note is neither in GROUP BY.*\(line 1, col"):
        len(ds.query("SELECT note, count(*) AS n FROM dataset GROUP BY labels"))
    with pytest.raises(
        tl.InvalidQueryError, match=r"(?s)add explicit type casts. \(line 1.*\^\^\^$"
    ):
        len(ds.query("SELECT sum(note) AS s FROM dataset"))  # and not what it could call instead


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("labels FROM dataset GROUP BY labels ORDER BY array_mean(emb)", r"array_mean\(emb\)"),
        (
            "labels FROM dataset GROUP BY labels HAVING array_mean(emb) > 1",
            r"array_mean\(emb\) > 1",
        ),
        ("array_mean(emb) AS m, labels FROM dataset GROUP BY array_mean(emb)", "labels"),
        (
            "labels, array_mean(emb) AS note FROM dataset GROUP BY labels ORDER BY 2",
            r"array_mean\(emb\)",
        ),
    ],
)
def test_what_is_in_no_group_is_named_as_in_the_query(shapes, sql, said):
    """DuckDB names a column of a step, such as n5."""
    with pytest.raises(tl.InvalidQueryError, match=rf"(?s)^{said} is neither in GROUP BY.*line 1"):
        len(shapes.ds.query(f"SELECT {sql}"))


def test_messages_name_columns_as_the_query_does(shapes):
    with pytest.raises(tl.InvalidQueryError, match=r"^note\[0\]: too many .*\(one of the rows\)"):
        len(shapes.ds.query("SELECT sid FROM dataset WHERE note[0] = 1"))


INTERRUPTED = """
import signal, sys, threading
import tensorlake_spark as tl

calls, go = [], threading.Event()

def slow(pixels):
    calls.append(len(pixels))
    sys.stdout.write("begun\\n")
    sys.stdout.flush()
    assert go.wait(120)
    return [1.0] * len(pixels)

def stop(*signal_and_frame):
    go.set()
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, stop)
tl.register_function("slow", slow, returns="float64")
ds = tl.dataset(sys.argv[1])
try:
    ds.query("SELECT label FROM dataset WHERE slow(image) > 0").to_arrow()
except KeyboardInterrupt:
    made = len(calls)
    named = [one.name for one in threading.enumerate() if one.name == "tensorlake-query"]
    answer = ds.query("SELECT count(*) AS n FROM dataset WHERE array_max(image) = 0")["n"].tolist()
    print(made, len(calls), named, answer, flush=True)
    raise
"""


def test_an_interrupt_ends_the_batches_of_a_query(tmp_path):
    """Each image is a batch. Those that have begun are finished, and nothing is begun afterwards."""
    count = 2 * THREADS + 12
    ds = tl.dataset(str(tmp_path / "ds"), {"image": tl.types.Image("png"), "label": "int32"})
    ds.append({"image": np.zeros((1700, 3300, 3), np.uint8), "label": 0})
    ds.extend({"image": [ds["image"].encoded(0)] * (count - 1), "label": range(1, count)})
    left = tmp_path / "temporary"
    left.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, ds.uri],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(left)},
    )
    with child:
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        said, errors = child.communicate(timeout=240)
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0
    last = said.splitlines()[-1]
    made, after, rest = last.split(maxsplit=2)
    assert made == after
    assert 1 <= int(made) <= 2 * THREADS
    assert rest == f"[] [{count}]"
    assert os.listdir(left) == []


@pytest.mark.parametrize("operation", ["a % b", "a DIV b", "mod(a, b)"])
def test_a_remainder_by_null_is_null_and_not_that_by_zero(operation):
    numbers = pa.table({"a": [7, 7, None], "b": pa.array([0, None, 2], pa.int64())})
    view = tl.query(f"SELECT {operation} AS r FROM t", t=numbers)
    assert [row["r"] for row in view] == [0, None, None]
