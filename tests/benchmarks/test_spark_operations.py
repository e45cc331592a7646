"""The report of the operations by Spark: bounds by the best round, and what failed is left out."""

import sys
from pathlib import Path

import pytest


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    before = set(sys.modules)
    import spark_operations

    yield spark_operations
    for name in set(sys.modules) - before:
        if str(Path(__file__).parent) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def test_the_best_round_of_each_cluster_is_held_against_the_bounds(module):
    found = {
        "1-0": {"read": 10.0, "sum": 12.0, "var": 16.0},
        "1-1": {"read": 9.0, "sum": 18.0, "var": 14.0},
        "2-0": {"read": 5.0, "sum": 6.0, "var": 9.0},
        "2-1": "no end",
    }
    bounds = module.bounds(found)
    assert [(b.what.split(",")[0], b.met) for b in bounds] == [
        ("sum", True), ("sum", False), ("sum", True), ("var", False), ("var", False), ("var", False),
    ]  # fmt: skip
    head = {"date": "d", "cpus": 2, "machine": "m", "python": "3", "bytes": 2e9, "command": "c"}
    text = module.table({**head, "found": found})
    assert text.count("| no |") == 4
    assert "| sum, 1 to 2 workers of one core | >= 1.7 | 2.00 | yes |" in text
