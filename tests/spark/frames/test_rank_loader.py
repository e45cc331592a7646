"""A dataset handed to processes that train: real processes, as TorchDistributor starts them."""

import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from pyspark import cloudpickle

import tensorlake_spark as tl
from tensorlake_spark.spark import loader

PROCESS = """
import json, pickle, sys
ranks = pickle.loads(bytes.fromhex(sys.argv[1]))
print(json.dumps([batch["x"].tolist() for batch in ranks.open()]))
"""


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(str(tmp_path / "ds"), {"x": "int64", "y": "float32"})
    found.extend({"x": np.arange(50), "y": np.zeros(50)})
    return found


def test_two_processes_have_the_whole_dataset_in_the_order_of_one(ds):
    sent = pickle.dumps(loader(ds, 8, columns=["x"], shuffle=True, seed=3)).hex()
    ds.extend({"x": [999], "y": [1.0]})  # is not read any more
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, sent],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"},
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    parts = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    alone = tl.dataset(ds.uri, version=1).loader(16, ["x"], shuffle=True, seed=3)
    steps = [batch["x"].tolist() for batch in alone]
    assert [first + second for first, second in zip(*parts, strict=True)] == steps
    assert sorted(x for step in steps for x in step) == list(range(50))


def test_a_place_and_a_version(ds):
    version = ds.version
    ds.extend({"x": [7], "y": [1.0]})
    assert loader(ds.uri, 4, version=version).version == version
    assert loader(ds.uri, 4).version == ds.version
    assert "secret" not in repr(loader(ds.uri, 4, storage_options={"key": "secret"}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rank": 1}, "rank= is what each process says"),
        ({"columns": ["z"]}, "no column 'z'"),
        ({"version": 0}, "version and storage_options are those of the dataset"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(ds, options, says):
    with pytest.raises(tl.TensorLakeError, match=says):
        loader(ds, 4, **options)


@pytest.mark.parametrize("text", [None, "", "first", "-1"])
def test_an_environment_that_does_not_say_which_process_it_is(ds, monkeypatch, text):
    monkeypatch.delenv("RANK", raising=False)
    if text is not None:
        monkeypatch.setenv("RANK", text)
    with pytest.raises(tl.InvalidOptionError, match=r"variable RANK is .* TorchDistributor"):
        loader(ds, 4).open(world_size=2)


def trained(ranks, folder):
    """Learn a number by two processes that average their gradients, and write what each was given."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    weight = torch.zeros(1)
    steps = []
    for batch in ranks.open().torch():
        steps.append(batch["x"].tolist())
        gradient = 2 * (weight - batch["x"].float()).mean(dim=0, keepdim=True)
        dist.all_reduce(gradient)
        weight -= 0.25 * gradient / dist.get_world_size()
    pathlib.Path(folder, f"{dist.get_rank()}.json").write_text(json.dumps([steps, weight.item()]))
    dist.destroy_process_group()
    return weight.item()


@pytest.mark.torch
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # PySpark leaves a pipe open
def test_torch_distributor_trains_with_two_processes(ds, spark, tmp_path):
    """They have the steps of one process with twice the batch, and end with its weight."""
    from pyspark.ml.torch.distributor import TorchDistributor

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    distributor = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
    ranks = loader(ds, 8, columns=["x"], shuffle=True, seed=3, drop_last=True)
    result = distributor.run(trained, ranks, str(tmp_path))
    (first, one), (second, other) = (
        json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)
    )
    alone = [b["x"].tolist() for b in ds.loader(16, ["x"], shuffle=True, seed=3, drop_last=True)]
    assert [a + b for a, b in zip(first, second, strict=True)] == alone
    weight = 0.0
    for step in alone:
        weight -= 0.5 * (weight - float(np.mean(step)))
    assert result == one == other == pytest.approx(weight, rel=1e-5)
