"""Loaders in PyTorch: alone and under a DataLoader; what NumPy has is the oracle."""

import itertools
import multiprocessing
import re
import sys

import ml_dtypes
import numpy as np
import pytest
from places import DOCS

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.tensor.sparse import SparseTensor, array_of_torch

COUNT, BATCH = 50, 8
SCHEMA = {
    "x": tl.types.Tensor("float32", (2, 3)),
    "ragged": tl.types.Tensor("int16", (None,)),
    "label": "int64",
    "name": "string",
}

needs_torch = pytest.mark.torch
both_starts = pytest.mark.parametrize("method", ["fork", "spawn"])


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("samples") / "ds")
    tl.dataset(folder, SCHEMA).extend(
        {
            "x": np.arange(COUNT * 6, dtype="f4").reshape(COUNT, 2, 3),
            "ragged": [np.arange(k % 4, dtype="i2") for k in range(COUNT)],
            "label": np.arange(COUNT),
            "name": [f"n{k}" for k in range(COUNT)],
        }
    )
    return folder


@pytest.fixture
def loader(uri):
    """A loader whose every epoch has an order of its own."""
    return tl.dataset(uri).loader(BATCH, shuffle=True, seed=5, workers=1)


def labels(batches):
    return [batch["label"].tolist() for batch in batches]


def epochs(uri, count):
    loader = tl.dataset(uri).loader(BATCH, shuffle=True, seed=5, workers=1)
    return [labels(loader) for _ in range(count)]


def data_loader(samples, workers, method=None, **options):
    from torch.utils.data import DataLoader

    context = method if workers else None
    return DataLoader(
        samples, batch_size=None, num_workers=workers, multiprocessing_context=context, **options
    )


def test_without_pytorch_it_is_named(loader, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"needs torch.*tensorlake-spark\[torch\]"):
        loader.torch()


def test_pin_memory_is_true_or_false(loader):
    with pytest.raises(InvalidOptionError, match="pin_memory='cuda' is not True or False"):
        loader.torch(pin_memory="cuda")


# ------------------------------------------------------------------ alone


@needs_torch
def test_batches_are_tensors_of_the_same_values(loader, uri):
    import torch

    samples = loader.torch()
    assert isinstance(samples, torch.utils.data.IterableDataset)
    assert len(samples) == 7
    for found, expected in itertools.zip_longest(
        samples, tl.dataset(uri).loader(BATCH, shuffle=True, seed=5)
    ):
        assert found["x"].dtype == torch.float32
        assert np.array_equal(found["x"].numpy(), expected["x"])
        assert found["label"].tolist() == expected["label"].tolist()
        assert [one.tolist() for one in found["ragged"]] == [
            one.tolist() for one in expected["ragged"]
        ]
        assert all(one.dtype == torch.int16 for one in found["ragged"])
        assert list(found["name"]) == list(expected["name"])


@needs_torch
def test_each_pass_is_an_epoch_and_the_loader_counts(loader, uri):
    samples = loader.torch()
    assert [labels(samples), labels(samples)] == epochs(uri, 2)
    assert samples.state_dict() == loader.state_dict()
    assert samples.state_dict()["epoch"] == 2
    samples.set_epoch(1)
    assert labels(samples) == epochs(uri, 2)[1]


@needs_torch
def test_it_goes_on_where_it_was(uri, loader):
    samples = loader.torch()
    first = labels(itertools.islice(samples, 3))
    state = samples.state_dict()
    again = tl.dataset(uri).loader(BATCH, shuffle=True, seed=5).torch()
    again.load_state_dict(state)
    assert len(again) == 4
    assert first + labels(again) == epochs(uri, 1)[0]


@needs_torch
def test_pinned_memory_needs_no_gpu_to_be_asked_for(loader):
    import torch

    batch = next(iter(loader.torch(pin_memory=True)))
    assert batch["x"].is_pinned() == torch.cuda.is_available()


# ------------------------------------------------------------------ under a DataLoader


@needs_torch
def test_without_workers_a_data_loader_is_the_loader(loader, uri):
    loaded = data_loader(loader.torch(), 0)
    assert len(loaded) == 7
    assert [labels(loaded), labels(loaded)] == epochs(uri, 2)
    assert loader.epoch == 2


@needs_torch
@both_starts
@pytest.mark.parametrize(("workers", "persistent"), [(1, False), (2, True)])
def test_workers_deliver_each_batch_once_and_in_order(loader, uri, method, workers, persistent):
    samples = loader.torch()
    loaded = data_loader(samples, workers, method, persistent_workers=persistent)
    assert [labels(loaded), labels(loaded)] == epochs(uri, 2)
    assert not [child for child in multiprocessing.active_children() if not persistent]
    batch = next(iter(loaded))
    assert isinstance(batch["name"][0], str)
    assert batch["x"].shape == (BATCH, 2, 3)


@needs_torch
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_more_workers_than_batches(uri):
    loader = tl.dataset(uri).loader(20, workers=1)
    assert labels(data_loader(loader.torch(), 5, "fork")) == labels(loader)


@needs_torch
def test_other_numbers_of_workers_one_after_the_other(loader, uri):
    """Each DataLoader has whole epochs, from the one where the loader is."""
    samples = loader.torch()
    expected = epochs(uri, 2)
    for workers in (1, 2):
        loaded = data_loader(samples, workers, "fork")
        assert [labels(loaded), labels(loaded)] == expected


@needs_torch
def test_the_epoch_that_is_set_is_the_one_that_workers_have(loader, uri):
    samples = loader.torch()
    expected = epochs(uri, 4)
    for persistent in (False, True):
        loaded = data_loader(samples, 2, "fork", persistent_workers=persistent)
        for epoch in (3, 0, 1):
            samples.set_epoch(epoch)
            assert labels(loaded) == expected[epoch]
        assert labels(loaded) == expected[2]


@needs_torch
def test_an_epoch_of_the_loader_itself_is_seen_by_new_workers(loader, uri):
    loaded = data_loader(loader.torch(), 2, "fork")
    expected = epochs(uri, 3)
    for epoch in (2, 1):
        loader.set_epoch(epoch)
        assert labels(loaded) == expected[epoch]


@needs_torch
@pytest.mark.parametrize("persistent", [False, True])
def test_who_takes_batches_of_workers_says_how_many(loader, uri, persistent):
    """From the state it goes on, with workers or without, at the very batch."""
    samples = loader.torch()
    loaded = data_loader(samples, 2, "fork", persistent_workers=persistent)
    assert labels(loaded) == epochs(uri, 1)[0]
    taken = labels(itertools.islice(loaded, 3))
    with pytest.raises(InvalidOptionError, match=r"call state_dict\(batches=k\)"):
        samples.state_dict()
    state = samples.state_dict(batches=3)
    assert (state["epoch"], state["samples"]) == (1, 24)
    for workers in (0, 2):
        again = tl.dataset(uri).loader(BATCH, shuffle=True, seed=5, workers=1).torch()
        again.load_state_dict(state)
        rest = data_loader(again, workers, "fork")
        assert len(rest) == 4
        assert taken + labels(rest) == epochs(uri, 2)[1]
        assert len(rest) == 7
        assert labels(rest) == epochs(uri, 3)[2]
    assert samples.state_dict(batches=7)["epoch"] == 2


@needs_torch
def test_a_state_loaded_while_workers_stay(loader, uri):
    samples = loader.torch()
    loaded = data_loader(samples, 2, "fork", persistent_workers=True)
    first = labels(loaded)
    samples.load_state_dict(samples.state_dict(batches=5) | {"epoch": 0})
    assert labels(loaded) == first[5:]


@needs_torch
@both_starts
def test_batches_that_the_parent_took_are_not_missing_in_the_epoch_of_workers(loader, uri, method):
    """Who looks at the first batch has begun an epoch; that of the workers is the next, and whole."""
    samples = loader.torch()
    batches = iter(samples)
    assert next(batches)["label"].tolist() == epochs(uri, 1)[0][0]
    assert labels(data_loader(samples, 2, method)) == epochs(uri, 2)[1]


@needs_torch
@both_starts
def test_workers_that_stay_take_the_seed_of_a_state(loader, uri, method):
    samples = loader.torch()
    loaded = data_loader(samples, 2, method, persistent_workers=True)
    labels(loaded)
    other = tl.dataset(uri).loader(BATCH, shuffle=True, seed=6, splits=3, workers=1)
    wanted = labels(other), labels(other)
    other.set_epoch(0)
    samples.load_state_dict(other.state_after(2))
    assert (labels(loaded), labels(loaded)) == (wanted[0][2:], wanted[1])


@needs_torch
def test_a_pass_without_workers_after_others_counts_itself(loader, uri):
    samples = loader.torch()
    labels(data_loader(samples, 2, "fork"))
    labels(itertools.islice(samples, 3))
    assert samples.state_dict() == loader.state_dict()
    assert samples.state_dict()["samples"] == 3 * BATCH


@needs_torch
def test_more_batches_than_there_are(loader):
    samples = loader.torch()
    with pytest.raises(InvalidOptionError, match="there are no workers"):
        samples.state_dict(batches=1)
    labels(data_loader(samples, 1, "fork"))
    with pytest.raises(InvalidOptionError, match="batches=8 is not from 0 to 7"):
        samples.state_dict(batches=8)


@needs_torch
def test_ranks_under_data_loaders_have_the_batches_of_ranks(uri):
    """Two ranks with two workers each: together the batches of one rank."""
    whole = epochs(uri, 1)[0]
    ranks = [
        tl.dataset(uri).loader(BATCH // 2, shuffle=True, seed=5, rank=rank, world_size=2, workers=1)
        for rank in range(2)
    ]
    parts = [labels(data_loader(rank.torch(), 2, "fork")) for rank in ranks]
    assert [first + second for first, second in zip(*parts)] == whole


@needs_torch
def test_the_page_on_shuffling_shows_what_runs():
    """Its blocks marked ``py`` need PyTorch; the first block makes their dataset."""
    text = (DOCS / "shuffling.md").read_text("utf-8")
    names = {}
    for block in [
        *re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:1],
        *re.findall(r"```py\n(.*?)```", text, re.DOTALL),
    ]:
        exec(compile(block, "shuffling.md", "exec"), names)
    assert (names["state"]["epoch"], names["state"]["samples"]) == (1, 5 * 64)


# ------------------------------------------------------------------ values


def tensor_of(value):
    from tensorlake_spark.loader.frameworks.torch_samples import tensor_of

    return tensor_of(value)


@needs_torch
@pytest.mark.parametrize(
    "dtype",
    ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16",
     ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 2), (), (0, 4)])
def test_arrays_become_tensors_over_the_same_memory(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    tensor = tensor_of(array)
    assert tuple(tensor.shape) == shape
    assert bits(array_of_torch(tensor)) == bits(array)
    assert tensor.data_ptr() == array.ctypes.data or not array.size


@needs_torch
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[::-1],
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: np.broadcast_to(a[0], a.shape),
    ],
)
def test_what_pytorch_cannot_lie_over_is_copied(change):
    array = change(np.arange(12.0).reshape(3, 4))
    tensor = tensor_of(array)
    assert tensor.tolist() == array.tolist()
    tensor += 1
    assert tensor.tolist() != array.tolist()


@needs_torch
def test_what_cannot_be_written_stays_as_it_is():
    array = np.arange(4)
    array.flags.writeable = False
    tensor = tensor_of(array)
    tensor[0] = 9
    assert array.tolist() == [0, 1, 2, 3]


@needs_torch
@pytest.mark.parametrize(
    "value",
    [np.array(["a"]), np.array([1], "M8[s]"), np.array([None]), np.array([1], "g"), "text", None, 3,
     np.zeros(2, ml_dtypes.int4)],
)  # fmt: skip
def test_what_pytorch_has_no_dtype_for_stays(value):
    assert tensor_of(value) is value


@needs_torch
def test_sparse_tensors():
    dense = np.diag([1.0, 0, 3])
    tensor = tensor_of(SparseTensor.from_dense(dense))
    assert tensor.is_sparse
    assert tensor.to_dense().tolist() == dense.tolist()


@needs_torch
def test_names_of_the_module():
    from tensorlake_spark.loader.frameworks import torch_samples

    assert torch_samples.TorchSamples.__mro__[1] is torch_samples.TorchBatches
    with pytest.raises(AttributeError, match="no attribute 'TorchSample'"):
        torch_samples.TorchSample
