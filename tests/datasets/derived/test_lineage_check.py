"""Copies held against their sources."""

import dataclasses
import shutil

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived import lineage_check


@pytest.fixture
def few(made, tmp_path):
    return made.ds.copy(tmp_path / "few", made.order)


def found(ds, kind):
    return [one for one in ds.check(sources=True).findings if one.kind == kind]


def test_all_is_well(few, made):
    assert found(few, "lineage") == found(few, "source") == []
    made.ds.optimize(file_bytes=1 << 20)  # moves samples, and changes none
    assert found(few, "source") == []


def test_a_source_that_changed_since(few, made):
    made.ds.update(int(made.order[0]), {"label": 500})
    made.ds.extend({"label": [1]})
    (one,) = found(few, "source")
    assert f"version {few.lineage.sources[0].version} was read" in one.text
    assert ", 2 of the " in one.text
    assert one.is_notice
    assert few.check(sources=True).ok


def test_a_source_that_is_gone(few, made):
    shutil.rmtree(made.path)
    (one,) = found(few, "source")
    assert "cannot be read any more" in one.text
    assert few.check().ok


def test_a_source_that_was_made_anew(few, made):
    shutil.rmtree(made.path)
    ds = tl.dataset(made.path, {name: made.ds.schema[name] for name in made.ds.schema})
    for number in range(40):
        ds.extend({"label": [number]})
    assert "was made anew" in found(few, "lineage")[0].text


def test_a_source_of_which_no_id_is_told(few, made, monkeypatch):
    """As in what earlier versions of the package have written."""
    said = few.lineage
    sources = tuple(dataclasses.replace(one, table_id="") for one in said.sources)
    monkeypatch.setattr(
        lineage_check, "lineage_of", lambda _: dataclasses.replace(said, sources=sources)
    )
    assert found(few, "lineage") == found(few, "source") == []


def test_samples_that_are_not_those_of_the_source(few, made):
    few.update([3, 5], {"label": [1000, 1001]})
    one, two = found(few, "lineage")
    assert one.place == "column 'label', sample 3"
    assert f"sample {made.order[3]} " in one.text
    assert two.place == "column 'label', sample 5"
    assert not few.check(sources=True).ok
    few.delete([3, 5])
    assert found(few, "lineage") == []


def test_large_samples_are_compared_by_their_tiles(tmp_path):
    rng = np.random.default_rng(0)
    large = [rng.integers(0, 256, (300, 200), np.uint8) for _ in range(3)]
    ds = tl.dataset(
        tmp_path / "large", {"x": tl.types.Tensor("uint8", (None, None))}, tile_bytes=16 << 10
    )
    ds.extend({"x": [*large, large[0][:5, :5]]})
    for number, new in enumerate(
        (
            ds.copy(tmp_path / "copy", [2, 0, 3]),
            ds.query("SELECT x FROM dataset WHERE sid <> 1").materialize(tmp_path / "view"),
        )
    ):
        assert found(new, "lineage") == []
        other = new["x"][0].copy()
        other[-1, -1] ^= 1
        new.update(int(new.sids[0]), {"x": other})
        (one,) = found(new, "lineage")
        assert one.place == "column 'x', sample 0"
        assert f"sample {[2, 0][number]} " in one.text


def test_what_is_added_later_has_no_source(few):
    few.extend({"label": [5, 6]})
    few.add_column("more", "int32")
    assert found(few, "lineage") == []


def test_a_column_that_was_dropped_is_not_compared(few):
    few.drop_column("label")
    few.rename_column("small", "other")
    assert found(few, "lineage") == found(few, "source") == []


def test_rows_to_which_a_source_gave_nothing(made, tmp_path):
    view = made.ds.query(
        "SELECT a.label, b.small AS next FROM dataset a LEFT JOIN dataset b ON a.sid = b.sid + 1 AND b.sid > 2"
    )
    joined = view.materialize(tmp_path / "joined")
    assert sum(value is None for value in joined["next"]) == 4
    assert found(joined, "lineage") == found(joined, "source") == []


def test_columns_that_have_only_a_digest(made, tmp_path):
    few = made.ds.copy(tmp_path / "png", made.order, types={"small": tl.types.Image("png")})
    assert found(few, "lineage") == []
    few.update(2, {"small": np.zeros((24, 32, 3), np.uint8)})
    (one,) = found(few, "lineage")
    assert one.place == "column 'small'"
    assert "another digest" in one.text
    few.delete([4])
    assert found(few, "lineage") == []
    assert "have nothing to be held against" in found(few, "source")[0].text


def test_a_dataset_without_sources(made):
    (one,) = found(made.ds, "source")
    assert "says nothing of sources" in one.text
    assert made.ds.check(sources=True).ok


def test_a_lineage_that_is_damaged(few):
    import os

    folder = os.path.join(few.uri, "_lineage")
    os.remove(os.path.join(folder, os.listdir(folder)[0]))
    assert "is gone" in found(few, "lineage")[0].text
