"""The loops over vectors, run by Python here, and compiled in a process of their own; and that blocks take them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import vector_law
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark import kernel_switch
from tensorlake_spark.query.nearest import vector_loops

LAW = Path(ROOT, "tests", "support", "vector_law.py")


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("size", vector_law.SIZES)
def test_the_loops_give_what_numpy_gives(size):
    assert vector_law.check(size) == 8


def test_compiled_loops_give_what_numpy_gives():
    done = subprocess.run(
        [sys.executable, LAW], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) == 8 * len(vector_law.SIZES)


def test_the_nearest_are_the_same_through_the_loops(tmp_path, monkeypatch):
    taken = []
    loop = vector_loops.products
    monkeypatch.setenv(kernel_switch.SWITCH, "fast")
    monkeypatch.setattr(kernel_switch, "installed", lambda: True)
    monkeypatch.setattr(kernel_switch, "_off", False)
    monkeypatch.setattr(kernel_switch, "_ready", set())
    monkeypatch.setattr(vector_loops, "products", lambda *a: (taken.append(1), loop(*a))[1])
    x = np.random.default_rng(1).normal(size=(500, 5)).astype("f4")
    ds = tl.dataset(str(tmp_path / "ds"), {"note": "string", "e": tl.types.Embedding(5)})
    for first in (0, 300):
        part = x[first : first + 300]
        ds.extend({"note": ["x" * (first % 7)] * len(part), "e": part})
    for function, order in (("l2_distance", 1), ("dot", -1), ("cosine_similarity", -1)):
        values = {
            "l2_distance": ((x - x[7]) ** 2).sum(1),
            "dot": x @ x[7],
            "cosine_similarity": x @ x[7] / np.linalg.norm(x, axis=1),
        }[function]
        found = ds.query(
            f"SELECT sid FROM dataset ORDER BY {function}(e, :q) {'DESC' if order < 0 else ''} LIMIT 5",
            parameters={"q": x[7]},
        )
        assert found["sid"].tolist() == np.argsort(order * values, kind="stable")[:5].tolist()
    assert taken
