"""From stored samples into training: what is read, in which order, decoded and handed out in batches.

Begin with `transforms`: they say which part of an image is decoded, and how large it is then. Names are imported
when they are first used. May import ``datasets`` and what lies below it.
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
