"""Columns of links: looked up, fetched, changed, gone, copied in."""

import http.server
import threading

import numpy as np
import pytest

import tensorlake_spark as tl


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
