"""WebDataset's shards, made with tarfile."""

import gzip
import io
import json
import tarfile

import numpy as np
import pytest

from tensorlake_spark.datasets.sources.source_kinds import source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def shard(path, files):
    packed = gzip.open if path.name.endswith("gz") else open
    with packed(path, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.fixture
def made(tmp_path, make_picture):
    for number, end in enumerate(("tar", "tar.gz")):
        files = []
        for n in range(3):
            key = f"{number:03}{n:03}"
            files += [
                (f"./{key}.jpg", make_picture(n, "JPEG")),
                (f"./{key}.cls", str(n).encode()),
                (f"./{key}.txt", f"text {n} ä".encode()),
                (f"./{key}.json", json.dumps({"n": n}).encode()),
                (f"./{key}.emb.npy", npy(np.full(4, n, np.float32))),
                (f"./{key}.seg.png", make_picture(n)),
            ]
        shard(tmp_path / f"data-{number}.{end}", files)
    return tmp_path


def test_samples_by_key_and_types_by_extension(made, make_picture, read_all):
    source = source_of(made, columns={"jpg": "image", "cls": "label"}, classes=["a", "b", "c"])
    assert {name: kind.kind for name, kind in source.schema.items()} == {
        "key": "text",
        "image": "image",
        "label": "class_label",
        "txt": "text",
        "json": "json",
        "emb_npy": "tensor",
        "seg_png": "image",
    }
    samples = read_all(source)
    assert [s["key"] for s in samples] == [f"{a:03}{n:03}" for a in range(2) for n in range(3)]
    for place, sample in enumerate(samples):
        n = place % 3
        assert sample["image"] == make_picture(n, "JPEG")
        assert (sample["label"], sample["txt"], sample["json"]) == (n, f"text {n} ä", {"n": n})
        np.testing.assert_array_equal(sample["emb_npy"], np.full(4, n, np.float32))


def test_shards_by_braces_and_globs(made, read_all):
    assert len(source_of(made / "data-{0..0}.tar").pieces()) == 1
    assert len(source_of(f"{made}/data-*.tar*").pieces()) == 2
    with pytest.raises(InvalidOptionError, match=r"data-1\.tar: there is no such file"):
        source_of(made / "data-{0..1}.tar")


def test_a_missing_member_is_null_and_a_new_one_is_told(tmp_path, read_all):
    shard(tmp_path / "a.tar", [("1.txt", b"x"), ("1.cls", b"1"), ("2.txt", b"y")])
    assert [s["cls"] for s in read_all(source_of(tmp_path))] == [1, None]
    shard(tmp_path / "b.tar", [("1.txt", b"x"), ("1.mask.png", b"?"), ("2.txt", b"z")])
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 3
    assert (
        "b.tar: sample '1' has a .mask.png, which neither schema= nor the first samples have"
        in str(bad[0])
    )


def test_a_schema_of_the_user_is_taken(tmp_path, read_all):
    shard(tmp_path / "a.tar", [("1.cls", b"1.5"), ("1.pkl", b"\x80...")])
    with pytest.raises(
        InvalidOptionError, match=r"members \.pkl, which may run what somebody wrote"
    ) as caught:
        source_of(tmp_path)
    assert "give schema= with a type for every extension, and 'bytes'" in str(caught.value)
    source = source_of(tmp_path, schema={"cls": "float64", "pkl": "bytes"})
    assert read_all(source) == [{"key": "1", "cls": 1.5, "pkl": b"\x80..."}]


def test_bad_values_are_named(tmp_path, read_all):
    files = [(f"{n}.cls", b"1") for n in range(70)] + [("70.cls", b"one"), ("71.cls", b"2")]
    shard(tmp_path / "a.tar", files)
    with pytest.raises(
        InvalidSampleError, match=r"a\.tar: sample '70', \.cls: b'one' does not fit"
    ):
        read_all(source_of(tmp_path))
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 71


def test_a_shard_that_breaks_off_gives_what_comes_before(tmp_path, read_all):
    shard(tmp_path / "a.tar", [(f"{n}.txt", b"x" * 600) for n in range(10)])
    data = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "b.tar").write_bytes(data[:4000])
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 10 + 1
    assert "b.tar: the tar breaks off" in str(bad[0])


def test_a_damaged_gzip_is_a_bad_file_and_not_a_store_that_refuses(tmp_path, read_all):
    shard(tmp_path / "a.tar.gz", [(f"{n}.txt", bytes(600)) for n in range(10)])
    data = bytearray((tmp_path / "a.tar.gz").read_bytes())
    data[len(data) // 2] ^= 255
    (tmp_path / "b.tar.gz").write_bytes(data)
    bad = []
    read_all(source_of(tmp_path), bad.append)
    assert len(bad) == 1
    assert "b.tar.gz" in str(bad[0])


def test_a_tar_is_compared_with_the_checksum_of_its_gzip(tmp_path, read_all):
    """It stands behind the mark at the end of the tar, where reading stopped."""
    shard(tmp_path / "a.tar.gz", [("0.txt", b"x"), ("1.txt", b"y")])
    data = bytearray((tmp_path / "a.tar.gz").read_bytes())
    data[-8] ^= 1
    (tmp_path / "a.tar.gz").write_bytes(data)
    with pytest.raises(InvalidSampleError, match=r"a\.tar\.gz: .* cannot be unpacked: CRC check"):
        read_all(source_of(tmp_path))


def test_a_sample_in_two_places_is_not_two_halves(tmp_path, read_all):
    """A tar that is sorted by extensions gave two samples for each, with nulls."""
    files = [("0.txt", b"x"), ("1.txt", b"y"), ("0.cls", b"3"), ("1.cls", b"4")]
    shard(tmp_path / "a.tar", files)
    said = r"a\.tar: sample '0' has \.txt in one place and \.cls in another, .*--sort=name"
    with pytest.raises(InvalidSampleError, match=said):
        read_all(source_of(tmp_path))
    shard(tmp_path / "a.tar", files[:2] * 2)  # two samples of one name are two
    assert len(read_all(source_of(tmp_path))) == 4


def test_two_members_of_one_extension_are_told(tmp_path):
    shard(tmp_path / "a.tar", [("1.jpg", b"x"), ("1.jpeg", b"y")])
    with pytest.raises(InvalidSampleError, match=r"sample '1' has \.jpg twice"):
        source_of(tmp_path, "webdataset")


def test_names_are_no_paths(tmp_path, read_all):
    shard(tmp_path / "a.tar", [("../../etc/1.txt", b"x"), ("/abs/2.txt", b"y")])
    assert [s["key"] for s in read_all(source_of(tmp_path))] == ["../../etc/1", "/abs/2"]


def test_numbers_with_zeros_before_them_are_numbers(tmp_path, read_all):
    texts = [b"003", b"-01\n", b" 7 "]
    shard(tmp_path / "a.tar", [(f"{n}.cls", text) for n, text in enumerate(texts)])
    assert [one["cls"] for one in read_all(source_of(tmp_path))] == [3, -1, 7]
    named = source_of(tmp_path, classes=[*"abcdefgh"])
    assert [one["cls"] for one in read_all(named, encode=False)] == [3, -1, 7]


@pytest.mark.parametrize("first", ["cut", "twice", "empty", "junk"])
def test_types_come_from_what_can_be_read_so_that_a_bad_shard_can_be_left_out(
    tmp_path, read_all, first
):
    path, good = tmp_path / "a.tar", [("0.txt", b"a"), ("1.txt", b"b")]
    shard(path, [] if first == "empty" else good + [("2.txt", b"c")] * 2)
    if first == "cut":
        path.write_bytes(path.read_bytes()[:2200])
    if first == "junk":
        path.write_bytes(b"junk" * 1000)
    shard(tmp_path / "b.tar", [("3.txt", b"d"), ("4.txt", b"e")])
    bad = []
    samples = read_all(source_of(tmp_path), bad.append)
    kept = [one["txt"] for one in samples]
    assert kept == {"cut": ["a", "d", "e"], "twice": ["a", "b", "d", "e"]}.get(first, ["d", "e"])
    assert len(bad) == (first != "empty")
    (tmp_path / "b.tar").unlink()
    if first in ("empty", "junk"):
        with pytest.raises((InvalidOptionError, InvalidSampleError), match=r"a\.tar"):
            source_of(tmp_path)


def test_a_bad_array_among_the_first_ones_can_be_left_out(tmp_path, read_all):
    files = [("0.npy", b"x"), ("1.npy", npy(np.arange(3))), ("2.npy", npy(np.arange(3)))]
    shard(tmp_path / "a.tar", files)
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 2
    assert "sample '0', .npy: this is not an array" in str(bad[0])
    shard(tmp_path / "a.tar", files[:1])
    with pytest.raises(InvalidSampleError, match=r"a\.tar, \.npy: this is not an array"):
        source_of(tmp_path)


def test_images_of_a_format_that_no_column_has_are_told_with_the_way_out(tmp_path):
    shard(tmp_path / "a.tar", [("0.gif", b"GIF89a")])
    with pytest.raises(InvalidOptionError, match=r"a\.tar, \.gif: .* 1 gif; with image_format="):
        source_of(tmp_path)
