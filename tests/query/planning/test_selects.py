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


def test_distinct_tensors_are_those_of_distinct_samples(shapes):
    view = tl.query("SELECT DISTINCT d.emb FROM d JOIN d AS e ON e.labels = d.labels", d=shapes.ds)
    assert len(view) == 60


def test_numbers_of_tensors_inside_sql(shapes):
    view = shapes.ds.query(
        "SELECT upper(dtype(emb)) || '!' AS d, labels FROM dataset WHERE sid = 3"
    )
    assert view[0]["d"] == "FLOAT32!"


def test_ungroup_names_what_is_selected(shapes):
    with pytest.raises(tl.InvalidQueryError, match="did you mean 'boxes'"):
        shapes.ds.query("SELECT boxes FROM dataset UNGROUP BY boxs")
    with pytest.raises(tl.InvalidQueryError, match="as many"):
        len(shapes.ds.query("SELECT boxes, emb FROM dataset UNGROUP BY boxes, emb"))
    with pytest.raises(tl.InvalidQueryError, match="EXPAND BY takes a SELECT from one dataset"):
        shapes.ds.query(
            "SELECT a.emb FROM dataset a JOIN dataset b ON a.sid = b.sid EXPAND BY 1, 1"
        )
