"""Fixtures and Hypothesis profiles of the whole suite.

The place of a lake is a folder, or with ``--store s3`` an ``s3://`` URL on a real server of this machine
(``make test-s3``, which leaves out the tests that have no such place). Tests with the marker ``both_stores`` always
run on both; those with ``local_disk`` look at the lake's files as files and stay on the disk.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tensorlake_spark as tl

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import SparkSession
    from s3faults import S3Road

# The package sparse compiles its functions when it is imported, for arrays that are larger than those of a test.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
# Which body decodes does not depend on what a process did before; pages of its own hold the compiled one.
os.environ.setdefault("TENSORLAKE_KERNELS", "numpy")

sys.path.append(str(Path(__file__).parent / "support"))  # for the modules that all folders share

import examples  # noqa: F401  # profiles of Hypothesis
from queried_rows import dataset_at, sqlite
from quick import QUICK
from s3server import S3Server

DISK, S3 = "disk", "s3"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=(DISK, S3), default=DISK, help="where lakes lie")


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "both_stores: runs with a lake on the disk, and with one on S3",
        "local_disk: looks at the files of the lake as files, or needs many commits, so that it stays on the disk",
    ):
        config.addinivalue_line("markers", marker)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    markers = {marker.name for marker in metafunc.definition.iter_markers()}
    on_s3 = metafunc.config.getoption("--store") == S3
    if "store" in metafunc.fixturenames and "both_stores" in markers and not on_s3:
        stores = [DISK] if "local_disk" in markers else [DISK, S3]
        metafunc.parametrize("store", stores, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests for which the option makes a difference; pytest counts the others as deselected.

    Property tests run without the tracer of the coverage: thousands of examples took twice as long.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
    if config.getoption("--store") == S3:
        chosen = [i for i in items if {"place", "new_place"} & {*getattr(i, "fixturenames", ())}]
        chosen = [i for i in chosen if i.get_closest_marker("local_disk") is None]
        config.hook.pytest_deselected(items=[i for i in items if i not in {*chosen}])
        items[:] = chosen


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server with an empty bucket named ``bucket``."""
    with S3Server(tmp_path_factory.mktemp("s3") / "server") as server:
        server.make_bucket("bucket")
        yield server


@pytest.fixture
def road(s3: S3Server) -> Iterator[S3Road]:
    """A road to the server on which answers can be lost."""
    from s3faults import S3Road

    with S3Road(s3.port) as road:
        yield road


@pytest.fixture(scope="module")
def s3_variables(s3: S3Server) -> Iterator[None]:
    """The environment by which processes reach the server, for the tests of one file."""
    with _known_to_processes(s3):
        yield


@pytest.fixture(scope="session")
def s3_environment(s3: S3Server) -> Iterator[None]:
    """The environment by which every process of a run on the server reaches it, to the end of the run."""
    with _known_to_processes(s3):
        yield


@contextmanager
def _known_to_processes(s3: S3Server) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3.options.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def everywhere(request: pytest.FixtureRequest) -> str:
    """Where the lakes of this run lie; processes that it starts know the server."""
    store: str = request.config.getoption("--store")
    if store == S3:
        request.getfixturevalue("s3_environment")
    return store


@pytest.fixture
def store(request: pytest.FixtureRequest, everywhere: str) -> str:
    """Where the lakes of this test lie."""
    if request.node.get_closest_marker("local_disk"):
        return DISK
    return getattr(request, "param", everywhere)


@pytest.fixture
def place(
    request: pytest.FixtureRequest,
    store: str,
    everywhere: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Path or URL of a lake that is not there yet."""
    if store == DISK:
        return str(tmp_path / "lake")
    if everywhere == DISK:
        for name, value in request.getfixturevalue("s3").options.items():
            monkeypatch.setenv(name, value)
    return new_url()


@pytest.fixture(scope="module")
def new_place(everywhere: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """What returns path or URL of a lake that is not there yet, for fixtures of a module."""

    def new() -> str:
        return new_url() if everywhere == S3 else str(tmp_path_factory.mktemp("lakes") / "lake")

    return new


def new_url() -> str:
    return f"s3://bucket/{uuid.uuid4()}/lake"


@pytest.fixture
def lake(place: str) -> tl.TensorLake:
    """An empty lake."""
    return tl.open(place)


@pytest.fixture
def photos() -> np.ndarray:
    """A small batch that looks like photographs: smooth, with noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:64, 0:96]
    base = 128 + 60 * np.sin(y / 9) + 50 * np.cos(x / 7)
    out = base + rng.normal(0, 3, (12, 3, 64, 96)) + rng.integers(-9, 9, (12, 1, 1, 1))
    return np.clip(out, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def queried(tmp_path_factory: pytest.TempPathFactory) -> tl.Dataset:
    """The dataset that generated queries read; nothing changes it."""
    return dataset_at(str(tmp_path_factory.mktemp("queried") / "ds"))


@pytest.fixture(scope="session")
def oracle() -> Iterator[sqlite3.Connection]:
    """The rows of `queried` and the table beside it in SQLite."""
    con = sqlite()
    yield con
    con.close()


@pytest.fixture(scope="session")
def spark(everywhere: str) -> Iterator[SparkSession]:
    """A local session with Delta and S3A, shared by all tests that need Spark."""
    from tensorlake_spark.spark import local_session
    from tensorlake_spark.spark.session import CONF

    logging = f"-Dlog4j2.configurationFile={(Path(str(CONF)) / 'log4j2.properties').as_uri()}"
    conf = {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"{logging} {QUICK}",
        "spark.sql.session.timeZone": "UTC",
        # Every test has other queries: to compile one takes longer than to run it. Jobs and clusters compile theirs.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    session = local_session(s3=True, **conf)
    yield session
    session.stop()
