"""Samples that the tests of datasets share, and a web server."""

import io

import numpy as np
import PIL.Image
import pytest
from webserver import WebServer

from tensorlake_spark.datasets.links.link_rules import LinkRules


def jpeg(seed, height=24, width=32):
    """A small picture as a file, another one for each seed."""
    y, x = np.mgrid[0:height, 0:width]
    picture = np.stack(
        [(x * 5 + seed * 11) % 256, (y * 7 + seed * 3) % 256, (x + y + seed) % 256], -1
    )
    out = io.BytesIO()
    PIL.Image.fromarray(picture.astype(np.uint8)).save(out, "jpeg", quality=80)
    return out.getvalue()


@pytest.fixture(scope="session")
def jpegs():
    """Thirty pictures."""
    return [jpeg(seed) for seed in range(30)]


@pytest.fixture
def web():
    """A web server of this machine."""
    with WebServer() as server:
        server.pages["/a.jpg"] = bytes(range(256)) * 40
        yield server


@pytest.fixture
def rules(web):
    """What reaches it."""
    return LinkRules(allow_http=[web.host], retries=0, timeout=10, stall_timeout=5)
