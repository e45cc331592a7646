"""What users may name as sources."""

import builtins
import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import tensorlake_spark as tl

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
SQL = "SELECT a, b FROM t WHERE a > 1 ORDER BY a"
ROWS = [{"a": 2, "b": "y"}, {"a": 3, "b": None}]


def delta(folder):
    write_deltalake(folder, TABLE.slice(0, 2))
    write_deltalake(folder, TABLE.slice(2), mode="append")
    return folder


def parquet(folder, several):
    folder.mkdir()
    pq.write_table(TABLE.slice(0, 2), folder / "one.parquet")
    if several:
        (folder / "in").mkdir()
        pq.write_table(TABLE.slice(2), folder / "in" / "two.parquet")
        return folder
    pq.write_table(TABLE, folder / "all.parquet")
    return folder / "all.parquet"


@pytest.mark.parametrize(
    "make",
    [
        lambda f: TABLE,
        lambda f: TABLE.to_batches()[0],
        lambda f: TABLE.to_pandas(),
        lambda f: str(delta(f / "d")),
        lambda f: parquet(f / "p", False),
        lambda f: str(parquet(f / "p", True)),
        lambda f: tl.query("SELECT * FROM t", t=TABLE),
    ],
    ids=["arrow", "batch", "pandas", "delta", "file", "folder", "view"],
)
def test_tables_of_all_kinds(tmp_path, make):
    assert tl.query(SQL, t=make(tmp_path)).to_arrow().to_pylist() == ROWS


def test_versions_of_delta_tables(tmp_path):
    place = str(delta(tmp_path / "d"))
    view = tl.query(
        "SELECT count(*) AS n FROM t VERSION 0 UNION ALL SELECT count(*) FROM t", t=place
    )
    assert view["n"].tolist() == [2, 3]


def test_places_of_datasets_and_lakes(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": tl.types.Tensor("int32", (2,))})
    ds.extend({"x": [[1, 2], [3, 4]]})
    lake = tl.open(tmp_path / "lake")
    lake.write("a", np.zeros((3, 4)))
    lake.write("b", np.zeros(5))
    assert tl.query("SELECT x FROM d WHERE array_sum(x) > 4", d=ds.uri).sids.tolist() == [1]
    for given in (lake, str(tmp_path / "lake")):
        view = tl.query("SELECT id, shape, nbytes FROM l WHERE nbytes > 50", l=given)
        assert view[0]["id"] == "a"
        assert view[0]["shape"].tolist() == [3, 4]
    assert tl.query("SELECT count(*) AS n FROM l VERSION 1", l=lake)[0]["n"] == 1


def test_what_is_no_source(tmp_path):
    with pytest.raises(tl.InvalidOptionError, match="t=list is not a Dataset"):
        tl.query(SQL, t=[1])
    with pytest.raises(tl.InvalidOptionError, match=r"t=numpy.ndarray is not a Dataset"):
        tl.query(
            SQL, t=np.zeros(3)
        )  # a DataFrame of Polars would read like one of pandas otherwise
    with pytest.raises(tl.TableNotFoundError, match="no Delta table and no Parquet"):
        tl.query(SQL, t=tmp_path / "gone")
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(tl.InvalidOptionError, match="cannot be read as Parquet"):
        tl.query(SQL, t=tmp_path / "bad.parquet")


def test_what_the_user_may_not_read_is_told(tmp_path, monkeypatch):
    """A folder that cannot be listed would be left out, and a query would count the others alone."""
    ds = tl.dataset(tmp_path / "ds", {"a": "int32"})
    ds.extend({"a": [1, 2]})
    (file,) = (tmp_path / "ds").glob("*.parquet")
    place = parquet(tmp_path / "p", True)
    told, scandir = [place / "in", file], os.scandir

    def refuse(call):
        def refusing(path=".", *args, **options):
            if Path(os.fsdecode(path)) in told:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return call(path, *args, **options)

        return refusing

    monkeypatch.setattr(os, "scandir", refuse(scandir))
    monkeypatch.setattr(builtins, "open", refuse(open))
    for given in (place, tl.dataset(tmp_path / "ds"), tmp_path / "ds"):
        with pytest.raises(tl.StorageError, match=r"^the store of .*Permission denied") as raised:
            tl.query("SELECT count(*) AS n, sum(a) AS s FROM t", t=given).to_pandas()
        assert "\n" not in str(raised.value)
    told.append(place)
    with pytest.raises(tl.StorageError, match=r"^the store of .*Permission denied"):
        tl.query(SQL, t=place)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            "source t: the DataFrame.*Duplicate column names",
        ),
        (pd.DataFrame({"a": [1, "x"]}), "source t: the DataFrame cannot be made a table"),
        (pd.DataFrame({"a": [object()]}), "source t: the DataFrame cannot be made a table"),
        (pd.DataFrame({"a": [1], "A": [2]}), "t has columns 'a' and 'A'"),
        (pa.table([[1], [2]], names=["a", "a"]), "t has columns 'a' and 'a'"),
    ],
)
def test_tables_that_a_query_cannot_read(frame, said):
    with pytest.raises(tl.InvalidOptionError, match=said):
        tl.query("SELECT * FROM t", t=frame)


def test_sources_have_names_without_case():
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(tl.InvalidOptionError, match="sources 't' and 'T' differ in case only"):
        tl.query("SELECT a FROM t", t=frame, T=frame)


def test_pandas_objects_are_texts():
    frame = pd.DataFrame({"a": [5], "b": ["z"]}, index=[3])
    assert tl.query("SELECT * FROM t", t=frame)[0] == {"a": 5, "b": "z"}
