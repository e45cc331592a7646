"""Shares of samples whose links are followed: all of them once, in order, and few bytes at a time."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import link_copying, workers


@pytest.fixture
def ds(tmp_path):
    """Two data files of links to files of 1,000 bytes; one sample has a large one."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}").write_bytes(bytes([number]) * (1000 if number < 3 else 9000))
    found = tl.dataset(tmp_path / "ds", {"x": tl.types.Link("bytes"), "n": "int32"})
    for first in (0, 20):
        urls = [str(folder / f"{3 if n == 25 else n % 3}") for n in range(first, first + 20)]
        found.extend({"x": urls, "n": np.arange(first, first + 20)})
    return found


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(workers, "_SHARE_BYTES", (5_000, 8_000))
    monkeypatch.setattr(link_copying, "BATCH_BYTES", 3_000)


def test_shares_have_bounded_bytes_and_all_samples(ds, little):
    shares = [*link_copying._shares(ds.parts, ["x"], 2)]
    assert np.concatenate([np.concatenate(share) for share in shares]).tolist() == [*range(40)]
    for share in shares:
        assert len({position // 20 for batch in share for position in batch.tolist()}) == 1
        nbytes = [sum(9000 if n == 25 else 1000 for n in batch.tolist()) for batch in share]
        assert all(size <= 3_000 or len(batch) == 1 for size, batch in zip(nbytes, share))
        assert sum(nbytes) <= 8_000 or len(share) == 1
    assert [25] in [batch.tolist() for share in shares for batch in share]


@pytest.mark.parametrize("threads", [1, 4])
def test_what_was_shared_comes_together_again(ds, little, threads):
    ds.materialize(["x"], workers=threads)
    assert ds["n"][:].tolist() == [*range(40)]
    assert [len(x) for x in ds["x"][:]] == [9000 if n == 25 else 1000 for n in range(40)]
    assert [x[0] for x in ds["x"][:]] == [3 if n == 25 else n % 3 for n in range(40)]
    assert len(ds.stored.files) > 4
    assert ds.check().ok
