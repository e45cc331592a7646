"""Matrix Market files in pieces: SciPy, which reads them whole, is the oracle."""

import itertools

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from sparse_files import dense, random

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.records import matrix_market
from tensorlake_spark.spark.ingest.records.matrices import elements_of, header_of


@pytest.mark.parametrize(
    ("field", "symmetry"),
    [
        *itertools.product(
            ["real", "integer", "complex"], ["general", "symmetric", "skew-symmetric"]
        ),
        ("complex", "hermitian"),
    ],
)
def test_a_dense_mtx_comes_in_pieces(tmp_path, monkeypatch, field, symmetry):
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 4, (9, 9) if symmetry != "general" else (7, 11))
    x = x + 1j * rng.integers(-3, 4, x.shape) if field == "complex" else x
    x = x.astype(float) if field == "real" else x
    if symmetry == "symmetric":
        x = x + x.T
    elif symmetry != "general":
        x = x - x.T if symmetry == "skew-symmetric" else x + x.conj().T
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, x, comment="one\n two", symmetry=symmetry)
    monkeypatch.setattr(matrix_market, "_CHUNK", 20)
    shape, dtype, parts = header_of(str(path))
    assert parts == ((0, None),)
    pieces = list(elements_of(str(path)))
    assert len(pieces) > 4
    np.testing.assert_array_equal(dense(pieces, shape, dtype), scipy.io.mmread(path))
    np.testing.assert_array_equal(dense(pieces, shape, dtype), x)


@pytest.mark.parametrize(("count", "says"), [(76, "it has more than the 76 elements"), (78, "it has 77 of the 78")])  # fmt: skip
def test_a_dense_mtx_of_another_length(tmp_path, count, says):
    path = tmp_path / "x.mtx"
    lines = "1.5\n" * 77
    path.write_text(f"%%MatrixMarket matrix array real general\n{count} 1\n{lines}")
    with pytest.raises(tl.InvalidTensorError, match=says):
        list(elements_of(str(path)))


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_a_sparse_mtx_comes_in_pieces(tmp_path, monkeypatch, symmetry):
    x = random("coo", np.float64, (60, 60))
    x = x if symmetry == "general" else x + x.T
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, x, symmetry=symmetry)
    monkeypatch.setattr(matrix_market, "_CHUNK", 100)
    shape, dtype, _ = header_of(str(path))
    pieces = list(elements_of(str(path)))
    assert len(pieces) > 4
    np.testing.assert_array_equal(dense(pieces, shape, dtype), x.toarray())


@pytest.mark.parametrize("line", ["0 1 1", "1 0 1", "3 1 1", "1 3 1", "-1 1 1"])
def test_an_element_outside_of_a_sparse_mtx(tmp_path, line):
    path = tmp_path / "x.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n2 2 2\n2 2 1\n{line}\n")
    with pytest.raises(tl.InvalidTensorError, match=r"x\.mtx cannot be read: Line 4"):
        list(elements_of(str(path)))


@pytest.mark.parametrize(
    "form", ["coordinate double general\n2 3 1\n2 1", "array double general\n1 1\n"]
)
def test_double_is_another_word_for_real(tmp_path, form):
    path = tmp_path / "x.mtx"
    path.write_text(f"%%MatrixMarket matrix {form} 2.5\n")
    shape, dtype, _ = header_of(str(path))
    want = scipy.io.mmread(path, spmatrix=False)
    want = want if isinstance(want, np.ndarray) else want.toarray()
    np.testing.assert_array_equal(dense(elements_of(str(path)), shape, dtype), want)
    assert dtype == np.float64
