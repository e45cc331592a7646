"""The rows of a view as batches; the view itself is the oracle."""

import io
import pickle

import numpy as np
import pytest
from PIL import Image
from sample_transforms import negated

import tensorlake_spark as tl


def picture(number):
    pixels = np.random.default_rng(number).integers(0, 256, (12, 10 + number % 3, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    schema = {"image": tl.types.Image("png"), "x": tl.types.Tensor("int32", (4,)), "label": "int32"}
    found = tl.dataset(str(tmp_path_factory.mktemp("ds")), schema)
    rng = np.random.default_rng(0)
    images = [picture(n) for n in range(60)]
    x = rng.integers(0, 99, (60, 4), np.int32)
    found.extend({"image": images, "x": x, "label": rng.integers(0, 9, 60)})
    return found


QUERIES = [
    "SELECT * FROM dataset WHERE label > 2 ORDER BY label",
    "SELECT x, image AS picture, label + 1 AS more FROM dataset ORDER BY label DESC",
    "SELECT x[1:3] AS part, array_mean(image) AS mean FROM dataset WHERE label <> 4",
    "SELECT label, COUNT(*) AS n FROM dataset GROUP BY label ORDER BY label",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("size", [7, 60])
def test_batches_are_the_rows_in_their_order(ds, text, size):
    view = ds.query(text)
    rows = iter(view)
    loader = view.loader(size)
    count = 0
    for batch in loader:
        assert list(batch) == view.names
        for values in zip(*batch.values(), strict=True):
            for mine, theirs in zip(values, next(rows).values(), strict=True):
                np.testing.assert_array_equal(mine, theirs)
            count += 1
    assert count == len(view)
    assert len(loader) == -(-len(view) // size)


def test_shuffled_they_are_the_same_rows_on_any_number_of_ranks(ds):
    view = ds.query("SELECT x, label * 100 + x[0] AS mark FROM dataset WHERE label > 1")
    alone = [batch["mark"].tolist() for batch in view.loader(8, shuffle=True)]
    ranks = [[b["mark"].tolist() for b in view.loader(4, shuffle=True, rank=r, world_size=2)] for r in (0, 1)]  # fmt: skip
    for batch, first, second in zip(alone[:-1], *ranks, strict=False):
        assert first + second == batch
    found = [mark for batch in alone for mark in batch]
    assert sorted(found) == sorted(view["mark"].tolist())
    assert found != view["mark"].tolist()


def test_crops_of_images_are_decoded_as_such(ds):
    view = ds.query("SELECT image AS picture, label FROM dataset ORDER BY label")
    crop = tl.loader.CenterCrop(6, 8)
    (batch,) = view.loader(60, transform={"picture": crop, "label": lambda label: -label})
    assert batch["picture"].shape == (60, 6, 8, 3)
    whole = view[11]["picture"]
    left = (whole.shape[1] - 8) // 2
    np.testing.assert_array_equal(batch["picture"][11], whole[3:9, left : left + 8])
    np.testing.assert_array_equal(batch["label"], -np.asarray(view["label"]))


@pytest.mark.parametrize("text", QUERIES[:3])
def test_a_condition_chooses_rows_in_their_order(ds, text):
    view = ds.query(text)
    name = view.names[-1]
    middle = float(np.median([row[name] for row in view]))
    wanted = [row for row in view if row[name] > middle]
    (batch,) = view.loader(100, where=f"{name} > {middle!r} -- and no more")
    assert list(batch) == view.names
    assert 0 < len(wanted) < len(view)
    for number, row in enumerate(wanted):
        for column, value in row.items():
            np.testing.assert_array_equal(batch[column][number], value)


def test_rows_are_drawn_by_weights_and_in_balance(ds):
    view = ds.query("SELECT x, label, label + 1 AS more FROM dataset WHERE label < 3")
    drawn = np.concatenate([b["more"] for b in view.loader(50, weights="label", samples=500)])
    assert {*drawn.tolist()} == {2, 3}
    drawn = np.concatenate([b["more"] for b in view.loader(50, balance="label", samples=3000)])
    assert np.bincount(drawn)[1:].min() > 800
    only = np.zeros(len(view))
    only[5] = 1
    (batch,) = view.loader(10, weights=only, samples=10, shuffle=True)
    np.testing.assert_array_equal(batch["x"], np.repeat(view[5]["x"][None], 10, axis=0))
    once = view.loader(4, weights=np.ones(len(view)), samples=8, replacement=False)
    assert len(once) == 2


@pytest.mark.parametrize("shuffle", [False, True])
def test_processes_make_what_threads_make(ds, shuffle):
    view = ds.query(QUERIES[1])
    options = {"shuffle": shuffle, "transform": {"x": negated}, "collate": "pad"}
    threads = list(view.loader(13, **options))
    with view.loader(13, workers="processes", **options) as loader:
        found = list(loader)
        later = list(loader)
    for mine, theirs in zip(found, threads, strict=True):
        assert list(mine) == list(theirs)
        for name in theirs:
            np.testing.assert_array_equal(mine[name], theirs[name])
    assert len(later) == len(threads)


def test_a_copy_goes_to_another_process(ds):
    loader = pickle.loads(pickle.dumps(ds.query(QUERIES[1]).loader(13, shuffle=True)))
    for mine, theirs in zip(loader, ds.query(QUERIES[1]).loader(13, shuffle=True), strict=True):
        np.testing.assert_array_equal(mine["more"], theirs["more"])
    shared = [b["more"].tolist() for k in (0, 1) for b in loader.share(k, 2)]
    assert len(shared) == 5


def test_a_state_of_other_rows_is_refused(ds):
    text = "SELECT x, label FROM dataset WHERE label <> :other"
    state = ds.query(text, parameters={"other": 3}).loader(7).state_dict()
    ds.query(text, parameters={"other": 3}).loader(7).load_state_dict(state)
    with pytest.raises(tl.InvalidOptionError, match="another dataset"):
        ds.query(text, parameters={"other": 4}).loader(7).load_state_dict(state)


def test_what_goes_wrong_is_named_as_row_and_as_sample(ds):
    view = ds.query("SELECT x, label FROM dataset ORDER BY label DESC")
    said = rf"row 0 of the view of .* which is sample {view.sids[0]} of the dataset at"
    with pytest.raises(tl.InvalidSampleError, match=said):
        list(view.loader(3, transform=lambda row: 1 / 0))


@pytest.mark.parametrize("where", [None, "label >= 0"])
def test_a_query_of_several_lines_is_named_in_one(ds, where):
    view = ds.query("SELECT x, label\n  FROM dataset\n  ORDER BY label")
    loader = view.loader(3, where=where, transform=lambda row: 1 / 0)
    assert "\n" not in repr(loader)
    with pytest.raises(tl.InvalidSampleError, match=r"the view of SELECT .* FROM dataset") as found:
        list(loader)
    assert "\n" not in str(found.value)
    for options in ({"columns": ["x"]}, {"where": "label > 99"}):
        none = ds.query("SELECT x, label\nFROM dataset\nWHERE label > 99")
        with pytest.raises(tl.InvalidOptionError, match="FROM dataset WHERE label > 99") as found:
            none.loader(3, **options)
        assert "\n" not in str(found.value)


def test_a_cache_is_for_what_is_stored(ds, tmp_path):
    view = ds.query("SELECT image, label FROM dataset")
    assert len(list(view.loader(30, cache=str(tmp_path / "cache")))) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"where": "label > 99"}, "no row of the view of .* fits where='label > 99'"),
        ({"where": "lable > 3"}, "did you mean 'label'"),
        ({"where": 3}, "where=3 is int; it is a text of SQL"),
        ({"weights": "image"}, "column 'image' is not one number a sample"),
        ({"weights": [1.0]}, "one for each of 60 samples"),
        ({"samples": 5}, "give weights or balance too"),
        ({"columns": "label"}, "give a list of names"),
        ({"columns": []}, "delivers at least one column"),
        ({"columns": ["label"], "cache": "folder"}, "the query computes all columns of this view"),
        (
            {"workers": "processes", "transform": lambda row: row},
            "give a function that is defined at the top of a module",
        ),
        ({"transform": {"labels": abs}}, "did you mean 'label'"),
        ({"transform": {"label": tl.loader.CenterCrop(2, 2)}}, "give a function of its values"),
    ],
)
def test_what_is_wrong(ds, options, says):
    with pytest.raises(tl.TensorLakeError, match=says):
        list(ds.query("SELECT label, image FROM dataset").loader(4, **options))


def test_a_view_without_rows(ds):
    with pytest.raises(tl.InvalidOptionError, match="has no rows"):
        ds.query("SELECT * FROM dataset WHERE label > 99").loader(4)
