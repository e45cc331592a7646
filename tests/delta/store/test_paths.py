"""No name that others wrote leads out of the folder of a table."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.delta.store.paths import inside, live_path, path_of
from tensorlake_spark.errors import FormatError, UnsupportedFeatureError

OUT = [
    "../x",
    "a/../../x",
    "/etc/x",
    "file:///x",
    "s3://b/x",
    "a\\..\\..\\x",
    "a\nb",
    "a\u2028b",
    "..",
]


@pytest.mark.parametrize("name", ["x.parquet", "a/b/x.parquet", "a..b", "..a/x", "a b%20c", "é"])
def test_names_in_the_folder_are_kept(name):
    assert inside(name) == name
    assert path_of({"path": quote(name)}) == name


@pytest.mark.parametrize("times", [0, 1, 2, 3])
@pytest.mark.parametrize("name", OUT)
def test_names_that_lead_out_are_refused_however_often_they_are_encoded(name, times):
    for _ in range(times):
        name = quote(name, safe="")
    with pytest.raises(FormatError, match="lies outside of its folder"):
        inside(name)
    with pytest.raises(FormatError, match="nothing was read"):
        path_of({"path": name})


@given(st.text(alphabet="./\\%25ef:a", max_size=12))
def test_what_is_let_in_has_no_step_upwards(name):
    try:
        found = inside(name)
    except FormatError:
        return
    assert found == name
    assert not name.startswith(("/", "\\"))
    assert ".." not in name.replace("\\", "/").split("/")


@pytest.mark.parametrize("name", ["x.parquet", "aB/x.parquet", "id=7/a..b_c-1.parquet"])
def test_a_live_file_of_one_spelling_is_taken(name):
    assert live_path(name, "u") == name


@pytest.mark.parametrize(
    "name",
    ["a%20b.parquet", "a b.parquet", "id=a%252Fb/x", "ü.parquet", "a+b", "./a", "a//b", "a/./b"],
)
def test_a_live_file_that_is_spelled_in_several_ways_is_refused(name):
    """deltalake would remove another name than the log has, and the file would stay."""
    with pytest.raises(
        UnsupportedFeatureError, match=r"may spell in several ways.*an UPDATE by Spark"
    ):
        live_path(name, "u")


@pytest.mark.parametrize("name", ["/a/x", "file:///x", "s3://b/x"])
def test_a_live_file_of_a_shallow_clone_is_refused(name):
    with pytest.raises(UnsupportedFeatureError, match="a shallow clone"):
        live_path(name, "u")
