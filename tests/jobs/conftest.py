"""The job of ``jobs/ingest.py``, run in the process of the tests."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Run:
    """Exit code, standard output and error of a run, and the JSON of its last line."""

    code: int
    out: str
    err: str
    json: dict[str, Any]


@pytest.fixture(scope="session")
def ingest_job():
    """The module of the job."""
    spec = importlib.util.spec_from_file_location("ingest_job", ROOT / "jobs" / "ingest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def job(ingest_job, spark, capsys):
    """What runs the job with the arguments of a command line."""

    def run(*arguments):
        capsys.readouterr()
        code = ingest_job.main([str(a) for a in arguments], spark)
        out, err = capsys.readouterr()
        return Run(code, out, err, json.loads(out.splitlines()[-1]))

    return run
