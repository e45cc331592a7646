"""``make s3``: the server as a program says how to reach it, and ends when it is told to."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
from places import TESTS

import tensorlake_spark as tl

PROGRAM = TESTS / "support" / "s3server.py"


def test_the_server_serves_until_it_is_told_to_end(tmp_path):
    """What it prints is enough to write and read a lake; Ctrl-C and SIGTERM are alike to it."""
    command = [sys.executable, "-u", str(PROGRAM), str(tmp_path / "objects")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        said = ""
        for line in server.stdout:
            said += line
            if line.startswith("Jobs and the command line"):
                break
        exports = dict(re.findall(r"^    export (\w+)=(.+)$", said, re.MULTILINE))
        assert f"An S3 server at {exports['AWS_ENDPOINT_URL']}, its objects in" in said, said
        place = re.search(r'tl\.open\("(\S+)", storage_options=(\{.*\})\)', said)
        assert json.loads(place[2].replace("'", '"')) == exports
        lake = tl.open(place[1], storage_options=exports)
        lake.write("x", np.arange(6))
        assert lake["x"][2:4].tolist() == [2, 3]
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
    assert list((tmp_path / "objects" / "data" / "bucket" / "lake").glob("*.parquet"))
