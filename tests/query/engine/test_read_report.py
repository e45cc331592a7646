"""What a query reads, in bytes."""

import numpy as np


def test_a_report_names_files_bytes_sql_and_expressions(shapes):
    view = shapes.ds.query(
        "SELECT images[:8] AS head FROM dataset WHERE labels = 0 AND array_max(emb) > 1 ORDER BY training.score"
    )
    report = view.explain()
    rows = int((shapes.labels == 0).sum())
    (scalars,) = report.scalars
    assert (scalars.files, scalars.rows, scalars.columns) == (
        2,
        60,
        ("labels", "sid", "training/score"),
    )
    leaves = ["labels", "sid", "training.score"]
    assert scalars.bytes == sum(
        f.bytes_of(range(f.metadata.num_row_groups), leaves) for f in shapes.ds.stored.files
    )
    assert [(one.column, one.rows) for one in report.conditions] == [("emb", rows)]
    kept = view.sids
    (selected,) = report.selected
    assert selected.rows == len(kept)
    payload = sum(shapes.images[i].nbytes for i in kept)
    assert payload <= report.selected_bytes <= 1.01 * payload
    text = str(report)
    assert "ARRAY_MAX(emb) > 1" in text
    assert "images[:8] AS head" in text
    assert "FROM s" in text


def test_a_part_of_a_view_reads_less(shapes):
    view = shapes.ds.query("SELECT images FROM dataset")
    assert view[:3].explain().selected_bytes < view.explain().selected_bytes / 10


def test_groups_read_each_sample_once(shapes):
    report = shapes.ds.query("SELECT labels, emb FROM dataset GROUP BY labels").explain()
    assert [one.rows for one in report.selected] == [60]
    assert np.isclose(report.selected_bytes, 60 * 40)
