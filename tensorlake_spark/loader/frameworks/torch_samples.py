"""A loader as a dataset of PyTorch: alone, or under a DataLoader with any number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, check_flag
from tensorlake_spark.loader.frameworks.batch_values import (
    Batches,
    State,
    each_value,
    framework,
    is_foreign,
    is_numeric,
    plain,
)
from tensorlake_spark.loader.frameworks.worker_passes import WorkerPasses
from tensorlake_spark.tensor.sparse import SparseTensor

Array = np.ndarray[Any, Any]


def torch_samples(batches: Batches, pin_memory: bool = False) -> Any:
    """Return a ``torch.utils.data.IterableDataset`` of the batches of a loader, as tensors.

    It delivers whole batches, so a DataLoader gets ``batch_size=None``. Each batch is delivered once, in order, with
    any number of workers; each pass is the next epoch. Arrays become tensors over the same memory; what PyTorch has no
    dtype for, such as texts and times, stays what it is. See `TorchSamples`.

    Parameters
    ----------
    batches : Loader
    pin_memory : bool, optional
        Put tensors into memory that a GPU copies from fast; nothing happens where there is no GPU. Under a DataLoader
        with workers its own `pin_memory` does that.

    Raises
    ------
    MissingDependencyError
        PyTorch is not installed.
    InvalidOptionError
        `pin_memory` is neither True nor False.
    """
    check_flag("pin_memory", pin_memory)
    framework("torch", "torch")
    return _class()(batches, pin_memory)


class TorchBatches:
    """What `TorchSamples` does: it is this and an ``IterableDataset``.

    Parameters
    ----------
    batches : Loader
    pin_memory : bool
    """

    def __init__(self, batches: Batches, pin_memory: bool = False) -> None:
        self._batches = batches
        self._pin_memory = pin_memory
        self._passes = WorkerPasses()

    def __len__(self) -> int:
        """How many batches the next pass has, of all workers together."""
        if (last := self._passes.last()) is None:
            return len(self._batches)
        return len(self._at(last[0] + 1, 0))

    def __iter__(self) -> Iterator[Any]:
        torch = framework("torch", "torch")
        worker = framework("torch.utils.data").get_worker_info()
        batches, pins = self._batches, self._pin_memory and torch.cuda.is_available()
        if worker is None:
            self._passes.forget()
        else:
            if (moved := self._passes.moved()) is not None:
                batches.load_state_dict(moved)
            # Not where its parent is, which may have taken some batches of a pass of its own.
            state = batches.share(0, 1).state_dict()
            number, workers = worker.id, worker.num_workers
            place = self._passes.begin(
                number, workers, _count(state, "epoch"), _count(state, "samples")
            )
            batches = self._at(*place).share(number, workers)
            pins = False  # that is done where the batch arrives
        for batch in batches:
            yield each_value(batch, lambda value: tensor_of(value, pins))

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch, counted from 0, with the next pass."""
        self._batches.set_epoch(epoch)
        self._passes.move(self._batches.state_dict())

    def state_dict(self, batches: int | None = None) -> State:
        """Return where the dataset is: a few integers and short texts, the same on all ranks.

        Parameters
        ----------
        batches : int, optional
            How many batches of this pass a DataLoader delivered. Workers make some ahead, so that only who takes them
            knows. It is not needed where there are no workers.

        Raises
        ------
        InvalidOptionError
            There are workers, and `batches` is not given, is no whole number, or is more than a pass has.
        """
        last = self._passes.last()
        if last is None:
            if batches is not None:
                raise InvalidOptionError(
                    f"state_dict(batches={batches}): there are no workers, so the loader itself counts; call "
                    "state_dict()"
                )
            return self._batches.state_dict()
        if batches is None:
            raise InvalidOptionError(
                "workers of a DataLoader make batches ahead, so only your loop knows how many were delivered: call "
                "state_dict(batches=k) with their number in this pass"
            )
        return self._at(*last).state_after(batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after the last batch that was delivered when the state was taken; see `Loader.load_state_dict`."""
        self._batches.load_state_dict(state)
        self._passes.move(self._batches.state_dict())

    def _at(self, epoch: int, samples: int) -> Batches:
        """Return a loader at this place; the one of this dataset stays where it is."""
        out = self._batches.share(0, 1)
        out.load_state_dict({**self._batches.state_dict(), "epoch": epoch, "samples": samples})
        return out


def tensor_of(value: Any, pin_memory: bool = False) -> Any:
    """Return an array of numbers as a tensor, over the same memory where that can be; anything else as it is.

    What cannot be written is copied, because PyTorch lets everybody write, and so is what does not lie evenly or has
    another byte order. A `SparseTensor` becomes a sparse tensor.
    """
    torch = framework("torch", "torch")
    if isinstance(value, SparseTensor):
        tensor = value.to_torch()
    elif is_numeric(value):
        array = plain(value)
        array = array if array.flags.writeable else array.copy()
        try:
            tensor = _over(torch, array)
        except TypeError:  # such as long doubles
            return value
    else:
        return value
    return tensor.pin_memory() if pin_memory else tensor


def _over(torch: Any, array: Array) -> Any:
    if not is_foreign(array.dtype):
        return torch.from_numpy(array)
    # NumPy hands over integers of the same size.
    name = array.dtype.name
    dtype = getattr(torch, name, None)
    # Some versions have names for numbers of less than a byte too, and no use for them.
    if not name.startswith(("bfloat16", "float8_")) or not isinstance(dtype, torch.dtype):
        raise TypeError(name)
    return torch.from_numpy(array.view(f"i{array.itemsize}")).view(dtype)


def _count(state: Mapping[str, Any], name: str) -> int:
    return int(state[name])


def _class() -> Any:
    """Return the class `TorchSamples`, which is made when PyTorch is there."""
    if "TorchSamples" not in globals():
        data = framework("torch.utils.data")
        body = {
            "__doc__": "Batches of a loader as tensors; `torch_samples` makes one.",
            "__module__": __name__,
        }
        globals()["TorchSamples"] = type("TorchSamples", (TorchBatches, data.IterableDataset), body)
    return globals()["TorchSamples"]


def __getattr__(name: str) -> Any:
    # Unpickling in a worker looks for it.
    if name == "TorchSamples":
        return _class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
