"""Files of sparse tensors with something wrong in them: file, line and remedy are named, no tensor is written."""

import numpy as np
import pytest
import scipy.sparse

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest import ingestion as ingest
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions

GOOD = "# FROSTT\n1 1 2.5\n"
HEAD = "%%MatrixMarket matrix coordinate"


def scipys(rows, columns):
    """The arrays of an .npz file of scipy.sparse, as it writes a 2 x 2 matrix of ones."""
    places = {"row": np.array(rows), "col": np.array(columns)}
    return {**places, "data": np.ones(len(rows)), "shape": np.array([2, 2]), "format": b"coo"}


def rows(indptr):
    """The same, as rows."""
    places = {"indptr": np.array(indptr), "indices": np.array([0, 1])}
    return {**places, "data": np.ones(2), "shape": np.array([2, 2]), "format": b"csr"}


def sparses(coords, count=2):
    """The same, of the package sparse."""
    return {
        "coords": np.array(coords),
        "data": np.ones(count),
        "shape": np.array([2, 2]),
        "fill_value": 0.0,
    }


def put(path, content):
    if isinstance(content, str):
        path.write_text(content)
    else:
        np.savez(path, **content)


def run(spark, tmp_path, files, **options):
    for name, content in files.items():
        put(tmp_path / name, content)
    sources = [str(tmp_path / name) for name in files]
    return ingest.run(spark, str(tmp_path / "lake"), "x", sources, IngestOptions(options=options))


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        ({"x.tns": GOOD + "\n3 1.5\n"}, {}, ["x.tns, line 4: the line '3 1.5' has 2 fields", "2 indices and a value"]),
        ({"a.tns": GOOD, "b.tns": "2 2 1\n3 1 2 1.5\n"}, {}, ["b.tns, line 2: the line '3 1 2 1.5' has 4 fields", "a.tns has 3"]),
        ({"x.tns": GOOD + "2 0 1\n"}, {}, ["x.tns, line 3: column 'i1' has 0, which is below 1", "add 1 if these count from 0"]),
        ({"x.tns": GOOD + "1.5 1 1\n"}, {}, ["x.tns, line 3: column 'i0' has '1.5', which is not an index", "integers from 1 on"]),
        ({"x.tns": GOOD + "5 1 1\n"}, {"shape": "3,3"}, ["x.tns, line 3: column 'i0' has 5", "beyond the shape (3, 3)"]),
        ({"x.tns": GOOD + "1 2 abc\n1 3 -\n"}, {}, ["x.tns, line 3: column 'value' has 'abc', which is not a number", "1e-3", "(2 records are so)"]),
        ({"x.tns": "1 1 2\n1 2 300\n"}, {"dtype": "int8"}, ["x.tns, line 2: column 'value' has '300', which is no int8", "-128 to 127", "--dtype"]),
        ({"x.tns": f"1 1 2\n1 2 {2**63}\n"}, {}, [f"x.tns, line 2: column 'value' has '{2**63}', which is beyond int64", "a decimal point"]),
        pytest.param({"x.tns": f"1 2 {2**63}\n"}, {"dtype": "uint64"}, [f"x.tns, line 1: column 'value' has '{2**63}', which is beyond int64"], marks=pytest.mark.soak),
        ({"a.tns": GOOD, "b.tns": "1 1 1 3\n"}, {}, ["b.tns begins with a line of 4 fields", "a.tns with one of 3", "another --id"]),
        ({"x.tns": "1\n"}, {}, ["x.tns begins with a line of 1 fields", "a line is the indices of an element"]),
        ({"x.tns": "# FROSTT\n"}, {}, ["x.tns holds no element", "give at least one line"]),
        ({"x.mtx": f"{HEAD} real general\n%\n2 2 2\n1 1 1\n1 2 1 5\n"}, {}, ["x.mtx cannot be read: Line 5: '1 2 1 5'", "row, column and a number"]),
        pytest.param({"x.mtx": f"{HEAD} integer general\n2 2 1\n1 1 1.5\n"}, {}, ["x.mtx cannot be read: Line 3: '1 1 1.5'", "row, column and an integer"], marks=pytest.mark.soak),
        pytest.param({"x.mtx": f"{HEAD} real general\n2 2 1\n1 3 1\n"}, {}, ["x.mtx cannot be read: Line 3: Column index out of bounds"], marks=pytest.mark.soak),
        ({"x.npz": scipys([0, 5], [0, 1])}, {}, ["x.npz cannot be read: its element (5, 1) lies outside of its shape (2, 2)"]),
        ({"x.npz": rows([0, 1 << 30, 2])}, {}, ["x.npz cannot be read: its indptr does not rise from 0 to 2"]),
        pytest.param({"x.npz": sparses([[0, 1], [0, 2]])}, {}, ["x.npz cannot be read: its element (1, 2) lies outside of its shape (2, 2)"], marks=pytest.mark.soak),
        pytest.param({"x.npz": sparses([[0, 1], [0, 1]], 3)}, {}, ["x.npz cannot be read: it has 3 values", "(2, 2) in place of (2, 3)"], marks=pytest.mark.soak),
    ],
)  # fmt: skip
def test_bad_sparse_files_say_so_and_write_nothing(spark, tmp_path, files, options, says):
    with pytest.raises(tl.InvalidTensorError) as told:
        run(spark, tmp_path, files, **options)
    for text in says:
        assert text in str(told.value)
    assert not (tmp_path / "lake").exists(), "no tensor, and no orphan"


def test_matrices_of_one_tensor_have_one_rank(spark, tmp_path):
    scipy.sparse.save_npz(tmp_path / "y.npz", scipy.sparse.coo_array(([1.0], ([0],)), (3,)))
    (tmp_path / "x.mtx").write_text(f"{HEAD} real general\n2 2 1\n1 1 1\n")
    sources = [str(tmp_path / "x.mtx"), str(tmp_path / "y.npz")]
    says = r"y\.npz has the shape \(3,\), .*x\.mtx has \(2, 2\).*another --id"
    with pytest.raises(tl.InvalidTensorError, match=says):
        ingest.run(spark, str(tmp_path / "lake"), "x", sources)
    assert list(tl.open(tmp_path / "lake")) == []


def test_a_fractional_coordinate_is_refused(spark, tmp_path):
    with pytest.raises(tl.InvalidTensorError, match=r"x\.npz cannot be read.*not integers"):
        run(spark, tmp_path, {"x.npz": sparses([[0, 0.5], [0, 1]])})
