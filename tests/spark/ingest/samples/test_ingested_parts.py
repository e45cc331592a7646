"""Tiles and apart columns that executors write, as the door in Python does."""

import io
import tarfile

import numpy as np
import pytest
from small_datasets import picture

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.sources.source_kinds import source_of
from tensorlake_spark.errors import FormatError, InvalidOptionError, InvalidSampleError
from tensorlake_spark.spark.ingest.samples import sample_ingestion
from tensorlake_spark.spark.ingest.samples.sample_ingestion import SampleOptions, ingest_samples

COUNT = 9
LARGE = (1, 4, 8)
TILE = 4000  # bytes
RESUME = SampleOptions(resume=True)


def scan(number):
    rows = 90 if number in LARGE else 3
    return np.random.default_rng(number).integers(0, 999, (rows, 20, 10)).astype("u2")


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def shard(path, numbers, spoil=()):
    """Write a tar file of samples; `spoil` names the members that are junk."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for n in numbers:
            for name, data in (("npy", npy(scan(n))), ("png", picture(n)), ("cls", b"%d" % n)):
                member = f"{n:04}.{name}"
                data = spoil.get(member, data) if spoil else data
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def gone(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """Three tar files of three samples, each a share of its own."""
    monkeypatch.setattr(sample_ingestion, "_SHARE_BYTES", (1, 1))
    for start in range(0, COUNT, 3):
        shard(tmp_path / f"shards/{start}.tar", range(start, start + 3))
    return tmp_path / "shards"


@pytest.fixture
def uri(shards, tmp_path):
    """A dataset that keeps images apart, and few bytes in its rows."""
    columns = dict(source_of(shards).schema)
    columns["png"] = tl.types.Image("png", apart=True)
    tl.dataset(tmp_path / "ds", columns, tile_bytes=TILE)
    return str(tmp_path / "ds")


def check(uri, numbers):
    ds = tl.dataset(uri, create=False)
    assert ds["cls"][:].tolist() == [*numbers]
    for place, n in enumerate(numbers):
        np.testing.assert_array_equal(ds["npy"][place], scan(n))
        assert ds["png"].encoded(place) == picture(n)
    names = {f"npy/{ds.sids[place]}" for place, n in enumerate(numbers) if n in LARGE}
    assert {*tl.open(f"{uri}/_tensors")} >= names
    inner = tl.dataset(f"{uri}/_columns/png", create=False)
    assert {*ds.sids.tolist()} <= {*inner.sids.tolist()}
    assert len({*inner.sids.tolist()}) == len(inner)
    assert ds.check().ok


def test_large_arrays_become_tiles_and_columns_lie_apart(spark, shards, uri):
    outcome = ingest_samples(spark, source_of(shards), uri)
    assert outcome.samples == COUNT
    check(uri, range(COUNT))
    ds = tl.dataset(uri)
    assert ds.version == outcome.version
    rows = ds.stored.rows([("npy", "data")], np.arange(COUNT))["npy"].combine_chunks()
    is_tiled = [data is None for data in rows.field("data").to_pylist()]
    assert [n for n, yes in enumerate(is_tiled) if yes] == [*LARGE]


def test_a_new_dataset_has_the_columns_apart_that_the_caller_names(spark, shards, tmp_path):
    uri = str(tmp_path / "new")
    ingest_samples(spark, source_of(shards), uri, SampleOptions(apart=["png"]))
    ds = tl.dataset(uri)
    assert [name for name, kind in ds.schema.items() if kind.apart] == ["png"]
    assert [ds["png"].encoded(n) for n in range(COUNT)] == [picture(n) for n in range(COUNT)]
    with pytest.raises(
        InvalidOptionError, match="no column 'pgn' to keep apart; did you mean 'png'"
    ):
        ingest_samples(spark, source_of(shards), uri, SampleOptions(apart=["pgn"]))
    with pytest.raises(FormatError, match=r"has column 'cls' not apart, and that stays so"):
        ingest_samples(spark, source_of(shards), uri, SampleOptions(apart=["cls"]))


def test_bad_samples_leave_nothing_in_any_part(spark, shards, uri, tmp_path):
    junk = {"0004.png": b"junk", "0005.npy": npy(np.zeros((90, 20, 10), "f4"))}
    shard(shards / "3.tar", range(3, 6), junk)
    source = source_of(shards)
    with pytest.raises(InvalidSampleError, match=r"3\.tar"):
        ingest_samples(spark, source, uri)
    assert len(tl.dataset(uri)) == 0
    # A task that still ran may leave a file, which no commit names.
    assert not (tmp_path / "ds/_columns/png/_delta_log").exists()
    outcome = ingest_samples(spark, source, uri, SampleOptions(skip_bad=True))
    assert (outcome.samples, outcome.left_out) == (7, 2)
    check(uri, [0, 1, 2, 3, 6, 7, 8])


def test_parts_are_there_once_wherever_a_run_ended(spark, shards, uri, monkeypatch):
    shard(shards / "6.tar", range(6, 9), {"0008.png": b"junk"})
    with pytest.raises(InvalidSampleError, match=r"6\.tar"):
        ingest_samples(spark, source_of(shards), uri, RESUME)
    shard(shards / "6.tar", range(6, 9))

    # The run ends after the commit of the apart column, and before that of the samples.
    with monkeypatch.context() as patch:
        patch.setattr(sample_ingestion, "commit_files", gone)
        with pytest.raises(KeyboardInterrupt):
            ingest_samples(spark, source_of(shards), uri, RESUME)
    assert len(tl.dataset(uri)) == 0
    assert len(tl.dataset(f"{uri}/_columns/png")) == COUNT
    outcome = ingest_samples(spark, source_of(shards), uri, RESUME)
    assert (outcome.reused, outcome.samples) == (3, COUNT)
    check_unordered(uri)
    again = ingest_samples(spark, source_of(shards), uri, RESUME)
    assert (again.status, again.version) == ("repeated", outcome.version)


def check_unordered(uri):
    """Numbers follow the runs, and not the files."""
    check(uri, tl.dataset(uri)["cls"][:].tolist())
    assert sorted(tl.dataset(uri)["cls"][:].tolist()) == [*range(COUNT)]
    assert len(tl.dataset(f"{uri}/_columns/png")) == COUNT


@pytest.mark.parametrize("lost", ["tiles", "apart"])
def test_a_share_is_written_again_if_a_part_of_it_is_gone(
    spark, shards, uri, tmp_path, monkeypatch, lost
):
    with monkeypatch.context() as patch:
        patch.setattr(PartsWriter, "committed", gone)
        with pytest.raises(KeyboardInterrupt):
            ingest_samples(spark, source_of(shards), uri, RESUME)
    if lost == "tiles":  # as a vacuum does with what no sample has
        lake = tl.open(f"{uri}/_tensors")
        lake.delete(next(iter(lake)))
    else:
        next((tmp_path / "ds/_columns/png").glob("*.parquet")).unlink()
    outcome = ingest_samples(spark, source_of(shards), uri, RESUME)
    assert (outcome.reused, outcome.samples) == (2, COUNT)
    ds = tl.dataset(uri)
    assert sorted(ds["cls"][:].tolist()) == [*range(COUNT)]
    for place, n in enumerate(ds["cls"][:].tolist()):
        np.testing.assert_array_equal(ds["npy"][place], scan(n))
