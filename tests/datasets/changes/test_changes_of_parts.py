"""Changes of tiles and apart columns through the door: a list of dicts is the model."""

import os

import numpy as np
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import rewriting

COLUMNS = {
    "label": "int32",
    "scan": tl.types.Tensor("int16"),
    "g/x": tl.types.Tensor("int64", apart=True),
}


def scan(number, length=200):
    return np.full(length, number, "i2")


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=100)
    found.extend(
        {
            "label": np.arange(6),
            "scan": [scan(n, 200 if n % 2 else 3) for n in range(6)],
            "g/x": [np.full(2, n) for n in range(6)],
        }
    )
    return found


def model(ds):
    """The samples as plain values."""
    out = []
    for sample in tl.dataset(ds.uri):
        assert len(sample) == len(ds.schema)
        out.append({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in sample.items()})
    return out


def files(uri):
    return set(DeltaTable(uri).file_uris())


def test_samples_get_other_values_in_their_parts(ds):
    wanted, version, rows = model(ds), ds.version, files(ds.uri)
    ds.update([1, 4], {"g/x": [np.full(3, 10), None]})
    assert files(ds.uri) == rows  # of the samples nothing was written again
    ds["g/x"][0] = np.full(1, 11)
    wanted[1]["g/x"], wanted[4]["g/x"], wanted[0]["g/x"] = [10] * 3, None, [11]
    assert model(ds) == wanted
    ds.update([0, 1, 2, 3], {"scan": [scan(20), scan(21), scan(22, 2), scan(23, 2)], "label": 9})
    for sid, length in ((0, 200), (1, 200), (2, 2), (3, 2)):
        wanted[sid] |= {"scan": [20 + sid] * length, "label": 9}
    assert model(ds) == wanted
    ds["scan"][5] = scan(7, 300)
    wanted[5]["scan"] = [7] * 300
    assert model(ds) == wanted
    old = tl.dataset(ds.uri, version=version)
    assert old["scan"][1, :2].tolist() == [1, 1]
    assert old["g/x"][1].tolist() == [1, 1]


def test_one_value_for_all(ds):
    ds.update("label >= 3", {"g/x": np.full(2, 8), "scan": scan(5, 400)})
    found = model(ds)
    assert [one["g/x"] for one in found[3:]] == [[8, 8]] * 3
    assert [one["scan"] for one in found[3:]] == [[5] * 400] * 3
    assert found[1]["g/x"] == [1, 1]


def test_an_assignment_past_the_end(ds):
    ds.strict = False
    ds["g/x"][7] = np.full(2, 70)
    ds["scan"][8] = scan(80)
    found = model(ds)
    assert [one["g/x"] for one in found[5:]] == [[5, 5], None, [70, 70], None]
    assert [one["scan"] and one["scan"][0] for one in found[5:]] == [5, None, None, 80]
    assert len(set(ds.sids.tolist())) == 9


def test_deleted_samples_are_gone_with_their_parts(ds):
    wanted = model(ds)
    ds.delete([1, 2])
    assert model(ds) == [wanted[0], *wanted[3:]]
    ds.append({"scan": scan(66), "g/x": np.full(1, 66)})
    assert model(ds)[4:] == [{"label": None, "scan": [66] * 200, "g/x": [66]}]


def test_a_column_is_renamed_and_another_takes_its_name(ds):
    wanted = model(ds)
    ds.rename_column("g/x", "h/y")
    ds.rename_column("scan", "volume")
    assert model(ds) == [
        {"label": n, "volume": one["scan"], "h/y": one["g/x"]} for n, one in enumerate(wanted)
    ]
    ds.update([1], {"volume": [scan(30)], "h/y": [np.full(1, 31)]})
    ds.add_column("scan", tl.types.Tensor("int16"), [scan(-n) for n in range(6)])
    ds.add_column("g/x", tl.types.Tensor("int64", apart=True))
    found = model(ds)
    assert [one["scan"][7] for one in found] == [0, -1, -2, -3, -4, -5]
    assert [one["g/x"] for one in found] == [None] * 6
    assert (found[1]["volume"][7], found[1]["h/y"], found[3]["volume"][7]) == (30, [31], 3)
    ds.append({"scan": scan(40), "g/x": np.full(1, 41), "volume": scan(42), "h/y": np.full(1, 43)})
    last = model(ds)[-1]
    assert [last[name][0] for name in ("scan", "g/x", "volume", "h/y")] == [40, 41, 42, 43]


def test_a_column_that_was_dropped_does_not_come_back(ds):
    version = ds.version
    ds.drop_column("g/x")
    ds.drop_column("scan")
    ds.add_column("g/x", tl.types.Tensor("int64", apart=True))
    ds.add_column("scan", tl.types.Tensor("int16"))
    assert [(one["g/x"], one["scan"]) for one in model(ds)] == [(None, None)] * 6
    assert tl.dataset(ds.uri, version=version)["g/x"][3].tolist() == [3, 3]


def test_columns_are_added_with_values(ds):
    values = [np.full(n, n) for n in range(6)]
    ds.add_column("many", tl.types.Tensor("int64", apart=True), values)
    ds.add_column("one", tl.types.Tensor("int16", apart=True, nullable=False), scan(3))
    ds.add_column("tiled", tl.types.Tensor("int16"), scan(4, 500))
    found = model(ds)
    assert [one["many"] for one in found] == [[n] * n for n in range(6)]
    assert [one["one"] for one in found] == [[3] * 200] * 6
    assert [one["tiled"] for one in found] == [[4] * 500] * 6


def test_two_who_update_one_sample(ds):
    other = tl.dataset(ds.uri)
    for name, value in (("g/x", np.full(1, 50)), ("scan", scan(50))):
        ds.refresh()
        other.refresh()
        ds.update([3], {name: [value]})
        with pytest.raises(tl.ConcurrentWriteError):
            other.update([3], {name: [value + 1]})
        other.refresh()
        other.update([1], {name: [value + 2]})
        ds.refresh()
        assert ds[name][3][0] == 50
        assert ds[name][1][0] == 52


@pytest.mark.parametrize(("name", "value"), [("g/x", np.full(1, 50)), ("scan", scan(50))])
def test_who_changes_a_sample_whose_parts_another_one_changed_is_told(ds, name, value):
    """The row of the sample is the same: its value lies elsewhere."""
    other = tl.dataset(ds.uri)
    ds.update([3], {name: [value]})
    for change in (
        lambda: other.update([1, 3], {"label": 9}),
        lambda: other["label"].__setitem__(3, 9),
        lambda: other.delete([1, 3]),
    ):
        with pytest.raises(
            tl.ConcurrentWriteError, match=f"changed sample 3: .* has .*'{name}' for it"
        ):
            change()
    ds.refresh()
    labels = ds["label"][:].tolist()
    other.update([1], {"label": 9})
    ds.refresh()
    assert ds["label"][:].tolist() == [labels[0], 9, *labels[2:]]
    assert ds[name][3][0] == 50


def test_a_label_of_one_in_a_hundred_rewrites_two_percent_of_the_bytes(tmp_path):
    rng = np.random.default_rng(0)
    ds = tl.dataset(tmp_path / "ds", {"label": "int32", "image": tl.types.Image("raw", apart=True)})
    images = list(rng.integers(0, 256, (400, 64, 64, 3)).astype("u1"))
    ds.extend({"label": np.arange(400), "image": images})
    before = {p for folder in ("", "/_columns/image") for p in files(ds.uri + folder)}
    total = sum(map(os.path.getsize, before))
    ds.update(ds.sids[::100], {"label": [-1, -2, -3, -4]})
    after = {p for folder in ("", "/_columns/image") for p in files(ds.uri + folder)}
    assert total > 400 * 64 * 64 * 3
    assert 0 < sum(map(os.path.getsize, after - before)) <= 0.02 * total
    assert np.array_equal(tl.dataset(ds.uri)["image"][399], images[399])


def test_samples_are_chosen_by_a_column_apart(ds):
    none = [place for place, value in enumerate(ds["g/x"][:]) if value is None]
    assert ds.to_arrow(["sid"], where="g.x IS NULL")["sid"].to_pylist() == ds.sids[none].tolist()
    chosen = ds.sids[[place for place in range(len(ds)) if place not in none]]
    assert ds.delete("g.x IS NOT NULL") == len(chosen)
    assert not set(ds.sids.tolist()) & set(chosen.tolist())


def test_a_column_whose_writer_was_killed_can_be_added_again(ds, monkeypatch):
    kinds = {
        "more": tl.types.Tensor("int64", apart=True),
        "tiles": tl.types.Tensor("int16"),
    }
    values = {"more": [np.full(2, n) for n in range(6)], "tiles": [scan(n) for n in range(6)]}

    def killed(storage, change):
        raise KeyboardInterrupt

    for name, kind in kinds.items():
        with monkeypatch.context() as patch:
            patch.setattr(rewriting, "commit", killed)
            with pytest.raises(KeyboardInterrupt):
                ds.add_column(name, kind, values[name])
        assert name not in tl.dataset(ds.uri).schema
        ds.add_column(name, kind, values[name])
    found = model(ds)
    assert [one["more"] for one in found] == [[n, n] for n in range(6)]
    assert [one["tiles"][7] for one in found] == [*range(6)]
    assert ds.check().ok


def test_rows_that_a_compaction_has_left_out_of_order_are_found_after_an_update(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"text": tl.types.Text(apart=True)})
    ds.extend({"text": list("abcdef")})
    ds.update([2, 4], {"text": ["C", "E"]})
    ds.optimize()
    inner = tl.dataset(tmp_path / "ds/_columns/text")
    assert inner.stored.lying is not None, "a, b, d, f, C and E lie in one file"
    ds.update(5, {"text": "F"})
    assert ds["text"][:] == ["a", "b", "C", "d", "E", "F"]
    inner.refresh()
    assert inner.sids.tolist() == [*range(6)]
    assert inner["text"][[4, 3]] == ["E", "d"]
