"""Files of a source: listed, named, read, on disk and on S3."""

import os
import pickle

import pytest

from tensorlake_spark.datasets.sources.folder import MAX_BYTES, Folder, expanded, folder_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError, StorageError


@pytest.fixture
def made(tmp_path):
    for name in ("a/1.txt", "a/b/2.txt", "3.txt", ".git/x", "a/.y", "__MACOSX/z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_files_are_listed_by_names_without_hidden_ones(made):
    folder = folder_of(made)
    assert dict(folder.sizes) == {"3.txt": 5, "a/1.txt": 7, "a/b/2.txt": 9}
    assert folder.read("a/b/2.txt") == b"a/b/2.txt"


def test_a_file_is_its_folder_and_one_name(made):
    folder = folder_of(made / "a/1.txt")
    assert (folder.uri, folder.named, list(folder.sizes)) == (f"{made}/a", ("1.txt",), ["1.txt"])


def test_names_with_odd_characters_are_taken_as_they_are(tmp_path):
    for name in ("a b#c.txt", "ä?.txt", "x[1].txt", "{y}.txt"):
        (tmp_path / name).write_bytes(name.encode())
    folder = folder_of(tmp_path)
    assert all(folder.read(name) == name.encode() for name in folder.sizes)
    assert list(folder_of(tmp_path / "x[1].txt").sizes) == ["x[1].txt"]


def test_an_empty_text_is_not_the_root_of_all_files():
    with pytest.raises(InvalidOptionError, match="the source is an empty text; name a folder"):
        folder_of("")


def test_a_name_that_is_not_utf8_is_told(tmp_path):
    (tmp_path / "a").mkdir()
    with open(os.fsencode(tmp_path) + b"/a/\xff.png", "wb"):
        pass
    with pytest.raises(
        InvalidOptionError, match=rf"^{tmp_path} has a file .*'a/\\udcff\.png' has half"
    ):
        folder_of(tmp_path).sizes


@pytest.mark.parametrize("name", ["nowhere", "*.csv", "a/{1..3}.txt", "*/1.txt"])
def test_what_is_not_there_is_told(made, name):
    with pytest.raises(
        InvalidOptionError, match=r"no such file|no file of that folder|only the last part"
    ):
        folder_of(f"{made}/{name}")


def test_braces_that_count_down_are_not_the_whole_folder(tmp_path):
    """They stood for no name, and a folder without names is all of its files."""
    (tmp_path / "b.csv").write_text("url")
    with pytest.raises(InvalidOptionError, match=r"{3\.\.1} counts down, .* write {1\.\.3}"):
        folder_of(str(tmp_path / "a{3..1}.csv"))


@pytest.mark.parametrize("pattern", ["{0..99999999}", "{0..999}" * 3])
def test_braces_stand_for_a_bounded_number_of_names(pattern):
    with pytest.raises(InvalidOptionError, match="more than 1000000 names"):
        expanded(pattern)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/x.tar", "ftp://host/x", "foo://host/x-{0..1}.tar"]
)
def test_a_place_that_is_no_store_is_told(url):
    with pytest.raises(InvalidOptionError, match=r"names no kind of store; begin with s3://"):
        dict(folder_of(url).sizes)


def test_a_value_is_bounded(made, monkeypatch):
    monkeypatch.setenv(MAX_BYTES, "6")
    assert folder_of(made).read("3.txt") == b"3.txt"
    with pytest.raises(InvalidSampleError, match=r"a/1\.txt has more than 6 bytes"):
        folder_of(made).read("a/1.txt")
    monkeypatch.setenv(MAX_BYTES, "much")
    with pytest.raises(InvalidOptionError, match="is not a number above 0"):
        folder_of(made).read("3.txt")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "%2e%2e/x", "file:x", "a\\..\\..\\x"]
)
def test_names_that_lead_out_are_refused(made, name):
    with pytest.raises(InvalidSampleError, match=r"which lies outside of"):
        folder_of(made).check_inside(name, "list.txt")


def test_names_inside_lose_what_means_nothing(made):
    assert folder_of(made).check_inside("././a\\1.txt", "list.txt") == "a/1.txt"


def test_a_folder_that_travels_has_no_listing_and_shows_no_secrets(made):
    folder = Folder(str(made), {"aws_secret_access_key": "hidden"})
    assert len(folder.sizes) == 3
    there = pickle.loads(pickle.dumps(folder))
    assert "_infos" not in vars(there)
    assert there == folder
    assert "hidden" not in repr(folder)


def test_a_file_that_may_not_be_read_is_no_bad_sample(made, monkeypatch):
    def refuse(*_):
        raise PermissionError("not you")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(StorageError, match="not you"):
        folder_of(made).read("3.txt")


def test_a_folder_in_the_place_of_a_file(made):
    with pytest.raises(InvalidSampleError, match="there is no such file"):
        folder_of(made).read("a")


def test_links_are_followed_but_not_in_circles(tmp_path):
    made, other = tmp_path / "made", tmp_path / "other"
    for path in (made / "a/1.txt", other / "b/2.txt", made / ".hidden/3.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"..")
    (made / "a/up").symlink_to(made)
    (made / "a/here").symlink_to(made / "a")
    (made / "other").symlink_to(other)
    (other / "back").symlink_to(made)
    (made / "a/file.txt").symlink_to(other / "b/2.txt")
    (made / "a/itself").symlink_to(made / "a/itself")
    (made / "a/nowhere").symlink_to(tmp_path / "nowhere")
    found = folder_of(made)
    assert dict(found.sizes) == {"a/1.txt": 2, "a/file.txt": 2, "other/b/2.txt": 2}
    assert found.read("other/b/2.txt") == b".."


@pytest.mark.parametrize("given", [5, None, [], b"x", ["a"]], ids=repr)
def test_what_is_no_path_is_named(given):
    with pytest.raises(InvalidOptionError, match="name a folder, a file or a glob"):
        folder_of(given)
