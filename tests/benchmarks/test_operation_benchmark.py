"""The benchmark of operations runs, compares every answer, and says what is missed."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bench_operations
from bench_operations import TENSORS, TINY, child, compare, told, verdicts
from operation_engines import ENGINES, Plain, same

HERE = ("numpy", "SciPy", "sparse")


@pytest.mark.parametrize("tensor", TENSORS)
def test_engines_answer_alike(tensor, tmp_path):
    assert set(TINY) == set(TENSORS)
    found = {engine: dict(child(tensor, engine, tmp_path, 1, True)) for engine in HERE}
    wrong = [
        f"{engine}, {name}: {one['error']}"
        for engine, operations in found.items()
        for name, one in operations.items()
        if "error" in one and "not ours" in one["error"]
    ]
    assert not wrong
    said = [one["error"] for one in found["numpy"].values() if "error" in one]
    assert said == []
    text = bench_operations.table(tensor, found, True)
    assert all(f"| {name} |" in text for name in found["numpy"])


def test_a_program_of_its_own_for_every_engine(capsys):
    assert (
        bench_operations.main(["--tiny", "--repeat", "1", "--tensors", "3-d", "--engines", "numpy"])
        == 0
    )
    assert "| x + y |" in capsys.readouterr().out


def test_a_process_that_says_nothing_is_ended():
    said = """import time; print('RESULT ["a", null]', flush=True); time.sleep(60)"""
    start = time.monotonic()
    assert [*told([sys.executable, "-c", said], dict(os.environ), 3)] == [("a", None)]
    assert time.monotonic() - start < 30


def test_what_was_measured_is_not_measured_again(tmp_path):
    names = [name for name, one in child("3-d", "numpy", tmp_path, 1, True) if one]
    again = child("3-d", "numpy", tmp_path, 1, True, names[:-3])
    assert [name for name, one in again if one] == names[-3:]


def test_a_wrong_answer_is_no_figure(tmp_path):
    file = tmp_path / "a.npz"
    compare(Plain(np.array([1, 4]), np.array([2.0, 3.0])), file, "numpy")
    compare(Plain(None, np.array([0, 2.0, 0, 0, 3.0])), file, "SciPy")
    with pytest.raises(AssertionError, match="not ours"):
        compare(Plain(np.array([1, 4]), np.array([2.0, 4.0])), file, "SciPy")
    assert not same(Plain(np.array([1]), np.ones(1)), Plain(np.array([2]), np.ones(1)))


def test_bounds_are_of_whom_the_issue_names():
    times = {
        "numpy": 6.0,
        "fast": 4.0,
        "SciPy": 5.0,
        "sparse": 40.0,
        "torch": 4.0,
        "GraphBLAS": 1.0,
    }
    each = {engine: {"first": t, "best": t} for engine, t in times.items()}
    assert verdicts("A B", each) == [("numpy", 1.2, "SciPy", 1.2), ("fast", 1.0, "torch", 1.0)]
    assert verdicts("x + y", each) == [
        ("numpy", 1.5, "torch", 1.2), ("fast", 1.0, "torch", 1.0), ("best", 0.1, "sparse", 0.2),
    ]  # fmt: skip
    assert verdicts("put 1,000", {"numpy": {"first": 0.01, "best": 0.01}}) == [
        ("numpy", 2.0, "5 ms", 1.0)
    ]
    assert verdicts("x + y", {"numpy": each["numpy"], "sparse": {"over": 10.0}})[-1] == (
        "best", 0.6, "sparse", 0.2,
    )  # fmt: skip


def test_engines_that_set_the_bound():
    assert [e for e, engine in ENGINES.items() if engine.sets_bound] == ["SciPy", "sparse", "torch"]
