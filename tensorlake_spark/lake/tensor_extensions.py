"""Doors of a tensor to what is built on the lake; each imports it when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tensorlake_spark.lake.ref import TensorRef
    from tensorlake_spark.loader.loader import Loader


class DoorMethods:
    """Methods of `TensorRef` that open a loader."""

    __slots__ = ()

    def loader(
        self,
        batch_size: int,
        axis: int = 0,
        shuffle: bool | int | str = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        splits: int | None = None,
        workers: int | str = "auto",
        transform: Any = None,
        collate: Any = None,
        drop_last: bool = False,
        memory: int | str = "512MB",
        cache: str | None = None,
        prefetch: int | None = None,
        *,
        on_error: str = "raise",
        weights: Any = None,
        samples: int | None = None,
        replacement: bool = True,
    ) -> Loader:
        """Return batches of slices for training, made ahead by threads: an iterable whose every pass is an epoch.

        A sample is a slice along an axis; a batch is a dict with the tensor's id, and has the slices along its first
        axis. Of a sparse tensor it is a `SparseTensor`; ``collate="dense"`` makes an ndarray of it. The version that is
        shown now is read, whatever is written meanwhile. Blocks that several batches need are read once.

        Parameters
        ----------
        batch_size : int
            Slices of one rank's batch.
        axis : int
            Along which slices are taken.
        shuffle, seed, rank, world_size, splits, workers, transform, collate, drop_last, memory, cache
            As for `Dataset.loader`. ``shuffle=True`` moves blocks as they are stored.
        prefetch, on_error
            As for `Dataset.loader`.
        weights : array, optional
            How likely each slice is drawn.
        samples : int, optional
            How many an epoch has where they are drawn.
        replacement : bool
            Whether one slice may be drawn several times in an epoch.

        Returns
        -------
        Loader
            ``len`` says how many batches there are.

        Raises
        ------
        InvalidOptionError
            If an option is not what it should be, or the tensor has no such axis, or nothing along it.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ref = tl.open(tempfile.mkdtemp()).write("x", np.arange(10).reshape(2, 5))
        >>> [batch["x"].shape for batch in ref.loader(3, axis=1, shuffle=True)]
        [(3, 2), (2, 2)]
        """
        from tensorlake_spark.loader.zipped import zip as zipped

        return zipped(cast("TensorRef", self)).loader(
            batch_size, axis, weights=weights, samples=samples, replacement=replacement, shuffle=shuffle, seed=seed,
            rank=rank, world_size=world_size, splits=splits, workers=workers, transform=transform, collate=collate,
            drop_last=drop_last, memory=memory, cache=cache, prefetch=prefetch, on_error=on_error,
        )  # fmt: skip
