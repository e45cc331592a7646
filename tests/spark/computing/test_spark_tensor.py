"""Methods by executors: the answers of `TensorRef`, of a slice, at one version."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.computing import result_stream
from tensorlake_spark.computing.result_stream import ResultStream
from tensorlake_spark.spark import compute
from tensorlake_spark.writing import source

DENSE = {
    "var": {"axis": (0, 2), "ddof": 1}, "argmin": {"axis": 1},
    "tensordot": {"other": np.arange(12.0).reshape(6, 2), "axes": (1, 0)},
}  # fmt: skip
SPARSE = {
    "sum": {"axis": 0, "keepdims": True}, "argmax": {"axis": 2},
    "mttkrp": {"factors": [np.arange(2.0 * n).reshape(n, 2) for n in (9, 6, 10)], "mode": 2},
}  # fmt: skip


def same(found, want):
    assert type(found) is type(want)
    for one, other in [(found, want)]:
        if isinstance(one, tl.SparseTensor):
            np.testing.assert_array_equal(one.coords, other.coords)
            one, other = one.values, other.values
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("tensor_id", "calls"), [("dense", DENSE), ("thin", SPARSE), ("twice", SPARSE)]
)
def test_answers_are_those_of_one_process(spark, path, tensor_id, calls):
    some = compute(spark, path, tensor_id, "3:12")
    view = tl.open(path)[tensor_id].view[3:12]
    for name, options in calls.items():
        same(getattr(some, name)(**options), getattr(view, name)(**options))
    with pytest.raises(TypeError, match="along one axis"):
        some.argmax(axis=(0, 1))


@pytest.mark.parametrize("tensor_id", ["dense", "thin", "twice"])
def test_masks_travel_to_tasks(spark, path, arrays, tensor_id):
    some = compute(spark, path, tensor_id, "3:12")
    mask = np.random.default_rng(2).random((6, 1)) < 0.5
    found = some.mean(axis=(0, 1), where=mask)
    want = arrays[tensor_id][3:12].mean(axis=(0, 1), where=mask)
    np.testing.assert_allclose(np.asarray(getattr(found, "todense", lambda: found)()), want, 1e-5)


@pytest.mark.parametrize("tensor_id", ["dense", "thin", "twice"])
def test_einsum_is_computed_by_tasks(spark, path, tensor_id):
    some, view = compute(spark, path, tensor_id, "3:12"), tl.open(path)[tensor_id].view[3:12]
    matrix = np.arange(12.0).reshape(6, 2)
    for text, *others in (("ijk->ki",), ("ijk,jl->kil", matrix), ("ijk,jl->l", matrix)):
        same(np.einsum(text, some, *others), np.einsum(text, view, *others))
    same(np.einsum("jl,ijk->kil", matrix, some), np.einsum("jl,ijk->kil", matrix, view))


@pytest.mark.parametrize("tensor_id", ["dense", "thin"])
def test_first_indices_by_a_function(spark, path, arrays, tensor_id):
    some = compute(spark, path, tensor_id, "3:12")
    holds = arrays[tensor_id][3:12] > 20
    want = np.where(holds.any(axis=0), holds.argmax(axis=0), -1)
    np.testing.assert_array_equal(some.first_index(lambda x: x > 20, axis=0), want)


@pytest.mark.parametrize("tensor_id", ["dense", "thin"])
def test_products_of_stored_tensors_take_bands_of_the_second(
    spark, path, arrays, tensor_id, monkeypatch
):
    array = arrays[tensor_id]
    monkeypatch.setattr(source, "REGION_BYTES", 1 << 10)
    some, other = (compute(spark, path, tensor_id, key) for key in ("3:5", ":2"))
    found = some.tensordot(other, ([1, 2], [1, 2]))
    want = np.tensordot(array[3:5], array[:2], ([1, 2], [1, 2]))
    np.testing.assert_allclose(getattr(found, "todense", lambda: found)(), want, 1e-5)


def test_products_with_sparse_tensors(spark, path):
    other = tl.SparseTensor.from_dense(np.eye(6, 2))
    for tensor_id in ("dense", "thin"):
        some, ref = compute(spark, path, tensor_id), tl.open(path)[tensor_id]
        same(some.tensordot(other, (1, 0)), ref.tensordot(other, (1, 0)))


def test_a_large_answer_is_written_region_by_region(spark, tmp_path, monkeypatch):
    place = str(tmp_path / "lake")
    array = np.arange(500 * 800 * 2.0).reshape(500, 800, 2)
    before = tl.open(place).write("x", array).version
    monkeypatch.setattr(result_stream, "REGION_BYTES", 1 << 19)
    monkeypatch.setattr(source, "REGION_BYTES", 1 << 19)
    monkeypatch.setattr(result_stream, "_AGAIN", 1e9)
    parts, part = [], ResultStream.part
    monkeypatch.setattr(ResultStream, "part", lambda x, box: parts.append(box) or part(x, box))
    ref = compute(spark, place, "x").sum(axis=2, into="sums")
    assert ref.version == before + 1
    assert len(parts) > 2
    np.testing.assert_array_equal(ref[...], array.sum(axis=2))


def test_elementwise_results_and_functions_of_numpy(spark, path, arrays):
    some = compute(spark, path, "dense", np.s_[::2, 1])
    want = arrays["dense"][::2, 1]
    np.testing.assert_array_equal(abs(some) + want, abs(want) + want)
    np.testing.assert_allclose(np.sum(some, axis=0), want.sum(axis=0))


def test_shares_of_many_tasks_give_the_same_answer(spark, path, small_shares):
    some, ref = compute(spark, path, "dense"), tl.open(path)["dense"]
    same(some.argmin(axis=1), ref.argmin(axis=1))


@pytest.mark.parametrize(
    ("tensor_id", "calls"),
    [("dense", DENSE), ("thin", SPARSE), ("filled", DENSE), ("twice", SPARSE)],
)
def test_answers_put_together_from_parts_are_the_same(spark, path, small_parts, tensor_id, calls):
    some, view = compute(spark, path, tensor_id, "3:12"), tl.open(path)[tensor_id].view[3:12]
    for name, options in calls.items():
        same(getattr(some, name)(**options), getattr(view, name)(**options))


@pytest.mark.parametrize("into", [None, "powers"])
def test_values_that_numpy_refuses_in_a_task_are_an_error_of_ours(spark, place, into):
    tl.open(place).write("x", np.arange(12).reshape(4, 3), block_shape=(1, 3))
    some, exponents = compute(spark, place, "x"), np.array([[2], [2], [-1], [2]])
    with pytest.raises(tl.InvalidTensorError, match="negative integer powers are not allowed; ast"):
        some.map(np.power, exponents, into=into)
    assert [*tl.open(place)] == ["x"]


def test_it_shows_what_it_is_and_what_it_reads(spark, path):
    some = compute(spark, path, "dense", "5:7, ..., ::3")
    assert (some.id, some.shape, some.ndim, some.dtype) == ("dense", (2, 6, 4), 3, np.float32)
    assert (
        repr(some)
        == f"SparkTensor('dense', shape=(2, 6, 4), dtype=float32, version={some.version})"
    )
    assert (some.nnz, compute(spark, path, "thin").nnz) == (None, tl.open(path)["thin"].nnz)
    assert some.explain().files == tl.open(path)["dense"].explain("5:7, ..., ::3").files
    with pytest.raises(tl.UnsupportedFunctionError, match=r"tl\.open"):
        np.asarray(some)
    for use in (lambda: some[0], lambda: list(some)):
        with pytest.raises(tl.UnsupportedFunctionError, match=r"give compute\(...\) the slice"):
            use()
    with pytest.raises(tl.InvalidTensorError, match=r"tensor .dense. of shape .* use x\.any"):
        bool(some)  # was true, whatever it held


def test_it_stays_at_its_version(spark, place):
    lake = tl.open(place)
    lake.write("x", np.ones((4, 3)))
    now, first = compute(spark, place, "x"), lake["x"].version
    lake.write("x", np.zeros((4, 3)), mode="overwrite")
    assert now.sum() == compute(spark, place, "x", version=first).sum() == 12
    assert compute(spark, place, "x").sum() == 0


def test_a_reduction_goes_to_the_lake(spark, place):
    lake = tl.open(place)
    lake.write("x", np.arange(12).reshape(4, 3))
    ref = compute(spark, place, "x").sum(axis=1, into="sums")
    assert isinstance(ref, tl.TensorRef)
    assert lake["sums"][...].tolist() == [3, 12, 21, 30]


def test_what_is_not_there_or_does_not_fit_is_told_before_a_task_starts(spark, path):
    with pytest.raises(tl.TensorNotFoundError, match="dense"):
        compute(spark, path, "dens")
    with pytest.raises(tl.TableNotFoundError):
        compute(spark, path + "-not", "dense")
    with pytest.raises(tl.InvalidKeyError):
        compute(spark, path, "dense", np.s_[99])
    with pytest.raises(tl.InvalidOptionError, match="SparkSession"):
        compute(None, path, "dense")
    some = compute(spark, path, "dense")
    with pytest.raises(tl.AxisError):
        some.sum(axis=3)
    with pytest.raises(tl.InvalidTensorError):
        some.ttv(np.arange(5), axis=1)
    with pytest.raises(tl.UnsupportedDtypeError, match=r"gives Python objects.*tl\.open"):
        some.map(np.frompyfunc(lambda x: x, 1, 1))
