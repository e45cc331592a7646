"""Fixtures and Hypothesis profiles of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import tensorlake_spark as tl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "default", deadline=None, max_examples=150, suppress_health_check=list(HealthCheck)
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def lake(tmp_path: Path) -> tl.TensorLake:
    """An empty lake."""
    return tl.open(tmp_path / "lake")


@pytest.fixture
def photos() -> np.ndarray:
    """A small batch that looks like photographs: smooth, with noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:64, 0:96]
    base = 128 + 60 * np.sin(y / 9) + 50 * np.cos(x / 7)
    out = base + rng.normal(0, 3, (12, 3, 64, 96)) + rng.integers(-9, 9, (12, 1, 1, 1))
    return np.clip(out, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, shared by all tests that need Spark.

    Its queries are small: a thorough compiler costs more than it gains.
    """
    from tensorlake_spark.spark import local_session
    from tensorlake_spark.spark.session import CONF

    logging = f"-Dlog4j2.configurationFile={(Path(str(CONF)) / 'log4j2.properties').as_uri()}"
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"{logging} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.session.timeZone": "UTC",
    }
    session = local_session(**settings)
    yield session
    session.stop()
