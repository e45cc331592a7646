"""Batches of samples for training, in one order on every machine.

Begin with `loader` and `transforms`.
May import ``datasets``, ``lake`` and below.

`opening` makes loaders of datasets, and `zipped` of tensors. `loader_options`, `byte_size`, `epoch_samples` and
`weighing` read options. ``order`` decides which samples a batch has. ``sources`` and ``columns`` read them, and
``decoding`` makes arrays. ``pipeline`` does all this in threads, within a bound of memory. ``caching`` keeps remote
bytes on a disk, and ``frameworks`` hands batches to PyTorch and others. Transforms are imported late.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers and editors read these; Python goes by `_HOMES`
    from tensorlake_spark.loader.transforms.crops import CenterCrop, RandomCrop, RandomResizedCrop
    from tensorlake_spark.loader.transforms.flips import RandomFlip
    from tensorlake_spark.loader.transforms.resizing import Resize
    from tensorlake_spark.loader.transforms.sequence import Compose

_HOMES = {
    "CenterCrop": "transforms.crops",
    "Compose": "transforms.sequence",
    "RandomCrop": "transforms.crops",
    "RandomFlip": "transforms.flips",
    "RandomResizedCrop": "transforms.crops",
    "Resize": "transforms.resizing",
}
"""Where a name that is imported late is from."""

__all__ = [
    "CenterCrop",
    "Compose",
    "RandomCrop",
    "RandomFlip",
    "RandomResizedCrop",
    "Resize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES[name]}")
    return globals().setdefault(name, getattr(home, name))
