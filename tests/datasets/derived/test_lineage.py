"""What a dataset says of its sources."""

import dataclasses
import json

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived.lineage import (
    FOLDER,
    PROPERTY,
    Lineage,
    Source,
    lineage_of,
    source_sids,
    write_rows,
)
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError

SAID = Lineage(
    (
        Source("dataset", "/data/coco", 3, {"a": "b"}, {"c": "d"}, "id"),
        Source("t", "s3://x/y", None),
    ),
    "SELECT\n *",
    "1.0",
    "2026-01-01T00:00:00+00:00",
    ("e",),
    "f.arrow",
)


def test_it_is_read_as_it_was_written():
    assert Lineage.from_json(SAID.to_json()) == SAID
    later = json.loads(SAID.to_json())
    later["colour"] = "red"
    later["sources"][0]["colour"] = "blue"
    assert Lineage.from_json(json.dumps(later)) == SAID


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"sources": 5}', '{"sources": [{}]}', "[" * 10**5], ids=range(6)
)
def test_what_is_none(text):
    with pytest.raises(CorruptDataError, match="is not a lineage"):
        Lineage.from_json(text)


def test_shown():
    done = dataclasses.replace(SAID, samples=4, digests={"a": "00"})
    text = str(done)
    assert "/data/coco, version 3" in text
    assert "SELECT *" in text
    assert "by query   e" in text
    assert done.digest in text
    assert "samples" not in str(SAID)


def test_numbers_of_the_sources(tmp_path):
    storage = Storage(tmp_path)
    sids = [np.array([5, 3, -1]), np.array([0, 0, 1])]
    write_rows(storage, SAID, sids, {"a": "00"}, 3)
    found = source_sids(storage, SAID)
    assert [one.tolist() for one in found] == [one.tolist() for one in sids]


def test_of_a_dataset(made, tmp_path):
    assert made.ds.lineage is None
    assert tl.dataset(tmp_path / "nothing").lineage is None
    few = made.ds.copy(tmp_path / "few", made.order)
    found = few.lineage
    assert found.sources[0].uri == made.ds.uri
    assert found.sources[0].version == made.ds.version
    assert found.samples == 13
    assert set(found.digests) == set(few.schema)
    assert found.package == tl.__version__
    # Later versions say the same, whatever becomes of the log and the columns.
    few.add_column("more", "int32", [1] * 13)
    few.vacuum(0)
    assert tl.dataset(tmp_path / "few").lineage == found


def test_its_file_is_gone_or_damaged(made, tmp_path):
    few = made.ds.copy(tmp_path / "few", made.order)
    (path,) = (tmp_path / "few" / FOLDER).iterdir()
    path.write_bytes(b"no arrow")
    with pytest.raises(CorruptDataError, match="not a file of Arrow"):
        few.lineage
    path.unlink()
    assert few.lineage.samples == -1
    with pytest.raises(CorruptDataError, match="is gone"):
        source_sids(few._storage, few.lineage)
    assert lineage_of(few.stored.snapshot).sources[0].uri == made.ds.uri
    assert PROPERTY in few.stored.snapshot.configuration
