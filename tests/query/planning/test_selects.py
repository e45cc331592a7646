"""The end of a SELECT."""

import numpy as np
import pytest

import tensorlake_spark as tl


def test_lists_of_groups_belong_together(shapes):
    view = shapes.ds.query(
        "SELECT a.labels, a.emb AS left_, b.emb AS right_ FROM dataset a JOIN dataset b ON a.sid = b.sid - 1 "
        "GROUP BY a.labels ORDER BY a.labels"
    )
    for label, row in enumerate(view):
        here = np.flatnonzero(shapes.labels[:-1] == label)
        assert np.array_equal(row["left_"], shapes.vectors[here])
        assert np.array_equal(row["right_"], shapes.vectors[here + 1])


def test_what_is_computed_is_collected_too(shapes):
    view = shapes.ds.query(
        "SELECT labels, list(emb[:2]) AS heads FROM dataset GROUP BY labels ORDER BY labels"
    )
    assert np.array_equal(view[1]["heads"], shapes.vectors[shapes.labels == 1][:, :2])


def test_a_tensor_of_several_columns_cannot_be_picked(shapes):
    with pytest.raises(tl.InvalidQueryError, match="picks a column of tensors"):
        shapes.ds.query("SELECT first(emb * training.score) AS f FROM dataset GROUP BY labels")


def test_distinct_tensors_of_a_join_come_once(shapes):
    view = tl.query("SELECT DISTINCT d.emb FROM d JOIN d AS e ON e.labels = d.labels", d=shapes.ds)
    assert len(view) == 60  # no two vectors are the same


def test_numbers_of_tensors_inside_sql(shapes):
    view = shapes.ds.query(
        "SELECT upper(dtype(emb)) || '!' AS d, labels FROM dataset WHERE sid = 3"
    )
    assert view[0]["d"] == "FLOAT32!"


def test_a_branch_of_a_case_is_computed_where_duckdb_computes_another(shapes):
    view = shapes.ds.query(
        "SELECT CASE WHEN labels = 0 THEN CASE WHEN array_sum(emb) > 0 THEN note ELSE 'low' END "
        "WHEN array_sum(emb) > 1 THEN 'high' ELSE (note || '!') END AS c, note FROM dataset ORDER BY sid"
    )
    for row, label, vector in zip(view, shapes.labels, shapes.vectors, strict=True):
        note, total = row["note"], vector.sum()
        other = "high" if total > 1 else note and f"{note}!"
        assert row["c"] == ((note if total > 0 else "low") if label == 0 else other)


def test_ungroup_names_what_is_selected(shapes):
    with pytest.raises(tl.InvalidQueryError, match="did you mean 'boxes'"):
        shapes.ds.query("SELECT boxes FROM dataset UNGROUP BY boxs")
    with pytest.raises(tl.InvalidQueryError, match="as many"):
        len(shapes.ds.query("SELECT boxes, emb FROM dataset UNGROUP BY boxes, emb"))
    with pytest.raises(tl.InvalidQueryError, match="EXPAND BY takes a SELECT from one dataset"):
        shapes.ds.query(
            "SELECT a.emb FROM dataset a JOIN dataset b ON a.sid = b.sid EXPAND BY 1, 1"
        )


@pytest.mark.parametrize("name", ["training.boxes", "d.training.boxes", "D.Training.Boxes"])
def test_ungroup_takes_the_names_that_select_takes(shapes, name):
    view = shapes.ds.query(
        f"SELECT {name}, boxes FROM dataset d WHERE sid < 3 UNGROUP BY {name}, d.boxes"
    )
    assert view.names == ["training/boxes", "boxes"]
    assert np.array_equal(np.stack(list(view["training/boxes"])), np.concatenate(shapes.truth[:3]))


def test_ungroup_takes_arrays(shapes):
    with pytest.raises(
        tl.InvalidQueryError, match="names 'm', which is a value a row, not an array"
    ):
        shapes.ds.query("SELECT array_mean(emb) AS m FROM dataset UNGROUP BY m")
    unknown = shapes.ds.query("SELECT emb[0] AS m FROM dataset UNGROUP BY m")
    with pytest.raises(
        tl.InvalidQueryError, match=r"names 'm', which is .* not an array \(sample with sid 0\)"
    ):
        len(unknown)
    with pytest.raises(tl.InvalidQueryError, match="names 'm', which is a value a row"):
        len(shapes.ds.query("SELECT labels + 1 AS m FROM dataset UNGROUP BY m"))


def test_elements_of_arrays_are_values_for_aggregates(shapes):
    view = shapes.ds.query(
        "SELECT sid % 2 AS odd, max(v) AS top, count(v) AS n FROM (SELECT sid, emb AS v FROM dataset UNGROUP BY v) AS q "
        "GROUP BY sid % 2 ORDER BY odd"
    )
    assert view["n"].tolist() == [240, 240]
    assert np.allclose(view["top"], [shapes.vectors[::2].max(), shapes.vectors[1::2].max()])
    rows = shapes.ds.query(
        "SELECT max(v) AS top FROM (SELECT images AS v FROM dataset UNGROUP BY v) AS q"
    )
    with pytest.raises(tl.InvalidQueryError, match="a value a row is needed"):
        len(rows)
