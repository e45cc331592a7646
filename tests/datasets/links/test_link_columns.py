"""Columns of links: looked up, fetched, changed, gone, copied in."""

import http.server
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import link_copying, rewriting
from tensorlake_spark.datasets.changes import workers as workers_module
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import commit
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def files(tmp_path, jpegs):
    folder = tmp_path / "files"
    folder.mkdir()
    for number, data in enumerate(jpegs[:6]):
        (folder / f"{number}.jpg").write_bytes(data)
    return folder


@pytest.fixture
def ds(tmp_path, files):
    found = tl.dataset(
        tmp_path / "ds", {"photo": tl.types.Link(tl.types.Image("jpeg")), "n": "int32"}
    )
    urls = [str(files / f"{number}.jpg") for number in range(6)]
    found.extend({"photo": [*urls, None], "n": np.arange(7)})
    return found


def test_links_are_stored_with_size_and_etag_and_read_as_what_they_point_to(ds, files, jpegs):
    stored = ds.to_arrow(["photo"])["photo"].to_pylist()
    assert stored[2]["size"] == len(jpegs[2])
    assert stored[2]["etag"]
    assert stored[6] is None
    assert ds["photo"][2].shape == (24, 32, 3)
    assert ds[3]["photo"].shape == (24, 32, 3)
    assert ds["photo"][6] is None
    found = ds["photo"][[4, 1, 2, 6]]
    np.testing.assert_array_equal(found[0], ds["photo"][4])
    np.testing.assert_array_equal(found[2], ds["photo"][2])
    assert found[3] is None


def test_a_target_that_changed_or_is_gone_is_an_error_that_names_the_sample(ds, files, jpegs):
    (files / "4.jpg").write_bytes(jpegs[9])
    with pytest.raises(tl.ChangedLinkError, match="column 'photo', sample 4"):
        ds["photo"][4]
    (files / "1.jpg").unlink()
    with pytest.raises(FileNotFoundError, match="column 'photo', sample 1"):
        ds["photo"][:3]
    assert ds["photo"][0].shape == (24, 32, 3)


def test_a_target_of_another_kind_is_an_error(ds, files):
    (files / "x.txt").write_text("hello")
    ds["photo"][0] = str(files / "x.txt")
    with pytest.raises(
        ValueError, match=r"sample 0.*what the link points to is not Image\('jpeg'\)"
    ):
        ds["photo"][0]


def test_what_is_not_there_is_no_link(ds, files):
    with pytest.raises(tl.MissingLinkError, match="column 'photo', sample 1"):
        ds.extend({"photo": [str(files / "0.jpg"), str(files / "none.jpg")], "n": [1, 2]})
    with pytest.raises(tl.MissingLinkError):
        ds.update([0], {"photo": str(files / "none.jpg")})
    assert len(tl.dataset(ds.uri)) == 7


def test_materialize_copies_the_targets_in(ds, files, jpegs):
    old = ds.version
    ds.materialize(["photo"])
    assert ds.schema["photo"] == tl.types.Image("jpeg")
    for number in range(6):
        (files / f"{number}.jpg").unlink()
    assert ds["photo"].encoded(3) == jpegs[3]
    assert ds["photo"][6] is None
    assert ds["n"][:].tolist() == [*range(7)]
    assert isinstance(tl.dataset(ds.uri, version=old).schema["photo"], tl.types.Link)
    with pytest.raises(tl.InvalidOptionError, match="has no links"):
        ds.materialize(["n"])


def test_a_failed_copy_changes_nothing(ds, files):
    (files / "5.jpg").unlink()
    before = ds.version
    with pytest.raises(tl.MissingLinkError, match="sample 5"):
        ds.materialize(["photo"])
    ds.refresh()
    assert ds.version == before


def test_http_is_off_unless_a_host_is_named(tmp_path, files, jpegs):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(files))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            host = f"127.0.0.1:{server.server_port}"
            schema = {"photo": tl.types.Link(tl.types.Image("jpeg"))}
            shut = tl.dataset(tmp_path / "http", schema)
            shut.append({"photo": f"http://{host}/3.jpg"})
            assert shut.to_arrow(["photo"])["photo"][0].as_py()["size"] is None
            with pytest.raises(tl.ForbiddenLinkError, match="not allowed"):
                shut["photo"][0]
            ds = tl.dataset(tmp_path / "http", allow_http=[host])
            ds.append({"photo": f"http://{host}/2.jpg"})
            assert ds.to_arrow(["photo"])["photo"][1].as_py()["size"] == len(jpegs[2])
            assert ds["photo"][0].shape == ds["photo"][1].shape == (24, 32, 3)
        finally:
            server.shutdown()
            thread.join()


def test_a_reader_says_which_files_links_may_name(ds, files, tmp_path):
    shut = tl.dataset(ds.uri, links=tl.LinkRules(allow_files=False))
    with pytest.raises(PermissionError, match="not allowed"):
        shut["photo"][0]
    narrow = tl.dataset(ds.uri, links=tl.LinkRules(allow_files=[str(files)]))
    assert narrow["photo"][0].shape == (24, 32, 3)
    with pytest.raises(tl.InvalidOptionError, match="give one of them"):
        tl.dataset(ds.uri, allow_http=["example.org"], links=tl.LinkRules())


@pytest.fixture
def books(tmp_path, files):
    kind = tl.types.Sequence(tl.types.Link(tl.types.Image("jpeg")))
    found = tl.dataset(tmp_path / "books", {"pages": kind, "n": "int32"})
    urls = [str(files / f"{number}.jpg") for number in range(6)]
    found.extend({"pages": [urls[:3], [], None, (urls[3], None, files / "4.jpg")], "n": range(4)})
    return found


def test_lists_of_links_are_looked_up_and_read_as_lists_of_targets(books, ds, jpegs):
    stored = books.to_arrow(["pages"])["pages"].to_pylist()
    assert [one["size"] for one in stored[0]] == [len(data) for data in jpegs[:3]]
    assert all(one["etag"] for one in stored[0])
    assert stored[1:3] == [[], None]
    assert stored[3][1] is None
    found = books["pages"][:]
    assert [None if one is None else len(one) for one in found] == [3, 0, None, 3]
    np.testing.assert_array_equal(found[0][2], ds["photo"][2])
    np.testing.assert_array_equal(found[3][2], ds["photo"][4])
    assert found[3][1] is None
    assert books[1]["pages"] == []
    np.testing.assert_array_equal(books["pages"][[3, 0]][1][0], ds["photo"][0])
    np.testing.assert_array_equal(books["pages"][0, 1], ds["photo"][1])
    assert [one if one is None else len(one) for one in books["pages"]] == [3, 0, None, 3]


def test_a_link_of_a_list_that_changed_or_is_gone_names_sample_and_item(books, files, jpegs):
    (files / "4.jpg").write_bytes(jpegs[9])
    with pytest.raises(tl.ChangedLinkError, match="column 'pages', sample 3: item 2: what the"):
        books["pages"][3]
    (files / "1.jpg").unlink()
    with pytest.raises(tl.MissingLinkError, match="column 'pages', sample 0: item 1: there is no"):
        books["pages"][:]
    with pytest.raises(tl.MissingLinkError, match="sample 0: item 1"):
        books.materialize(["pages"])
    assert books["pages"][1] == []


def test_a_list_takes_only_links_that_lead_to_something(books, files):
    (files / "x.txt").write_text("hello")
    good, text, gone = (str(files / name) for name in ("0.jpg", "x.txt", "none.jpg"))
    with pytest.raises(tl.MissingLinkError, match="column 'pages', sample 1: item 1"):
        books.extend({"pages": [[good], [good, gone]], "n": [1, 2]})
    with pytest.raises(tl.MissingLinkError, match="item 0"):
        books["pages"][0] = [gone]
    with pytest.raises(tl.InvalidSampleTypeError, match="sample 0: expected a list of Link"):
        books.extend({"pages": [good], "n": [1]})
    with pytest.raises(tl.InvalidSampleTypeError, match="sample 0: item 0: expected Link"):
        books.extend({"pages": [[[good]]], "n": [1]})
    books["pages"][0] = [good, text]
    with pytest.raises(ValueError, match=r"sample 0: item 1: .*points to is not Image\('jpeg'\)"):
        books["pages"][0]


def test_lists_of_links_can_be_assigned_and_updated(books, files, jpegs):
    three, five = str(files / "3.jpg"), str(files / "5.jpg")
    books["pages"][1] = [five]
    books.update([2, 3], {"pages": [[five, three], [three]]})
    sizes = [[one["size"] for one in row] for row in books.to_arrow()["pages"].to_pylist()[1:]]
    a, b = len(jpegs[3]), len(jpegs[5])
    assert sizes == [[b], [b, a], [a]]


def test_lists_of_more_links_than_are_decoded_together(books, files, ds):
    links = [str(files / f"{number % 6}.jpg") for number in range(150)]
    books.extend({"pages": [links, [], links[:1]], "n": [4, 5, 6]})
    found = books["pages"][4:]
    assert [len(one) for one in found] == [150, 0, 1]
    np.testing.assert_array_equal(found[0][149], ds["photo"][149 % 6])


@pytest.mark.parametrize("how", ["materialize", "copy"])
def test_lists_of_links_are_copied_in_as_lists_of_media(books, files, tmp_path, jpegs, how):
    if how == "copy":
        books = books.copy(str(tmp_path / "copied"))
    else:
        books.materialize(["pages"])
    assert books.schema["pages"] == tl.types.Sequence(tl.types.Image("jpeg"))
    for number in range(6):
        (files / f"{number}.jpg").unlink()
    stored = books.to_arrow(["pages"])["pages"].to_pylist()
    assert [one["data"] for one in stored[0]] == jpegs[:3]
    assert stored[1:3] == [[], None]
    assert stored[3][1] is None
    assert books["pages"][3][2].shape == (24, 32, 3)
    assert books["n"][:].tolist() == [0, 1, 2, 3]


def test_lists_of_lists_of_links_are_links_too(tmp_path, files, jpegs):
    kind = tl.types.Sequence(tl.types.Sequence(tl.types.Link(tl.types.Image("jpeg"))))
    ds = tl.dataset(tmp_path / "nested", {"shelves": kind})
    ds.extend({"shelves": [[], [[], [files / "0.jpg", files / "1.jpg"]]]})
    assert ds["shelves"][1][1][1].shape == (24, 32, 3)
    (files / "1.jpg").unlink()
    with pytest.raises(tl.MissingLinkError, match="sample 1: item 1: item 1: "):
        ds["shelves"][:]


def test_the_rules_hold_for_lists(books):
    shut = tl.dataset(books.uri, links=tl.LinkRules(allow_files=False))
    with pytest.raises(tl.ForbiddenLinkError, match=r"sample 0: item 0: .*not allowed"):
        shut["pages"][0]


@pytest.mark.parametrize(
    "of",
    ["int64", tl.types.Json(), tl.types.Text(), tl.types.Tensor("u1"), tl.types.Image("raw")],
    ids=str,
)
def test_links_to_what_is_no_file_are_refused_in_new_columns(tmp_path, of):
    says = (
        r"column 'x': a link cannot lead to .*; what can be linked are Image .*, Dicom and 'bytes'$"
    )
    kind, place = tl.types.Link(of), tmp_path / "x"
    for given in (kind, tl.types.Sequence(kind)):
        with pytest.raises(tl.InvalidOptionError, match=says):
            tl.dataset(place, {"n": "int64", "x": given})
        assert not place.exists()
    ds = tl.dataset(place, {"n": "int64"})
    ds.append({"n": 1})
    with pytest.raises(tl.InvalidOptionError, match=says):
        ds.add_column("x", kind)


def test_a_table_that_has_links_to_what_is_no_file_opens(tmp_path):
    schema = {"x": tl.types.Link(tl.types.Json()), "n": "int64"}
    arrow = SampleSchema(schema).to_arrow()
    create_samples_table(Storage(str(tmp_path / "old")), arrow)
    ds = tl.dataset(tmp_path / "old", schema)
    ds.append({"n": 1})
    ds.add_column("m", "int64", 5)
    ds.rename_column("x", "y")
    assert ds[0] == {"y": None, "n": 1, "m": 5}


def test_all_kinds_of_files_can_be_linked(tmp_path):
    t = tl.types
    kinds = [t.Image("webp"), t.BinaryMask(), t.SegmentMask(["a"]), t.Video(), t.Audio(), t.Dicom()]
    schema = {f"x{number}": t.Link(kind) for number, kind in enumerate(kinds)}
    assert dict(tl.dataset(tmp_path / "ds", schema).schema) == schema
    (tmp_path / "x.txt").write_bytes(b"hello")
    for of in ("bytes", t.Plain(pa.large_binary())):
        ds = tl.dataset(tmp_path / str(of)[:5], {"x": t.Link(of)})
        ds.append({"x": tmp_path / "x.txt"})
        assert ds["x"][0] == b"hello"


@pytest.fixture(params=[False, True], ids=["one", "list"])
def beside(tmp_path, files, request):
    """A dataset whose links are kept apart: one a sample, or a list of them."""
    link = tl.types.Link(tl.types.Image("jpeg"), apart=not request.param)
    if request.param:
        link = tl.types.Sequence(link, apart=True)
    ds = tl.dataset(tmp_path / "beside", {"photo": link, "n": "int32"})
    urls = [str(files / f"{number}.jpg") for number in range(4)]
    ds.extend({"photo": [[url] if request.param else url for url in urls] + [None], "n": range(5)})
    return ds


def bytes_of(ds):
    found = ds.to_arrow(["photo"])["photo"].to_pylist()
    found = [one[0] if isinstance(one, list) else one for one in found]
    return [None if one is None else one["data"] for one in found]


def test_links_that_are_kept_apart_are_copied_in_to_a_table_of_their_own(beside, files, jpegs):
    ds, old = beside, beside.version
    ds.update([1], {"photo": ds.to_arrow(["photo"])["photo"].to_pylist()[:1]})
    ds.delete([2])
    ds.materialize(["photo"])
    assert ds.schema["photo"].apart
    assert "Link" not in str(ds.schema["photo"])
    for again in (ds, tl.dataset(ds.uri)):
        assert bytes_of(again) == [jpegs[0], jpegs[0], jpegs[3], None]
    (files / "0.jpg").unlink()
    (files / "1.jpg").unlink()
    assert ds["n"][:].tolist() == [0, 1, 3, 4]
    assert ds.check(deep=True).ok
    assert tl.dataset(ds.uri, version=old).to_arrow(["photo"])["photo"][1].is_valid
    ds.rename_column("photo", "picture")
    ds.append({"picture": None, "n": 9})
    one = jpegs[0] if isinstance(ds.schema["picture"], tl.types.Image) else [jpegs[0]]
    ds.update([4], {"picture": [one]})
    ds.rename_column("picture", "photo")
    assert bytes_of(ds) == [jpegs[0], jpegs[0], jpegs[3], jpegs[0], None]
    ds.vacuum(retention_hours=0)
    assert bytes_of(tl.dataset(ds.uri)) == [jpegs[0], jpegs[0], jpegs[3], jpegs[0], None]


def test_links_that_are_kept_apart_are_copied_in_by_copies(beside, tmp_path, files, jpegs):
    copied = beside.copy(str(tmp_path / "copied"))
    (files / "2.jpg").unlink()
    assert bytes_of(copied) == [*jpegs[:4], None]


@pytest.mark.parametrize("workers", [1, 3])
def test_samples_that_others_add_meanwhile_are_copied_in_too(
    beside, files, jpegs, workers, monkeypatch
):
    other, url = tl.dataset(beside.uri), str(files / "5.jpg")
    more = iter([url if isinstance(beside.schema["photo"], tl.types.Link) else [url]])

    def commit_after_another(storage, change):
        for one in more:
            other.append({"photo": one, "n": 5})
        return commit(storage, change)

    monkeypatch.setattr(rewriting, "commit", commit_after_another)
    beside.materialize(["photo"], workers=workers)
    assert bytes_of(beside) == [*jpegs[:4], None, jpegs[5]]
    assert beside["n"][:].tolist() == [*range(6)]
    assert beside.check().ok
    with pytest.raises(tl.ConcurrentWriteError, match="changed column 'photo'"):
        other.materialize(["photo"])


@pytest.mark.parametrize("workers", [0, "two", 2.0, True])
def test_workers_are_threads_or_a_session(ds, workers):
    with pytest.raises(tl.InvalidOptionError, match=r"workers=.* is neither a number of threads"):
        ds.materialize(["photo"], workers=workers)


def test_many_links_are_copied_in_by_shares_and_batches(tmp_path, files, jpegs, monkeypatch):
    monkeypatch.setattr(workers_module, "_SHARE_BYTES", (1 << 12, 1 << 13))
    monkeypatch.setattr(link_copying, "BATCH_BYTES", 1 << 11)
    kind = tl.types.Link(tl.types.Image("jpeg"))
    ds = tl.dataset(tmp_path / "many", {"photo": kind, "n": "int32"})
    urls = [str(files / f"{number % 6}.jpg") for number in range(40)]
    ds.extend({"photo": urls[:30], "n": range(30)})
    ds.extend({"photo": urls[30:], "n": range(30, 40)})
    assert max(map(len, jpegs[:6])) < 1 << 12
    ds.materialize(["photo"], workers=4)
    assert len(ds.stored.files) > 4
    assert ds.stored.is_sorted
    assert bytes_of(ds) == [jpegs[number % 6] for number in range(40)]
    assert ds["n"][:].tolist() == [*range(40)]


def test_errors_name_the_sample_whatever_order_files_have(ds, files, jpegs):
    ds.optimize(order=[5, 3, 1, 0, 2, 4, 6])
    (files / "4.jpg").write_bytes(jpegs[9])
    with pytest.raises(tl.ChangedLinkError, match="column 'photo', sample 4"):
        ds.materialize(["photo"])
    ds.delete([0])
    (files / "4.jpg").write_bytes(b"no picture")
    open_ = tl.dataset(ds.uri, links=tl.LinkRules(verify=False))
    with pytest.raises(tl.InvalidSampleError, match="column 'photo', sample 3"):
        open_.materialize(["photo"])
    assert not [*Path(ds.uri).glob("*samples-*-*-*-*-*-*")]  # none with a mark is left


def test_one_link_is_for_all_samples(ds, files, jpegs):
    url = str(files / "5.jpg")
    for sids in ([0, 1], [0, 1, 2]):  # as many as a link has fields
        ds.update(sids, {"photo": url})
        assert {one["url"] for one in ds.to_arrow()["photo"].to_pylist()[: len(sids)]} == {url}
    ds["photo"][3:5] = url
    assert ds["photo"][4].shape == (24, 32, 3)


def test_executors_copy_links_in(spark, beside, jpegs):
    beside.materialize(["photo"], workers=spark)
    assert bytes_of(beside) == [*jpegs[:4], None]


def test_links_of_a_new_column_are_looked_up(ds, files, jpegs):
    link = tl.types.Link(tl.types.Image("jpeg"))
    ds.add_column("other", link, [str(files / f"{number}.jpg") for number in range(5)] + [None] * 2)
    stored = ds.to_arrow(["other"])["other"].to_pylist()
    assert [one and one["size"] for one in stored] == [*map(len, jpegs[:5]), None, None]
    assert stored[0]["etag"]
    ds.add_column("same", link, files / "1.jpg")
    assert {one["size"] for one in ds.to_arrow(["same"])["same"].to_pylist()} == {len(jpegs[1])}
    ds.add_column("beside", tl.types.Link(tl.types.Image("jpeg"), apart=True), str(files / "2.jpg"))
    assert ds["beside"][6].shape == (24, 32, 3)
    lists = tl.types.Sequence(link)
    ds.add_column("lists", lists, [[str(files / "1.jpg")]] * 6 + [[]])
    assert ds.to_arrow(["lists"])["lists"][5].as_py()[0]["size"] == len(jpegs[1])
    before = ds.version
    with pytest.raises(tl.MissingLinkError, match="column 'gone', sample 0"):
        ds.add_column("gone", link, str(files / "none.jpg"))
    with pytest.raises(tl.InvalidSampleError, match="has 1 values for 7 samples"):
        ds.add_column("few", link, [str(files / "1.jpg")])
    assert tl.dataset(ds.uri).version == before
