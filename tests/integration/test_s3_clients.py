"""What both clients of a store are told, who commits when many do, and the page that says so."""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.s3_objects import s3_client
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.delta.store.timeouts import Timeouts


@pytest.fixture
def url():
    """A place in the bucket that no other test uses."""
    return f"s3://bucket/{uuid.uuid4()}/a lake"


def told(**options):
    """Return what deltalake and pyarrow are told about time."""
    given = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "x", **options}
    storage = Storage("s3://bucket/lake", given)
    client = storage.place[0].__reduce__()[1][0]
    return storage.log_options, client | Timeouts.of(given).arrow()


def test_time_outs_reach_both_clients_whatever_the_case_of_their_names():
    log, data = told(
        TIMEOUT="1m 30s", connect_timeout="500ms", Max_Retries="3", retry_timeout="2 minutes"
    )
    assert log["timeout"] == "90000000000ns"
    assert log["connect_timeout"] == "500000000ns"
    assert (log["max_retries"], log["retry_timeout"]) == ("3", "120000000000ns")
    assert "TIMEOUT" not in log
    assert (data["request_timeout"], data["connect_timeout"]) == (90.0, 0.5)
    assert data["retry_strategy"].max_attempts == 3, "two repeats fit into two minutes"
    given = {"backoff_config.init_backoff": "20ms", "backoff.max_backoff": "1s", "base": "1.5"}
    assert told(**given)[0]["backoff_config.max_backoff"] == "1000000000ns"
    assert told(**given)[0]["backoff_config.base"] == "1.5"


def test_without_options_nothing_waits_longer_than_minutes():
    log, data = told()
    assert Timeouts.of({}).timeout + Timeouts.of({}).retry_timeout <= 180
    assert (log["timeout"], log["max_retries"]) == ("30000000000ns", "10")
    assert data["request_timeout"] * data["retry_strategy"].max_attempts <= 180


BAD = {
    "timeout": ["5", "0s", "-1s", "soon", "5 parsecs", "", "3d"],
    "connect_timeout": ["x", "5"],
    "retry_timeout": ["5", "0ms"],
    "backoff_config.init_backoff": ["0s"],
    "backoff_config.max_backoff": ["1"],
    "backoff_config.base": ["1", "0.5", "nan", "inf", "two"],
    "max_retries": ["-1", "1.5", "many", "", "99999"],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_a_bad_value_is_an_error_that_names_it(name, value):
    """deltalake panics at some of them, in the middle of a read."""
    with pytest.raises(tl.InvalidOptionError, match=re.escape(name)) as caught:
        tl.open("s3://bucket/lake", storage_options={name: value})
    assert value in str(caught.value)


def test_waits_that_shrink_are_refused():
    with pytest.raises(tl.InvalidOptionError, match="is less than"):
        Storage("s3://bucket/lake", {"backoff_config.max_backoff": "50ms"})


class Proxy(BaseHTTPRequestHandler):
    """Notes what it is asked for, and refuses all of it."""

    def do_GET(self):
        self.server.seen.append((self.command, self.path, self.headers["Proxy-Authorization"]))
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *_):
        pass


def uploads_of(storage):
    with s3_client(storage, "") as client:
        return client.list_multipart_uploads(Bucket="bucket")


def test_both_clients_and_that_of_uploads_go_through_the_proxy():
    """The store has a name that nobody but the proxy could resolve."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        options = {
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "AWS_REGION": "x",
            "AWS_ENDPOINT_URL": "http://store.invalid", "AWS_ALLOW_HTTP": "true", "max_retries": "0",
            "Proxy_URL": f"http://me:pass%2Fword@127.0.0.1:{server.server_port}",
        }  # fmt: skip
        storage = Storage("s3://bucket/lake", options)
        for call in (
            lambda: tl.open("s3://bucket/lake", storage_options=options),
            lambda: storage.infos(["part"]),
            lambda: uploads_of(storage),
        ):
            server.seen.clear()
            with pytest.raises(OSError) as caught:
                call()
            assert "word" not in str(caught.value)
            ways = {(path.partition("/bucket")[0], user) for _, path, user in server.seen}
            assert ways == {("http://store.invalid", "Basic bWU6cGFzcy93b3Jk")}
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("given", ["http://h", "http://h:80", "HTTP://h/"])
def test_a_proxy_without_a_port_has_that_of_its_scheme(given):
    proxy = told(proxy_url=given)[1]["proxy_options"]
    assert (proxy["scheme"], proxy["host"], proxy["port"]) == ("http", "h", 80)


PARTIAL = [
    {"AWS_ACCESS_KEY_ID": "me"},
    {"aws_secret_access_key": "a-secret"},
    {"AWS_SESSION_TOKEN": "a-secret"},
]


@pytest.mark.parametrize("options", PARTIAL)
def test_a_part_of_credentials_is_refused(options):
    with pytest.raises(tl.InvalidOptionError, match="all that belong together") as caught:
        tl.open("s3://bucket/lake", storage_options=options)
    assert "a-secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["AWS_PROFILE", "aws_iam_role_arn", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_what_only_one_client_would_follow_is_refused(name):
    with pytest.raises(tl.InvalidOptionError, match=name):
        tl.open("s3://bucket/lake", storage_options={name: "somebody"})


class Role(BaseHTTPRequestHandler):
    """The service that gives a machine, or a container, the keys of its role."""

    def do_PUT(self):
        self.say("a-token-for-two-steps")

    def do_GET(self):
        if self.path.endswith("security-credentials/"):
            self.say("the-role")
        elif "region" in self.path:
            self.say("us-east-1")
        elif "credentials" in self.path:
            self.say(json.dumps(self.server.keys))
        else:
            self.send_error(404)

    def say(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("x-aws-ec2-metadata-token-ttl-seconds", "21600")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def role(s3):
    """Address of such a service."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Role) as server:
        server.keys = {
            "Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2020-01-01T00:00:00Z",
            "AccessKeyId": s3.options["AWS_ACCESS_KEY_ID"],
            "SecretAccessKey": s3.options["AWS_SECRET_ACCESS_KEY"],
            "Token": "a-session", "Expiration": "2099-01-01T00:00:00Z",
        }  # fmt: skip
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


WITHOUT_KEYS = """
    import sys
    import numpy as np
    import tensorlake_spark as tl
    url, endpoint = sys.argv[1:]
    lake = tl.open(url, storage_options={"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"})
    lake.write("x", np.arange(12), mode="append")
    print(lake["x"][3:5].tolist())
"""


@pytest.mark.parametrize("where", ["environment", "profile", "process", "instance", "container"])
def test_both_clients_find_the_same_credentials(s3, url, role, tmp_path, where):
    """Written through one, committed through the other, read through both."""
    key, secret = s3.options["AWS_ACCESS_KEY_ID"], s3.options["AWS_SECRET_ACCESS_KEY"]
    shared, config, script = (tmp_path / name for name in ("credentials", "config", "keys.sh"))
    shared.write_text(
        "[default]\naws_access_key_id = nobody\naws_secret_access_key = nothing\n"
        f"[profile]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    )
    config.write_text(f"[profile profile]\n[profile process]\ncredential_process = sh {script}\n")
    keys = {"Version": 1, "AccessKeyId": key, "SecretAccessKey": secret}
    script.write_text(f"echo '{json.dumps(keys)}'\n")
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(shared), "AWS_CONFIG_FILE": str(config)}
    machine = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": role, "AWS_EC2_METADATA_DISABLED": "false"}
    given = {
        "environment": {**files, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret},
        "profile": {**files, "AWS_PROFILE": "profile"},
        "process": {**files, "AWS_PROFILE": "process"},
        "instance": machine,
        "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{role}/credentials"},
    }[where]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_KEYS), url, s3.endpoint],
        env={
            **clean, "HOME": str(tmp_path), "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
            **given,
        },
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "[3, 4]", done.stderr[-2000:]
    assert secret not in done.stderr
    np.testing.assert_array_equal(tl.open(url, storage_options=s3.options)["x"][...], np.arange(12))


def append_to_own_and_shared(url, options, worker):
    lake = tl.open(url, storage_options=options)
    for i in range(10):
        lake.write(f"own/{worker}", np.full((1, 4), i), mode="append")
        lake.write("shared", np.full((1, 4), 100 * worker + i), mode="append")


@pytest.mark.soak
def test_six_processes_with_twenty_commits_each_lose_none_and_double_none(s3, url):
    lake = tl.open(url, storage_options=s3.options)
    lake.write("shared", np.full((1, 4), -1))
    first = lake.version
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=append_to_own_and_shared, args=(url, s3.options, worker))
        for worker in range(6)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    assert lake.version == first + 120
    shared = lake["shared"][...]
    assert (shared == shared[:, :1]).all()
    want = [-1, *(100 * worker + i for worker in range(6) for i in range(10))]
    assert sorted(shared[:, 0].tolist()) == want
    for worker in range(6):
        mine = [n for n in shared[:, 0].tolist() if n >= 0 and n // 100 == worker]
        assert mine == sorted(mine), "each in its own order"
        np.testing.assert_array_equal(lake[f"own/{worker}"][:, 3], np.arange(10))
    live = Snapshot.open(Storage(url, s3.options)).files.path
    assert len(live) == len(set(live))
    assert lake.check().ok


PAGE = ROOT / "docs" / "object_stores.md"


def test_the_page_runs(s3, url, monkeypatch):
    """Its blocks share one namespace; the lake is put where the server is."""
    text = PAGE.read_text().partition("## Spark")[0]
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, s3.options[name])
    names = {}
    for block in blocks:
        here = block.replace("s3://bucket/lake", url)
        exec(compile(here, "docs/object_stores.md", "exec"), names)
    assert list(names["lake"]) == ["photos"]


def test_the_page_names_the_defaults():
    text = PAGE.read_text()
    for value in ("`30s`", "`5s`", "`10`", "`120s`", "`100ms`", "`15s`", "`2`"):
        assert value in text
    assert Timeouts.of({}) == Timeouts(30, 5, 10, 120, 0.1, 15, 2)
