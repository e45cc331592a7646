"""Files of others to a dataset by executors, read again by plain Python."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from races import before_call

import tensorlake_spark as tl
from tensorlake_spark.datasets.sources import image_folder
from tensorlake_spark.datasets.sources.source_kinds import source_of
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    FormatError,
    InvalidOptionError,
    InvalidSampleError,
)
from tensorlake_spark.spark.ingest.samples import sample_ingestion, sample_notes
from tensorlake_spark.spark.ingest.samples.sample_ingestion import SampleOptions, ingest_samples
from tensorlake_spark.spark.ingest.samples.sample_tasks import SampleTask, Share


def picture(seed):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of 20 images in two classes, read in pieces of three, each a share of its own."""
    folder = tmp_path / "photos"
    for n in range(20):
        path = folder / ("cat" if n < 10 else "dog") / f"{n:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(n))
    pieces = image_folder.file_pieces
    monkeypatch.setattr(image_folder, "file_pieces", lambda *args: pieces(*args, per_piece=3))
    monkeypatch.setattr(sample_ingestion, "_SHARE_BYTES", (1, 1))
    return folder


def pixels_of(path):
    with Image.open(path) as image:
        return np.asarray(image)


def test_all_samples_are_there_once_and_in_order(spark, photos, tmp_path):
    uri = str(tmp_path / "ds")
    outcome = ingest_samples(spark, source_of(photos), uri)
    assert (outcome.status, outcome.samples, outcome.pieces, outcome.left_out) == ("done", 20, 7, 0)
    ds = tl.dataset(uri, create=False)
    assert ds.version == outcome.version
    assert ds.sids.tolist() == list(range(20))
    names = sorted(photos.rglob("*.png"))
    for sample, path in zip(ds, names, strict=True):
        np.testing.assert_array_equal(sample["image"], pixels_of(path))
    assert ds["label"][:].tolist() == [0] * 10 + [1] * 10
    ds.extend([{"image": picture(99), "label": "dog"}])
    assert ds.sids[-1] == 20  # numbers that were not needed went back


def test_a_second_run_appends_and_a_dry_run_changes_nothing(spark, photos, tmp_path):
    uri = str(tmp_path / "ds")
    planned = ingest_samples(spark, source_of(photos), uri, SampleOptions(dry_run=True))
    assert (planned.status, planned.pieces, planned.version) == ("planned", 7, None)
    assert not (tmp_path / "ds").exists()
    for _ in range(2):
        ingest_samples(spark, source_of(photos), uri)
    assert tl.dataset(uri).sids.tolist() == list(range(40))


def test_a_bad_sample_stops_the_job_or_is_left_out(spark, photos, tmp_path):
    uri = str(tmp_path / "ds")
    (photos / "cat/04.png").write_bytes(b"<html>")
    (photos / "dog/14.png").write_bytes(picture(14)[:20])  # its type finds that
    with pytest.raises(InvalidSampleError, match=r"04\.png|samples|images#"):
        ingest_samples(spark, source_of(photos), uri)
    assert len(tl.dataset(uri)) == 0
    assert not list((tmp_path / "ds").glob("*.parquet"))  # what other tasks wrote is gone
    outcome = ingest_samples(spark, source_of(photos), uri, SampleOptions(skip_bad=True))
    assert (outcome.samples, outcome.left_out) == (18, 2)
    assert "04.png: 6 bytes that are not an image" in outcome.bad[0]
    assert "14.png: expected " in outcome.bad[1]
    assert len(tl.dataset(uri)) == 18


def test_a_job_goes_on_where_it_failed(spark, photos, tmp_path):
    uri = str(tmp_path / "ds")
    good = (photos / "dog/19.png").read_bytes()
    (photos / "dog/19.png").write_bytes(b"<html>")
    resume = SampleOptions(resume=True)
    with pytest.raises(InvalidSampleError, match=r"19\.png"):
        ingest_samples(spark, source_of(photos), uri, resume)
    (photos / "dog/19.png").write_bytes(good)
    outcome = ingest_samples(spark, source_of(photos), uri, resume)
    assert outcome.samples == 20
    assert outcome.reused >= 1
    ds = tl.dataset(uri)
    assert len(set(ds.sids.tolist())) == len(ds) == 20
    assert sorted(ds["label"][:].tolist()) == [0] * 10 + [1] * 10
    again = ingest_samples(spark, source_of(photos), uri, resume)
    assert (again.status, again.version) == ("repeated", outcome.version)


def test_what_one_batch_wrote_is_no_part_of_the_next(spark, photos, tmp_path, monkeypatch):
    """The driver dies after the commit of a batch, before its notes are deleted; the next has the same files."""
    uri = str(tmp_path / "ds")
    with monkeypatch.context() as patch:
        patch.setattr(sample_notes, "forget", lambda *_: None)
        first = SampleOptions(resume=True, batch=("nightly", 1))
        assert ingest_samples(spark, source_of(photos), uri, first).samples == 20
    second = SampleOptions(resume=True, batch=("nightly", 2))
    assert ingest_samples(spark, source_of(photos), uri, second).reused == 0
    assert tl.dataset(uri).sids.tolist() == list(range(40))
    again = ingest_samples(spark, source_of(photos), uri, first)
    assert (again.status, len(tl.dataset(uri))) == ("repeated", 40)


def test_what_an_earlier_run_wrote_of_files_that_changed_is_not_used(spark, photos, tmp_path):
    uri = str(tmp_path / "ds")
    (photos / "dog/19.png").write_bytes(b"<html>")
    resume = SampleOptions(resume=True)
    with pytest.raises(InvalidSampleError, match=r"19\.png"):
        ingest_samples(spark, source_of(photos), uri, resume)
    for n in (0, 19):
        path = next(photos.rglob(f"{n:02}.png"))
        path.write_bytes(picture(100 + n))
    ingest_samples(spark, source_of(photos), uri, resume)
    found = [sample["image"].tobytes() for sample in tl.dataset(uri)]
    expected = [pixels_of(path).tobytes() for path in photos.rglob("*.png")]
    assert sorted(found) == sorted(expected)


def test_what_a_run_committed_that_was_killed_then_is_no_part_of_the_next(
    spark, photos, tmp_path, monkeypatch
):
    """Since then its samples were moved to other files: with the old ones they were there twice, by one number."""
    uri = str(tmp_path / "ds")
    resume = SampleOptions(resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(sample_notes, "forget", lambda *_: None)
        assert ingest_samples(spark, source_of(photos), uri, resume).samples == 20
    tl.dataset(uri).rechunk("label")
    changed = photos / "dog/19.png"
    changed.write_bytes(picture(119))
    outcome = ingest_samples(spark, source_of(photos), uri, resume)
    assert (outcome.status, outcome.samples, outcome.reused) == ("done", 20, 0)
    ds = tl.dataset(uri)
    assert len(set(ds.sids.tolist())) == len(ds) == 40
    assert ds.check().ok
    changed.write_bytes(b"<html>")
    with pytest.raises(InvalidSampleError, match=r"19\.png"):
        ingest_samples(spark, source_of(photos), uri, resume)
    changed.write_bytes(picture(120))
    assert ingest_samples(spark, source_of(photos), uri, resume).reused >= 1
    assert len(tl.dataset(uri)) == 60


@pytest.mark.parametrize("options", [SampleOptions(resume=True), SampleOptions(batch=("n", 1))])
def test_two_runs_of_one_job_at_the_same_time_add_its_samples_once(
    spark, photos, tmp_path, monkeypatch, options
):
    uri = str(tmp_path / "ds")
    others = []

    def ingest():
        return ingest_samples(spark, source_of(photos), uri, options)

    before_call(monkeypatch, sample_ingestion, "commit_files", lambda: others.append(ingest()))
    outcome = ingest()
    assert (others[0].status, outcome.status) == ("done", "repeated")
    assert outcome.version == others[0].version
    ds = tl.dataset(uri)
    assert len(ds) == 20
    assert ds.check().ok
    named = set(ds.stored.snapshot.files.path)
    assert {path.name for path in (tmp_path / "ds").glob("*.parquet")} == named


def test_what_another_run_has_committed_meanwhile_is_not_committed_again(
    spark, photos, tmp_path, monkeypatch
):
    """Both go on from what a run left that failed, and one of them found another state of a file."""
    uri = str(tmp_path / "ds")
    changed = photos / "dog/19.png"
    changed.write_bytes(b"<html>")
    resume = SampleOptions(resume=True)
    with pytest.raises(InvalidSampleError, match=r"19\.png"):
        ingest_samples(spark, source_of(photos), uri, resume)
    changed.write_bytes(picture(19))
    written = sample_ingestion._Job._written

    def late(self, *arguments):
        monkeypatch.setattr(sample_ingestion._Job, "_written", written)
        out = written(self, *arguments)
        changed.write_bytes(picture(119))
        assert ingest_samples(spark, source_of(photos), uri, resume).reused >= 1
        return out

    monkeypatch.setattr(sample_ingestion._Job, "_written", late)
    with pytest.raises(ConcurrentWriteError, match="another run of this job"):
        ingest_samples(spark, source_of(photos), uri, resume)
    assert len(tl.dataset(uri)) == 20
    assert ingest_samples(spark, source_of(photos), uri, resume).status == "repeated"


def test_a_folder_of_some_of_the_classes_is_added(spark, photos, tmp_path):
    """As of a day on which nobody sent a picture of a cat; the dataset has the classes in another order, too."""
    uri = str(tmp_path / "ds")
    names = ("horse", "dog", "cat")
    schema = {"image": tl.types.Image("png"), "label": tl.types.ClassLabel(names)}
    tl.dataset(uri, schema).append({"label": "horse"})
    (photos / "cat").rename(tmp_path / "kept")
    ingest_samples(spark, source_of(photos), uri)
    (tmp_path / "kept").rename(photos / "cat")
    ingest_samples(spark, source_of(photos), uri)
    ds = tl.dataset(uri)
    assert ds.schema["label"].names == names
    assert ds["label"][:].tolist() == [0] + [1] * 10 + [2] * 10 + [1] * 10
    (photos / "cat").rename(photos / "cow")
    with pytest.raises(
        FormatError, match=r"has no class 'cow' in column 'label'.*horse, dog, cat.*new dataset$"
    ):
        ingest_samples(spark, source_of(photos), uri)
    assert len(tl.dataset(uri)) == 31


def test_other_columns_are_refused(spark, photos, tmp_path):
    uri = str(tmp_path / "ds")
    tl.dataset(uri, {"image": tl.types.Image("jpeg"), "label": "int64"})
    with pytest.raises(FormatError, match=r"has column .image. as Image.*delete it$"):
        ingest_samples(spark, source_of(photos), uri)
    tl.dataset(uri).append({"label": 1})
    with pytest.raises(FormatError, match=r"and the source has Image\('png'\)$"):
        ingest_samples(spark, source_of(photos), uri)
    with pytest.raises(FormatError, match="has no column 'split'"):
        (photos / "train").mkdir()
        (photos / "cat").rename(photos / "train/cat")
        (photos / "dog").rename(photos / "val")
        uri = str(tmp_path / "other")
        tl.dataset(uri, {"image": tl.types.Image("png"), "label": tl.types.ClassLabel(["cat"])})
        ingest_samples(spark, source_of(photos), uri)


def test_no_good_sample_is_an_error(spark, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.png").write_bytes(b"junk")
    with pytest.raises(InvalidOptionError, match="has no good sample"):
        ingest_samples(
            spark, source_of(tmp_path / "a"), str(tmp_path / "ds"), SampleOptions(skip_bad=True)
        )


def test_more_samples_than_there_were_numbers_for_are_an_error(photos, tmp_path):
    source = source_of(photos)
    ds = tl.dataset(str(tmp_path / "ds"), source.schema)
    snapshot = Snapshot.open(Storage(ds.uri), kind=SAMPLES)
    task = SampleTask(source, Storage(ds.uri), snapshot, ds.schema, skip_bad=True)
    piece = replace(source.pieces()[0], rows=2)
    with pytest.raises(
        InvalidSampleError, match="has more than 2 samples, which it had when the job began"
    ):
        task.written(Share(((piece, 0),)))
    assert not list((tmp_path / "ds").glob("*.parquet"))
