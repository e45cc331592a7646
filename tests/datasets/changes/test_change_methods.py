"""Updates, deletes and assignments through their door: NumPy's rules, what stays as it is, mistakes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl

COLUMNS = {
    "image": tl.types.Image("jpeg"),
    "label": tl.types.ClassLabel(["cat", "dog"]),
    "size": "int32",
    "training/boxes": tl.types.BoundingBox("xyxy"),
    "training/score": "float32",
    "vector": tl.types.Embedding(3),
}


@pytest.fixture
def ds(tmp_path, jpegs):
    """Thirty samples in three files."""
    found = tl.dataset(tmp_path / "ds", COLUMNS)
    for start in (0, 10, 20):
        numbers = np.arange(start, start + 10)
        found.extend(
            {
                "image": jpegs[start : start + 10],
                "label": [["cat", "dog", None][n % 3] for n in numbers],
                "size": numbers,
                "training/score": [n / 10 for n in numbers],
                "vector": np.ones((10, 3), np.float32),
            }
        )
    return found


class Foreign:
    """An array as another library has it, such as a tensor of PyTorch."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape, self.ndim = self._values.shape, self._values.ndim
        self.dtype = f"torch.{self._values.dtype}"

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)

    def __len__(self):
        return len(self._values)

    def __getitem__(self, key):
        return Foreign(self._values[key])

    def item(self):
        return self._values.item()


def paths(ds):
    return {file.path for file in ds.stored.files}


def test_only_files_with_changed_samples_are_written_again(ds, jpegs):
    before = paths(ds)
    assert ds.update([13, 11], {"label": ["dog", "cat"], "size": 5}) == 2
    assert len(before & paths(ds)) == 2
    assert len(paths(ds)) == 3
    assert ds.version == 4
    assert ds.sids.tolist() == [*range(30)]
    sizes = np.arange(30)
    sizes[[11, 13]] = 5
    np.testing.assert_array_equal(ds["size"][:], sizes)
    assert (ds["label"][13], ds["label"][11]) == (1, 0)
    assert [ds["image"].encoded(n) for n in range(30)] == jpegs, "bytes are copied as they are"
    assert ds["training/boxes"][:] == [None] * 30


def test_media_are_not_decoded_for_others(ds, monkeypatch):
    kind = type(ds.type_of("image"))
    monkeypatch.setattr(kind, "decode", None)
    monkeypatch.setattr(kind, "encode", None)
    ds.update("size < 3", {"label": "dog"})
    ds.delete([5])
    ds.rename_column("size", "length")
    assert ds["label"][:3].tolist() == [1, 1, 1]


def test_a_condition_chooses(ds):
    assert (
        ds.update("label = 'cat' AND training.score >= 2", {"label": "dog", "size": [1, 2, 3]}) == 3
    )
    assert ds["size"][20:].tolist() == [20, 1, 22, 23, 2, 25, 26, 3, 28, 29]
    assert ds.update("size > 1000", {"size": 1}) == 0
    assert ds.version == 4, "nothing to commit"
    assert ds.delete("label IS NULL") == 10
    assert len(ds) == 20
    assert ds.delete("size > 1000") == 0


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        (1, 2, 3),
        range(1, 4),
        np.array([1, 2, 3]),
        pd.Series([1, 2, 3]),
        pa.array([1, 2, 3]),
        pa.chunked_array([[1, 2], [3]]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_one_value_a_sample_in_many_forms(ds, values):
    ds.update(np.array([4, 2, 29]), {"size": values})
    assert (ds["size"][4], ds["size"][2], ds["size"][29]) == (1, 2, 3)


def test_arrays_of_other_libraries_are_values_as_those_of_numpy_are(tmp_path):
    kinds = {
        "x": tl.types.Tensor("float32", (None, 3)), "image": tl.types.Image("png"), "raw": tl.types.Image("raw"),
        "vector": tl.types.Embedding(3), "label": tl.types.ClassLabel(["a", "b"]), "size": "int64",
    }  # fmt: skip
    ds = tl.dataset(tmp_path, kinds, tile_bytes=100)
    rng = np.random.default_rng(0)
    first, second, third = (
        {
            "x": rng.random((4, 20, 3)).astype("f4"), "image": rng.integers(0, 255, (4, 5, 6, 3), "u1"),
            "raw": rng.integers(0, 255, (4, 9, 9, 3), "u1"), "vector": rng.random((4, 3)).astype("f4"),
            "label": rng.integers(0, 2, 4), "size": rng.integers(0, 9, 4),
        }
        for _ in range(3)
    )  # fmt: skip

    def same(*wanted):
        for name in kinds:
            for found, value in zip(
                ds[name][:], [one for many in wanted for one in many[name]], strict=True
            ):
                np.testing.assert_array_equal(found, value)

    ds.extend({name: Foreign(values) for name, values in first.items()})
    ds.extend({name: Foreign(values[row]) for name, values in second.items()} for row in range(4))
    same(first, second)
    ds.update([0, 1, 2, 3], {name: Foreign(values) for name, values in third.items()})
    same(third, second)
    for name, values in first.items():
        ds[name][4:] = Foreign(values)
        ds[name][0] = Foreign(values[0])
        ds[name][1:4] = Foreign(values[0])
    same({name: [values[0]] * 4 for name, values in first.items()}, first)
    ds.add_column("more", tl.types.Tensor("float32", (3,)), Foreign(np.eye(8, 3, dtype="f4")))
    np.testing.assert_array_equal(ds["more"][:], np.eye(8, 3))


def test_an_array_that_the_column_takes_is_one_value(ds):
    ds.update([1, 2, 3], {"vector": np.array([7, 8, 9], np.float32)})
    np.testing.assert_array_equal(ds["vector"][1:4], [[7, 8, 9]] * 3)
    ds.update([1, 2], {"vector": np.array([[1, 2, 3], [4, 5, 6]], np.float32)})
    np.testing.assert_array_equal(ds["vector"][1:4], [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    ds.update([5, 6], {"training/boxes": np.array([[0, 0, 1, 1], [0, 0, 2, 2]], np.float32)})
    assert [None if x is None else len(x) for x in ds["training/boxes"][4:8]] == [None, 2, 2, None]
    ds.update(7, {"training/boxes": [[0, 0, 1, 1]]})
    assert ds["training/boxes"][7].shape == (1, 4)


def test_assignments(ds, jpegs):
    ds["label"][5] = "dog"
    ds["size"][-1] = 99
    ds["size"][2:5] = [7, 8, 9]
    ds["size"][[20, 10]] = np.array([1, 2])
    ds["size"][np.arange(30) == 15] = 3
    ds["size"][[6, 6]] = [1, 2]
    ds["training/score"][::7] = None
    ds["training"]["boxes"][1] = np.zeros((0, 4), np.float32)
    ds["image"][2:4] = [jpegs[9], None]
    ds["size"][[]] = []
    ds["size"][12:12] = 5
    expected = np.arange(30)
    expected[[2, 3, 4, 20, 10, 15, 29, 6]] = [7, 8, 9, 1, 2, 3, 99, 2]
    np.testing.assert_array_equal(ds["size"][:], expected)
    assert ds["label"][5] == 1
    assert [n for n, score in enumerate(ds["training/score"][:]) if score is None] == [
        0,
        7,
        14,
        21,
        28,
    ]
    assert ds["training/boxes"][1].shape == (0, 4)
    assert ds["image"].encoded(2) == jpegs[9]
    assert ds["image"].encoded(3) is None
    assert ds["image"].encoded(4) == jpegs[4]
    assert ds.version == 12, "one commit each, and none for nothing"


def test_an_assignment_past_the_end_grows_where_it_may(ds):
    for key in (30, [30], [3, 31]):
        with pytest.raises(
            tl.InvalidKeyError, match=r"for column 'size'; it has 30.*ds\.strict = False"
        ):
            ds["size"][key] = 1
    with pytest.raises(tl.InvalidSampleError, match="2 values for 1 samples"):
        ds["size"][29:31] = [1, 2]
    ds.strict = False
    ds["size"][32] = 5
    assert ds["size"][29:] == [29, None, None, 5]
    assert ds["label"][30:] == [None] * 3
    ds["size"][31:35:2] = [6, 7]
    assert ds["size"][29:] == [29, None, 6, 5, 7, None], "the slice says how long it is"
    ds["size"][[-1, 0, 36]] = [1, 2, 3]
    assert ds["size"][[0, 34, 35, 36]] == [2, 1, None, 3]
    assert ds.sids.tolist() == [*range(37)]
    assert ds.version == 6
    with pytest.raises(tl.InvalidKeyError, match="out of bounds"):
        ds["size"][-38] = 1
    with pytest.raises(tl.InvalidKeyError, match="grows by at most"):
        ds["size"][10**12] = 1
    assert ds.version == 6


def test_growing_needs_values_where_a_column_takes_no_null(tmp_path):
    ds = tl.dataset(tmp_path, {"a": tl.types.Text(nullable=False), "b": "int32"})
    ds.strict = False
    ds["a"][0] = "x"
    with pytest.raises(tl.InvalidSampleError, match="column 'a'"):
        ds["b"][1] = 5
    with pytest.raises(
        tl.InvalidSampleError, match=r"takes no null.*1 samples would have no value"
    ):
        ds["a"][2] = "y"
    assert len(ds) == 1


def test_sids_are_not_given_again(ds):
    assert ds.delete([29, 0, 15, 15]) == 3
    assert len(ds) == 27
    ds.append({"size": 1})
    assert ds.sids.tolist() == [n for n in range(31) if n not in (0, 15, 29)]
    with pytest.raises(tl.SampleNotFoundError, match="no sample with sid 15 at version 5"):
        ds.update(15, {"size": 1})
    with pytest.raises(tl.SampleNotFoundError, match="sid 0"):
        ds.delete([1, 0])
    assert ds.delete(ds.sids) == 28
    assert len(ds) == 0
    assert ds.sids.tolist() == []
    ds.append({"size": 1})
    assert ds.sids.tolist() == [31]
    assert len(tl.dataset(ds.uri, version=3)) == 30, "old versions have them"


def test_files_stay_in_order_and_none_is_left_over(ds):
    ds.update([0, 29], {"size": 1})
    ds.delete(np.arange(10, 20))
    live = paths(ds)
    assert len(live) == 2
    assert ds.stored._order is None, "positions need no table"
    for path in live:
        sids = pq.read_table(Path(ds.uri, path), columns=["sid"])["sid"].to_pylist()
        assert sids == sorted(sids)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda ds: ds.update(1, {"siez": 1}), tl.UnknownLabelError, "no column 'siez'"),
        (lambda ds: ds.update(1, {"sid": 1}), tl.InvalidOptionError, "sid is the number"),
        (lambda ds: ds.update(1, {"training": 1}), tl.InvalidOptionError, "'training' is a group"),
        (lambda ds: ds.update(1, {}), tl.InvalidOptionError, "names no columns"),
        (lambda ds: ds.update(1, 5), tl.InvalidOptionError, "names no columns"),
        (lambda ds: ds.update([1, 1], {"size": 1}), tl.InvalidOptionError, "sid 1 is named twice"),
        (
            lambda ds: ds.update([1, 2], {"size": [1]}),
            tl.InvalidSampleError,
            "1 values for 2 samples",
        ),
        (lambda ds: ds.update([1, 2], {"size": [1, "x"]}), tl.InvalidSampleTypeError, "sample 1"),
        (lambda ds: ds.update(1, {"label": "dgo"}), tl.InvalidSampleError, "did you mean 'dog'"),
        (lambda ds: ds.update(1.5, {"size": 1}), tl.InvalidKeyTypeError, "1.5 names no samples"),
        (lambda ds: ds.update([[1]], {"size": 1}), tl.InvalidKeyTypeError, "names no samples"),
        (lambda ds: ds.update(True, {"size": 1}), tl.InvalidKeyTypeError, "names no samples"),
        (lambda ds: ds.update(-1, {"size": 1}), tl.SampleNotFoundError, "no sample with sid -1"),
        (
            lambda ds: ds.update("size = ", {"size": 1}),
            tl.InvalidOptionError,
            "not a condition of SQL",
        ),
        (lambda ds: ds.delete(2**63), tl.SampleNotFoundError, "no sample with sid"),
        (lambda ds: ds.delete(None), tl.InvalidKeyTypeError, "names no samples"),
        (
            lambda ds: ds["size"].__setitem__((1, 2), 1),
            tl.InvalidKeyTypeError,
            "takes whole samples",
        ),
        (
            lambda ds: ds["size"].__setitem__("a", 1),
            tl.InvalidKeyTypeError,
            "does not choose samples",
        ),
        (lambda ds: ds["image"].__setitem__(1, b"GIF"), tl.InvalidSampleError, "column 'image'"),
        (
            lambda ds: ds.add_column("size", "int32"),
            tl.InvalidOptionError,
            "has a column 'size' already",
        ),
        (lambda ds: ds.add_column("sid", "int32"), tl.InvalidOptionError, "sid"),
        (lambda ds: ds.add_column(5, "int32"), tl.InvalidOptionError, "a string, not int: 5"),
        (lambda ds: ds.add_column("a b", "int32"), tl.InvalidOptionError, "does not allow"),
        (lambda ds: ds.add_column("a", "in32"), tl.InvalidOptionError, "int32"),
        (
            lambda ds: ds.add_column("a", "int32", [1]),
            tl.InvalidSampleError,
            "1 values for 30 samples",
        ),
        (
            lambda ds: ds.add_column("a", "int32", ["x"] * 30),
            tl.InvalidSampleTypeError,
            "column 'a', sample 0",
        ),
        (lambda ds: ds.add_column("size/a", "int32"), tl.InvalidOptionError, "is a column, and"),
        (
            lambda ds: ds.add_column("a", tl.types.Text(nullable=False)),
            tl.InvalidOptionError,
            "takes no null",
        ),
        (lambda ds: ds.drop_column("siez"), tl.UnknownLabelError, "no column 'siez'"),
        (lambda ds: ds.drop_column("training"), tl.InvalidOptionError, "is a group"),
        (lambda ds: ds.rename_column("size", "label"), tl.InvalidOptionError, "already"),
        (lambda ds: ds.rename_column("size", "training"), tl.InvalidOptionError, "a group"),
        (lambda ds: ds.rename_column("sid", "id"), tl.InvalidOptionError, "sid is the number"),
    ],
)
def test_mistakes_change_nothing(ds, call, error, message):
    files = sorted(p.name for p in Path(ds.uri).glob("*.parquet"))
    with pytest.raises(error, match=message):
        call(ds)
    assert tl.dataset(ds.uri).version == 3
    assert sorted(p.name for p in Path(ds.uri).glob("*.parquet")) == files


def test_a_version_is_for_reading_only(ds):
    old = tl.dataset(ds.uri, version=2)
    for call in (
        lambda: old.update(1, {"size": 1}),
        lambda: old.delete(1),
        lambda: old.add_column("a", "int32"),
        lambda: old.drop_column("size"),
        lambda: old.rename_column("size", "a"),
        lambda: old["size"].__setitem__(1, 1),
    ):
        with pytest.raises(tl.InvalidOptionError, match="for reading only"):
            call()


def test_a_table_that_takes_appends_only(ds):
    from deltalake import DeltaTable

    DeltaTable(ds.uri).alter.set_table_properties({"delta.appendOnly": "true"})
    ds.refresh()
    for call in (
        lambda: ds.update(1, {"size": 1}),
        lambda: ds.delete(1),
        lambda: ds.drop_column("size"),
        lambda: ds.add_column("a", "int32", 5),
    ):
        with pytest.raises(tl.UnsupportedFeatureError, match="takes appends only"):
            call()
    ds.add_column("a", "int32")
    ds.append({"size": 5, "a": 6})
    assert ds["a"][-2:] == [None, 6]


@pytest.mark.both_stores
def test_samples_in_a_store(place, jpegs):
    ds = tl.dataset(place, {"image": tl.types.Image("jpeg"), "size": "int32"})
    for start in (0, 5):
        ds.extend({"image": jpegs[start : start + 5], "size": np.arange(start, start + 5)})
    other = tl.dataset(place)
    assert ds.update("size IN (1, 7)", {"size": [70, 71], "image": jpegs[20]}) == 2
    ds.delete([0, 9])
    ds.strict = False
    ds["size"][9] = 5
    for one in (ds, tl.dataset(place)):
        assert one["size"][:] == [70, 2, 3, 4, 5, 6, 71, 8, None, 5]
        assert one.sids.tolist() == [*range(1, 9), 10, 11]
        found = [20, 2, 3, 4, 5, 6, 20, 8]
        assert [one["image"].encoded(n) for n in range(8)] == [jpegs[n] for n in found]
    with pytest.raises(tl.ConcurrentWriteError, match="changed sample 7"):
        other.update(7, {"size": 1})
    assert other.update(8, {"size": 80}) == 1


@pytest.fixture
def parted(tmp_path, jpegs):
    """Six samples with an apart column, and a column of scans of which the third is tiled."""
    found = tl.dataset(
        tmp_path / "parted",
        {
            "image": tl.types.Image("jpeg", apart=True),
            "scan": tl.types.Tensor("int32"),
            "size": "int32",
        },
        tile_bytes=1000,
    )
    scans = [np.full((2, 2), n, "i4") for n in range(6)]
    scans[2] = np.arange(2500, dtype="i4").reshape(50, 50)
    found.extend({"image": jpegs[:6], "scan": scans, "size": np.arange(6)})
    return found


def test_apart_columns_and_tiles_are_updated(parted, jpegs):
    ds, old = parted, tl.dataset(parted.uri, version=parted.version)
    other = tl.dataset(ds.uri)
    files = paths(ds)
    ds.update([1, 3], {"image": [jpegs[11], jpegs[13]]})
    assert paths(ds) == files, "the samples' table keeps its files"
    ds["image"][-1] = jpegs[15]
    ds["scan"][2] = np.ones((60, 60), "i4")
    ds["scan"][[4, 0]] = [np.zeros((70, 70), "i4"), np.zeros((1,), "i4")]
    ds.update("size = 5", {"scan": np.full((40, 40), 5, "i4"), "size": 50})
    for one in (ds, tl.dataset(ds.uri)):
        assert [one["image"].encoded(n) for n in range(6)] == [
            jpegs[n] for n in (0, 11, 2, 13, 4, 15)
        ]
        assert [x.shape for x in one["scan"][:]] == [
            (1,),
            (2, 2),
            (60, 60),
            (2, 2),
            (70, 70),
            (40, 40),
        ]
        assert one["scan"][2, :2, :2].tolist() == [[1, 1], [1, 1]]
        assert one["size"][5] == 50
    assert [old["image"].encoded(n) for n in range(6)] == jpegs[:6]
    np.testing.assert_array_equal(old["scan"][2], np.arange(2500).reshape(50, 50))
    with pytest.raises(tl.ConcurrentWriteError, match=r"changed sample 1: .*another 'image'"):
        other.update(1, {"size": 7})
    with pytest.raises(
        tl.ConcurrentWriteError, match=r"another writer changed (sample 2: |large samples)"
    ):
        other.update(2, {"scan": np.zeros((60, 60), "i4")})
    ds.rename_column("image", "photo")
    ds.rename_column("scan", "volume")
    ds.delete([0, 4])
    assert [ds["photo"].encoded(n) for n in range(4)] == [jpegs[n] for n in (11, 2, 13, 15)]
    assert ds["volume"][1, 5:7, 5:6].tolist() == [[1], [1]]
    ds.drop_column("photo")
    ds.add_column("photo", tl.types.Image("jpeg", apart=True))
    assert ds["photo"][:] == [None] * 4
    ds.add_column("more", tl.types.Image("jpeg", apart=True), jpegs[:4])
    assert ds["more"].encoded(2) == jpegs[2]


@pytest.mark.parametrize("apart", [False, True])
def test_a_value_that_does_not_fit_is_named_by_its_sample(tmp_path, apart):
    """The first of those that were given was called sample 0, whichever it was for."""
    label = tl.types.ClassLabel(["cat", "dog"], apart=apart)
    found = tl.dataset(
        tmp_path / "ds", {"label": label, "x": tl.types.Tensor("int8", (None,), apart=apart)}
    )
    found.extend({"label": ["cat"] * 9, "x": [[1]] * 9})
    found.delete([0])
    bad = {"label": ("cat", "dgo", "did you mean 'dog'"), "x": ([2], [[1]], "it has 2 axes, not 1")}
    for name, (good, wrong, said) in bad.items():
        column = found[name]
        for number, key, value in ((5, 5, wrong), (7, -1, wrong), (4, slice(3, 5), [good, wrong])):
            with pytest.raises(tl.InvalidSampleError, match=f"'{name}', sample {number}: .*{said}"):
                column[key] = value
        with pytest.raises(tl.InvalidSampleError, match=f"'{name}', sample 6: .*{said}"):
            found.update(6, {name: wrong})
        found.strict = False
        with pytest.raises(tl.InvalidSampleError, match=f"'{name}', sample 9: .*{said}"):
            column[9] = wrong
        found.strict = True


def test_columns_of_links_are_a_list_of_names(ds):
    for columns in (5, None, "image"):
        with pytest.raises(tl.InvalidOptionError, match=r"list of names"):
            ds.materialize(columns)


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.update("n = 14", {"s": "new"}),
        lambda ds: ds.update("s = 'n14'", {"s": "new"}),
        lambda ds: ds.update(14, {"s": "new"}),
        lambda ds: ds["s"].__setitem__(ds.positions_where("n = 14"), "new"),
        lambda ds: ds.delete("n = 14"),
        lambda ds: ds.delete([14]),
    ],
)
@pytest.mark.parametrize("gaps", [False, True])
def test_only_files_with_samples_that_change_are_opened(tmp_path, change, gaps):
    ds = tl.dataset(tmp_path, {"n": "int32", "s": "string"})
    for first in range(0, 30, 5):
        numbers = np.arange(first, first + 5)
        ds.extend({"n": numbers, "s": [f"n{n:02}" for n in numbers]})
    if gaps:  # the log does not say which numbers there are
        ds.delete([1, 6, 11, 16, 21, 26])
    for number, path in enumerate(ds.stored.files.paths):
        if number != 2:
            (tmp_path / path).unlink()
    now = tl.dataset(tmp_path)
    now.add_column("late", "int8")
    change(now)
    here = tl.dataset(tmp_path).query("SELECT s FROM dataset WHERE n BETWEEN 10 AND 14")
    assert [*here["s"]] == ["n10", *["n11"] * (not gaps), "n12", "n13", "new"][: len(here)]
    assert len(here) == len(now) - (20 if gaps else 25)
