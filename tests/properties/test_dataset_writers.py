"""Two writers of a dataset, the second in the middle of the first: what is there then is what one after the other gives.

The second one commits just before one of the commits of the first, also of those to the tables inside the dataset.
"""

import shutil

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart import pinning
from tensorlake_spark.delta.log import commit

COLUMNS = {
    "label": "int64",
    "scan": tl.types.Tensor("int32"),  # some are tiles
    "far": tl.types.Tensor("int16", apart=True),
}


def rows(*numbers):
    return [
        {
            "label": k,
            "scan": np.arange(200 if k % 2 else 3, dtype="i4") + k,
            "far": np.arange(k % 4, dtype="i2") + k,
        }
        for k in numbers
    ]


CHANGES = {
    "extend": lambda ds: ds.extend(rows(30, 31)),
    "label": lambda ds: ds.update([0, 2], {"label": 100}),
    "apart": lambda ds: ds.update([1, 3], {"far": [np.zeros(2, "i2")] * 2}),
    "tiles": lambda ds: ds.update([1, 3], {"scan": [np.zeros(300, "i4")] * 2}),
    "delete": lambda ds: ds.delete([3]),
    "restore": lambda ds: ds.restore(2),
    "optimize": lambda ds: ds.optimize(),
    "column": lambda ds: ds.rename_column("far", "near"),
}
GIVEN = 4  # sids of the samples that are there before; others depend on who came first


def content(uri):
    ds = tl.dataset(uri)
    return sorted(
        repr((sid if sid < GIVEN else "new", {n: np.asarray(v).tolist() for n, v in row.items()}))
        for sid, row in zip(ds.sids.tolist(), ds, strict=True)
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Return a fresh copy of a dataset whenever it is called, and content after changes one after the other."""
    base = tmp_path_factory.mktemp("writers")
    ds = tl.dataset(base / "first", COLUMNS, tile_bytes=256)
    ds.extend(rows(0, 1))
    ds.extend(rows(2, 3))
    known = {}

    def fresh():
        shutil.rmtree(base / "copy", ignore_errors=True)
        return str(shutil.copytree(base / "first", base / "copy"))

    def after(*names):
        if names not in known:
            place = fresh()
            for name in names:
                try:
                    CHANGES[name](tl.dataset(place))
                except tl.TensorLakeError:  # one writer found what the other had left
                    known[names] = None
                    break
            else:
                known[names] = content(place)
        return known[names]

    return fresh, after


@pytest.mark.local_disk
@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("at", [0, 1])
def test_of_two_writers_each_is_whole_or_told(places, monkeypatch, first, at):
    fresh, after = places
    monkeypatch.setattr(pinning, "PATIENCE", 0.05)
    real = commit._commit_once
    for second in CHANGES:
        place, count, told = fresh(), 0, {}

        def tried(who, name, ds, told=told):
            told[who] = None
            try:
                CHANGES[name](ds)
            except tl.ConcurrentWriteError as why:
                told[who] = str(why)

        def between(snapshot, change, place=place, tried=tried, second=second):
            nonlocal count
            count += 1
            if count == at + 1:
                with monkeypatch.context() as own:
                    own.setattr(commit, "_commit_once", real)
                    tried("second", second, tl.dataset(place))
            return real(snapshot, change)

        with monkeypatch.context() as patched:
            patched.setattr(commit, "_commit_once", between)
            tried("first", first, tl.dataset(place))
        if len(told) == 1:  # the first one makes fewer commits
            continue
        names = {"first": first, "second": second}
        done = [names[who] for who, error in told.items() if error is None]
        said = f"{second} before commit {at} of {first}: {told}"
        assert content(place) in [after(*done), after(*done[::-1])], said
        assert tl.dataset(place).check(deep=True).ok, said
