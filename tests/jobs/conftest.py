"""The jobs, run in the process of the tests."""

from __future__ import annotations

import importlib.util
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark.jobs import ingest


@dataclass
class Run:
    """Exit code, standard output and error of a run, and the JSON of its last line."""

    code: int
    out: str
    err: str
    json: dict[str, Any]


@pytest.fixture(scope="session")
def module_of():
    """What loads the module of a job, which lies in no package."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"{name}_job", ROOT / "jobs" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def run_job(capsys):
    """What runs a job with the arguments of a command line."""

    def run(job, *arguments, session=None):
        capsys.readouterr()
        code = job.main([str(a) for a in arguments], session)
        out, err = capsys.readouterr()
        return Run(code, out, err, json.loads(out.splitlines()[-1]))

    return run


@pytest.fixture
def job(run_job, spark):
    """What runs the ingestion with the arguments of a command line."""

    def run(*arguments):
        return run_job(ingest, *arguments, session=spark)

    return run


@pytest.fixture
def untouched():
    """What sees that nothing was written to a place, a folder or an URL."""

    def check(place):
        assert not Path(place).exists()
        with pytest.raises(tl.TableNotFoundError):
            tl.open(place, create=False)

    return check


@pytest.fixture
def check_lake():
    """What compares a lake with arrays, and sees that after vacuum nothing is there that no commit names."""

    def check(path, **arrays):
        lake = tl.open(path)
        assert sorted(lake) == sorted(arrays)
        for _ in range(2):
            for name, array in arrays.items():
                got = lake[name][...]
                got = got.todense() if isinstance(got, tl.SparseTensor) else got
                np.testing.assert_array_equal(got, array)
            lake.vacuum(0)
        if "://" in str(path):
            assert not lake.check().findings
            return
        uris = [uri.removeprefix("file://") for uri in DeltaTable(path).file_uris()]
        rows = [
            (row["id"], row["seq"])
            for uri in uris
            for row in pq.read_table(uri, columns=["id", "seq"]).to_pylist()
        ]
        assert len(set(rows)) == len(rows), "two rows have one place"
        deadline = (
            time.monotonic() + 20
        )  # Spark does not wait for the other tasks of a job that failed
        while {str(p) for p in Path(path).glob("*.parquet")} != set(uris):
            assert time.monotonic() < deadline, "a file stays that no commit names"
            time.sleep(0.2)
            lake.vacuum(0)
        assert not [p for p in Path(path).glob("_tensorlake/**/*") if p.is_file()]

    return check
