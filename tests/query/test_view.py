"""Views: rows in an order, read when they are asked for."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl


@pytest.fixture
def view(shapes):
    return shapes.ds.query(
        "SELECT images[:8, :8] AS crop, labels, note, training.score, boxes FROM dataset WHERE sid >= 6 ORDER BY sid DESC"
    )


def test_what_a_view_is(shapes, view):
    assert len(view) == 54
    assert view.names == ["crop", "labels", "note", "training/score", "boxes"]
    assert view.sids.tolist() == [*range(59, 5, -1)]
    assert view.sids.dtype == np.int64
    assert view.sources == {"dataset": (shapes.ds.uri, shapes.ds.version)}
    assert view.dataset.version == shapes.ds.version
    assert view.text.startswith("SELECT images")
    kinds = view.types
    assert kinds["labels"] == shapes.ds.schema["labels"]
    assert kinds["boxes"] == shapes.ds.schema["boxes"]
    assert str(kinds["crop"]) == "Tensor('uint8', (8, 8, 3))"
    assert "54 rows" in repr(view)


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("copied", [lambda view: pickle.loads(pickle.dumps(view)), deepcopy])
def test_a_view_pickles(shapes, view, copied, is_used):
    drawn = tl.query("SELECT sid FROM ds SAMPLE BY labels + 1 LIMIT 5", ds=shapes.ds)
    near = tl.query(
        "SELECT labels FROM ds ORDER BY array_mean(images), sid LIMIT :n",
        ds=shapes.ds, parameters={"n": 3},
    )  # fmt: skip
    if is_used:
        assert (len(view), len(drawn), len(near)) == (54, 5, 3)
    copies = [copied(one) for one in (view, drawn, near)]
    assert np.array_equal(copies[0][3]["crop"], view[3]["crop"])
    assert copies[0].sids.tolist() == view.sids.tolist()
    assert copies[1].sids.tolist() == drawn.sids.tolist()
    assert copies[2]["labels"].tolist() == near["labels"].tolist()


def test_rows_columns_and_parts(shapes, view):
    row = view[3]
    assert np.array_equal(row["crop"], shapes.images[56][:8, :8])
    assert (row["labels"], row["note"]) == (shapes.labels[56], None)
    assert view[-1]["training/score"] == shapes.scores[6]
    assert np.array_equal(view["labels"], shapes.labels[:5:-1])
    part = view[10:4:-2]
    assert part.sids.tolist() == view.sids[10:4:-2].tolist()
    assert view[[5, 1]][1]["labels"] == view[1]["labels"]
    assert len(view[np.arange(54) % 9 == 0]) == 6
    assert [v.tolist() for v in part["boxes"]] == [shapes.boxes[i].tolist() for i in part.sids]
    for bad in (54, -55, "nothing", 1.5):
        with pytest.raises((IndexError, KeyError)):
            view[bad]


def test_batches(shapes, view):
    found = list(view.batches(["labels", "boxes"], rows=20))
    assert [len(b["labels"]) for b in found] == [20, 20, 14]
    assert list(found[0]) == ["labels", "boxes"]
    assert isinstance(found[0]["labels"], np.ndarray)
    assert np.array_equal(np.concatenate([b["labels"] for b in found]), view["labels"])
    assert [row["labels"] for row in view] == view["labels"].tolist()
    with pytest.raises(tl.UnknownLabelError, match="did you mean 'labels'"):
        next(view.batches(["label"]))
    with pytest.raises(tl.InvalidOptionError, match="is not a list; give a list of names"):
        view.to_arrow("labels")
    with pytest.raises(tl.InvalidQueryError, match="rows=0"):
        next(view.batches(rows=0))


def test_views_of_views(shapes, view):
    more = view.query(
        "SELECT array_mean(crop) AS m, labels FROM dataset WHERE labels = 'dog' AND array_mean(crop) > 100"
    )
    means = {i: shapes.images[i][:8, :8].mean() for i in range(6, 60)}
    expected = [i for i in range(59, 5, -1) if shapes.labels[i] == 1 and means[i] > 100]
    assert more.sids.tolist() == expected
    assert np.allclose(more["m"], [means[i] for i in expected])
    part = view[:5].query(
        "SELECT count(*) AS n, max(sid) AS top FROM dataset JOIN ds ON ds.note = dataset.note",
        ds=shapes.ds,
    )
    assert part[0]["n"] > 5
    grouped = shapes.ds.query("SELECT labels, emb FROM dataset GROUP BY labels")
    deep = grouped.query("SELECT labels, array_mean(emb) AS m FROM dataset ORDER BY labels")
    assert np.allclose(
        deep["m"], [shapes.vectors[shapes.labels == n].mean() for n in range(3)], atol=1e-6
    )


def test_a_view_without_a_dataset_has_no_sids():
    view = tl.query("SELECT a FROM t", t=pd.DataFrame({"a": [1]}))
    assert view.sids is None
    assert view.dataset is None


@pytest.fixture
def labelled(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": tl.types.Tensor("int32", (2,)), "label": "int32"})
    ds.extend({"x": np.arange(10, dtype="i4").reshape(5, 2), "label": [3, 0, 4, 1, 2]})
    return ds.query("SELECT x, label FROM dataset WHERE label > 0 ORDER BY label")


def test_a_view_is_queried_as_dataset(labelled):
    found = labelled.query(
        "SELECT label FROM dataset WHERE array_sum(x) > :least", parameters={"least": 1}
    )
    assert found["label"].tolist() == [1, 2, 4]


def test_another_name_may_stand_for_the_same_view(labelled):
    assert (
        len(labelled.query("SELECT a.label FROM a JOIN dataset AS b USING (label)", a=labelled))
        == 4
    )


def test_batches_come_in_the_order_of_the_view(labelled):
    batches = list(labelled.loader(3, ["label"]))
    assert [batch["label"].tolist() for batch in batches] == [[1, 2, 3], [4]]


def test_a_dataset_has_a_sample_for_each_row(labelled, tmp_path):
    made = labelled.materialize(str(tmp_path / "made"))
    assert made.sids.tolist() == [0, 1, 2, 3]
    assert np.array_equal(made["x"][:], labelled["x"])
    assert made.lineage.query == labelled.text


def test_a_wrong_column_is_named(labelled):
    with pytest.raises(tl.UnknownLabelError, match="labl"):
        labelled.loader(3, ["labl"])


@pytest.fixture
def ragged(tmp_path):
    """Groups of tensors: of different shapes, one alone, of one shape."""
    columns = {"x": tl.types.Tensor("int32", (None,)), "label": "int32"}
    ds = tl.dataset(str(tmp_path / "ragged"), columns)
    ds.extend({"x": [[1, 2], [5], [7, 8, 9], [1], [2]], "label": [0, 1, 0, 2, 2]})
    return ds


def test_groups_of_different_shapes_are_stored_and_split_again(ragged, tmp_path):
    groups = ragged.query("SELECT label, x FROM dataset GROUP BY label ORDER BY label")
    kind = tl.types.Sequence(tl.types.Tensor("int32", (None,)))
    assert groups.types["x"] == kind
    assert groups.to_arrow()["x"].type == kind.storage()
    stored = groups.materialize(str(tmp_path / "new"))
    assert stored.check(sources=True).ok
    for view in (groups, stored):
        back = view.query("SELECT label, x FROM dataset UNGROUP BY x")
        assert [one.tolist() for one in back["x"]] == [[1, 2], [7, 8, 9], [5], [1], [2]]
        assert back["label"].tolist() == [0, 0, 1, 2, 2]


def test_functions_refuse_groups_of_different_shapes_by_name(ragged):
    groups = ragged.query("SELECT label, x FROM dataset GROUP BY label ORDER BY label")
    assert groups.query("SELECT x[0][0] AS first FROM dataset")["first"].tolist() == [1, 5, 1]
    with pytest.raises(tl.InvalidQueryError, match="are not numbers"):
        list(groups.query("SELECT array_mean(x) AS mean FROM dataset"))


def test_names_from_an_iterator_are_read_once(view):
    names = ["labels", "note"]
    assert view.to_arrow(iter(names)).column_names == names
    assert [*view.to_pandas(name for name in names)] == names
    (batch,) = view.batches(iter(names))
    assert [*batch] == names
