"""What format 1 of datasets wrote is read for ever, value by value."""

import hashlib
import runpy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from videos import decode_all, picture

import tensorlake_spark as tl

HERE = Path(__file__).resolve().parent
TABLE = HERE / "v1" / "samples" / "table"
MADE = runpy.run_path(str(HERE / "samples.py"))
EXPECTED = MADE["expected"]()
SCHEMA = MADE["schema"]()


@pytest.fixture(scope="module")
def ds():
    return tl.dataset(str(TABLE), create=False)


def same(got, want, kind):
    """Whether a value is what was written: pictures as their pixels, a sound as its numbers."""
    if want is None:
        return got is None
    if isinstance(want, bytes) and kind.startswith(("Image", "Link")):
        (want,) = tl.types.Image("png").decode(tl.types.Image("png").encode([want], "x"))
    if kind.startswith("Audio"):
        return got.rate == want[1] and np.array_equal(got.samples * 32768, want[0])
    if kind.startswith("Polygon"):
        return len(got) == len(want) and all(map(np.array_equal, got, want))
    if isinstance(want, np.ndarray):
        got = np.asarray(got)
        return got.dtype == want.dtype and got.shape == want.shape and np.array_equal(got, want)
    return got == want and type(got) is type(want)


def test_the_dataset_has_every_type():
    kinds = {kind.kind for kind in map(tl.types.as_type, SCHEMA.values())}
    known = set(tl.types.base.KINDS)
    assert kinds == known - {"plain"}  # what others add


def test_the_dataset_holds_just_what_is_expected(ds):
    assert ds.sids.tolist() == sorted(EXPECTED)
    assert dict(ds.schema) == {name: tl.types.as_type(kind) for name, kind in SCHEMA.items()}
    assert ds.tile_bytes == MADE["TILE_BYTES"]


@pytest.mark.parametrize("name", [name for name in SCHEMA if name not in ("film", "link")])
def test_golden_column(ds, name):
    column = ds[name]
    got = [column[position] for position in range(len(ds))]
    for sid, value in zip(ds.sids.tolist(), got, strict=True):
        want = EXPECTED[sid][name]
        assert same(value, want, str(column.type)), f"sample {sid}: {value!r}, not {want!r}"


def test_golden_links_are_not_followed(ds):
    want = [EXPECTED[sid]["link"] for sid in ds.sids.tolist()]
    assert ds.to_arrow(["link"])["link"].to_pylist() == want


def test_golden_film(ds):
    film = ds["film"][0]
    assert film.shape == (MADE["FRAMES"], 48, 64, 3)
    assert film.fps == 25
    whole = decode_all(film.read())
    for frame in range(MADE["FRAMES"]):
        assert np.array_equal(film[frame], whole[frame])
        assert np.abs(film[frame].astype(int) - picture(frame)).mean() < 24
    digest = "492795952f6b16f360047aab891237708a871f02a8f7e233b7f3090516971d82"
    assert hashlib.sha256(film.read()).hexdigest() == digest
    assert ds["film"][1] is None


def test_golden_conditions_and_tiles(ds):
    where = "label = 'eel' AND image.height > 4"
    want = [s for s in EXPECTED if EXPECTED[s]["label"] == 2]
    assert ds.to_arrow(["sid"], where=where)["sid"].to_pylist() == want
    position = ds.sids.tolist().index(MADE["UPDATED"])
    assert np.array_equal(ds["scan"][position, 60:70, ::7], MADE["scan"](9)[60:70, ::7])
    tiles = pa.compute.is_null(ds.to_arrow(["scan"])["scan"].combine_chunks().field("data"))
    assert [s for s, bare in zip(EXPECTED, tiles.to_pylist()) if bare] == [1, 4, 6]


def test_the_golden_dataset_is_sound(ds):
    report = ds.check(deep=True)
    assert report.ok, report.findings
    assert report.samples == len(EXPECTED)


def test_plain_delta_reads_the_golden_dataset(ds):
    table = DeltaTable(TABLE).to_pyarrow_table(columns=["sid", "number", "label", "photo"])
    rows = sorted(table.to_pylist(), key=lambda row: row["sid"])
    assert [row["sid"] for row in rows] == sorted(EXPECTED)
    assert [row["number"] for row in rows] == [EXPECTED[s]["number"] for s in sorted(EXPECTED)]
    assert not any(row["photo"] for row in rows)
