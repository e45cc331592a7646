"""The benchmarks of loaders and of queries: what they read and ask, what they check, verdicts, and a run of our own."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parent
MODULES = (
    "bench_loader",
    "bench_query",
    "loader_engines",
    "loader_media",
    "loader_parts",
    "loader_report",
    "loader_torch_peers",
    "query_engines",
    "query_report",
    "query_workloads",
    "sample_media",
    "sample_report",
    "sample_engines",
    "reporting",
    "verdicts",
    "harness",
)


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def photos(load, tmp_path):
    media = load("sample_media")
    media.KINDS["photos"] = media.KINDS["photos"]._replace(pictures=2)
    return load("loader_media").source_of("photos", 150, tmp_path)


def test_arrays_are_made_anew_alike_and_no_two_are(load, tmp_path):
    media = load("loader_media")
    source = media.source_of("float32", 4, tmp_path)
    whole = source.rows(0, 4)
    assert whole.shape == (4, 224, 224, 3)
    assert np.isfinite(whole).all()
    assert np.array_equal(source.value(2), whole[2])
    assert len(np.unique(whole.reshape(4, -1), axis=0)) == 4
    source.check(2, whole[2])
    with pytest.raises(AssertionError, match="sample 1 is another one"):
        source.check(1, whole[2])
    assert source.nbytes == whole.nbytes


def test_an_image_is_checked_by_its_pixels(photos):
    image = photos.decode(photos.value(3))
    photos.check(3, image)
    with pytest.raises(AssertionError, match="sample 4 is another one"):
        photos.check(4, image)
    with pytest.raises(AssertionError, match="has the shape"):
        photos.check(3, image[1:])


def test_an_epoch_that_loses_or_repeats_a_sample_is_an_error(load, photos):
    bench, engines = load("bench_loader"), load("loader_engines")

    class Forgetful(engines.Memory):
        def epoch(self, handle, number):
            for values, numbers in super().epoch(handle, number):
                yield values[1:], numbers[1:]

    found = bench.epoch(engines.Memory("", photos), (photos.images, True), 0, check=1)
    assert sorted(found["order"].tolist()) == list(range(150))
    with pytest.raises(AssertionError, match="not each of 150 once"):
        bench.epoch(Forgetful("", photos), (photos.images, True), 0)


def test_our_store_and_fromfile_deliver_the_arrays_that_were_written(load, tmp_path):
    bench, engines, media = load("bench_loader"), load("loader_engines"), load("loader_media")
    source = media.source_of("uint8", 100, tmp_path)
    for name in ("tensorlake", "fromfile"):
        loader = engines.OWN[name](tmp_path / name, source)
        loader.write()
        for shuffle in (False, True):
            bench.epoch(loader, loader.open(shuffle), 1, check=2)


def test_a_verdict_on_loaders_takes_the_fastest_peer_and_not_the_bounds(load):
    report = load("loader_report")
    medians = {
        "tensorlake": {"shuffled": 95.0},
        "memory": {"shuffled": 100.0},
        "lance": {"shuffled": 80.0},
        "mds": {"shuffled": 96.0},
        "deeplake": {"shuffled": 40.0},
        "deeplake batches": {"shuffled": 47.0},
    }
    found = {
        v.peer: (round(v.value, 2), v.met) for v in report.of_kind("photos", {"medians": medians})
    }
    assert found == {"mds": (0.99, False), "deeplake batches": (2.02, True), "memory": (0.95, True)}
    raw = {"tensorlake": {"sequential": 2.0}, "fromfile": {"sequential": 2.0, "shuffled": 1.0}}
    assert [v.peer for v in report.of_kind("uint8", {"medians": raw})] == ["fromfile"]


def test_no_loader_of_another_name(load):
    with pytest.raises(ValueError, match="no loader lancet; there are tensorlake"):
        load("loader_engines").chosen("tensorlake,lancet")


def test_boxes_match_as_often_as_is_said_and_best_match_is_iou(load):
    workloads, engines = load("query_workloads"), load("query_engines")
    one = np.array([[0, 0, 2, 2], [5, 5, 1, 1]], np.float32)
    assert engines.best_match(one, one) == 1.0
    assert engines.best_match(one[:1], np.array([[1, 0, 2, 2]])) == pytest.approx(1 / 3)
    ours, theirs = workloads.boxes(400)
    match = [engines.best_match(a, b) for a, b in zip(ours, theirs, strict=True)]
    assert (np.array(match) > 0.95).sum() == 20
    assert engines.selected({"count": 400}) == sorted(range(0, 400, 20), key=match.__getitem__)


def test_answers_are_the_same_in_any_order_of_rows_and_differ_by_a_value(load):
    same = load("query_workloads").same
    one = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    same(one, one.iloc[::-1])
    with pytest.raises(AssertionError, match="column b differs"):
        same(one, one.assign(b=["x", "y", "w"]))
    with pytest.raises(AssertionError, match="not \\(2, 2\\)"):
        same(one, one[:2])


def test_verdicts_on_queries_are_of_each_part(load):
    report = load("query_report")
    medians = {
        "tensorlake": {"top": 12.0, "top_first": 90.0},
        "duckdb": {"top": 10.0, "top_first": 9.0},
    }
    (found,) = report.of_part("relational", {"medians": medians})
    assert (found.peer, found.value, found.met) == ("duckdb", 1.2, True)
    views = {"sequential": 100.0, "materialized": 94.0, "materialize": 9.0, "ingest": 10.0}
    found = report.of_part("views", {"medians": {"tensorlake": views}})
    assert [(round(v.value, 2), v.met) for v in found] == [(0.94, False), (0.9, True)]
    assert "failed: gone" in "\n".join(
        report.part("parse", {"medians": {}, "count": 3, "errors": {"tensorlake": "gone"}})
    )


@pytest.mark.soak  # the other benchmarks run through the same harness
@pytest.mark.parametrize(
    ("script", "parts", "stores"),
    [
        ("loader", "photos,first,interpreter", "tensorlake,memory"),
        ("query", "relational,figure4,parse", "tensorlake,numpy,duckdb"),
    ],
)
def test_our_own_is_measured(tmp_path, script, parts, stores):
    options = [
        "--parts",
        parts,
        "--stores",
        stores,
        "--repeat",
        "1",
        "--count",
        "300",
        "--out",
        tmp_path,
    ]
    command = [sys.executable, FOLDER / f"bench_{script}.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    written = json.loads((tmp_path / f"{script}.json").read_text())
    assert [*written["parts"]] == parts.split(",")
    assert "### What must be" in (tmp_path / f"{script}.md").read_text()
