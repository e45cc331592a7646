"""Doors of a dataset to what is built on datasets; each imports it when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tensorlake_spark.datasets.derived import saved_views
from tensorlake_spark.errors import InvalidOptionError

if TYPE_CHECKING:
    from tensorlake_spark.datasets.dataset import Dataset
    from tensorlake_spark.loader.loader import Loader
    from tensorlake_spark.query.view import View


class DoorMethods:
    """Methods of `Dataset` that open a loader, or ask a query."""

    def loader(
        self,
        batch_size: int,
        columns: Sequence[str] | None = None,
        where: str | None = None,
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
        balance: str | None = None,
        samples: int | None = None,
        replacement: bool = True,
    ) -> Loader:
        """Return batches of samples for training, made ahead by threads: an iterable whose every pass is an epoch.

        The version that is shown now is read, whatever is written meanwhile.

        Parameters
        ----------
        batch_size : int
            Samples of one rank's batch; a step of all ranks has ``batch_size * world_size``.
        columns : sequence of str, optional
            Names, and ``sid``; all without ``sid`` where None.
        where : str, optional
            Only samples for which it is true, as for `to_arrow`.
        shuffle : bool, int or str
            True or ``"block"`` puts blocks of samples that lie together in another order and moves samples among 128
            MiB of stored bytes; a size, such as ``"256MB"``, says among how many. ``"global"`` is a true permutation,
            for local disks.
        seed : int
            The order follows from it, the epoch, and the samples that are selected, and from nothing else.
        rank, world_size : int
            Whose part is delivered. With one ``batch_size * world_size`` each step has the same samples on any
            number of ranks. All ranks have equally many batches and samples; where samples do not divide, up to
            ``world_size - 1`` of the epoch's first come again in its last batch.
        splits : int, optional
            Streams of the block shuffle, which are read side by side; 16.
        workers : int or str
            Threads that decode, by default one for each core; ``"processes"`` for transforms in Python that would
            keep threads waiting.
        transform : callable, or mapping of str to callable, optional
            Takes a sample as a dict and returns one; or for single columns takes a value and returns one. If it has a
            parameter ``rng`` it gets a NumPy generator, whose numbers follow from seed, epoch and sample alone.
        collate : {"pad", "stack", "list"} or callable, optional
            What becomes of arrays of different shapes: filled up with zeros, an error, or lists as without it. A
            function takes a list of samples, and what it returns is delivered.
        drop_last : bool
            Leave out a last batch that is not full.
        memory : int or str
            Bytes for batches that are made ahead.
        cache : str, optional
            A folder of a local disk for what is read of an object store, and its size: ``"/disk/cache:50GB"``.
        prefetch : int, optional
            Batches that are made ahead; as many as `memory` has room for.
        on_error : {"raise", "skip"}
            Whether a sample that cannot be read ends the epoch, or is replaced by a later one of its split and
            counted by `Loader.stats`.
        weights : str or array, optional
            A column, or a number for each sample: how likely it is drawn.
        balance : str, optional
            A column of labels: each is drawn as often as the others.
        samples : int, optional
            How many an epoch has where they are drawn.
        replacement : bool
            Whether one sample may be drawn several times in an epoch.

        Returns
        -------
        Loader
            ``len`` says how many batches there are.

        Raises
        ------
        InvalidOptionError
            If an option is not what it should be, or nothing is selected.
        UnknownLabelError
            If there is no such column.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("float32", (2,)), "label": "int64"})
        >>> ds.extend({"x": np.zeros((10, 2), "f4"), "label": np.arange(10)})
        >>> with ds.loader(4, shuffle=True, seed=1) as batches:
        ...     [batch["x"].shape for batch in batches]
        [(4, 2), (4, 2), (2, 2)]
        """
        from tensorlake_spark.loader.opening import loader_of_dataset

        return loader_of_dataset(
            cast("Dataset", self), batch_size, columns, where, weights=weights, balance=balance, samples=samples,
            replacement=replacement, shuffle=shuffle, seed=seed, rank=rank, world_size=world_size, splits=splits,
            workers=workers, transform=transform, collate=collate, drop_last=drop_last, memory=memory, cache=cache,
            prefetch=prefetch, on_error=on_error,
        )  # fmt: skip

    def query(
        self,
        sql: str,
        /,
        *,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
        **sources: Any,
    ) -> View:
        """Return the view of a query on this dataset, which is called ``dataset`` there.

        The version that is shown now is read.

        Parameters
        ----------
        sql : str
            A SELECT, such as ``SELECT image[:64, :64] AS crop FROM dataset WHERE array_mean(image) > 128``.
        parameters : mapping of str to object, optional
            Values of ``:name`` in the text.
        seed : int
            For SAMPLE BY.
        **sources
            What else it reads, as `tensorlake_spark.query` takes it.

        Returns
        -------
        View
            Nothing is read before its first row is asked for.

        Raises
        ------
        InvalidQueryError
            If the text is no query, or names what is not there; it shows the place.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("int32", (None,)), "label": "int32"})
        >>> ds.extend({"x": [[1, 2], [5], [7, 8]], "label": [0, 1, 0]})
        >>> ds.query("SELECT array_sum(x) AS total FROM dataset WHERE label = 0")["total"].tolist()
        [3, 15]
        """
        from tensorlake_spark.query.query import query

        return query(sql, parameters=parameters, seed=seed, **{"dataset": self, **sources})

    def save_view(self, name: str, view: View, *, replace: bool = False) -> None:
        """Keep a view of this dataset by a name: its text, sources and parameters, and the sids in order.

        The versions of this dataset that it reads are kept from `vacuum`, by tags that begin with ``view/``; those
        of other datasets are only named.

        Parameters
        ----------
        name : str
            Any text that could be a tag.
        view : View
            From a query that reads this dataset.
        replace : bool
            Whether to put it in the place of a view of this name.

        Raises
        ------
        InvalidOptionError
            If the name is taken or impossible, or the view reads another dataset, or what is only in memory.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.save_view("large", ds.query("SELECT * FROM dataset WHERE size > 3 ORDER BY size DESC"))
        >>> ds.update(2, {"size": 0})
        1
        >>> [*ds.views], ds.view("large")["size"].tolist()
        (['large'], [5, 4])
        """
        from tensorlake_spark.query.view import View as QueryView
        from tensorlake_spark.query.views.kept_view import kept

        owner = cast("Dataset", self)
        owner._check_writable()
        owner.stored  # noqa: B018 # raises
        saved_views.check_name(name)
        if not isinstance(view, QueryView):
            raise InvalidOptionError(
                f"view={type(view).__name__} is no View; ds.query(...) returns one"
            )
        saved_views.save(owner._storage, name, kept(view, owner), replace)
        owner.refresh()

    def view(self, name: str) -> View:
        """Return the view that is kept by a name, with the versions that it had.

        Raises
        ------
        InvalidOptionError
            If there is no such view, or a version that it reads is gone.
        """
        from tensorlake_spark.query.views.kept_view import reopened

        owner = cast("Dataset", self)
        owner.stored  # noqa: B018 # raises
        return reopened(saved_views.find(owner._storage, name), owner)
