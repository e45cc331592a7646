"""Datasets for other libraries: Hugging Face, DuckDB and Polars read what was written."""

import io
import json
import wave

import datasets
import duckdb
import numpy as np
import polars
import pytest
from deltalake import DeltaTable
from PIL import Image

import tensorlake_spark as tl


@pytest.fixture
def ds(tmp_path, jpegs):
    found = tl.dataset(
        tmp_path / "ds",
        {
            "image": tl.types.Image("jpeg"),
            "label": tl.types.ClassLabel(["cat", "dog"]),
            "g/x": tl.types.Tensor("float32", (None, 2)),
            "caption": tl.types.Text(),
        },
    )
    found.extend(
        {
            "image": jpegs,
            "label": np.arange(30) % 2,
            "g/x": [np.full((n % 4, 2), n, np.float32) for n in range(30)],
            "caption": [None if n == 3 else f"<{n}>" for n in range(30)],
        }
    )
    return found


@pytest.mark.parametrize("columns", ["caption", 5, ["caption", 5]])
def test_columns_that_are_no_list_of_names(ds, columns):
    for door in (ds.to_hf, ds.to_pandas, ds.to_arrow):
        with pytest.raises(
            tl.InvalidOptionError, match=r"such as \['caption'\]|not a list of|not a name"
        ):
            door(columns)


def test_hugging_face(ds, tmp_path):
    found = ds.to_hf(cache_dir=str(tmp_path / "cache"))
    assert len(found) == 30
    assert found.features["label"].names == ["cat", "dog"]
    np.testing.assert_array_equal(np.asarray(found[4]["image"]), ds["image"][4])
    assert found[5]["g"]["x"] == ds["g/x"][5].tolist()
    assert found[3]["caption"] is None
    assert ds.to_hf(["label"], cache_dir=str(tmp_path / "cache"))["label"][:3] == [0, 1, 0]


def wav(samples):
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return stream.getvalue()


def test_what_hugging_face_encodes_in_other_ways(tmp_path):
    sound, image = wav(np.arange(40, dtype="<i2")), np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    outline = [[[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]]
    kinds = {
        "sound": tl.types.Audio("wav"),
        "g/sounds": tl.types.Sequence(tl.types.Audio("wav")),
        "raw": tl.types.Image("raw"),
        "outline": tl.types.Polygon(),
    }
    ds = tl.dataset(tmp_path / "ds", kinds)
    ds.extend([{"sound": sound, "g/sounds": [sound], "raw": image, "outline": outline}, {}])
    for columns in (["sound", "raw"], list(kinds)):
        found = ds.to_hf(columns, cache_dir=str(tmp_path / f"cache{len(columns)}"))
        assert found.features["sound"] == datasets.Audio()
        stored = found.data.to_pylist()  # to decode sounds the library needs PyTorch
        assert stored[0]["sound"]["bytes"] == sound
        np.testing.assert_array_equal(np.asarray(found.select_columns("raw")[0]["raw"]), image)
        assert stored[1]["sound"] is stored[1]["raw"] is None
    assert stored[0]["g"]["sounds"][0]["bytes"] == sound
    assert found.select_columns("outline")[0]["outline"] == outline
    deep = tl.dataset(tmp_path / "deep", {"x": tl.types.Image("raw", dtype="uint16")})
    with pytest.raises(tl.InvalidOptionError, match="its images have 8 bits"):
        deep.to_hf()


def test_hugging_face_makes_nothing_of_no_columns(ds):
    with pytest.raises(tl.InvalidOptionError, match=r"columns=\[\] is empty; name at least one"):
        ds.to_hf([])


def test_hugging_face_takes_the_largest_whole_numbers(tmp_path):
    # The library makes an int64 of Python's numbers, and failed.
    most = 2**64 - 1
    kinds = {"n": "uint64", "g/n": "uint64", "list": tl.types.Sequence("uint64")}
    kinds |= {"x": tl.types.Tensor("uint64", (None,)), "zero": tl.types.Tensor("uint64", ())}
    ds = tl.dataset(tmp_path / "ds", kinds)
    array = np.array([1, most], np.uint64)
    ds.extend([{"n": 1, "g/n": 1}, {"n": most, "g/n": most, "list": [1, most], "x": array, "zero": array[1]}])  # fmt: skip
    found = ds.to_hf(cache_dir=str(tmp_path / "cache"))
    assert found.features["n"] == datasets.Value("uint64")
    assert found["n"][:] == [1, most]
    assert found[1] == {
        "n": most,
        "g": {"n": most},
        "list": [1, most],
        "x": [1, most],
        "zero": most,
    }
    assert found[0]["list"] is found[0]["zero"] is None


def test_hugging_face_takes_arrays_of_a_group_whose_first_sample_has_none(tmp_path):
    box = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [0, 1, 1, 2]], np.float32)
    fields = {
        "g/boxes": (tl.types.BoundingBox("xyxy"), box),
        "g/h/lists": (tl.types.Sequence(tl.types.BoundingBox("xyxy")), [box, box[:1]]),
        "g/polygon": (tl.types.Polygon(), [box[:, :2]]),
        "g/x": (tl.types.Tensor("uint64", (None, 4)), box.astype(np.uint64)),
        "g/y": (tl.types.Tensor("float32", (1, 3, 4)), box[None]),
    }
    ds = tl.dataset(tmp_path / "ds", {name: kind for name, (kind, _) in fields.items()})
    ds.extend([{}, {name: value for name, (_, value) in fields.items()}])
    found = ds.to_hf(cache_dir=str(tmp_path / "cache"))
    none = {"boxes": None, "h": {"lists": None}, "polygon": None, "x": None, "y": None}
    assert found[0] == {"g": none}
    assert found[1] == {
        "g": {
            "boxes": box.tolist(), "h": {"lists": [box.tolist(), box[:1].tolist()]},
            "polygon": [box[:, :2].tolist()], "x": box.tolist(), "y": box[None].tolist(),
        }
    }  # fmt: skip


def test_hugging_face_reads_its_parquet(ds, tmp_path):
    files = DeltaTable(ds.uri).file_uris()
    found = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))[
        "train"
    ]
    assert found["caption"][:3] == ["<0>", "<1>", "<2>"]
    assert found[2]["image"]["data"] == ds["image"].encoded(2)


def test_hugging_face_gets_json_as_texts_and_links_as_addresses(tmp_path):
    photo = tmp_path / "photo.png"
    Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(photo)
    link, pages = tl.types.Link(tl.types.Image("png")), tl.types.Link("bytes")
    schema = {
        "facts": tl.types.Json(),
        "more": tl.types.Sequence(tl.types.Json()),
        "photo": link,
        "pages": tl.types.Sequence(pages),
        "g/photo": tl.types.Link(tl.types.Image("png"), apart=True),
    }
    ds = tl.dataset(tmp_path / "ds", schema)
    facts = [{"a": [1, None]}, "text", True]
    ds.append(
        {"facts": facts[0], "more": facts, "photo": photo, "pages": [photo] * 2, "g/photo": photo}
    )
    ds.append({})
    found, empty = ds.to_hf(cache_dir=str(tmp_path / "cache"))
    assert json.loads(found["facts"]) == facts[0]
    assert [*map(json.loads, found["more"])] == facts
    photos = found["photo"], found["g"]["photo"], *found["pages"]
    assert {*photos} == {str(photo)}
    assert (empty["facts"], empty["photo"]) == (None, None)


def test_duckdb_and_polars_read_the_columns(ds):
    files = DeltaTable(ds.uri).file_uris()
    counted = duckdb.sql(
        f"SELECT label, count(*), max(image.height), sum(octet_length(image.data)) FROM read_parquet({files}) "
        "GROUP BY label ORDER BY label"
    ).fetchall()
    sizes = [len(ds["image"].encoded(n)) for n in range(30)]
    assert counted == [(0, 15, 24, sum(sizes[::2])), (1, 15, 24, sum(sizes[1::2]))]
    frame = (
        polars.scan_delta(ds.uri)
        .filter(polars.col("label") == 1)
        .select("sid", "caption")
        .collect()
    )
    assert frame["sid"].sort().to_list() == [*range(1, 30, 2)]


def test_a_notebook_shows_samples_with_thumbnails(ds):
    shown = ds._repr_html_()
    assert shown.count("data:image/png;base64,") == 5
    assert "&lt;0&gt;" in shown
    assert "<0>" not in shown
    assert "<i>null</i>" in shown


def test_an_empty_dataset_shows_its_columns(tmp_path):
    found = tl.dataset(tmp_path, {"x": "int32"})
    assert "int32" in found._repr_html_()


def test_padded(ds):
    found = ds["g/x"].padded(slice(0, 4), fill=-1)
    assert found.shape == (4, 3, 2)
    assert found[1, :, 0].tolist() == [1, -1, -1]


def test_what_the_library_cannot_read_or_write_is_an_error_of_ours(ds, tmp_path):
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "cache"
    said = f"cannot keep the samples in {place}: Not a directory; free some space there, or give"
    with pytest.raises(tl.StorageError, match=said):
        ds.to_hf(["label"], cache_dir=str(place))
    for file in (tmp_path / "ds").glob("*.parquet"):
        file.unlink()
    with pytest.raises(tl.MissingDataError, match="is gone"):
        tl.dataset(ds.uri).to_hf(["label"], cache_dir=str(tmp_path / "cache"))


def test_hugging_face_of_no_samples(tmp_path):
    with pytest.raises(tl.TableNotFoundError, match="has no samples yet"):
        tl.dataset(tmp_path / "none").to_hf()
    columns = {
        "image": tl.types.Image("png"),
        "g/x": "int32",
        "label": tl.types.ClassLabel(["a", "b"]),
    }
    found = tl.dataset(tmp_path / "ds", columns).to_hf()
    assert (found.num_rows, [*found.features]) == (0, ["image", "g", "label"])
    assert found.features["label"].names == ["a", "b"]
