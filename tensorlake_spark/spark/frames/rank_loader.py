"""From Spark into training: what each process of a distributed training opens to get its part of a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tensorlake_spark.datasets.dataset import Dataset, dataset
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.loader import Loader

_RANK, _WORLD = "RANK", "WORLD_SIZE"  # as TorchDistributor and torchrun set them


@dataclass(frozen=True)
class RankLoader:
    """A dataset's version and the options of a loader, to be sent to the processes that train; `loader` makes it.

    Attributes
    ----------
    uri : str
        The dataset.
    version : int
        What all processes read, whatever is written meanwhile.
    storage_options : mapping of str to str
        As for `tensorlake_spark.dataset`; not shown.
    options : mapping of str to object
        Of `Dataset.loader`.
    """

    uri: str
    version: int
    storage_options: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any]

    def open(self, rank: int | None = None, world_size: int | None = None) -> Loader:
        """Return the loader of one process.

        Parameters
        ----------
        rank, world_size : int, optional
            Which process it is, and of how many; without them what the environment says in ``RANK`` and
            ``WORLD_SIZE``, where TorchDistributor and torchrun put it.

        Raises
        ------
        InvalidOptionError
            If the environment does not say it, or it makes no sense.
        """
        number = _said(_RANK) if rank is None else rank
        world = _said(_WORLD) if world_size is None else world_size
        found = dataset(self.uri, None, self.storage_options, self.version)
        return found.loader(**self.options, rank=number, world_size=world)


def loader(
    of: Dataset | str | os.PathLike[str],
    batch_size: int,
    *,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> RankLoader:
    """Return what each process of a distributed training opens to get its part of a dataset.

    Send it to the function that ``TorchDistributor`` runs, and call ``open`` there.

    Parameters
    ----------
    of : Dataset, str or path
        A dataset, whose version is read, or where one is.
    batch_size : int
        Samples of one process's batch.
    version : int or str, optional
        A version or a tag, where `of` is a place; by default the newest, which is found out now.
    storage_options : mapping, optional
        As for `tensorlake_spark.dataset`, where `of` is a place.
    **options
        Of `Dataset.loader`, but ``rank`` and ``world_size``.

    Raises
    ------
    InvalidOptionError
        If an option is wrong: it is said here, and not by the processes.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": "int64"})
    >>> ds.extend({"x": np.arange(6)})
    >>> ranks = loader(ds, 2)
    >>> [[batch["x"].tolist() for batch in ranks.open(rank, 2)] for rank in range(2)]
    [[[0, 1], [4]], [[2, 3], [5]]]
    """
    for name in ("rank", "world_size"):
        if name in options:
            raise InvalidOptionError(
                f"{name}= is what each process says when it opens its loader; leave it out here"
            )
    if isinstance(of, Dataset):
        if version is not None or storage_options is not None:
            raise InvalidOptionError(
                "version and storage_options are those of the dataset; give the place of it to say others"
            )
        found = of
    else:
        found = dataset(of, None, storage_options, version, create=False)
    found.loader(batch_size, **options)  # raises what is wrong
    assert found.version is not None  # nosec B101 # a loader has samples
    return RankLoader(
        found.uri,
        found.version,
        found.parts.stored.snapshot.storage.options,
        {"batch_size": batch_size, **options},
    )


def _said(name: str) -> int:
    text = os.environ.get(name)
    if text is None or not text.isdecimal():
        raise InvalidOptionError(
            f"the environment variable {name} is {text!r:.40}, and not a number; run this by TorchDistributor or "
            "torchrun, or give rank and world_size"
        )
    return int(text)
