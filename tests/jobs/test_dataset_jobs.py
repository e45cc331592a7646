"""Check and purge as jobs, of a dataset: they see what the table is, and tell schedulers the same."""

import json

import numpy as np
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.__main__ import main
from tensorlake_spark.jobs import check, optimize, purge, vacuum

pytestmark = pytest.mark.local_disk


@pytest.fixture
def ds(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"label": tl.types.ClassLabel(["cat", "dog"]), "x": tl.types.Tensor("float64")})  # fmt: skip
    rng = np.random.default_rng(0)
    ds.extend({"label": [0, 1, 1, 0], "x": [rng.random(20) for _ in range(4)]})
    return ds


def test_a_check_of_a_dataset(ds, run_job):
    done = run_job(check, ds.uri)
    assert (done.code, done.json["status"], done.json["samples"]) == (0, "good", 4)
    assert run_job(check, "--table", ds.uri, "--deep").code == 0
    DeltaTable(ds.uri).update(updates={"label": "7"}, predicate="label = 1")
    done = run_job(check, ds.uri)
    assert (done.code, done.json["status"]) == (3, "bad")
    assert {one["place"] for one in done.json["findings"]} == {
        "column 'label', sample 1",
        "column 'label', sample 2",
    }


def test_a_check_holds_a_copy_against_its_source(ds, tmp_path, run_job):
    made = ds.query("SELECT x, label FROM dataset WHERE label = 'cat'").materialize(
        str(tmp_path / "made")
    )
    assert run_job(check, made.uri, "--sources").json["findings"] == []
    ds.extend({"label": [1], "x": [np.zeros(3)]})
    done = run_job(check, made.uri, "--sources")
    assert (done.code, [one["kind"] for one in done.json["findings"]]) == (0, ["source"])
    made.update("label = 'cat'", {"label": "dog"})
    done = run_job(check, made.uri, "--sources")
    assert (done.code, done.json["status"]) == (3, "bad")
    wrong = {one["place"] for one in done.json["findings"] if one["kind"] == "lineage"}
    assert wrong == {"column 'label'"}
    assert run_job(check, made.uri).code == 0
    assert "says nothing of sources" in str(run_job(check, ds.uri, "--sources").json["findings"])


def test_the_command_line_takes_the_table_as_an_argument(ds, lake, capsys):
    lake.write("x", np.ones(3))
    assert main(["check", ds.uri]) == 0
    assert main(["check", lake.uri]) == 0
    assert main(["purge", ds.uri, "--sid", "1", "--dry-run"]) == 0
    assert main(["purge", lake.uri, "--id", "x", "--now"]) == 0
    capsys.readouterr()
    assert main(["check", lake.uri, "--table", lake.uri]) == 2
    assert "given twice" in capsys.readouterr().err


def test_a_purge_of_samples(ds, run_job, tmp_path):
    done = run_job(purge, ds.uri, "--where", "label = 'dog'", "--receipt", tmp_path / "r.json")
    assert (done.code, done.json["status"]) == (3, "unverified")
    done = run_job(
        purge, ds.uri, "--where", "label = 'dog'", "--now", "--receipt", tmp_path / "s.json"
    )
    assert (done.code, done.json["status"]) == (0, "verified")
    receipt = tl.verify_receipt((tmp_path / "s.json").read_text())
    assert receipt.samples == "1-2"
    assert json.loads((tmp_path / "s.json").read_text()) == done.json["receipt"]
    assert tl.dataset(ds.uri).sids.tolist() == [0, 3]
    done = run_job(purge, "--table", ds.uri, "--sid", "0", "--sid", "3", "--now")
    assert (done.code, len(tl.dataset(ds.uri))) == (0, 0)


@pytest.mark.parametrize(
    ("job", "given", "says"),
    [
        (check, ("--id", "x"), "--id is for lakes"),
        (check, ("--repair",), "--repair is for lakes"),
        (purge, ("--id", "x"), "--id is for lakes"),
        (purge, ("--where", "label = 1", "--region", "1"), "--region is for lakes"),
        (purge, ("--where", "label = 1", "--region", ""), "--region is for lakes"),
        (purge, ("--sid", "one"), "is no sid"),
        (purge, ("--sid", "1", "--where", "label = 1"), "exclude each other"),
        (purge, ("--sid", "77"), "never had a sample"),
        (purge, ("--where", "nothing = 1"), "nothing"),
        (purge, (), "--id is missing"),
    ],
)
def test_options_that_will_not_do(ds, run_job, job, given, says):
    version = ds.version
    done = run_job(job, ds.uri, *given)
    assert done.code == 2
    assert says in done.err
    assert tl.dataset(ds.uri).version == version


def test_options_of_datasets_are_not_for_lakes(lake, run_job):
    lake.write("x", np.ones(3))
    for job, given in (
        (check, ("--deep",)),
        (check, ("--sources",)),
        (purge, ("--sid", "1")),
        (purge, ("--where", "a = 1")),
    ):
        done = run_job(job, lake.uri, *given)
        assert done.code == 2
        assert "is for datasets" in done.err


def test_optimize_and_vacuum_of_a_dataset(ds, run_job, tmp_path):
    for number in range(5):
        ds.append({"label": number % 2, "x": np.full(3, number, float)})
    values = [one.tolist() for one in ds["x"]]
    done = run_job(optimize, ds.uri)
    assert (done.code, done.json["files_before"], done.json["files_after"]) == (0, 6, 1)
    gone = run_job(vacuum, "--table", ds.uri, "--retention-hours", "0", "--dry-run")
    assert (gone.code, gone.json["status"], gone.json["files"]) == (0, "planned", 6)
    assert len([*(tmp_path / "ds").glob("*.parquet")]) == 7
    assert run_job(vacuum, ds.uri, "--retention-hours", "0").json["files"] == 6
    assert len([*(tmp_path / "ds").glob("*.parquet")]) == 1
    assert [one.tolist() for one in tl.dataset(ds.uri)["x"]] == values


@pytest.mark.parametrize(
    ("job", "given", "says"),
    [
        (optimize, ("--zorder", "x"), "--zorder is for lakes"),
        (optimize, ("--dry-run",), "--dry-run is for lakes, and this table is a dataset"),
        (vacuum, ("--uploads",), "--uploads is for lakes"),
    ],
)
def test_options_of_upkeep_that_are_for_lakes(ds, run_job, job, given, says):
    done = run_job(job, ds.uri, *given)
    assert done.code == 2
    assert says in done.err
