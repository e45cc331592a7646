"""The rows of a view as batches; the view itself is the oracle."""

import io

import numpy as np
import pytest
from PIL import Image

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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"where": "label > 3"}, "where= is for datasets"),
        ({"weights": "label"}, "weights= is for datasets"),
        ({"workers": "processes"}, "materialize it, or leave workers out"),
        ({"transform": {"labels": abs}}, "did you mean 'label'"),
        ({"transform": {"label": tl.loader.CenterCrop(2, 2)}}, "give a function of its values"),
    ],
)
def test_what_is_not_for_views(ds, options, says):
    with pytest.raises(tl.InvalidOptionError, match=says):
        ds.query("SELECT label, image FROM dataset").loader(4, **options)


def test_a_view_without_rows(ds):
    with pytest.raises(tl.InvalidOptionError, match="has no rows"):
        ds.query("SELECT * FROM dataset WHERE label > 99").loader(4)
