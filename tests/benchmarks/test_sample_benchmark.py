"""The benchmark of samples: its files, what it counts, its verdicts, and a run of our own store."""

import importlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

SCRIPT = Path(__file__).with_name("bench_samples.py")
MODULES = (
    "bench_samples",
    "sample_engines",
    "sample_media",
    "sample_report",
    "reporting",
    "verdicts",
    "harness",
)


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "least", "most"), [("small", 600, 1_500), ("photos", 12_000, 20_000)]
)
def test_files_are_jpeg_of_the_size_that_is_said_and_no_two_are_alike(load, name, least, most):
    media = load("sample_media")
    kind = media.KINDS[name]._replace(pictures=4)
    made, again = media.make(kind, 40), media.make(kind, 40)
    assert made.images == again.images
    assert len(set(made.images)) == 40
    assert least < made.nbytes / 40 < most
    for image in made.images[:5]:
        found = Image.open(io.BytesIO(image))
        assert (found.format, found.size) == ("JPEG", (kind.side, kind.side))


def test_files_come_back_from_the_folder_that_keeps_them(load, tmp_path):
    media = load("sample_media")
    place = media.cached("small", 30, tmp_path)
    found = media.load(place)
    assert found.images == media.make(media.KINDS["small"], 30).images
    assert media.load(place, 7).images == found.images[:7]
    assert np.array_equal(media.load(place, 7).labels, found.labels[:7])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_a_scan_counts_samples_and_bytes_of_any_kind_of_array(load, kind):
    engines = load("sample_engines")
    values = [b"a" * n for n in (0, 3, 12, 13, 5_000)]
    array = pa.array(values, kind)
    assert engines.touch(array) == (5, 5028)
    assert engines.touch(array.slice(2, 2)) == (2, 25)
    assert engines.touch(values) == (5, 5028)


def test_files_that_are_new_or_written_again_count_whole(load, tmp_path):
    engines = load("sample_engines")
    (tmp_path / "kept").write_bytes(b"12345")
    (tmp_path / "grown").write_bytes(b"1")
    before = engines.files_of(tmp_path)
    (tmp_path / "grown").write_bytes(b"123")
    (tmp_path / "new").write_bytes(b"1234567")
    assert engines.changed_bytes(before, engines.files_of(tmp_path)) == 10


def test_a_verdict_takes_the_better_of_a_peers_two_settings(load):
    report = load("sample_report")
    ours = {
        "over": 30.0,
        "share": 1.002,
        "write": 1300.0,
        "one": 0.1,
        "scan": 90.0,
        "labels": 1.0,
        "labels_share": 0.02,
    }
    medians = {
        "tensorlake": ours,
        "tensorlake apart": {"update_share": 0.001},
        "lance": {"write": 1000.0, "one": 0.2, "scan": 10.0},
        "lance 2.0": {"write": 900.0, "one": 0.3, "scan": 100.0},
        "mds": {"write": 9e9, "scan": 9e9},
        "parquet": {"labels": 1.0},
    }  # fmt: skip
    found = report.of_kind("photos", {"count": 10, "media": 160_000, "medians": medians})
    met = {(v.what, v.peer): (round(v.value, 3), v.met) for v in found}
    assert met["photos: ingest, images/s", "lance"] == (1.3, True)
    assert met["photos: one random sample", "lance"] == (0.5, True)
    assert met["photos: scan", "lance 2.0"] == (0.9, False)
    assert met["photos: labels, bytes read", ""] == (0.02, False)
    assert met["photos: label update, bytes rewritten", ""] == (0.001, True)
    assert not any("huggingface" in peer for _, peer in met)


def test_no_store_of_another_name(load):
    with pytest.raises(ValueError, match="no store lancet; there are tensorlake"):
        load("sample_engines").chosen("tensorlake,lancet")


@pytest.mark.soak  # the other benchmarks run through the same harness
def test_our_own_store_is_measured(tmp_path):
    options = [
        "--parts",
        "small",
        "--stores",
        "tensorlake,parquet",
        "--repeat",
        "1",
        "--count",
        "60",
        "--out",
        tmp_path,
    ]
    done = subprocess.run(
        [sys.executable, SCRIPT, *options], capture_output=True, text=True, check=False
    )
    written = json.loads((tmp_path / "samples.json").read_text())
    found = written["parts"]["small"]["medians"]["tensorlake"]
    assert {"write", "one", "scan", "labels", "update"} <= set(found), done.stderr[-2000:]
    assert "### What must be" in (tmp_path / "samples.md").read_text()
