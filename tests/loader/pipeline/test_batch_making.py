"""One batch: transforms, collate functions, and samples that cannot be read."""

import functools
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidSampleError
from tensorlake_spark.loader import CenterCrop, Compose, RandomCrop, RandomFlip, Resize
from tensorlake_spark.loader.decoding.region import Region


def only(digits, **options):
    return list(digits.loader(100, **options))


def test_a_transform_of_samples(digits):
    def halves(sample):
        return {"half": sample["x"][:1] / 2, "label": sample["label"] + 1}

    first = only(digits, transform=halves)[0]
    np.testing.assert_array_equal(first["half"], digits["x"][:100][:, :1] / 2)
    np.testing.assert_array_equal(first["label"], digits["label"][:100] + 1)


def test_transforms_by_column(digits):
    found = only(digits, columns=["x", "name"], transform={"name": len})
    assert found[0]["name"].tolist() == [len(f"sample {n}") for n in range(100)]
    np.testing.assert_array_equal(found[0]["x"], digits["x"][:100])


def test_transforms_of_images_are_done_while_decoding(digits):
    crop = tl.loader.CenterCrop(8, 8)
    (first, *_) = only(digits, columns=["image"], transform={"image": crop})
    assert first["image"].shape == (100, 8, 8, 3)
    for mine, whole in zip(first["image"], digits["image"][:100], strict=True):
        left = (whole.shape[1] - 8) // 2
        np.testing.assert_array_equal(mine, whole[4:12, left : left + 8])


RANDOM = [
    {"batch": 60},
    {"batch": 7},
    {"batch": 64, "shuffle": False},
    {"batch": 25, "shuffle": "global"},
    {"batch": 10, "shuffle": 2000, "splits": 3, "rank": 1, "world_size": 3},
    {"batch": 32, "where": "label > 3"},
]


@pytest.mark.parametrize("options", RANDOM)
def test_random_numbers_follow_from_seed_epoch_and_sample(digits, options):
    """Whatever a batch is, however samples are shuffled and chosen, a sample is cut at one place in an epoch."""
    given = {"shuffle": True, "seed": 4} | options
    image = {"transform": {"image": tl.loader.RandomCrop(8, 8)}}
    whole = {}
    for batch in digits.loader(50, ["sid", "image"], seed=4, **image):
        whole |= dict(zip(batch["sid"].tolist(), batch["image"], strict=True))
    loader = digits.loader(given.pop("batch"), ["sid", "image"], **given, **image)
    for batch in loader:
        for sid, cut in zip(batch["sid"].tolist(), batch["image"], strict=True):
            np.testing.assert_array_equal(cut, whole[sid])
    later = [pair for b in loader for pair in zip(b["sid"].tolist(), b["image"], strict=True)]
    assert any((cut != whole[sid]).any() for sid, cut in later)


def noisy(sample, rng):
    return {"sid": sample["sid"], "noise": rng.random(), "more": rng.integers(0, 1 << 40)}


def added(value, *, rng=None):
    return value + rng.random(value.shape)


@pytest.mark.parametrize("options", RANDOM)
def test_a_transform_that_takes_rng_has_a_generator_of_its_sample(digits, options):
    given = {"shuffle": True, "seed": 4} | options
    whole = {}
    for batch in digits.loader(50, ["sid"], seed=4, transform=noisy):
        whole |= dict(zip(batch["sid"].tolist(), zip(batch["noise"], batch["more"]), strict=True))
    assert len({noise for noise, _ in whole.values()}) == 300
    loader = digits.loader(given.pop("batch"), ["sid"], transform=noisy, **given)
    seen = [
        (sid, pair)
        for batch in loader
        for sid, pair in zip(batch["sid"].tolist(), zip(batch["noise"], batch["more"]), strict=True)
    ]
    assert seen
    assert all(whole[sid] == pair for sid, pair in seen)


def test_columns_have_the_same_generator_and_their_own_functions(digits):
    by_column = {"x": added, "label": lambda label, rng: rng.random()}
    (batch,) = digits.loader(300, ["x", "label"], transform=by_column, workers=1)
    (plain,) = digits.loader(300, ["x"])
    difference = batch["x"].astype(float) - plain["x"]
    np.testing.assert_allclose(difference[:, 0, 0], batch["label"], atol=1e-6)


def test_a_sample_that_is_drawn_several_times_has_other_numbers_each_time(digits):
    weights = np.where(np.arange(300) < 10, 1.0, 0.0)
    for shuffle, size in [(True, 20), ("global", 33), (False, 100)]:
        loader = digits.loader(
            size, ["sid"], weights=weights, samples=200, transform=noisy, shuffle=shuffle
        )
        pairs = {pair for b in loader for pair in zip(b["sid"].tolist(), b["noise"].tolist())}
        assert len({sid for sid, _ in pairs}) <= 10
        assert len(pairs) == 200


def test_an_rng_that_was_given_stays(digits):
    own = np.random.default_rng(1)
    given = functools.partial(noisy, rng=own)
    loader = digits.loader(300, ["sid"], transform=given, workers=1)
    (batch,) = loader
    np.testing.assert_array_equal(batch["noise"][0], np.random.default_rng(1).random())


def test_random_transforms_depend_on_the_sample_alone(digits):
    crop = tl.loader.RandomCrop(8, 8)
    options = {"columns": ["image"], "transform": {"image": crop}, "shuffle": True}
    whole = np.concatenate([batch["image"] for batch in digits.loader(60, **options)])
    parts = [
        np.concatenate([b["image"] for b in digits.loader(20, rank=rank, world_size=3, **options)])
        for rank in range(3)
    ]
    for step in range(5):
        mine = np.concatenate([part[step * 20 : step * 20 + 20] for part in parts])
        np.testing.assert_array_equal(mine, whole[step * 60 : step * 60 + 60])
    loader = digits.loader(60, **options)
    first, second = (np.concatenate([b["image"] for b in loader]) for _ in range(2))
    np.testing.assert_array_equal(first, whole)
    assert (first != second).any()


def test_a_collate_of_ones_own(digits):
    found = only(digits, columns=["label"], collate=lambda samples: [s["label"] for s in samples])
    assert found[2] == digits["label"][200:].tolist()


@pytest.mark.parametrize(
    ("collate", "nbytes"),
    [
        (lambda samples: (np.zeros((len(samples), 3)), "text"), 2400),
        (lambda samples: {"mean": np.array(3.0)}, 8),
        (lambda samples: {"a": ([np.zeros(2)], {"b": np.zeros(1)})}, 24),
        (lambda samples: None, 0),
        (lambda samples: {"a": np.ndarray}, 0),
    ],
)
def test_whatever_a_collate_makes_is_counted(digits, collate, nbytes):
    loader = digits.loader(100, ["label"], collate=collate, rank=1, world_size=3)
    list(loader)
    found = loader.stats()
    assert (found["batches"], found["samples"], found["bytes"]) == (1, 100, nbytes)


def test_ragged_ones_padded(digits):
    first = only(digits, columns=["boxes"], collate="pad")[0]["boxes"]
    assert first.shape == (100, 3, 2)
    np.testing.assert_array_equal(first[7, :3], digits["boxes"][7])


@pytest.mark.parametrize("workers", [2, "processes"])
def test_batches_of_nulls_do_not_end_an_epoch(tmp_path, workers):
    boxes = tl.types.BoundingBox("xyxy")
    ds = tl.dataset(str(tmp_path), {"boxes": boxes, "label": "int32", "x": boxes})
    ds.extend({"boxes": [None] * 4, "label": [None] * 4, "x": [None] * 4})
    ds.append({"boxes": [[0, 0, 1, 1]], "label": 5, "x": [[0, 0, 1, 1]]})
    double = {"x": _twice}
    with ds.loader(2, collate="pad", workers=workers, transform=double) as loader:
        found = list(loader)
    assert [batch["boxes"].shape for batch in found] == [(2, 0, 4), (2, 0, 4), (1, 1, 4)]
    assert [list(batch["label"]) for batch in found] == [[None] * 2, [None] * 2, [5]]
    assert found[0]["x"] == [None, None]  # the transform may make anything of it
    shapes = [
        b["b"].shape for b in ds.query("SELECT boxes AS b FROM dataset").loader(2, collate="pad")
    ]
    assert shapes == [(2, 0, 4), (2, 0, 4), (1, 1, 4)]


def _twice(value):
    return None if value is None else value * 2


def test_what_a_transform_raises_names_the_sample(digits):
    def failing(sample):
        return {"y": 1 / (int(sample["label"]) - 5)}

    with pytest.raises(
        tl.InvalidSampleError, match=r"sample 150 of the dataset .*ZeroDivisionError"
    ):
        only(digits, transform=failing)


def test_a_transform_that_returns_no_dict(digits):
    with pytest.raises(tl.InvalidSampleError, match="gave ndarray for sample 0 of the dataset"):
        only(digits, transform=lambda sample: sample["x"])


def test_a_transform_that_returns_nothing_by_name(digits):
    with pytest.raises(tl.InvalidSampleError, match="gave a dict without a name"):
        only(digits, transform=lambda sample: {})


def test_what_a_transform_raises_is_one_line(digits):
    def failing(sample):
        raise ValueError("first\n   second")

    with pytest.raises(tl.InvalidSampleError, match="ValueError: first second; mend it"):
        only(digits, transform=failing)


@pytest.mark.parametrize("shuffle", [False, True])
def test_what_a_collate_raises_names_the_batch_and_its_first_sample(digits, shuffle):
    def failing(samples):
        if len(samples) < 64:
            raise TypeError("no\n  stack")
        return [int(sample["sid"]) for sample in samples]

    (*_, (first, *_)) = (b["sid"].tolist() for b in digits.loader(64, ["sid"], shuffle=shuffle))
    loader = digits.loader(64, ["sid", "boxes"], shuffle=shuffle, collate=failing)
    says = rf"failed for batch 4, whose 44 samples begin with sample {first} of the dataset at .*: TypeError: no stack;"
    with pytest.raises(tl.InvalidSampleError, match=says) as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, TypeError)
    assert loader.stats()["batches"] == 4


def test_a_sample_that_is_unlike_the_others_is_named(digits):
    with pytest.raises(
        tl.InvalidSampleError, match=r"sample 1 of the dataset .*, in batch 0: column 'boxes' is"
    ) as caught:
        only(digits, columns=["boxes"], collate="stack")
    assert type(caught.value) is tl.InvalidSampleError


def test_a_transform_that_returns_other_shapes(digits):
    """They are a list, or an error that names the first sample of another shape."""

    def cut(x):
        return x[: 1 + int(x[0, 0] > 0.5)]

    wide = digits["x"][:100][:, 0, 0] > 0.5
    (first, *_) = only(digits, columns=["x"], transform={"x": cut})
    assert [len(x) for x in first["x"]] == (1 + wide).tolist()
    unlike = int(np.flatnonzero(wide != wide[0])[0])
    with pytest.raises(
        tl.InvalidSampleError, match=rf"sample {unlike} of .*, in batch 0: column 'x' is float32 of"
    ):
        only(digits, columns=["x"], transform={"x": cut}, collate="stack")


def test_a_sample_with_other_names_is_named(digits):
    def other(sample):
        return {f"x{int(sample['label']) // 5}": 1}

    with pytest.raises(tl.InvalidSampleError, match=r"sample 150 of the dataset .*, in batch 1: "):
        only(digits, columns=["label"], transform=other)


# ---------------------------------------------------------------------- samples that cannot be read


def damaged(tmp_path, digits, numbers):
    """Return a dataset of which some images lost bytes in the file."""
    ds = tl.dataset(str(tmp_path), {"image": tl.types.Image("jpeg"), "label": "int64"})
    images = [digits["image"].encoded(n) for n in range(60)]
    ds.extend({"image": images, "label": np.arange(60)})
    (path,) = tmp_path.glob("*.parquet")
    data = bytearray(path.read_bytes())
    for number in numbers:
        place = data.index(images[number])
        data[place + 300 : place + 310] = bytes(10)
    path.write_bytes(data)
    return tl.dataset(str(tmp_path))


@pytest.fixture
def broken(tmp_path, digits):
    """A dataset whose images 7 and 40 lost bytes in the file."""
    return damaged(tmp_path, digits, (7, 40))


def test_a_sample_that_cannot_be_read_is_named(broken):
    with pytest.raises(
        tl.CorruptDataError, match=r"sample 7 of the dataset at .*\.parquet.*CRC-32"
    ) as caught:
        list(broken.loader(16))
    assert "its image in column 'image' cannot be decoded: its " in str(caught.value)
    assert "of the batch" not in str(caught.value)


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_it_is_replaced_by_a_later_one(broken, world, shuffle):
    alone = {}
    for rank in range(world):
        loader = broken.loader(
            16 // world, shuffle=shuffle, rank=rank, world_size=world, on_error="skip"
        )
        for step, batch in enumerate(loader):
            alone.setdefault(step, []).append(batch["label"])
    labels = np.concatenate([np.concatenate(parts) for parts in alone.values()])
    assert len(labels) == 60
    assert not {7, 40} & {*labels.tolist()}
    assert len({*labels.tolist()}) >= 56  # two are there twice
    lengths = {len(part) for parts in [*alone.values()][:-1] for part in parts}
    assert lengths == {16 // world}


def test_skipped_samples_are_counted(broken):
    loader = broken.loader(16, on_error="skip")
    list(loader)
    assert loader.stats()["skipped"] == 2


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_a_sample_that_stands_in_and_is_bad_too_is_not_counted_twice(tmp_path, digits, shuffle):
    loader = damaged(tmp_path, digits, range(20, 50)).loader(16, on_error="skip", shuffle=shuffle)
    assert all(set(batch["label"].tolist()).isdisjoint(range(20, 50)) for batch in loader)
    assert loader.stats()["skipped"] == 30


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_crop_that_does_not_fit_is_never_skipped(digits, on_error):
    crop = {"image": tl.loader.CenterCrop(8, 17)}  # every fifth image is so wide
    loader = digits.loader(16, ["image"], transform=crop, on_error=on_error)
    with pytest.raises(tl.InvalidOptionError, match=r"sample 1 of .* or make it smaller$"):
        list(loader)


def test_a_file_that_vanished_is_named(tmp_path):
    ds = tl.dataset(str(tmp_path), {"x": "int64"})
    ds.extend({"x": np.arange(9)})
    (path,) = tmp_path.glob("*.parquet")
    path.unlink()
    with pytest.raises(tl.MissingDataError, match=r"\.parquet is gone"):
        list(tl.dataset(str(tmp_path)).loader(3))


def test_a_file_that_vanished_after_it_was_read_is_named_too(tmp_path, digits):
    """Its footer is known by then, so that another part of the package finds out."""
    ds = tl.dataset(str(tmp_path), {"image": tl.types.Image("jpeg")})
    ds.extend({"image": [digits["image"].encoded(n) for n in range(9)]})
    next(iter(ds.loader(3, workers=1)))
    (path,) = tmp_path.glob("*.parquet")
    path.unlink()
    with pytest.raises(tl.MissingDataError, match=r"sample 0 of .* open a newer version"):
        list(ds.loader(3))


@pytest.mark.parametrize("kind", ["plain", "apart", "tiled"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("workers", [2, "processes"])
def test_a_vacuum_during_an_epoch_ends_it_with_the_file_that_is_gone(
    tmp_path, kind, on_error, workers
):
    """What is delivered before is right; others never stand in for a whole file."""
    x = tl.types.Tensor("float32", (None, 40), apart=kind == "apart")
    bound = {"tile_bytes": 2000} if kind == "tiled" else {}
    ds = tl.dataset(tmp_path, {"x": x, "label": "int64"}, **bound)
    for first in range(0, 60, 10):
        labels = np.arange(first, first + 10)
        ds.extend({"x": [np.full((20, 40), n, "f4") for n in labels], "label": labels})
    loader = tl.dataset(tmp_path).loader(3, workers=workers, prefetch=2, on_error=on_error)
    taken = []
    with loader, pytest.raises(tl.MissingDataError) as caught:
        for batch in loader:
            taken += batch["label"].tolist()
            assert all((one == n).all() for one, n in zip(batch["x"], batch["label"], strict=True))
            if len(taken) == 3:
                ds.delete(np.arange(60))
                ds.optimize()
                ds.vacuum(0)
    assert taken == list(range(len(taken)))
    said = str(caught.value)
    (file,) = {Path(one) for one in re.findall(r"[^ ]+\.parquet", said.split(": ", 1)[1])}
    assert file.is_relative_to(tmp_path)
    assert not file.exists()
    assert re.search(r"open a (newer version|version that does not need it)", said)
    assert "\n" not in said
    assert "on_error" not in said


def test_others_never_stand_in_for_a_file_that_is_gone(tmp_path):
    """They would come again and again, in the place of a whole part of the dataset."""
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("float32", (None,)), "label": "int64"})
    for first in range(0, 60, 10):
        labels = np.arange(first, first + 10)
        ds.extend({"x": [np.full(3, n, "f4") for n in labels], "label": labels})
    (tmp_path / ds.stored.files.paths[1]).unlink()
    loader = tl.dataset(tmp_path).loader(5, shuffle="global", on_error="skip")
    with pytest.raises(tl.MissingDataError, match=r"sample 1\d of .*gone.*newer version"):
        list(loader)
    assert loader.stats()["skipped"] == 0


def test_a_link_to_a_file_that_is_gone_is_no_matter_of_a_vacuum(tmp_path):
    for n in range(6):
        Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / f"{n}.png")
    ds = tl.dataset(tmp_path / "ds", {"image": tl.types.Link(tl.types.Image("png"))})
    ds.extend({"image": [str(tmp_path / f"{n}.png") for n in range(6)]})
    (tmp_path / "2.png").unlink()
    with pytest.raises(tl.MissingLinkError, match=r"sample 2 of .*2\.png.*on_error=") as caught:
        list(ds.loader(3))
    assert "vacuum" not in str(caught.value)
    skipping = ds.loader(3, ["sid", "image"], on_error="skip")
    assert [batch["sid"].tolist() for batch in skipping] == [[0, 1, 5], [3, 4, 5]]
    assert skipping.stats()["skipped"] == 1


@pytest.mark.parametrize("by_column", [False, True])
def test_a_batch_ends_at_its_next_sample_when_the_loader_is_closed(
    digits, loader_threads, by_column
):
    begun, started, go_on = [], threading.Event(), threading.Event()

    def slow(given):
        begun.append(given)
        if len(begun) > 8:  # the second batch
            started.set()
            assert go_on.wait(10)
        return given

    transform = {"label": slow} if by_column else slow
    with digits.loader(8, ["label"], transform=transform, workers=1) as loader:
        batches = iter(loader)
        next(batches)
        assert started.wait(10)
        ends = loader_threads()
    go_on.set()
    for thread in ends:
        thread.join(10)
    assert len(begun) == 9


class Own:
    """A transform of images as a user writes one."""

    n_random = 0

    def __init__(self, region=lambda height, width: Region(), apply=lambda image: image):
        self._region, self._apply = region, apply

    def region(self, height, width, random):
        return self._region(height, width)

    def apply(self, image, random):
        return self._apply(image)


def fails(*_):
    raise ValueError("mine")


def stops(*_):
    raise StopIteration


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"region": fails}, "ValueError: mine"),
        ({"region": stops}, "StopIteration"),
        ({"region": lambda height, width: (0, 0, 4, 4)}, "region gave tuple"),
        ({"region": lambda height, width: Region((0.5, 0, 4.0, 4.0))}, "whole numbers"),
        ({"region": lambda height, width: Region(size=(0, 4))}, "sizes above 0"),
        ({"apply": fails}, "ValueError: mine"),
        ({"apply": lambda image: image.tolist()}, "apply gave list, and has to return an array"),
        ({"apply": lambda image: None}, "apply gave NoneType"),
    ],
)
@pytest.mark.parametrize("is_composed", [False, True])
def test_an_image_transform_that_fails_is_no_fault_of_the_sample(
    digits, on_error, given, says, is_composed
):
    """It names the sample, and others never stand in for it."""
    crop = Compose(Resize(12, 12), Own(**given)) if is_composed else Own(**given)
    loader = digits.loader(4, ["image"], transform={"image": crop}, on_error=on_error)
    with pytest.raises(InvalidSampleError, match=rf"the transform failed for sample 0 .*{says}"):
        next(iter(loader))
    assert loader.stats()["skipped"] == 0


def test_images_of_two_dtypes_are_no_array(digits):
    """Or that of a batch would depend on which samples are in it."""
    some = Own(apply=lambda image: image.astype("f4") if image.shape[1] > 16 else image)
    found = next(iter(digits.loader(6, ["image"], transform={"image": some})))
    assert [one.dtype for one in found["image"]] == ["f4", *["u1"] * 4, "f4"]
    half = Own(apply=lambda image: image if image[0, 0, 0] % 2 else image.astype("f4"))
    images = Compose(CenterCrop(8, 8), half)
    found = next(iter(digits.loader(64, ["image"], transform={"image": images})))["image"]
    assert {one.dtype.str for one in found} == {"|u1", "<f4"}


@pytest.mark.parametrize("form", ["png", "jpeg", "raw"])
@pytest.mark.parametrize("size", [1, 4, 12])
@pytest.mark.parametrize(
    "transform",
    [CenterCrop(8, 8), Resize(9), Compose(RandomFlip(1.0), RandomCrop(5, 6)), Own()],
    ids=lambda transform: type(transform).__name__,
)
def test_samples_without_an_image_stay_null_whatever_the_transform(tmp_path, form, size, transform):
    """Sizes differ, so that the log has none for those that are not there."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (20 + n % 3, 24, 3), np.uint8) for n in range(12)]
    images[0] = images[5] = None
    ds = tl.dataset(tmp_path / "ds", {"image": tl.types.Image(form), "n": "int64"})
    ds.extend({"image": images, "n": range(12)})
    there = ds.loader(size, where="n <> 0 AND n <> 5", transform={"image": transform}, seed=3)
    wanted = {n: image for b in there for n, image in zip(b["n"].tolist(), b["image"])}
    for batch in ds.loader(size, transform={"image": transform}, seed=3):
        for n, image in zip(batch["n"].tolist(), batch["image"], strict=True):
            np.testing.assert_array_equal(image, wanted.get(n))
