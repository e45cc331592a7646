"""Loaders in JAX; what NumPy has is the oracle."""

import sys

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import MissingDependencyError


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    ds = tl.dataset(
        str(tmp_path_factory.mktemp("samples") / "ds"),
        {"x": tl.types.Tensor("float32", (2,)), "label": "int32", "name": "string"},
    )
    x = np.arange(20, dtype="f4").reshape(10, 2)
    ds.extend({"x": x, "label": np.arange(10), "name": [str(k) for k in range(10)]})
    return ds


def test_without_jax_it_is_named(dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(
        MissingDependencyError, match="needs jax, which is not installed: pip install 'jax'"
    ):
        dataset.loader(4).jax()


@pytest.mark.jax
def test_batches_are_arrays_of_jax(dataset):
    import jax

    batches = dataset.loader(4, shuffle=True, seed=1).jax()
    assert len(batches) == 3
    for found, expected in zip(batches, dataset.loader(4, shuffle=True, seed=1), strict=True):
        assert isinstance(found["x"], jax.Array)
        assert found["x"].dtype == np.float32
        assert np.array_equal(found["x"], expected["x"])
        assert np.array_equal(found["label"], expected["label"])
        assert list(found["name"]) == list(expected["name"])


@pytest.mark.jax
def test_each_pass_is_an_epoch_on_the_device_that_is_named(dataset):
    import jax

    device = jax.devices("cpu")[0]
    batches = dataset.loader(4, shuffle=True, seed=1).jax(device)
    first, second = ([batch["label"].tolist() for batch in batches] for _ in range(2))
    assert first != second
    assert next(iter(batches))["x"].devices() == {device}


@pytest.mark.jax
def test_a_step_that_is_compiled_takes_them(dataset):
    import jax

    total = jax.jit(lambda x: (x * x).sum())
    found = sum(float(total(batch["x"])) for batch in dataset.loader(5).jax())
    assert found == pytest.approx((np.arange(20.0) ** 2).sum())


@pytest.mark.jax
def test_slices_of_a_sparse_tensor(tmp_path):
    from jax.experimental.sparse import BCOO

    x = np.zeros((10, 300), "f4")
    x[[1, 2, 2, 9], [7, 0, 299, 150]] = 1, 2, 3, 4
    ref = tl.open(str(tmp_path)).write("x", tl.SparseTensor.from_dense(x))
    batches = [batch["x"] for batch in ref.loader(4).jax()]
    assert all(isinstance(batch, BCOO) for batch in batches)
    assert np.array_equal(np.concatenate([batch.todense() for batch in batches]), x)
    assert np.array_equal(next(iter(ref.loader(10).jax()))["x"] @ np.ones(300, "f4"), x.sum(axis=1))


@pytest.mark.jax
def test_what_jax_has_no_dtype_for_stays(dataset):
    batches = dataset.loader(
        4, collate=lambda samples: {"t": np.array([1], "M8[s]"), "g": np.array([1], "g")}
    ).jax()
    batch = next(iter(batches))
    assert batch["t"].dtype == np.dtype("M8[s]")
    assert isinstance(batch["g"], np.ndarray)
