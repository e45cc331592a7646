"""Views that are kept by name."""

import dataclasses
import os
import uuid

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived import saved_views
from tensorlake_spark.datasets.derived.saved_views import SavedView
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError


@pytest.fixture
def kept(made):
    """A view of the dataset, and one more source."""
    return SavedView(
        "SELECT * FROM dataset WHERE label > :least",
        {"dataset": (made.ds.uri, made.ds.version), "other": ("/data/other", 4)},
        ("label", "scan"),
        ("mean",),
        {"least": 3},
        "dataset",
        made.order,
    )


def save(made, name, view, replace=False):
    saved_views.save(made.ds._storage, name, view, replace)
    made.ds.refresh()


@pytest.mark.parametrize("name", ["hard", "a/b", "größe", "with ~ and .", "CON"])
def test_it_is_read_as_it_was_saved(made, kept, name):
    save(made, name, kept)
    found = tl.dataset(made.path).views
    assert [*found] == [name]
    assert dataclasses.replace(found[name], created="", package="") == kept
    assert found[name].sids.tolist() == made.order.tolist()
    assert found[name].package == tl.__version__
    assert len(found[name]) == 13
    made.ds.delete_view(name)
    assert made.ds.views == {}
    assert made.ds.tags() == {}


def test_vacuum_keeps_the_version(made, kept):
    version = made.ds.version
    before = tl.dataset(made.path, version=version)["label"][:].tolist()
    save(made, "hard", kept)
    made.ds.update(made.ds.sids, {"label": 0})
    made.ds.vacuum(0)
    assert tl.dataset(made.path, version=version)["label"][:].tolist() == before
    assert made.ds.tags() == {"view/hard/dataset": version}
    assert made.ds.check().ok
    assert [one.kind for one in made.ds.check().findings] == []
    made.ds.delete_view("hard")
    assert made.ds.vacuum(0)
    with pytest.raises(tl.TensorLakeError):
        tl.dataset(made.path, version=version)["label"][:]


def test_a_name_that_is_taken(made, kept):
    save(made, "hard", kept)
    with pytest.raises(InvalidOptionError, match="has a view 'hard' already"):
        save(made, "hard", kept)
    assert made.ds.views["hard"].text == kept.text
    made.ds.extend({"label": [5]})
    newer = {"d": (made.ds.uri, made.ds.version)}
    save(
        made,
        "hard",
        dataclasses.replace(kept, text="SELECT 1", sources=newer, main=None, sids=None),
        True,
    )
    assert made.ds.views["hard"].text == "SELECT 1"
    assert made.ds.views["hard"].sids is None
    assert made.ds.tags() == {"view/hard/d": made.ds.version - 1 - 1}


def test_names(made, kept):
    for name in (5, "", "a\nb"):
        with pytest.raises(InvalidOptionError, match="view"):
            save(made, name, kept)
    save(made, "a", kept)
    save(made, "a/b", kept)
    made.ds.delete_view("a")
    assert made.ds.tags() == {"view/a/b/dataset": kept.sources["dataset"][1]}
    with pytest.raises(InvalidOptionError, match=r"no view 'a/c'.*did you mean 'a/b'"):
        made.ds.delete_view("a/c")


def test_a_version_that_is_not_there(made, kept):
    gone = dataclasses.replace(kept, sources={"dataset": (made.ds.uri, 999)})
    with pytest.raises(InvalidOptionError, match="999"):
        save(made, "hard", gone)
    assert made.ds.views == {}


def test_a_file_that_is_damaged(made, kept):
    save(made, "hard", kept)
    with open(os.path.join(made.path, "_views", "hard.arrow"), "wb") as file:
        file.write(b"no view")
    with pytest.raises(CorruptDataError, match="holds no view"):
        made.ds.views


def test_purge_leaves_views(made, kept):
    save(made, "hard", kept)
    receipt = made.ds.purge([int(made.order[0])], now=True)
    assert receipt.verified
    assert np.isin(made.order[0], made.ds.views["hard"].sids)


def test_on_s3(s3):
    ds = tl.dataset(f"s3://bucket/{uuid.uuid4()}/views", {"n": "int32"}, s3.options)
    ds.extend({"n": [1, 2, 3]})
    view = SavedView(
        "SELECT 1", {"dataset": (ds.uri, ds.version)}, ("n",), main="dataset", sids=ds.sids
    )
    saved_views.save(ds._storage, "all", view, False)
    ds.refresh()
    assert ds.views["all"].sids.tolist() == [0, 1, 2]
    ds.delete_view("all")
    assert ds.views == {}


def test_a_name_that_may_not_be_is_told_as_it_was_given(made, kept):
    """The error spoke of a tag of the name of the view, with a folder before it."""
    wrong = {
        "": "a view has 1 to 512 characters, this has 0",
        "../x": "view '../x' has the segment '..'",
        "a\0b": r"view 'a\\x00b' has a control character",
        "a\ud800": r"view 'a\\ud800' has half of a character, '\\ud800' at character 2",
        "x"
        * 300: "would be a file whose name has 306 characters, and 255 is the most; choose a shorter name",
    }
    save(made, "ü" * 60, kept)
    for name, said in wrong.items():
        for change in (lambda name: save(made, name, kept), made.ds.view, made.ds.delete_view):
            with pytest.raises(InvalidOptionError, match=said) as error:
                change(name)
            assert "view/" not in str(error.value)
    assert [*made.ds.views] == ["ü" * 60]
