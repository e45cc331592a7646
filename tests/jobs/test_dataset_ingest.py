"""``ingest.py --dataset``, as its users call it."""

import numpy as np
import pytest
from PIL import Image

import tensorlake_spark as tl


@pytest.fixture
def photos(tmp_path):
    for label in ("cat", "dog"):
        for n in range(3):
            path = tmp_path / f"photos/{label}/{n}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((2, 3), n, np.uint8)).save(path)
    return tmp_path / "photos"


def test_a_folder_becomes_a_dataset(job, photos, tmp_path):
    uri = tmp_path / "ds"
    planned = job("--dataset", uri, "--dry-run", photos)
    assert (planned.code, planned.json["status"], planned.json["kind"]) == (
        0,
        "planned",
        "imagefolder",
    )
    assert "Image('png'" in planned.json["columns"]["image"]
    assert not uri.exists()
    done = job("--dataset", uri, "--with", "file_names=true", photos)
    assert (done.code, done.json["status"], done.json["samples"]) == (0, "done", 6)
    ds = tl.dataset(str(uri))
    assert ds["file"][:][0] == "cat/0.png"
    np.testing.assert_array_equal(ds["image"][5], np.full((2, 3), 2))


def test_resume_tells_that_all_is_there(job, photos, tmp_path):
    words = ("--dataset", tmp_path / "ds", "--resume", "--kind", "imagefolder", photos)
    assert job(*words).json["status"] == "done"
    again = job(*words)
    assert (again.code, again.json["status"]) == (0, "repeated")
    assert len(tl.dataset(str(tmp_path / "ds"))) == 6


def test_a_batch_with_a_number_is_added_once_whatever_files_are_there(job, photos, tmp_path):
    uri = tmp_path / "ds"
    words = ("--dataset", uri, "--txn-app-id", "nightly", photos, "--txn-version")
    first = job(*words, 7)
    assert (first.code, first.json["status"], first.json["samples"]) == (0, "done", 6), first.err
    for path in photos.rglob("*.png"):
        path.unlink()  # who repeats a batch need not keep its files
    for number, more in ((7, ()), (6, ()), (7, ("--dry-run",)), (7, ("--resume",))):
        again = job(*words, number, *more)
        assert (again.code, again.json["status"]) == (0, "repeated"), again.err
        assert "in the dataset already; nothing was changed" in again.out
        assert again.json["columns"] == first.json["columns"]
        assert again.json["version"] == tl.dataset(str(uri)).version == first.json["version"]
    later = job(*words, 8)
    assert later.code == 2
    assert "has samples of no kind" in later.err


def test_images_are_kept_apart_if_one_says_so(job, photos, tmp_path):
    uri = tmp_path / "ds"
    done = job("--dataset", uri, "--apart", "image", photos)
    assert (done.code, done.json["samples"]) == (0, 6)
    ds = tl.dataset(str(uri))
    assert ds.schema["image"].apart
    np.testing.assert_array_equal(ds["image"][5], np.full((2, 3), 2))
    wrong = job("--dataset", tmp_path / "other", "--apart", "imag", photos)
    assert wrong.code == 2
    assert "no column 'imag' to keep apart; did you mean 'image'" in wrong.err


def test_bad_samples_are_an_error_or_left_out(job, photos, tmp_path):
    (photos / "cat/1.png").write_bytes(b"junk")
    failed = job("--dataset", tmp_path / "ds", photos)
    assert (failed.code, failed.json["status"]) == (2, "failed")
    assert "cat/1.png: 4 bytes that are not an image" in failed.err
    done = job("--dataset", tmp_path / "ds", "--skip-bad", photos)
    assert (done.code, done.json["samples"], done.json["left_out"]) == (0, 5, 1)
    assert "cat/1.png" in done.json["bad"][0]


def test_a_truncated_image_is_named_by_its_file(job, photos, tmp_path):
    whole = (photos / "cat/1.png").read_bytes()
    (photos / "cat/1.png").write_bytes(whole[:-20])
    failed = job("--dataset", tmp_path / "ds", photos)
    assert (failed.code, failed.json["status"]) == (2, "failed")
    assert "photos/cat/1.png: expected " in failed.err
    assert "truncated" in failed.err
    done = job("--dataset", tmp_path / "ds", "--skip-bad", photos)
    assert (done.code, done.json["samples"], done.json["left_out"]) == (0, 5, 1)
    assert "photos/cat/1.png: expected " in done.json["bad"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "ds", "--stack"], "--stack is for tensors"),
        (["--dataset", "ds", "--id", "x"], "--id is for tensors"),
        (["--dataset", "ds", "more"], "takes one SOURCE, not 2"),
        (["--dataset", "ds", "--with", "split"], "a --with is not NAME=VALUE: 'split'"),
        (["--dataset", "ds", "--with", "a-b=1", "--with", "a_b=2"], "--with 'a_b' is given twice"),
        (["--dataset", "ds", "--with", "splitt=train"], "did you mean 'split'"),
        (["--dataset", "ds", "--with", "kind=coco"], "'kind' is no option of a kind; use --kind"),
        (["--dataset", "ds", "--with", "path=x"], "'path' is no option of a kind; use SOURCE"),
        (["--dataset", "ds", "--with", "storage-options={}"], "use --storage-option"),
        (["--dataset", "ds", "--kind", "cocoo"], "did you mean 'coco'"),
        (["--table", "t", "--id", "x", "--kind", "coco"], "--kind is for samples"),
        (["--table", "t", "--id", "x", "--apart", "image"], "--apart is for samples"),
    ],
)
def test_options_that_will_not_do(job, photos, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    failed = job(*words, photos)
    assert failed.code == 2
    assert said in failed.err
    assert not (tmp_path / "ds").exists()


def test_urls_may_lead_to_files_of_any_kind(job, tmp_path):
    (tmp_path / "urls.csv").write_text("url,text\nhttps://example.org/a.pdf,a\n")
    words = ("--dataset", tmp_path / "ds", "--kind", "urls", "--dry-run", tmp_path / "urls.csv")
    assert "Image('jpeg'" in job(*words).json["columns"]["image"]
    planned = job(*words, "--with", "link=bytes")
    assert (planned.code, planned.json["columns"]["image"]) == (0, "Link(Scalar('bytes'))")
