"""A value that no table and no file makes right is told before Spark starts, in one line."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.jobs import dataset_ingest, ingest, optimize, query
from tensorlake_spark.spark.ingest import ingestion

INGEST = ("--table", "lake", "--id", "x", "x.npy")


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """A session that is asked for is a failure."""

    def start(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as under spark-submit
    for module in (ingest, dataset_ingest, ingestion):
        monkeypatch.setattr(module, "job_session", start)


def is_told(done, name, says):
    assert says in done.err
    assert done.err.startswith(f"{name}: ")
    assert done.err.count("\n") == 1
    assert (done.code, done.json["exit_code"], done.json["status"]) == (2, 2, "failed")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--quantize", "banana"), "quantize='banana' is not a kind of quantisation"),
        (("--quantize", '{"error": 0}'), "is not above 0"),
        (("--codec", "gzip"), "unknown codec 'gzip'"),
        (("--codec", "cast(float16)+zstd"), "its step cast(float16) quantises"),
        (
            ("--layout", "coo", "--codec", "pco"),
            "those of layout coo are auto, smallest, zstd, raw",
        ),
        (("--layout", "zarr"), "unknown layout 'zarr'"),
        (("--dtype", "banana"), "'banana' is not a dtype"),
        (("--block-shape", "8,x"), "option blockShape='8,x' is not a list of integers"),
        (("--block-shape", "8,0"), "block shape (8, 0) has a length below 1"),
        (("--shape", "a"), "option shape='a' is not a list of integers"),
        (("--order", "a"), "option order='a' is not a list of integers"),
        (("--threshold", "2"), "threshold 2.0 is not a share between 0 and 1"),
        (("--attrs", "[1]"), "option attrs='[1]' is not a JSON object"),
        (("--txn-app-id", "a"), "go together"),
        (("--compact-after", "1"), "2 files are the least"),
        (("--axis", "x:banana"), "unknown rule 'banana'"),
        (("--axis", "x", "--axis", "x=y"), "--axis x is given twice"),
        (("--column", "a"), "--column 'a' is not NAME=EXPRESSION"),
        (("--progress", "-1"), "--progress -1 is not from 0"),
    ],
)
def test_of_an_ingestion(run_job, words, says):
    is_told(run_job(ingest, *INGEST, *words), "ingest.py", says)


def test_of_the_place_and_the_name(run_job):
    bad = run_job(ingest, "--table", "a%20b", "--id", "x", "x.npy")
    is_told(bad, "ingest.py", "has '%20' in it")
    is_told(run_job(ingest, "--table", "lake", "--id", "a//b", "x.npy"), "ingest.py", "'a//b'")


def test_of_samples(run_job):
    done = run_job(ingest, "--dataset", "coco", "--kind", "banana", "folder")
    is_told(done, "ingest.py", "kind='banana' is not a kind of source")
    done = run_job(ingest, "--dataset", "coco", "--txn-version", "1", "folder")
    is_told(done, "ingest.py", "go together")
    done = run_job(ingest, "--dataset", "coco", "--progress", "-1", "folder")
    is_told(done, "ingest.py", "--progress -1 is not from 0")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--quantize", "banana"), "quantize='banana' is not a kind of quantisation"),
        (("--recode", "gzip"), "unknown codec 'gzip'"),
        (("--layout", "zarr"), "unknown layout 'zarr'"),
        (("--rechunk", "8,x"), "--rechunk='8,x' is not a list of integers"),
        (("--rechunk", "-8"), "block shape (-8,) has a length below 1"),
        (("--progress", "-1"), "--progress -1 is not from 0"),
    ],
)
def test_of_an_optimization(lake, run_job, words, says):
    lake.write("x", np.ones((4, 4)))
    is_told(run_job(optimize, "--table", lake.uri, *words), "optimize.py", says)


@pytest.mark.local_disk
def test_of_a_query(run_job, tmp_path):
    made = tl.dataset(tmp_path / "ds", {"n": "int64"})
    made.extend({"n": np.arange(2)})
    done = run_job(query, made.uri, "SELECT n FORM dataset WHERE")
    assert done.code == 2
    assert done.json["error"]["type"] == "InvalidQueryError"
    done = run_job(query, made.uri, "SELECT n FROM dataset", "--output", made.uri)
    is_told(done, "query.py", "there is a table at")
