"""Which task takes what: everything once, in order, and no task without need."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.spark.cluster.tasks import TASKS, share, tasks_of


@given(st.lists(st.integers(), max_size=50), st.integers(1, 60))
def test_tasks_share_all_rows_in_order_and_evenly(rows, count):
    made = share(rows, count, lambda some: iter([pa.RecordBatch.from_pydict({"n": [len(some)]})]))
    numbers = iter([pa.RecordBatch.from_pydict({"id": [k]}) for k in range(count)])
    sizes = [batch.column(0)[0].as_py() for batch in made(numbers)]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1
    taken = []
    for number in range(count):
        batch = pa.RecordBatch.from_pydict({"id": [number]})
        list(share(rows, count, lambda some: taken.extend(some) or iter(()))(iter([batch])))
    assert taken == rows


@given(
    st.integers(0, 10**6), st.integers(0, 10**4), st.integers(0, 1 << 45),
    st.integers(1, 1000), st.integers(1 << 20, 1 << 30),
)  # fmt: skip
def test_tasks_are_bounded_by_rows_and_cores_and_never_fewer_for_more_bytes(
    rows, files, nbytes, cores, file_bytes
):
    count = tasks_of(rows, files, nbytes, cores, file_bytes)
    assert 1 <= count <= max(1, min(rows, TASKS * cores))
    assert tasks_of(rows, files, 2 * nbytes, cores, file_bytes) >= count
    full = -(-nbytes // file_bytes)
    assert count >= min(full, rows, TASKS * cores), "no file is larger than the target"
