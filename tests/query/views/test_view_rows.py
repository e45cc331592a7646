"""The rows of a query, which are found once."""

import tensorlake_spark as tl
from tensorlake_spark.query.planning.queries import plan_query
from tensorlake_spark.query.views.view_rows import ViewRows


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32", "x": tl.types.Tensor("int32", (2,))})
    ds.extend({"n": [1, 2], "x": [[1, 2], [3, 4]]})
    view = ds.query("SELECT x FROM dataset WHERE array_sum(x) > 3")
    assert "not run yet" in repr(view)
    assert view._state.known is None
    assert len(view) == 1
    assert view._state.known == 1


def test_sids_are_read_where_they_are_asked_for(shapes):
    rows = ViewRows(plan_query("SELECT labels FROM d WHERE sid < 4", {"d": shapes.ds}))
    first = rows.run
    assert rows.run is first
    assert len(first.table.column_names) == 1
    rows.find_sids()
    assert len(rows.run.table.column_names) == 2
    assert rows.known == 4
