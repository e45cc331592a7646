"""Views that a dataset keeps by name, and gives back."""

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError


@pytest.fixture
def ds(tmp_path):
    made = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("float32", (2,)), "n": "int32"})
    made.extend({"x": np.arange(20, dtype="f4").reshape(10, 2), "n": np.arange(10, dtype="i4") % 4})
    return made


def rows(view):
    return [{name: np.asarray(v).tolist() for name, v in row.items()} for row in view]


def test_it_comes_back_whatever_has_happened_since(ds):
    view = ds.query(
        "SELECT x, l2_distance(x, :q) AS far FROM dataset WHERE n > :n ORDER BY far",
        parameters={"q": np.array([3.0, 4.0]), "n": 0},
    )
    before = rows(view)
    ds.save_view("near", view)
    ds.update(ds.sids, {"n": 0})
    ds.rechunk("n")
    ds.vacuum(0)
    again = tl.dataset(ds.uri).view("near")
    assert rows(again) == before
    assert again.sids.tolist() == view.sids.tolist() == ds.views["near"].sids.tolist()
    assert again.text == view.text
    assert ds.views["near"].computed == ("far",)


def test_chosen_rows_and_draws_keep_their_order(ds):
    ds.save_view("some", ds.query("SELECT n, x FROM dataset")[[7, 2, 2]])
    assert ds.view("some").sids.tolist() == [7, 2, 2]
    drawn = ds.query("SELECT n FROM dataset SAMPLE BY n LIMIT 6", seed=9)
    ds.save_view("drawn", drawn)
    assert ds.view("drawn").sids.tolist() == drawn.sids.tolist()


def test_several_versions(ds):
    ds.update(3, {"n": 100})
    version = ds.version - 1
    view = ds.query(
        f"SELECT new.n, old.n AS was FROM dataset new JOIN dataset VERSION {version} AS old ON new.sid = old.sid "
        "WHERE new.n <> old.n"
    )
    ds.save_view("changes", view)
    ds.update(4, {"n": 101})
    assert rows(ds.view("changes")) == [{"n": 100, "was": 3}]
    assert sorted(ds.tags().values()) == [version, version + 1]


def test_a_version_that_is_gone(ds):
    import glob
    import os

    ds.save_view("all", ds.query("SELECT n FROM dataset"))
    for path in glob.glob(f"{ds.uri}/_delta_log/*"):
        if "00001." in os.path.basename(path):
            os.remove(path)
    with pytest.raises(tl.TensorLakeError):
        ds.view("all")


def test_a_tag_that_was_moved(ds):
    ds.tag("stable")
    ds.save_view("all", ds.query("SELECT n FROM dataset VERSION 'stable'"))
    assert len(ds.view("all")) == 10
    ds.tag("stable", replace=True)
    with pytest.raises(InvalidOptionError, match="a tag was moved"):
        ds.view("all")


def test_what_cannot_be_kept(ds, tmp_path):
    other = tl.dataset(tmp_path / "other", {"n": "int32"})
    other.extend({"n": [1]})
    with pytest.raises(InvalidOptionError, match="does not read"):
        ds.save_view("a", other.query("SELECT * FROM dataset"))
    frame = pd.DataFrame({"n": [1, 2]})
    with pytest.raises(InvalidOptionError, match="only in memory"):
        ds.save_view("a", ds.query("SELECT x FROM dataset JOIN frame USING (n)", frame=frame))
    with pytest.raises(InvalidOptionError, match="is not a View"):
        ds.save_view("a", "SELECT 1")
    large = {"q": np.zeros(1 << 20)}
    with pytest.raises(InvalidOptionError, match="the parameter :q"):
        ds.save_view("a", ds.query("SELECT dot(x, :q) FROM dataset", parameters=large))
    with pytest.raises(InvalidOptionError, match="no view 'a'"):
        ds.view("a")
    assert ds.tags() == {}
    ds.save_view("b", ds.query("SELECT n FROM dataset"))
    with pytest.raises(InvalidOptionError, match="a view 'b' already"):
        ds.save_view("b", ds.query("SELECT n FROM dataset"))
    with pytest.raises(TableNotFoundError):
        tl.dataset(tmp_path / "nothing").view("b")
