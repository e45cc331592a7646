"""Rows that lie far from each other: payloads and numbers in any order, on the disk and in an object store."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.scattered.scattered_rows import ScatteredRows

COUNT = 90
SIZES = [1 + 37 * k % 500 for k in range(COUNT)]
VALUES = [bytes([k]) * size for k, size in enumerate(SIZES)]
ORDER = np.random.default_rng(0).permutation(COUNT)

pytestmark = pytest.mark.both_stores


@pytest.fixture
def stored(place):
    ds = tl.dataset(place, {"x": tl.types.Tensor("uint8", (None,)), "k": "int32", "w": "float32"})
    for start in (0, 60):
        some = slice(start, start + 60)
        values = [np.frombuffer(value, np.uint8) for value in VALUES[some]]
        numbers = [None if k == 7 else k for k in range(COUNT)[some]]
        ds.extend({"x": values, "k": numbers, "w": np.zeros(len(values), np.float32)})
    return tl.dataset(place, create=False).parts.stored


def payloads(rows, stored, positions):
    found = rows.payloads(stored.leaf(("x", "data")), np.asarray(positions))
    return [bytes(value) for value in found]


def test_payloads_and_numbers_come_in_the_order_that_was_asked_for(stored):
    rows = ScatteredRows(stored, 1 << 20)
    assert payloads(rows, stored, ORDER) == [VALUES[k] for k in ORDER]
    assert payloads(rows, stored, [3, 3, 80]) == [VALUES[3], VALUES[3], VALUES[80]]
    numbers = rows.numbers(stored.leaf(("k",)), ORDER, null=-5)
    assert numbers.tolist() == [-5 if k == 7 else k for k in ORDER]
    least = np.iinfo(np.int64).min  # which the column's type does not have
    numbers = ScatteredRows(stored, 1 << 20).numbers(stored.leaf(("k",)), ORDER, null=least)
    assert numbers.tolist() == [least if k == 7 else k for k in ORDER]


def test_little_memory_changes_no_answer(stored):
    rows = ScatteredRows(stored, 1)
    for _ in range(2):
        assert payloads(rows, stored, ORDER) == [VALUES[k] for k in ORDER]


def test_numbers_of_a_file_come_row_group_by_row_group(place):
    """Of a remote file only the row groups that are asked for are read; those that come later are right, too."""
    ds = tl.dataset(place, {"x": tl.types.Tensor("uint8", (1 << 20,)), "k": "int32", "j": "int64"})
    count = 18
    numbers = np.arange(count)
    ds.extend({"x": np.ones((count, 1 << 20), np.uint8), "k": numbers, "j": numbers * 7})
    stored = tl.dataset(place, create=False).parts.stored
    assert len(stored.files[0].starts) > 3
    rows = ScatteredRows(stored, 1 << 20)
    for some in ([0], [count - 1, 0], [7, 7, 3], range(count - 1, -1, -1)):
        some = np.array(some)
        assert rows.numbers(stored.leaf(("k",)), some).tolist() == some.tolist()
        assert rows.numbers(stored.leaf(("j",)), some[::-1]).tolist() == (some[::-1] * 7).tolist()


def test_threads_that_want_the_same_numbers_read_a_row_group_once(place, monkeypatch):
    """The first batches of a loader begin together, and lie in the same row groups."""
    ds = tl.dataset(place, {"x": tl.types.Tensor("uint8", (1 << 20,)), "k": "int32"})
    count = 9
    ds.extend({"x": np.ones((count, 1 << 20), np.uint8), "k": np.arange(count)})
    stored = tl.dataset(place, create=False).parts.stored
    file, rows, read = stored.files[0], ScatteredRows(stored, 1 << 20), []
    table = file.table
    monkeypatch.setattr(
        file, "table", lambda groups, names: read.extend(groups) or table(groups, names)
    )
    everything = np.arange(count)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: rows.numbers(stored.leaf(("k",)), everything), range(8)):
            assert found.tolist() == everything.tolist()
    if stored.snapshot.remote is not None:
        assert sorted(read) == list(range(len(file.starts) - 1))


def test_copies_of_payloads_lie_in_memory_that_the_caller_gives(place):
    """A value of a row group in memory would keep all of it; what is mapped stays where it is."""
    ds = tl.dataset(place, {"x": tl.types.Tensor("uint8", (None,))})
    values = [bytes([k]) * size for k, size in enumerate((40, 900, 7))]
    arrays = [np.frombuffer(value, np.uint8) for value in values]
    ds.extend({"x": value} for value in [arrays[0], None, *arrays[1:]])
    stored, asked = tl.dataset(place, create=False).parts.stored, []

    def new(nbytes):
        asked.append(np.zeros(nbytes, np.uint8))
        return asked[-1]

    rows, leaf = ScatteredRows(stored, 1 << 20, new), stored.leaf(("x", "data"))
    found = rows.payloads(leaf, np.array([3, 1, 0, 3, 2]))
    wanted = [values[2], None, values[0], values[2], values[1]]
    assert [value and bytes(value) for value in found] == wanted
    assert [bytes(v) for v in rows.payloads(leaf, np.array([0]))] == [values[0]]
    assert rows.payloads(leaf, np.array([1, 1])) == [None, None]
    assert rows.payloads(leaf, np.array([], np.int64)) == []
    if stored.snapshot.remote is None:
        assert not asked
    else:
        assert [array.tobytes() for array in asked[:2]] == [
            b"".join(value or b"" for value in wanted),
            values[0],
        ]
