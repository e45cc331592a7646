"""DuckDB behind locks."""

import os
import signal
import threading
from collections import OrderedDict
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.engine import duckdb_session
from tensorlake_spark.query.engine.duckdb_session import DuckSession, interruptible
from tensorlake_spark.threads import IO_THREADS

OUT = [
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('{other}')", "COPY (SELECT 1) TO '{other}.csv'", "ATTACH '{other}.db'",
    "INSTALL httpfs", "SET enable_external_access=true", "SET allowed_paths=['/etc/passwd']",
]  # fmt: skip


@pytest.mark.parametrize("sql", OUT)
def test_only_the_files_that_are_named_are_read(tmp_path, sql):
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    for path in (one, other):
        pq.write_table(pa.table({"a": [1]}), path)
    before = sorted(os.listdir(tmp_path))
    with DuckSession([str(one)]) as session:
        session.make_view("v", f"SELECT * FROM read_parquet('{one}')")
        assert session.rows("SELECT a FROM v").to_pylist() == [{"a": 1}]
        with pytest.raises(tl.InvalidQueryError):
            session.rows(sql.format(other=other))
    assert sorted(os.listdir(tmp_path)) == before


def test_half_floats_are_float32():
    halves = pa.array([0.5, None], pa.float16())
    table = pa.table(
        {
            "h": halves,
            "n": [1, 2],
            "s": pa.StructArray.from_arrays([halves], ["h"]),
            "l": pa.array([[0.5], None], pa.list_(pa.float16())),
            "f": pa.array([[0.5], None], pa.list_(pa.float16(), 1)),
        }
    )
    found = tl.query("SELECT h, s, l, f FROM t WHERE h < 1 OR n = 2 ORDER BY n", t=table).to_arrow()
    assert found.to_pylist() == [
        {"h": 0.5, "s": {"h": 0.5}, "l": [0.5], "f": [0.5]},
        {"h": None, "s": {"h": None}, "l": None, "f": None},
    ]


def test_a_column_that_duckdb_does_not_take_is_named():
    table = pa.table({"n": [1], "wide": pa.array([1], pa.decimal256(40, 2))})
    with pytest.raises(
        tl.InvalidQueryError, match=r"column 'wide', whose type is decimal256\(40, 2\)"
    ):
        len(tl.query("SELECT n FROM t", t=table))


def test_where_the_folder_of_the_process_is_gone(tmp_path, monkeypatch):
    table = tl.dataset(tmp_path / "t", {"n": "int32"})
    table.extend({"n": [1, 2]})
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(duckdb_session, "_databases", OrderedDict())
    with pytest.raises(tl.StorageError, match="folder in which this process runs may be deleted"):
        len(tl.query("SELECT n FROM t", t=table))
    monkeypatch.chdir(tmp_path)
    assert len(tl.query("SELECT n FROM t", t=table)) == 2


def test_tables_are_not_seen_by_other_sessions():
    with DuckSession() as one, DuckSession() as two:
        one.register("t", pa.table({"a": [1]}))
        one.make_view("v", "SELECT 2 AS a")
        secret = pa.table({"a": [3]})  # a variable of Python is no table
        assert secret.num_rows == 1
        for name in ("t", "v", "secret"):
            with pytest.raises(tl.InvalidQueryError, match="does not exist"):
                two.rows(f"SELECT * FROM {name}")


def test_an_interrupt_ends_a_query():
    """The rows have no end: only the interrupt ends the query."""
    begun, given_up = threading.Event(), threading.Event()
    batch = pa.record_batch({"a": range(1000)})

    def rows():
        while not given_up.is_set():
            yield batch
            begun.set()

    def stop():
        assert begun.wait(120)
        os.kill(os.getpid(), signal.SIGINT)

    guard = threading.Timer(120, given_up.set)
    thread = threading.Thread(target=stop)
    with DuckSession() as session:
        session.register("t", pa.RecordBatchReader.from_batches(batch.schema, rows()))
        guard.start()
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session.rows("SELECT sum(a) FROM t")
        assert not given_up.is_set()
        guard.cancel()
        thread.join()
        assert session.rows("SELECT 1 AS a").num_rows == 1


def test_an_interrupt_that_is_forgotten_comes_again():
    """DuckDB forgets one that comes before a query has begun."""
    begun, ended = threading.Event(), threading.Event()
    told = []

    def work():
        begun.set()
        assert ended.wait(120)

    def interrupt():
        told.append(None)
        if len(told) == 3:
            ended.set()

    def stop():
        assert begun.wait(120)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work, interrupt)
    thread.join()
    assert len(told) >= 3


def test_an_interrupt_that_comes_just_before_the_wait_is_seen():
    """Python does not wake for it: one query in a hundred went on after Ctrl-C."""
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert ended.wait(120)

    def interrupt_later():
        assert begun.wait(120)
        signal.raise_signal(signal.SIGINT)  # in this thread: it does not wake the other one

    threading.Timer(0.05, interrupt_later).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work, ended.set)


def test_what_work_raises_is_raised_here():
    def fail():
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        interruptible(fail, lambda: None)
    assert interruptible(threading.get_ident, lambda: None) != threading.get_ident()


def test_queries_take_turns_in_a_thread_and_have_one_each_where_they_wait_for_each_other():
    """A new thread takes longer than one that is there; more at once than threads of other pools do not block."""
    used = {interruptible(threading.get_ident, lambda: None) for _ in range(50)}
    assert len(used) < 25

    def nested(depth):
        if not depth:
            return {threading.get_ident()}
        return {threading.get_ident()} | interruptible(partial(nested, depth - 1), lambda: None)

    assert len(interruptible(partial(nested, 3 * IO_THREADS), lambda: None)) == 3 * IO_THREADS + 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    interruptible(threading.get_ident, lambda: None)
    child = os.fork()
    if not child:
        os._exit(0 if interruptible(lambda: 7, lambda: None) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_times_are_in_utc():
    with DuckSession() as session:
        found = session.rows("SELECT CAST(TIMESTAMPTZ '2026-01-01 12:00:00+00' AS TEXT) AS t")
    assert found["t"][0].as_py().startswith("2026-01-01 12:00:00")


def test_views_may_be_named_many_times_and_those_not_named_are_not_opened(tmp_path):
    one, gone = tmp_path / "one.parquet", tmp_path / "gone.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), one)
    with DuckSession([str(one), str(gone)]) as session:
        session.make_view("s1", f"SELECT * FROM read_parquet('{one}')")
        session.make_view("s10", f"SELECT * FROM read_parquet('{gone}')")
        found = session.rows("SELECT x.a FROM s1 AS x JOIN s1 AS y ON x.a = y.a ORDER BY 1")
        assert found["a"].to_pylist() == [1, 2]
        with pytest.raises(tl.InvalidQueryError):
            session.rows("SELECT a FROM s10")


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    path = str(tmp_path / "one.parquet")
    for number in range(12):
        rows = pa.table({"a": list(range(number, number + 1 + number % 3))})
        pq.write_table(rows, path)
        os.utime(path, ns=(10**18, 10**18))
        found = tl.query("SELECT sum(a) AS s, count(*) AS n FROM t", t=path).to_arrow().to_pylist()
        assert found == [{"s": sum(rows["a"].to_pylist()), "n": rows.num_rows}]


def test_nan_is_above_all_numbers_of_a_table_in_memory(monkeypatch):
    """DuckDB 1 hands conditions to Arrow, for which NaN is above none."""
    table = pa.table({"f": [0.0, float("nan"), 20.0], "n": [0, 1, 2]})
    with DuckSession() as session:
        for is_old in (session._is_old, True):
            monkeypatch.setattr(session, "_is_old", is_old)
            session.register("t", table)
            assert session.rows("SELECT n FROM t WHERE f > 15 ORDER BY n")["n"].to_pylist() == [
                1,
                2,
            ]
            assert session.rows("SELECT f FROM t").schema.field("f").type == pa.float64()
