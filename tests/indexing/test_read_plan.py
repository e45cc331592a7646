"""A plan adds up its files, prints, and travels."""

import pickle

import pytest

from tensorlake_spark.indexing import FilePlan, Predicate, ReadPlan, select
from tensorlake_spark.indexing.read_plan import size_text


def plan():
    selection = select((slice(30, 40), 5), (99, 7))
    files = (
        FilePlan("a.parquet", (0, 2), 20, 3 << 20, 4, 40, 6 << 20),
        FilePlan("b.parquet", (1,), 5, 1 << 20, 2, 10, 2 << 20),
    )
    return ReadPlan(Predicate.of("photos", selection), selection, files, 5, 32 << 20, 3)


def test_a_plan_adds_up_its_files():
    have = plan()
    assert (have.n_files, have.n_row_groups, have.n_rows, have.n_bytes) == (2, 3, 25, 4 << 20)


def test_a_plan_says_what_is_read_and_what_is_skipped():
    assert str(plan()).splitlines() == [
        "tensor     photos, version 3, shape (99, 7)",
        "result     (10,)",
        "predicate  id = 'photos' AND nnz > 0 AND lo.d0 < 40 AND hi.d0 > 30 AND lo.d1 < 6 AND hi.d1 > 5",
        "files      2 read, 3 skipped of 5",
        "row groups 3 read, 3 skipped of 6 in these files",
        "rows       25 read, 25 skipped of 50 in these files",
        "bytes      4.0 MiB read, 28.0 MiB skipped",
    ]


def test_a_plan_that_reads_nothing_says_so():
    selection = select(slice(4, 4), (99, 7))
    text = str(ReadPlan(Predicate.of("photos", selection), selection, (), 5, 32 << 20, 3))
    assert "nnz < 0" in text
    assert "files      0 read, 5 skipped of 5" in text
    assert "bytes      0 B read, 32.0 MiB skipped" in text


def test_a_plan_travels():
    assert pickle.loads(pickle.dumps(plan())) == plan()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 40, "3.0 TiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_sizes_for_people(count, text):
    assert size_text(count) == text
