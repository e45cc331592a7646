"""Doors of a dataset to what is built on datasets; each imports it when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tensorlake_spark.datasets.derived import saved_views
from tensorlake_spark.errors import InvalidOptionError, check_flag

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
        """Return batches of samples for training, which threads prepare. Each iteration over the loader is an epoch.

        It reads the version that the dataset shows now, even if others write in the meantime.

        Parameters
        ----------
        batch_size : int
            Samples in a batch of one rank. A step of all ranks has ``batch_size * world_size`` samples.
        columns : sequence of str, optional
            Names, and ``sid``; by default all columns without ``sid``.
        where : str, optional
            A condition: only samples that fulfil it, as for `to_arrow`.
        shuffle : bool, int or str
            True or ``"block"`` reads blocks of neighbouring samples in random order, and mixes samples within a buffer
            of 128 MiB of stored bytes. A size, such as ``"256MB"``, sets another buffer. ``"global"`` is a true
            permutation, for local disks.
        seed : int
            The order depends only on the seed, the epoch and the selected samples.
        rank, world_size : int
            The number of this process among those that train together, and how many they are. If
            ``batch_size * world_size`` stays the same, each step has the same samples on any number of ranks. All ranks
            have equally many samples: if necessary, up to ``world_size - 1`` samples from the beginning of the epoch
            come again in its last batch.
        splits : int, optional
            How many streams a block shuffle reads side by side; 16 by default.
        workers : int or str
            How many threads decode; by default one for each core. ``"processes"`` makes batches in processes, for
            transforms in Python that hold the interpreter's lock.
        transform : callable, or mapping of str to callable, optional
            A function from a sample, as a dict, to a sample; or for single columns, functions from a value to a value.
            A function with a parameter ``rng`` gets a NumPy generator whose numbers depend only on seed, epoch and
            sample.
        collate : {"pad", "stack", "list"} or callable, optional
            What happens to arrays of different shapes: they are filled up with zeros, raise an error, or become a list,
            which is the default. A function gets a list of samples, and what it returns is the batch.
        drop_last : bool
            Leave out the last batch if it is not full.
        memory : int or str
            Bytes for batches that are prepared, and for what is read for them.
        cache : str, optional
            A folder on a local disk that keeps data from an object store, and its size: ``"/disk/cache:50GB"``.
        prefetch : int, optional
            At most this many batches are prepared; by default as many as fit into `memory`, and not more than 64.
        on_error : {"raise", "skip"}
            What happens to a sample that cannot be read: it ends the epoch with an error, or a later sample of its
            split replaces it and `Loader.stats` counts it.
        weights : str or array, optional
            A column, or a number for each sample: how likely the sample is drawn.
        balance : str, optional
            A column of labels: every label is drawn equally often.
        samples : int, optional
            With `weights` or `balance`: how many samples are drawn in an epoch.
        replacement : bool
            With `weights` or `balance`: whether a sample may be drawn several times in an epoch.

        Returns
        -------
        Loader
            Its ``len`` is the number of batches.

        Raises
        ------
        InvalidOptionError
            If the value of an option is not valid, or no sample is selected.
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
        """Return the view of a query on this dataset. In the query, it is called ``dataset``.

        The query reads the version that the dataset shows now.

        Parameters
        ----------
        sql : str
            A SELECT, such as ``SELECT image[:64, :64] AS crop FROM dataset WHERE array_mean(image) > 128``.
        parameters : mapping of str to object, optional
            Values of ``:name`` in the text: numbers, texts, times, lists, arrays.
        seed : int
            For SAMPLE BY.
        **sources
            Other tables that the query reads, as in `tensorlake_spark.query`.

        Returns
        -------
        View
            Nothing is read before its first row is asked for.

        Raises
        ------
        InvalidQueryError
            If the query has a mistake, or names something that does not exist; the message shows the place.

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
        """Store a view of this dataset under a name: its text, sources and parameters, and the sids in order.

        `vacuum` keeps the versions of this dataset that the view reads: they get tags that begin with ``view/``.
        Versions of other datasets are named, but not kept.

        Parameters
        ----------
        name : str
            Any text that is valid as a tag.
        view : View
            From a query that reads this dataset.
        replace : bool
            Whether to replace a view of this name.

        Raises
        ------
        InvalidOptionError
            If the name is taken or not valid, or if the view does not read this dataset, or reads a table in memory.

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
        replace = check_flag("replace", replace)
        if not isinstance(view, QueryView):
            raise InvalidOptionError(
                f"view={type(view).__name__} is not a View; ds.query(...) returns one"
            )
        saved_views.save(owner._storage, name, kept(view, owner), replace)
        owner.refresh()

    def view(self, name: str) -> View:
        """Return the view that is stored under a name. It reads the same versions as when it was stored.

        Raises
        ------
        InvalidOptionError
            If there is no such view, or a version that it reads no longer exists.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.save_view("large", ds.query("SELECT * FROM dataset WHERE size > 3"))
        >>> ds.view("large").sids.tolist()
        [1, 2]
        """
        from tensorlake_spark.query.views.kept_view import reopened

        owner = cast("Dataset", self)
        owner.stored  # noqa: B018 # raises
        return reopened(saved_views.find(owner._storage, name), owner)
