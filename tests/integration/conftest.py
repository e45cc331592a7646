"""An S3 server that all tests of this folder share."""

import importlib
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def helper(name):
    """Import a module that lies beside the tests."""
    sys.path.insert(0, str(TESTS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(TESTS))


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A server with an empty bucket named ``bucket``."""
    with helper("s3server").S3Server(tmp_path_factory.mktemp("s3") / "server") as server:
        server.make_bucket("bucket")
        yield server


@pytest.fixture
def road(s3):
    """A road to the server on which answers can be lost."""
    with helper("s3faults").S3Road(s3.port) as road:
        yield road
