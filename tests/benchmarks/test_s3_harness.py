"""The benchmark on S3 runs and checks its answers; the road counts round trips and takes its time."""

import importlib
import json
import subprocess
import sys
import threading
import time
import uuid
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store import s3_objects

SCRIPT = Path(__file__).with_name("bench_s3.py")
PNG = b"\x89PNG"
DATA = bytes(range(256)) * 1000


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    monkeypatch.syspath_prepend(str(SCRIPT.parents[1] / "support"))
    before = set(sys.modules)
    yield importlib.import_module("bench_s3")
    ours = {path.stem for path in SCRIPT.parent.glob("*.py")}
    for name in (set(sys.modules) - before) & ours:
        sys.modules.pop(name)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(206)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        self.wfile.write(DATA)

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def port():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def ask(client, method="GET", body=None):
    client.request(method, "/bucket/x", body, {"Range": "bytes=0-9"})
    return client.getresponse().read()


def test_the_road_adds_its_delay_and_writes_down_what_it_carries(bench, port):
    with bench.S3Road(port, 0.2) as road, closing(HTTPConnection("127.0.0.1", road.port)) as client:
        start = time.monotonic()
        assert ask(client) == DATA
        assert ask(client, "HEAD") == b""
        assert ask(client, "PUT", b"abc") == b"abc"
        assert time.monotonic() - start >= 0.6
        seen = road.requests()
        assert [(r.method, r.path, r.span, r.status, r.nbytes) for r in seen] == [
            ("GET", "/bucket/x", "bytes=0-9", 206, len(DATA)),
            ("HEAD", "/bucket/x", "bytes=0-9", 200, 0),
            ("PUT", "/bucket/x", "bytes=0-9", 200, 3),
        ]
        assert bench.round_trips(seen) == 3
        assert road.requests() == []


def test_requests_at_one_time_are_one_round_trip(bench, port):
    with bench.S3Road(port, 0.5) as road:

        def one():
            with closing(HTTPConnection("127.0.0.1", road.port)) as client:
                ask(client)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen = road.requests()
        assert len(seen) == 8
        assert bench.round_trips(seen) == 1


def test_the_link_has_its_bandwidth(bench, port):
    bandwidth = len(DATA) / 0.2
    with (
        bench.S3Road(port, 0, bandwidth) as road,
        closing(HTTPConnection("127.0.0.1", road.port)) as client,
    ):
        start = time.monotonic()
        ask(client)
        ask(client)
        assert time.monotonic() - start >= 0.35


def test_round_trips_are_the_longest_chain(bench):
    request = importlib.import_module("s3_road").Request

    def trips(*spans):
        return bench.round_trips([request("GET", "/", "", a, b, 200, 0) for a, b in spans])

    assert trips() == 0
    assert trips((0, 10)) == 1
    assert trips((0, 2), (0, 10), (2, 4), (5, 9)) == 3


@pytest.mark.soak
def test_the_benchmark_on_s3_writes_table_and_plot(tmp_path):
    options = ["--engines", "tensorlake,tensorlake-checkpoint", "--size", "tiny", "--repeat", "1"]
    command = [sys.executable, SCRIPT, *options, "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    written = json.loads((tmp_path / "s3.json").read_text())
    for workload, measure in (("photos", "ten"), ("photos", "full-link"), ("uber", "day")):
        found = written["workloads"][workload]["medians"]["tensorlake"]
        for kind in ("cold", "warm", "renewed"):
            assert found[f"{measure}_{kind}"] > 0
        assert found[f"{measure}_checked"] == (5 if measure == "full-link" else 9)
    assert "| tensorlake-checkpoint, day, cold: round trips |" in (tmp_path / "s3.md").read_text()
    assert (tmp_path / "s3.png").read_bytes().startswith(PNG)


def figures(measure, seconds, trips=1):
    out = {}
    for kind in ("cold", "warm", "renewed"):
        name = f"{measure}_{kind}"
        out |= {name: seconds, f"{name}_trips": trips, f"{name}_requests": 1, f"{name}_mb": 1.0}
    return out


def report(medians, errors):
    found = {"raw_bytes": 1000, "medians": medians, "samples": {}, "errors": errors}
    return {
        "date": "2026-01-01", "cpus": 2, "machine": "x", "python": "3", "repeat": 1, "versions": {},
        "command": "c", "settings": dict.fromkeys(medians, "s"),
        "peers": [e for e in medians if e in ("tiledb", "zarr-zstd")], "workloads": {"photos": found},
    }  # fmt: skip


def test_the_criteria_are_held_against_the_fastest_peer_and_a_plain_get(bench):
    medians = {
        "tensorlake": figures("ten", 0.1, 2) | figures("full-link", 1.0),
        "zarr-zstd": figures("ten", 0.2),
        "tiledb": figures("ten", 0.05),
        "get": figures("full-link", 0.7),
    }
    rows = bench.BENCHMARK.table(report(medians, {"tiledb": "ten: it | broke"})).splitlines()
    assert "| tensorlake, ten, warm: round trips | 2 | <= 1 | no |" in rows
    assert "| tensorlake, ten, renewed: round trips | 2 | <= 4 | yes |" in rows
    assert "| ten, warm: time as a share of zarr-zstd's | 0.50 | <= 1 | yes |" in rows
    assert (
        "| full-link: bandwidth as a share of a plain parallel GET's | 0.70 | >= 0.8 | no |" in rows
    )
    assert any(row.startswith("| tiledb | failed: ten: it / broke |") for row in rows)
    assert not any("tiledb's" in row for row in rows)


@pytest.mark.parametrize("failed", ["tensorlake", "tiledb", "both"])
def test_there_is_a_plot_whoever_failed(bench, tmp_path, failed):
    medians = {"tensorlake": figures("ten", 0.1), "tiledb": figures("ten", 0.2)}
    errors = dict.fromkeys(medians if failed == "both" else [failed], "ten: no")
    bench.BENCHMARK.plot(report(medians, errors), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("engine", "act", "most"),
    [("tensorlake", "extend a dataset", 4), ("tensorlake without boto3", "write a new tensor", 20)],
)
def test_small_writes_are_counted(bench, s3, monkeypatch, engine, act, most):
    """And what they wrote is there."""
    writes = importlib.import_module("s3_writes")
    roads = importlib.import_module("s3_road")
    monkeypatch.setattr(writes, "TIMES", 2)
    monkeypatch.setattr(s3_objects, "has_client", s3_objects.has_client)  # put back afterwards
    url = f"s3://bucket/{uuid.uuid4()}"
    with roads.S3Road(s3.port, 0.05) as road:
        options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
        found = writes.measure(engine, url, options)
    assert 0 < found[act]["trips"] <= most
    assert found[act]["requests"] >= found[act]["trips"]
    lake = tl.open(url, storage_options=s3.options)
    assert len(lake) == 4
    assert lake["x"].shape == (16, 3, 64, 64)
    assert lake["x"][0, 0, 0, 0] == 7
    ds = tl.dataset(f"{url}-samples", storage_options=s3.options)
    assert ds["n"][:].tolist() == [0, 5, 1, 1]
    assert act in writes.table({engine: found})
