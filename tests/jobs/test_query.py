"""The job that asks a query: a table, files, a dataset."""

import errno
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.jobs import query as job
from tensorlake_spark.jobs.query import main


@pytest.fixture
def ds(tmp_path):
    made = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("float32", (2,)), "label": "int32"})
    made.extend(
        {"x": np.arange(12, dtype="f4").reshape(6, 2), "label": np.array([0, 1, 2] * 2, "i4")}
    )
    return made


def told(capsys):
    out = capsys.readouterr().out.strip().split("\n")
    return out[:-1], json.loads(out[-1])


def test_a_table(ds, capsys):
    sql = "SELECT label, array_mean(x) AS mean FROM dataset WHERE label > :least ORDER BY mean"
    assert main([ds.uri, sql, "--param", "least=0", "--rows", "2"]) == 0
    lines, last = told(capsys)
    assert lines == ["label  mean", "-----  ----", "1      2.5", "2      4.5", "2 of 4 rows"]
    assert (last["rows"], last["columns"]) == (4, ["label", "mean"])


def test_files_and_sources(ds, tmp_path, capsys):
    names = tmp_path / "names.parquet"
    pd.DataFrame({"label": [0, 1], "name": ["cat", "dog"]}).to_parquet(names)
    sql = "SELECT name, x FROM ds JOIN names USING (label) ORDER BY ds.sid"
    common = ["--source", f"ds={ds.uri}", "--source", f"names={names}", sql]
    assert main([*common, "--output", str(tmp_path / "out.parquet")]) == 0
    assert pq.read_table(tmp_path / "out.parquet")["name"].to_pylist() == ["cat", "dog"] * 2
    assert main([*common, "--output", str(tmp_path / "out.csv")]) == 0
    assert pd.read_csv(tmp_path / "out.csv")["name"].tolist() == ["cat", "dog"] * 2
    assert told(capsys)[1]["rows"] == 4


@pytest.mark.parametrize("engine", ["here", "spark"])
def test_csv_has_the_values_of_tensors(ds, tmp_path, capsys, engine, request):
    session = request.getfixturevalue("spark") if engine == "spark" else None
    out = tmp_path / "out.csv"
    sql = "SELECT x, x * 2 AS y, label FROM dataset ORDER BY array_max(x) LIMIT 2"
    assert main([ds.uri, sql, "--output", str(out)], session) == 0
    found = pd.read_csv(out)
    order = np.argsort(np.asarray(ds["x"][:]).max(axis=1), kind="stable")[:2]
    expected = np.asarray(ds["x"][order])
    np.testing.assert_array_equal(np.array([*map(json.loads, found["x"])]), expected)
    np.testing.assert_array_equal(np.array([*map(json.loads, found["y"])]), expected * 2)
    capsys.readouterr()


def test_csv_refuses_bytes_before_it_makes_a_file(tmp_path, capsys):
    ds = tl.dataset(str(tmp_path / "ds"), {"photo": tl.types.Image("png")})
    ds.append({"photo": np.zeros((4, 4, 3), np.uint8)})
    out = tmp_path / "out.csv"
    assert main([ds.uri, "SELECT photo FROM dataset", "--output", str(out)]) == 2
    assert "column 'photo' has bytes, which CSV cannot have" in told(capsys)[1]["error"]["message"]
    assert not out.exists()
    sql = "SELECT photo.height AS height FROM dataset"
    assert main([ds.uri, sql, "--output", str(out)]) == 0
    assert pd.read_csv(out)["height"].tolist() == [4]


@pytest.mark.parametrize("name", ["out.json", "out.TXT", "a.b/out.xlsx"])
def test_no_folder_is_made_for_a_file_of_another_kind(ds, capsys, tmp_path, name):
    assert main([ds.uri, "SELECT label FROM dataset", "--output", str(tmp_path / name)]) == 2
    assert "files end with .parquet or .csv, and '." in capsys.readouterr().err
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["out.parqet", "out.CSV", "out.tsv"])
def test_an_ending_with_a_typing_error_is_no_dataset(ds, tmp_path, capsys, name):
    """A folder of that name had a dataset in it."""
    assert main([ds.uri, "SELECT label FROM dataset", "--output", str(tmp_path / name)]) == 2
    message = told(capsys)[1]["error"]["message"]
    assert "files end with .parquet or .csv; did you mean '." in message
    assert not (tmp_path / name).exists()


def test_a_file_in_the_root_folder(ds, tmp_path, capsys, monkeypatch):
    """It came into the working folder."""
    asked = []
    monkeypatch.setattr(job, "Storage", lambda *place: asked.append(place) or Storage(tmp_path))
    region = ["--storage-option", "AWS_REGION=eu"]
    job._write(pa.table({"a": [1]}), "/out.csv", {})
    assert main([ds.uri, "SELECT label FROM dataset", *region, "--output", "s3://b/c/out.csv"]) == 0
    assert asked[0] == ("/", {})
    assert asked[-1] == ("s3://b/c", {"AWS_REGION": "eu"})


@pytest.mark.parametrize("engine", ["here", "spark"])
def test_a_dataset(ds, tmp_path, capsys, engine, request):
    session = request.getfixturevalue("spark") if engine == "spark" else None
    place = str(tmp_path / "new")
    sql = "SELECT x, label FROM dataset WHERE array_max(x) > 4"
    assert main([ds.uri, sql, "--output", place], session) == 0
    assert told(capsys)[1]["rows"] == 4
    found = tl.dataset(place)
    assert sorted(np.asarray(found["x"][:])[:, 0].tolist()) == [4, 6, 8, 10]
    assert main([ds.uri, sql, "--output", place], session) == 2


def test_by_spark(spark, ds, tmp_path, capsys):
    sql = "SELECT label, array_mean(x) AS mean FROM dataset ORDER BY mean DESC LIMIT 2"
    assert main([ds.uri, sql, "--spark"], spark) == 0
    lines, last = told(capsys)
    assert lines[2:4] == ["2      10.5", "1      8.5"]
    assert last["rows"] == 2
    assert main([ds.uri, sql, "--output", str(tmp_path / "out.parquet")], spark) == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 2


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_stays_where_the_new_one_cannot_be_written(
    ds, tmp_path, monkeypatch, capsys, ending
):
    """It was cut first, so that a full disk left a part of the new rows in place of the old ones."""
    out = tmp_path / f"out{ending}"
    assert main([ds.uri, "SELECT label FROM dataset", "--output", str(out)]) == 0
    before, names = out.read_bytes(), sorted(tmp_path.iterdir())

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert main([ds.uri, "SELECT x, label FROM dataset", "--output", str(out)]) == 1
    assert "is full" in told(capsys)[1]["error"]["message"]
    assert (out.read_bytes(), sorted(tmp_path.iterdir())) == (before, names)


def test_a_dataset_where_a_file_is(ds, tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    assert main([ds.uri, "SELECT label FROM dataset", "--output", str(tmp_path / "out")]) == 2
    assert "is a file; a table is a folder" in told(capsys)[1]["error"]["message"]


def test_what_would_be_read(ds, capsys):
    assert main([ds.uri, "SELECT x[0] AS a FROM dataset", "--dry-run"]) == 0
    assert told(capsys)[1]["status"] == "planned"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["SELECT 1"],
        ["{uri}", "SELECT lable FROM dataset"],
        ["{uri}", "COPY dataset TO 'x'"],
        ["{uri}", "SELECT label FROM dataset", "more"],
        ["{uri}", "SELECT label FROM dataset", "--param", "x"],
        ["{uri}", "SELECT label FROM dataset", "--rows", "-1"],
        ["{uri}", "SELECT label FROM dataset", "--source", "dataset=a"],
        ["/nothing/here", "SELECT label FROM dataset"],
        ["{uri}", "SELECT label FROM dataset WHERE label > :q"],
        ["{uri}", "SELECT label FROM dataset WHERE label > :q", "--param", "q=1", "--param=q=2"],
        ["--source", "t={uri}", "--source", "t={uri}", "SELECT label FROM t"],
        ["{uri}", "SELECT label FROM dataset", "--storage-option", "A=1", "--storage-option=A=2"],
        ["{uri}", "SELECT label FROM dataset", "--output", ""],
    ],
)
def test_mistakes(ds, tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main([one.format(uri=ds.uri) for one in arguments]) == 2
    assert told(capsys)[1]["status"] == "failed"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("sql", "more", "said"),
    [
        ("SELECT label FROM dataset WHERE label = :n", [], "give it: --param n=VALUE"),
        ("SELECT array_sum(x + :n) AS y FROM dataset", [], "give it: --param n=VALUE"),
        ("SELECT label FROM other", [], "give it: --source other=URI"),
        ("SELECT label FROM 'x.parquet'", [], "give the table as a source: --source name=URI"),
        ("SELECT label FROM read_csv('x.csv')", [], "give the table as a source: --source name=URI"),
        ("SELECT label, NULL AS n FROM dataset", ["--output", "new"], "leave it out, or CAST it to a type"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_options_of_the_command(
    ds, tmp_path, monkeypatch, capsys, sql, more, said
):
    monkeypatch.chdir(tmp_path)
    assert main([ds.uri, sql, *more]) == 2
    message = told(capsys)[1]["error"]["message"]
    assert said in message
    assert "query(" not in message
    assert "parameters=" not in message
