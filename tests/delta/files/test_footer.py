"""Footers as arrays."""

from pathlib import Path

import numpy as np

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files import footer as footers
from tensorlake_spark.delta.files.footer import Footer, footer_of
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA


def forget():
    """Drop what is kept of files: these tests change what was thought immutable."""
    footers._cache.clear()
    catalog._cache.clear()


def only_file(lake):
    (path,) = Path(lake.uri).glob("*.parquet")
    forget()
    return path


def write(lake, rows=64):
    x = np.random.default_rng(0).integers(0, 9, (rows, 100)).astype("i4")
    lake.write("x", x, block_shape=(8, 100), codec="zstd")
    return x


def test_footers_answer_for_row_groups(lake):
    write(lake)
    footer = footer_of(Storage(lake.uri), only_file(lake).name)
    assert isinstance(footer, Footer)
    assert footer.may_hold("x", data=True).sum() == len(footer.rows) - 1
    assert footer.may_hold("x", data=False).sum() == 1
    assert not footer.may_hold("y", data=True).any()
    assert "values" in footer.columns
    assert set(SCHEMA.names) >= {"id", "seq"}
