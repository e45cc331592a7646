"""Datasets of Hugging Face at the door: their files are stored as they are."""

import io
import wave

import datasets
import numpy as np
import PIL.Image
import pytest

import tensorlake_spark as tl


def image_file(form, size=(6, 5), mode="RGB", seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    stream = io.BytesIO()
    PIL.Image.fromarray(pixels).convert(mode).save(stream, form)
    return stream.getvalue()


def sound_file():
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(np.arange(40, dtype="<i2").tobytes())
    return stream.getvalue()


JPEGS = [image_file("JPEG", seed=n) for n in range(4)]


def made(files, label=(0, 1, 1, 0), **options):
    features = datasets.Features(
        {"image": datasets.Image(**options), "label": datasets.ClassLabel(names=["a", "b"])}
    )
    rows = {"image": [f and {"bytes": f, "path": None} for f in files], "label": label}
    return datasets.Dataset.from_dict(rows, features)


@pytest.fixture
def ds(tmp_path):
    columns = {"image": tl.types.Image("jpeg"), "label": tl.types.ClassLabel(["a", "b"])}
    return tl.dataset(tmp_path / "ds", columns)


@pytest.mark.parametrize("streamed", [False, True])
def test_files_of_the_columns_format_are_stored_as_they_are(ds, streamed):
    found = made([*JPEGS[:3], None])
    ds.extend(found.to_iterable_dataset() if streamed else found)
    assert [ds["image"].encoded(n) for n in range(3)] == JPEGS[:3]
    assert ds["image"][3] is None
    assert ds["label"][:].tolist() == [0, 1, 1, 0]
    assert found.features["image"].decode, "what the user has is not changed"


@pytest.mark.parametrize("streamed", [False, True])
def test_files_in_groups_and_lists_are_stored_as_they_are(tmp_path, streamed):
    """Hugging Face would decode a JPEG, and other pixels be stored; it decodes no sound without PyTorch."""
    jpeg = tl.types.Image("jpeg")
    columns = {"g/image": jpeg, "g/h/sound": tl.types.Audio(), "g/n": "int32"}
    columns |= {"images": tl.types.Sequence(jpeg)}
    columns["g/sounds"] = tl.types.Sequence(tl.types.Audio())

    def features_of(image, sound):
        number, sounds = datasets.Value("int32"), datasets.List(sound)
        group = {"image": image, "h": {"sound": sound}, "n": number, "sounds": sounds}
        return datasets.Features({"g": group, "images": datasets.List(image)})

    file = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    features = features_of(datasets.Image(), datasets.Audio())
    files = [
        {"bytes": file, "path": None} for file in [*JPEGS[:2], image_file("PNG"), sound_file()]
    ]
    rows = {
        "g": [
            {"image": files[0], "h": {"sound": files[3]}, "n": 1, "sounds": [files[3]]},
            {"image": None, "h": {"sound": None}, "n": None, "sounds": None},
        ],
        "images": [[files[0], None, files[1]], [files[2]]],
    }
    found = datasets.Dataset.from_dict(rows, features_of(file, file)).cast(features)
    ds = tl.dataset(tmp_path / "ds", columns)
    ds.extend(found.to_iterable_dataset() if streamed else found)
    assert ds["g/image"].encoded(0) == JPEGS[0]
    assert ds["g/h/sound"].encoded(0) == sound_file()
    stored = ds.to_arrow()
    lists = [[one and one["data"] for one in row] for row in stored["images"].to_pylist()]
    assert lists[0] == [JPEGS[0], None, JPEGS[1]]
    assert len(lists[1]) == 1, "a PNG is encoded again"
    assert stored["g"][0]["sounds"].as_py()[0]["data"] == sound_file()
    assert ds["g/n"][:] == [1, None]
    assert ds["g/image"][1] is None
    assert found.features == features, "what the user has is not changed"


def test_files_on_disk_are_read(ds, tmp_path):
    (tmp_path / "one.jpg").write_bytes(JPEGS[0])
    found = datasets.Dataset.from_dict({"image": [str(tmp_path / "one.jpg")]})
    ds.extend(found.cast_column("image", datasets.Image()))
    assert ds["image"].encoded(0) == JPEGS[0]


def test_other_files_are_decoded_and_encoded(ds):
    png = image_file("PNG", seed=7)
    ds.extend(made([JPEGS[0], png, JPEGS[1], JPEGS[2]]))
    assert [ds["image"].encoded(n) == f for n, f in enumerate([JPEGS[0], png, JPEGS[1]])] == [
        True,
        False,
        True,
    ]
    assert ds["image"][1].shape == (5, 6, 3)


def test_what_the_library_converts_is_what_it_gives(ds):
    ds.extend(made(JPEGS, mode="L"))
    assert ds["image"][0].shape == (5, 6)
    ds.extend(made(JPEGS).with_format("numpy"))
    assert ds["image"].encoded(4) != JPEGS[0]
    assert ds["image"][4].shape == (5, 6, 3)


def test_masks_keep_their_meaning(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"image": tl.types.BinaryMask()})
    mask = image_file("PNG", mode="1")
    ds.extend(made([mask] * 4).remove_columns("label"))
    wanted = np.asarray(PIL.Image.open(io.BytesIO(mask)))
    np.testing.assert_array_equal(ds["image"][0], wanted)


def test_columns_are_guessed_from_the_files(tmp_path):
    ds = tl.dataset(tmp_path / "webp")
    files = [image_file("WEBP", seed=n) for n in range(4)]
    ds.extend(made(files))
    assert str(ds.schema["image"]) == "Image('webp')"
    assert [ds["image"].encoded(n) for n in range(4)] == files


def test_sounds_need_no_decoder(tmp_path):
    sound = sound_file()
    stored = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    rows = {"sound": [{"bytes": sound, "path": None}]}  # to make a sound the library needs PyTorch
    found = datasets.Dataset.from_dict(rows, datasets.Features({"sound": stored}))
    found = found.cast_column("sound", datasets.Audio())
    for name, schema in (("given", {"sound": tl.types.Audio("wav")}), ("guessed", None)):
        ds = tl.dataset(tmp_path / name, schema)
        ds.extend(found)
        assert ds["sound"].encoded(0) == sound


def test_there_and_back(ds, tmp_path):
    ds.extend({"image": JPEGS, "label": [0, 1, 1, 0]})
    other = tl.dataset(tmp_path / "other", dict(ds.schema))
    other.extend(ds.to_hf(cache_dir=str(tmp_path / "cache")))
    assert [other["image"].encoded(n) for n in range(4)] == JPEGS
    assert other["label"][:].tolist() == [0, 1, 1, 0]


def test_a_truncated_file_is_named(ds):
    with pytest.raises(tl.InvalidSampleError, match=r"sample 1.*truncated"):
        ds.extend(made([JPEGS[0], JPEGS[1][:-9], None, None]))
    assert len(ds) == 0


@pytest.mark.parametrize("streamed", [False, True])
def test_features_tell_the_types_of_columns(tmp_path, streamed):
    """Of a class they were int64, and of an array lists of lists."""
    classes = datasets.ClassLabel(names=["a", "b"])
    given = {
        "label": [0, None], "tags": [[1, 0], []], "x": [[[1.0, 2.0]], [[3.0, 4.0]]],
        "n": [2, 1], "h": [0.5, None], "text": ["x", None], "g": [{"label": 1}, {"label": 0}],
    }  # fmt: skip
    features = {
        "label": classes, "tags": datasets.Sequence(classes), "x": datasets.Array2D((1, 2), "float32"),
        "n": datasets.Value("uint64"), "h": datasets.Value("float32"), "text": datasets.Value("string"),
        "g": {"label": classes},
    }  # fmt: skip
    found = datasets.Dataset.from_dict(given, datasets.Features(features))
    ds = tl.dataset(tmp_path / "ds")
    ds.extend(found.to_iterable_dataset() if streamed else found)
    label = tl.types.ClassLabel(["a", "b"])
    assert ds.schema == tl.types.SampleSchema(
        {
            "label": label, "tags": tl.types.Sequence(label), "x": tl.types.Tensor("float32", (1, 2)),
            "n": "uint64", "h": "float32", "text": tl.types.Text(), "g/label": label,
        }
    )  # fmt: skip
    assert ds["label"][:] == [0, None]


def test_what_has_a_format_is_guessed_by_its_values(tmp_path):
    found = made(JPEGS).remove_columns("image").with_transform(lambda rows: {"label": ["c"] * 4})
    ds = tl.dataset(tmp_path / "ds")
    ds.extend(found)
    assert ds["label"][:] == ["c"] * 4


def test_splits_are_no_columns(tmp_path):
    splits = datasets.DatasetDict({"train": made(JPEGS), "test": made(JPEGS)})
    for schema in (None, {"train": "int64"}):
        with pytest.raises(tl.InvalidSampleTypeError, match=r"splits train, test; .*'train'\]"):
            tl.dataset(tmp_path / "ds", schema).extend(splits)


def test_a_file_that_the_library_cannot_decode_is_named(ds):
    with pytest.raises(tl.InvalidSampleError, match=r"column 'image', sample 2: .*cannot identify"):
        ds.extend(made([*JPEGS[:2], b"junk", None]))
    assert len(ds) == 0
